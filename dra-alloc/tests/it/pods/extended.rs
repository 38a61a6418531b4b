//! Extended resources: classes, requests, who provides them, and the claim from its creation to its removal.

use dra_alloc::explain::Detail;
use dra_alloc::pods::{
    ApiResponse, BindError, BindStep, BlockedError, ClaimLookup, ClaimWrite, ExtendedRequests, ExtendedResourceError,
    NodeFilterError, PodCycle, PodExplanation, PodOptions, PostFilter, PreBind, QueueHint, ResourceProvider,
};
use dra_alloc::{Allocator, Budget, Classes, Gate, GateSet, Profile};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use super::api_server::{allocation, consumers};
use super::world::{GPUS, NOW, World, allocated, claim, extended_pod, node};

fn class(name: &str, resource: &str, day: u32) -> DeviceClass {
    from_value(json!({"metadata": {"name": name, "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z")},
        "spec": {"extendedResourceName": resource}}))
    .unwrap()
}

fn node_with(name: &str, allocatable: &Value) -> Node {
    from_value(json!({"metadata": {"name": name}, "status": {"allocatable": allocatable}})).unwrap()
}

fn made_claim(world: &World) -> Option<ResourceClaim> {
    world.server.list().find(|claim| claim.metadata.generate_name.is_some()).map(|claim| (*claim).clone())
}

proptest! {
    /// The class of a resource depends on the classes that are there, not on what happened before.
    #[test]
    fn the_class_of_a_resource_is_independent_of_events(events in prop::collection::vec((0..4_usize, 0..3_usize, 1..3_u32, any::<bool>()), 0..12)) {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        const RESOURCES: [&str; 3] = ["example.com/x", "example.com/y", ""];
        let (mut classes, mut there) = (Classes::default(), std::collections::BTreeMap::new());
        for (name, resource, day, is_deleted) in events {
            if is_deleted {
                classes.remove(NAMES[name], None);
                there.remove(NAMES[name]);
            } else {
                classes.set(class(NAMES[name], RESOURCES[resource], day));
                there.insert(NAMES[name], class(NAMES[name], RESOURCES[resource], day));
            }
        }
        let anew = Classes::new(there.values().cloned());
        for resource in RESOURCES {
            let mut named: Vec<&DeviceClass> = there.values()
                .filter(|class| !resource.is_empty() && class.spec.as_ref().unwrap().extended_resource_name.as_deref() == Some(resource))
                .collect();
            named.sort_by_key(|class| (std::cmp::Reverse(class.metadata.creation_timestamp.clone()), class.metadata.name.clone()));
            prop_assert_eq!(classes.of_extended_resource(resource), named.first().copied());
            prop_assert_eq!(anew.of_extended_resource(resource), named.first().copied());
        }
        for name in NAMES {
            let implicit = format!("deviceclass.resource.kubernetes.io/{name}");
            prop_assert_eq!(classes.of_extended_resource(&implicit), there.get(name));
        }
    }

    /// Each container gets what it wants, and short-lived containers cost no more than the largest of them.
    #[test]
    fn containers_get_what_they_request(init in prop::collection::vec((0..4_i64, any::<bool>()), 0..4), regular in prop::collection::vec(0..4_i64, 0..3)) {
        let resources = |number: i64| json!({"requests": {GPUS: number.to_string(), "cpu": "1"}});
        let init_containers: Vec<Value> = init.iter().enumerate().map(|(index, (number, sidecar))| {
            json!({"name": format!("i{index}"), "resources": resources(*number), "restartPolicy": sidecar.then_some("Always")})
        }).collect();
        let containers: Vec<Value> = regular.iter().enumerate()
            .map(|(index, number)| json!({"name": format!("c{index}"), "resources": resources(*number)})).collect();
        let pod: Pod = from_value(json!({"spec": {"initContainers": init_containers, "containers": containers}})).unwrap();
        let made = ExtendedRequests::new(&pod, [GPUS], &Classes::new([class("gpu", GPUS, 1)]), Profile::V1_37).unwrap();
        let count = |name: &str| made.requests.iter().find(|request| request.name == name).unwrap().exactly.as_ref().unwrap().count.unwrap();
        let total: i64 = made.requests.iter().map(|request| count(&request.name)).sum();
        let wanted = init.iter().enumerate().map(|(index, (number, _))| (format!("i{index}"), *number))
            .chain(regular.iter().enumerate().map(|(index, number)| (format!("c{index}"), *number)));
        for (container, number) in wanted {
            let mapped: Vec<i64> = made.mappings.iter().filter(|mapping| mapping.container_name == container)
                .map(|mapping| count(&mapping.request_name)).collect();
            prop_assert!(mapped.iter().sum::<i64>() >= number && (number > 0 || mapped.is_empty()));
        }
        let long_lived: i64 = regular.iter().sum::<i64>() + init.iter().filter(|(_, sidecar)| *sidecar).map(|(number, _)| number).sum::<i64>();
        let largest = init.iter().filter(|(_, sidecar)| !sidecar).map(|(number, _)| *number).max().unwrap_or(0);
        prop_assert!(total >= long_lived && total <= long_lived + largest);
        prop_assert!(made.requests.is_sorted_by(|one, other| one.name < other.name));
    }
}

#[test]
fn each_container_of_1_34_has_devices_of_its_own() {
    let container = |name: &str, number: &str| json!({"name": name, "resources": {"requests": {GPUS: number}}});
    let pod: Pod = from_value(json!({"spec": {"initContainers": [container("load", "1")],
        "containers": [container("train", "2")]}}))
    .unwrap();
    let classes = Classes::new([class("gpu", GPUS, 1)]);
    let counts = |profile: Profile| -> Vec<i64> {
        let made = ExtendedRequests::new(&pod, [GPUS], &classes, profile).unwrap();
        made.requests.iter().map(|request| request.exactly.as_ref().unwrap().count.unwrap()).collect()
    };
    assert_eq!(Profile::RELEASES.map(counts), [vec![1, 2], vec![2], vec![2], vec![2]]);
}

#[test]
fn amounts_are_read_by_value_and_bounded() {
    let classes = Classes::new([class("gpu", GPUS, 1)]);
    let count = |amount: &str| {
        ExtendedRequests::new(&extended_pod("p", &[(GPUS, amount)]), [GPUS], &classes, Profile::V1_37)
            .map(|made| made.requests.first().map(|request| request.exactly.as_ref().unwrap().count.unwrap()))
    };
    assert_eq!(count("2000m"), Ok(Some(2)));
    assert_eq!(count("0"), Ok(None));
    assert!(matches!(count("two"), Err(ExtendedResourceError::Quantity { container, .. }) if container == "main"));
    let containers: Vec<Value> =
        (0..33).map(|index| json!({"name": format!("c{index}"), "resources": {"requests": {GPUS: "1"}}})).collect();
    let pod: Pod =
        from_value(json!({"metadata": {"name": "p", "uid": "p"}, "spec": {"containers": containers}})).unwrap();
    let made = ExtendedRequests::new(&pod, [GPUS], &classes, Profile::V1_37);
    assert_eq!(made, Err(ExtendedResourceError::TooMany { resource: GPUS.to_owned() }));
    let bad = extended_pod("p", &[(GPUS, "two")]);
    let world = World::new(1, []);
    let begun = PodCycle::pre_filter(&bad, None, &world.tracker, &world.classes, &world.round, world.options);
    assert!(matches!(begun, Err(BlockedError::Requests { .. })));
}

#[test]
fn the_node_provides_what_it_has_and_a_class_the_rest() {
    let classes = Classes::new([class("gpu", GPUS, 1)]);
    let provider = |resource: &str, amount: Option<&str>| {
        let allocatable = amount.map_or_else(|| json!({}), |amount| json!({resource: amount}));
        ResourceProvider::find(resource, &node_with("n1", &allocatable), &classes).unwrap()
    };
    assert_eq!(
        [Some("4"), Some("0"), None].map(|amount| provider(GPUS, amount)),
        [ResourceProvider::Node, ResourceProvider::DeviceClass, ResourceProvider::DeviceClass]
    );
    assert_eq!(
        [Some("4"), Some("0"), None].map(|amount| provider("example.com/other", amount)),
        [ResourceProvider::Node, ResourceProvider::Node, ResourceProvider::Nobody]
    );
    assert!(ResourceProvider::find(GPUS, &node_with("n1", &json!({GPUS: "many"})), &classes).is_err());
}

#[test]
fn the_claim_is_created_with_the_binding_and_removed_by_unreserve() {
    let mut world = World::new(1, []);
    let mut cycle = world.reserve(&extended_pod("p", &[(GPUS, "2")]), None, "n1");
    assert!(cycle.needs_allocation() && cycle.claims()[0].is_for_extended_resources());
    assert_eq!(cycle.extended_requests_on("n1").unwrap().requests.len(), 1);
    assert_eq!(world.tracker.state().len(), 2, "in flight under a name of its own");
    world.bind(&mut cycle).unwrap();
    let made = made_claim(&world).unwrap();
    assert!(allocation(&made).is_some() && consumers(&made) == ["p"]);
    assert_eq!((world.tracker.in_flight().count(), world.tracker.state().len()), (0, 2));
    world.watch();
    assert_eq!(world.tracker.state().len(), 2);
    world.unreserve(&mut cycle);
    assert_eq!((made_claim(&world), world.tracker.state().len()), (None, 0));
}

#[test]
fn the_device_plugins_node_needs_no_claim() {
    let mut world = World::new(2, [claim("c", 1)]);
    let mut pod = extended_pod("p", &[(GPUS, "1")]);
    let allocator = Allocator::new(Profile::V1_37, &world.inventory, &world.classes);
    let plugin = node_with("n1", &json!({GPUS: "4"}));
    for entries in [json!(null), json!([{"name": "c", "resourceClaimName": "c"}])] {
        pod.spec.as_mut().unwrap().resource_claims = from_value(entries).unwrap();
        let mut cycle = world.begin(&pod, None);
        let verdict = cycle.filter(&plugin, &allocator, world.tracker.state(), NOW, Budget::default());
        assert_eq!(verdict.refusal(), None);
        cycle.record("n1", verdict);
        assert_eq!((cycle.extended_requests_on("n1"), cycle.score("n1")), (None, Ok(0)));
        cycle.reserve("n1", &mut world.tracker.clone(), &mut world.round.clone()).unwrap();
        assert!(cycle.is_reserved());
        assert!(!cycle.claims().last().unwrap().has_allocation_in_flight());
    }
    let mut only = world.begin(&extended_pod("q", &[(GPUS, "1")]), None);
    only.reserve("n1", &mut world.tracker, &mut world.round).unwrap();
    world.bind(&mut only).unwrap();
    world.unreserve(&mut only);
    assert_eq!(made_claim(&world), None);
}

#[test]
fn without_the_gate_or_a_class_the_node_decides() {
    let world = World::new(1, []);
    let begin = |pod: &Pod, options: PodOptions| {
        PodCycle::pre_filter(pod, None, &world.tracker, &world.classes, &world.round, options).unwrap()
    };
    let off =
        PodOptions::new(Component::new(Profile::V1_37, GateSet::of(Profile::V1_37).without(Gate::ExtendedResource)));
    let pod = extended_pod("p", &[(GPUS, "1")]);
    assert!(begin(&pod, world.options).is_some() && begin(&pod, off).is_none());
    for requests in [[("example.com/nobody", "1")], [(GPUS, "0")], [("cpu", "1")]] {
        assert!(begin(&extended_pod("p", &requests), world.options).is_none(), "{requests:?}");
    }
    let both = begin(&extended_pod("p", &[(GPUS, "1"), ("example.com/nobody", "1")]), world.options).unwrap();
    let verdict = world.filter(&both, "n1");
    assert_eq!(verdict.refusal().unwrap().to_string(), "cannot fit resource");
    let mut explanation = PodExplanation::default();
    explanation.add_verdict("n1", &verdict);
    assert_eq!(
        explanation.to_string(),
        "0/1 nodes are available: 1 no device plugin or device class for example.com/nobody"
    );
}

#[test]
fn a_claim_that_is_left_over_is_deleted_first() {
    let mut world = World::new(1, []);
    let pod = extended_pod("p", &[(GPUS, "1")]);
    let mut crashed = world.reserve(&pod, None, "n1");
    let mut binding = PreBind::default();
    for _ in 0..2 {
        let BindStep::Write(write) = binding.next(&mut crashed, &mut world.tracker, NOW) else { panic!() };
        let answer = world.server.call(&write);
        binding.answer(&mut crashed, &mut world.tracker, answer, NOW);
    }
    let mut world = World { tracker: World::new(0, []).tracker, ..world };
    world.watch();
    let cycle = world.begin(&pod, None);
    let verdict = world.filter(&cycle, "n1");
    assert!(matches!(verdict.refusal(), Some(NodeFilterError::LeftOver { .. })));
    let decision = cycle.post_filter(0);
    assert_eq!(decision.reason(), "deletion of ResourceClaim completed");
    let mut touched = made_claim(&world).unwrap();
    touched.metadata.labels = Some([("touched".to_owned(), "yes".to_owned())].into());
    world.store(touched);
    let (mut calls, mut verbs) = (decision.calls(), Vec::new());
    while let Some(write) = calls.next() {
        let answer = world.server.call(&write);
        verbs.push(match (&write, &answer) {
            (_, ApiResponse::Conflict(_)) => "conflict",
            (ClaimWrite::Get { .. }, _) => "get",
            (ClaimWrite::Update { .. }, _) => "update",
            _ => "delete",
        });
        calls.answer(&mut world.tracker, answer);
    }
    assert_eq!(verbs, ["conflict", "get", "update", "delete"]);
    assert_eq!((made_claim(&world), calls.errors()), (None, &[][..]));
    let mut again = world.reserve(&pod, None, "n1");
    world.bind(&mut again).unwrap();
    assert_eq!(world.server.list().count(), 1);
    assert_eq!(again.post_filter(0).calls().next().is_some(), again.post_filter(0) != PostFilter::Nothing);
}

#[test]
fn a_removal_gives_up_after_five_conflicts_and_says_so() {
    let mut world = World::new(1, []);
    let mut cycle = world.reserve(&extended_pod("p", &[(GPUS, "1")]), None, "n1");
    world.bind(&mut cycle).unwrap();
    let (mut calls, mut updates) = (cycle.unreserve(&mut world.tracker), 0);
    while let Some(write) = calls.next() {
        let is_update = matches!(write, ClaimWrite::Update { .. });
        updates += u32::from(is_update);
        let answer = if is_update { ApiResponse::Conflict("modified".to_owned()) } else { world.server.call(&write) };
        calls.answer(&mut world.tracker, answer);
    }
    assert_eq!(
        (updates, calls.errors()),
        (5, &["update resourceclaim ns/p-extended-resources-00001: modified".to_owned()][..])
    );
    assert_eq!(world.tracker.state().len(), 1, "what may still be allocated is not free");
}

/// Errors of each call, and that the devices are free again afterwards.
#[test]
fn failed_calls_end_the_binding_in_kube_schedulers_words() {
    type Row = (fn(&ClaimWrite) -> bool, ApiResponse, &'static str);
    let failed = || ApiResponse::Failed("boom".to_owned());
    let rows: [Row; 4] = [
        (|write| matches!(write, ClaimWrite::Create { .. }), failed(), "create claim for extended resources ns/: boom"),
        (
            |write| matches!(write, ClaimWrite::Update { .. }),
            failed(),
            "add finalizer to claim ns/p-extended-resources-00001: boom",
        ),
        (
            |write| matches!(write, ClaimWrite::UpdateStatus { .. }),
            ApiResponse::Unavailable("boom".to_owned()),
            "add allocation and reservation to claim ns/p-extended-resources-00001: boom",
        ),
        (
            |write| matches!(write, ClaimWrite::PatchPodStatus { .. }),
            failed(),
            "update pod ns/p ExtendedResourceClaimStatus: boom",
        ),
    ];
    for (fails, answer, text) in rows {
        let mut world = World::new(1, []);
        let mut cycle = world.reserve(&extended_pod("p", &[(GPUS, "1")]), None, "n1");
        let mut binding = PreBind::default();
        let error: BindError = loop {
            match binding.next(&mut cycle, &mut world.tracker, NOW) {
                BindStep::Write(write) => {
                    let answer = if fails(&write) { answer.clone() } else { world.server.call(&write) };
                    binding.answer(&mut cycle, &mut world.tracker, answer, NOW);
                }
                BindStep::Failed(error) => break error,
                step => panic!("{step:?}"),
            }
        };
        assert_eq!(error.to_string(), text);
        world.unreserve(&mut cycle);
        assert_eq!((world.server.list().count(), world.tracker.state().len()), (0, 0), "{text}");
    }
}

#[test]
fn a_pods_status_is_written_four_times_at_most() {
    let mut world = World::new(1, []);
    let mut cycle = world.reserve(&extended_pod("p", &[(GPUS, "1")]), None, "n1");
    let (mut binding, mut patches) = (PreBind::default(), 0);
    let error = loop {
        match binding.next(&mut cycle, &mut world.tracker, NOW) {
            BindStep::Write(ClaimWrite::PatchPodStatus { extended_resource_claim, .. }) => {
                patches += 1;
                assert_eq!(extended_resource_claim.request_mappings[0].container_name, "main");
                let answer = ApiResponse::Unavailable("down".to_owned());
                binding.answer(&mut cycle, &mut world.tracker, answer, NOW);
            }
            BindStep::Write(write) => {
                let answer = world.server.call(&write);
                binding.answer(&mut cycle, &mut world.tracker, answer, NOW);
            }
            step => break step,
        }
    };
    assert_eq!(patches, 4);
    assert!(matches!(error, BindStep::Failed(BindError::PodStatus { .. })));
}

#[test]
fn the_deletion_of_what_was_left_over_wakes_the_pod() {
    let mut world = World::new(1, []);
    let pod = extended_pod("p", &[(GPUS, "1")]);
    let mut cycle = world.reserve(&pod, None, "n1");
    world.bind(&mut cycle).unwrap();
    let made = ResourceClaim { status: None, ..made_claim(&world).unwrap() };
    let hint = |pod: &Pod, new| QueueHint::after_claim_change(pod, Some(&made), new, &world.tracker, world.options);
    assert_eq!(hint(&pod, None), QueueHint::Queue);
    assert_eq!(hint(&pod, Some(&made)), QueueHint::Skip);
    assert_eq!(hint(&extended_pod("q", &[(GPUS, "1")]), None), QueueHint::Skip);
}

#[test]
fn an_explanation_says_what_its_requests_are() {
    let world = World::new(1, []);
    let allocator = Allocator::new(Profile::V1_37, &world.inventory, &world.classes).with_explanation(Detail::Summary);
    let cycle = world.begin(&extended_pod("p", &[(GPUS, "3")]), None);
    let mut explanation = PodExplanation::default();
    let verdict = cycle.filter(&node("n1"), &allocator, world.tracker.state(), NOW, Budget::default());
    explanation.add_verdict("n1", &verdict);
    let text = explanation.to_string();
    assert!(
        text.ends_with(
            "possible on 1 node if request container-0-request-0 asked for 2 devices; request container-0-request-0 is \
             example.com/gpu of container main"
        ),
        "{text}"
    );
}

#[test]
fn devices_of_claims_are_not_given_to_extended_resources() {
    let world = World::new(1, [allocated("c", "n1", "a", &["x"])]);
    let cycle = world.begin(&extended_pod("p", &[(GPUS, "2")]), None);
    assert!(matches!(world.filter(&cycle, "n1").refusal(), Some(NodeFilterError::CannotAllocate)));
    assert!(world.tracker.claim("ns", "c").is_some() && node("n1").status.is_none());
}
