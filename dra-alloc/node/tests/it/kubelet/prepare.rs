//! Tests of the errors that prevent a pod from starting, with kubelet's messages, and of retries.

use dra_attrs::{Component, Gate, Profile};
use dra_device::claims::ClaimKey;
use dra_node::kubelet::{CallError, PrepareError, PreparedDevice, Responses};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, from_value, json};

use super::world::{BOTH, GPU, NIC, World, changed, claim, pod};

fn refusal(world: &mut World, pod: &Pod, claims: &[ResourceClaim]) -> String {
    let error = world.prepare(pod, claims).unwrap_err().to_string();
    error.strip_prefix("prepare dynamic resources: ").unwrap_or_else(|| panic!("{error}")).to_owned()
}

fn template_pod(statuses: Value) -> Pod {
    from_value(json!({
        "metadata": {"namespace": "ns", "name": "p", "uid": "p-uid"},
        "spec": {"containers": [], "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
        "status": {"resourceClaimStatuses": statuses},
    }))
    .unwrap()
}

#[test]
fn each_check_and_its_text() {
    let plain = claim("c", &[(GPU, json!(null))]);
    let pod = pod("p", &["c"]);
    let rows = vec![
        (pod.clone(), vec![], r#"fetch ResourceClaim c: resourceclaims.resource.k8s.io "c" not found"#),
        (
            pod.clone(),
            vec![changed(&plain, "/status/reservedFor", json!([]))],
            "pod p (p-uid) is not allowed to use ResourceClaim c (c-claim)",
        ),
        (pod.clone(), vec![changed(&plain, "/status/allocation", json!(null))], "ResourceClaim c: not allocated"),
        (pod.clone(), vec![plain.clone()], "DRA driver gpu.example.com is not registered"),
        (pod, vec![claim("c", &[("", json!(null))])], "DRA driver name is empty"),
        (template_pod(json!([])), vec![plain.clone()], r#"pod "ns/p": ResourceClaim not created yet"#),
        (
            template_pod(json!([{"name": "gpu", "resourceClaimName": "c"}])),
            vec![plain],
            "ResourceClaim ns/c was not created for Pod ns/p (Pod is not owner)",
        ),
        (
            from_value(json!({"metadata": {"namespace": "ns", "name": "p"},
                "spec": {"containers": [], "resourceClaims": [{"name": "gpu"}]}}))
            .unwrap(),
            vec![],
            r#"pod "ns/p", spec.resourceClaim "gpu": none of the supported fields are set"#,
        ),
    ];
    for (pod, claims, expected) in rows {
        let mut world = World::new(Profile::V1_37, &[]);
        let before = world.file.clone();
        assert_eq!(refusal(&mut world, &pod, &claims), expected);
        assert!(world.cache.claims().is_empty() && world.file == before, "{expected}: nothing is remembered");
    }
}

#[test]
fn the_order_of_the_checks() {
    let plain = claim("c", &[(GPU, json!(["*"])), (NIC, json!(null))]);
    let not_allocated = changed(&plain, "/status/allocation", json!(null));
    let nothing = changed(&not_allocated, "/status/reservedFor", json!([]));
    let mut world = World::new(Profile::V1_37, &[]).gate_off();
    let pod = pod("p", &["c"]);
    assert!(refusal(&mut world, &pod, &[nothing]).contains("not allowed"));
    assert!(refusal(&mut world, &pod, &[not_allocated]).contains("not allocated"));
    assert!(refusal(&mut world, &pod, std::slice::from_ref(&plain)).contains("feature gate"));
    world = world.gate_on();
    assert_eq!(refusal(&mut world, &pod, &[plain]), "DRA driver nic.example.com is not registered");
}

#[test]
fn the_first_claim_of_the_spec_is_checked_first_and_drivers_by_name() {
    let claims = [claim("a", &[(NIC, json!(null)), (GPU, json!(null))]), claim("b", &[(GPU, json!(null))])];
    let mut world = World::new(Profile::V1_37, &[]);
    assert_eq!(refusal(&mut world, &pod("p", &["a", "b"]), &claims), "DRA driver gpu.example.com is not registered");
    assert!(refusal(&mut world, &pod("p", &["missing", "b"]), &claims).contains("fetch ResourceClaim missing"));
}

#[test]
fn the_gate_that_is_off_in_both_profiles() {
    // req: 5945-KUBELET-7, 5945-KUBELET-17, 5945-KUBELET-18
    let object = claim("c", &[(GPU, json!(null)), (NIC, json!(true))]);
    for profile in BOTH {
        let mut world = World::new(profile, &[GPU, NIC]).gate_off();
        let text = refusal(&mut world, &pod("p", &["c"]), std::slice::from_ref(&object));
        assert!(world.calls.is_empty() && world.cache.claims().is_empty());
        if profile == Profile::Kep {
            assert!(text.starts_with("ResourceClaim c: DRAOptionalNodePreparationDisabled: "), "{text}");
            assert!(text.contains(NIC) && text.contains("pod ns/p"), "{text}");
        } else {
            assert_eq!(text, "ResourceClaim c: DRAOptionalNodeOperations feature gate is disabled on kubelet");
        }
        assert_eq!(world.counts.iter().count(), 0);
    }
    assert_eq!(PrepareError::EVENT_REASON, "FailedPrepareDynamicResources");
}

#[test]
fn a_prepared_claim_ends_the_preparation_in_1_34() {
    let claims = [claim("a", &[(GPU, json!(null))]), claim("b", &[(GPU, json!(null))])];
    let prepared = |profile: Profile| {
        let mut world = World::new(profile, &[GPU]);
        world.prepare(&pod("p", &["a"]), &claims).unwrap();
        world.prepare(&pod("q", &["a", "b"]), &claims).unwrap();
        world.cache.claims().values().filter(|info| info.prepared).count()
    };
    assert_eq!(Profile::RELEASES.map(prepared), [1, 2, 2, 2]);
}

#[test]
fn without_a_driver_the_pod_waits_until_one_registers() {
    // req: 5945-KUBELET-14, 5945-KUBELET-10
    for declared in [json!(false), json!(null)] {
        let object = claim("c", &[(GPU, declared)]);
        let mut world = World::new(Profile::Kep, &[]);
        let text = refusal(&mut world, &pod("p", &["c"]), std::slice::from_ref(&object));
        assert_eq!(text, "DRA driver gpu.example.com is not registered");
        assert!(world.cache.claims().is_empty());
        world.registered.insert(GPU.to_owned());
        world.prepare(&pod("p", &["c"]), &[object]).unwrap();
        assert!(world.cache.claims().values().all(|info| info.prepared));
    }
}

#[test]
fn with_no_driver_at_all_a_skipping_claim_starts_and_ends() {
    // req: 5945-KUBELET-4, 5945-KUBELET-13, 5945-OBS-1
    let object = claim("c", &[(GPU, json!(true))]);
    let mut world = World::new(Profile::Kep, &[]);
    world.prepare(&pod("p", &["c"]), &[object]).unwrap();
    assert!(world.cache.may_need_unprepare("p-uid"));
    world.unprepare(&pod("p", &["c"])).unwrap();
    assert!(world.calls.is_empty() && world.cache.claims().is_empty());
    assert!(world.asked.is_empty(), "no driver is looked up");
    assert!(!world.cache.may_need_unprepare("p-uid"));
    let counts: Vec<_> =
        world.counts.iter().map(|(operation, driver, count)| (operation.method(), driver, count)).collect();
    assert_eq!(counts, [("NodePrepareResources", GPU, 1), ("NodeUnprepareResources", GPU, 1)]);
}

#[test]
fn an_old_claim_of_the_same_name() {
    let old = claim("c", &[(GPU, json!(["*"]))]);
    let mut world = World::new(Profile::V1_37, &[]);
    world.prepare(&pod("q", &["c"]), std::slice::from_ref(&old)).unwrap();
    let new = changed(&old, "/metadata/uid", json!("new"));
    let first = claim("a", &[(GPU, json!(["*"]))]);
    let text = refusal(&mut world, &pod("p", &["a", "c"]), &[first, new]);
    assert_eq!(
        text,
        "old ResourceClaim with same name c and different UID c-claim still exists (previous pod force-deleted?!)"
    );
    // The pod was added to the claim before the failing one, and the file has it.
    assert!(world.file.contains("a-claim") && world.cache.may_need_unprepare("p-uid"));
}

fn answers<const N: usize>(entries: [(&str, Result<Vec<PreparedDevice>, &str>); N]) -> Responses<Vec<PreparedDevice>> {
    entries.into_iter().map(|(uid, answer)| (uid.to_owned(), answer.map_err(str::to_owned))).collect()
}

fn cdi(id: &str) -> Vec<PreparedDevice> {
    vec![PreparedDevice { cdi_ids: vec![id.to_owned()], ..PreparedDevice::default() }]
}

/// Prepares the claims a and b with a response of the driver, and returns the result.
fn respond(world: &mut World, outcome: Result<Responses<Vec<PreparedDevice>>, String>) -> Result<(), String> {
    let objects = ["a", "b"].map(|name| claim(name, &[(GPU, json!(null))]));
    let mut plan = world.cache.plan_prepare(&pod("p", &["a", "b"]), &objects, |_| true, world.settings).unwrap();
    let applied = world.cache.apply_prepare(&mut plan, GPU, outcome).map_err(|error| error.to_string());
    applied.and_then(|()| world.cache.finish_prepare(plan).map_err(|error| error.to_string()))
}

#[test]
fn responses_that_are_no_success() {
    let rows = [
        (
            Err("rpc error: code = DeadlineExceeded".to_owned()),
            "NodePrepareResources: rpc error: code = DeadlineExceeded",
        ),
        (
            Ok(answers([("a-claim", Ok(vec![])), ("zzz", Ok(vec![]))])),
            "NodePrepareResources returned result for unknown claim UID zzz",
        ),
        (
            Ok(answers([("a-claim", Err("no such GPU"))])),
            "NodePrepareResources failed for ResourceClaim a: no such GPU",
        ),
        (Ok(answers([("b-claim", Ok(vec![]))])), "NodePrepareResources skipped 1 ResourceClaims"),
        (Ok(answers([])), "NodePrepareResources skipped 2 ResourceClaims"),
    ];
    for (outcome, expected) in rows {
        let mut world = World::new(Profile::V1_37, &[]);
        let error = respond(&mut world, outcome).unwrap_err();
        assert_eq!(error, format!("prepare dynamic resources: {expected}"));
        assert!(world.cache.claims().values().all(|info| !info.prepared && info.pods.contains("p-uid")));
    }
}

#[test]
fn a_claim_without_devices_is_a_success() {
    let mut world = World::new(Profile::V1_37, &[]);
    respond(&mut world, Ok(answers([("a-claim", Ok(vec![])), ("b-claim", Ok(vec![]))]))).unwrap();
    assert!(world.cache.claims().values().all(|info| info.prepared));
}

#[test]
fn a_plan_ends_only_when_all_have_answered() {
    let object = claim("c", &[(GPU, json!(null)), (NIC, json!(null))]);
    let mut world = World::new(Profile::V1_37, &[]);
    let mut plan = world.cache.plan_prepare(&pod("p", &["c"]), &[object], |_| true, world.settings).unwrap();
    world.cache.apply_prepare(&mut plan, GPU, Ok(answers([("c-claim", Ok(vec![]))]))).unwrap();
    assert_eq!(plan.unanswered().collect::<Vec<_>>(), [NIC]);
    // A later failed response replaces the successful one.
    world.cache.apply_prepare(&mut plan, GPU, Err("gone".to_owned())).unwrap_err();
    assert_eq!(plan.unanswered().collect::<Vec<_>>(), [GPU, NIC]);
    world.cache.apply_prepare(&mut plan, GPU, Ok(answers([("c-claim", Ok(vec![]))]))).unwrap();
    let stranger = world.cache.apply_prepare(&mut plan, "other.example.com", Ok(answers([]))).unwrap_err();
    assert!(stranger.to_string().ends_with("NodePrepareResources of driver other.example.com is not part of the plan"));
    let error = world.cache.finish_prepare(plan).unwrap_err();
    assert!(error.to_string().ends_with("NodePrepareResources of driver nic.example.com has not been answered"));
    assert!(world.cache.claims().values().all(|info| !info.prepared));
}

#[test]
fn a_claim_that_went_in_between() {
    let object = claim("c", &[(GPU, json!(null))]);
    let mut world = World::new(Profile::V1_37, &[GPU]);
    let mut plan = world.cache.plan_prepare(&pod("p", &["c"]), &[object], |_| true, world.settings).unwrap();
    world.unprepare(&pod("p", &["c"])).unwrap();
    let error = world.cache.apply_prepare(&mut plan, GPU, Ok(answers([("c-claim", Ok(vec![]))]))).unwrap_err();
    assert!(error.to_string().contains("internal error: unable to get claim info for ResourceClaim c in namespace ns"));
}

#[test]
fn a_retry_leaves_no_device_twice() {
    // A kubelet that appends each response would also pass the IDs of the first attempt to the container.
    let mut world = World::new(Profile::V1_37, &[]);
    respond(&mut world, Ok(answers([("a-claim", Ok(cdi("x=1"))), ("b-claim", Err("busy"))]))).unwrap_err();
    respond(&mut world, Ok(answers([("a-claim", Ok(cdi("x=1"))), ("b-claim", Ok(cdi("x=2")))]))).unwrap();
    let ids = |name: &str| {
        let info = world.cache.claims().iter().find(|(key, _)| key.name == name).unwrap().1;
        info.drivers[GPU].devices.iter().flat_map(|device| device.cdi_ids.clone()).collect::<Vec<_>>()
    };
    assert_eq!((ids("a"), ids("b")), (vec!["x=1".to_owned()], vec!["x=2".to_owned()]));
}

#[test]
fn after_a_restart_drivers_are_called_again_and_devices_are_not_doubled() {
    let object = claim("c", &[(GPU, json!(null))]);
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap();
    world = world.restart();
    world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap();
    assert_eq!(world.calls.len(), 2);
    assert_eq!(world.cache.claims().values().next().unwrap().drivers[GPU].devices.len(), 1);
    world.prepare(&pod("p", &["c"]), &[object]).unwrap();
    assert_eq!(world.calls.len(), 2, "prepared now");
}

#[test]
fn a_claim_that_two_entries_name_is_sent_once() {
    // A kubelet that sends the claim twice would always miss one result in the response.
    let object = claim("c", &[(GPU, json!(null))]);
    let pod: Pod = from_value(json!({
        "metadata": {"namespace": "ns", "name": "p", "uid": "p-uid"},
        "spec": {"containers": [], "resourceClaims": [
            {"name": "one", "resourceClaimName": "c"}, {"name": "two", "resourceClaimName": "c"},
        ]},
    }))
    .unwrap();
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.prepare(&pod, &[object]).unwrap();
    assert_eq!(world.calls[0].2, ["c-claim"]);
}

#[test]
fn each_entry_that_names_a_claim_is_checked() {
    let entries =
        [json!({"name": "one", "resourceClaimName": "c"}), json!({"name": "gpu", "resourceClaimTemplateName": "t"})];
    for order in [[0, 1], [1, 0]] {
        let mut pod = template_pod(json!([{"name": "gpu", "resourceClaimName": "c"}]));
        let claims = from_value(order.map(|index: usize| entries[index].clone()).into()).unwrap();
        pod.spec.as_mut().unwrap().resource_claims = claims;
        let mut world = World::new(Profile::V1_37, &[GPU]);
        assert!(refusal(&mut world, &pod, &[claim("c", &[(GPU, json!(null))])]).contains("Pod is not owner"));
    }
}

#[test]
fn an_allocation_without_devices_is_remembered() {
    let mut world = World::new(Profile::V1_37, &[]);
    world.prepare(&pod("p", &["c"]), &[claim("c", &[])]).unwrap();
    assert!(world.cache.claims().values().all(|info| info.prepared && info.drivers.is_empty()));
    assert!(world.file.contains("c-claim"));
}

#[test]
fn a_template_that_needs_no_claim_and_one_that_owns_it() {
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.prepare(&template_pod(json!([{"name": "gpu"}])), &[]).unwrap();
    assert!(world.cache.claims().is_empty());

    let made = template_pod(json!([{"name": "gpu", "resourceClaimName": "c"}]));
    let mut made_for_it = claim("c", &[(GPU, json!(null))]);
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p-uid", "controller": true}]);
    made_for_it.metadata.owner_references = from_value(owner).unwrap();
    world.prepare(&made, std::slice::from_ref(&made_for_it)).unwrap();
    made_for_it.metadata.owner_references.as_mut().unwrap()[0].controller = None;
    assert!(refusal(&mut world, &made, &[made_for_it]).contains("Pod is not owner"));
}

#[test]
fn a_claim_of_the_pods_group_with_its_gate() {
    let mut made = template_pod(json!([{"name": "gpu", "resourceClaimName": "c"}]));
    let mut grouped = claim("c", &[(GPU, json!(null))]);
    let owner = json!([{"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "PodGroup", "name": "g", "uid": "u", "controller": true}]);
    grouped.metadata.owner_references = from_value(owner).unwrap();
    let reserved = json!([{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}]);
    grouped = changed(&grouped, "/status/reservedFor", reserved);

    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.settings =
        Component::new(world.settings.profile(), world.settings.gates().with(Gate::WorkloadResourceClaims));
    // The pod belongs to no group, so that it can't use a claim of a group.
    assert!(refusal(&mut world, &made, std::slice::from_ref(&grouped)).contains("Pod is not owner"));
    made.spec.as_mut().unwrap().scheduling_group = from_value(json!({"podGroupName": "other"})).unwrap();
    let refused = refusal(&mut world, &made, std::slice::from_ref(&grouped));
    assert!(refused.ends_with("(neither Pod nor PodGroup other is the owner)"), "{refused}");
    made.spec.as_mut().unwrap().scheduling_group = from_value(json!({"podGroupName": "g"})).unwrap();
    world.prepare(&made, std::slice::from_ref(&grouped)).unwrap();
    world.settings =
        Component::new(world.settings.profile(), world.settings.gates().without(Gate::WorkloadResourceClaims));
    assert!(refusal(&mut world, &made, &[grouped]).contains("Pod is not owner"));
}

#[test]
fn the_claim_for_extended_resources_with_its_gate() {
    let mut pod = pod("p", &[]);
    pod.status =
        from_value(json!({"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": []}})).unwrap();
    let object = claim("x", &[(GPU, json!(null))]);
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.prepare(&pod, std::slice::from_ref(&object)).unwrap();
    assert_eq!(world.calls.len(), 1);
    let mut off = World::new(Profile::V1_37, &[GPU]);
    off.settings = Component::new(off.settings.profile(), off.settings.gates().without(Gate::ExtendedResource));
    off.prepare(&pod, &[object]).unwrap();
    assert!(off.calls.is_empty());
}

#[test]
fn one_claim_that_is_refused_leaves_no_trace_of_the_others() {
    // req: 5945-KUBELET-7, 5945-KUBELET-18
    let claims = [claim("a", &[(GPU, json!(null))]), claim("b", &[(NIC, json!(true))])];
    for profile in BOTH {
        let mut world = World::new(profile, &[GPU, NIC]).gate_off();
        let before = world.file.clone();
        refusal(&mut world, &pod("p", &["a", "b"]), &claims);
        assert!(world.calls.is_empty() && world.cache.claims().is_empty() && world.file == before);
    }
}

#[test]
fn what_makes_a_group_the_owner_or_consumer_of_a_claim() {
    let mut made = template_pod(json!([{"name": "gpu", "resourceClaimName": "c"}]));
    made.spec.as_mut().unwrap().scheduling_group = from_value(json!({"podGroupName": "g"})).unwrap();
    let owner =
        |api: &str, kind: &str| json!([{"apiVersion": api, "kind": kind, "name": "g", "uid": "u", "controller": true}]);
    let consumer =
        |group: &str, resource: &str| json!([{"apiGroup": group, "resource": resource, "name": "g", "uid": "v"}]);
    let its_owner = owner("scheduling.k8s.io/v9", "PodGroup");
    let its_consumer = consumer("scheduling.k8s.io", "podgroups");
    let rows = [
        (its_owner.clone(), its_consumer.clone(), None),
        (owner("scheduling.k8s.io/v9", "Workload"), its_consumer.clone(), Some("is the owner")),
        (owner("other.io/v1", "PodGroup"), its_consumer, Some("is the owner")),
        (its_owner.clone(), consumer("other.io", "podgroups"), Some("is not allowed to use")),
        (its_owner, consumer("scheduling.k8s.io", "workloads"), Some("is not allowed to use")),
    ];
    for (owners, consumers, expected) in rows {
        let mut grouped = changed(&claim("c", &[(GPU, json!(null))]), "/status/reservedFor", consumers);
        grouped.metadata.owner_references = from_value(owners).unwrap();
        let mut world = World::new(Profile::V1_37, &[GPU]);
        world.settings =
            Component::new(world.settings.profile(), world.settings.gates().with(Gate::WorkloadResourceClaims));
        match expected {
            None => world.prepare(&made, &[grouped]).unwrap(),
            Some(text) => assert!(refusal(&mut world, &made, &[grouped]).contains(text), "{text}"),
        }
    }
}

#[test]
fn a_claim_that_went_keeps_the_others_unprepared() {
    let objects = ["a", "b"].map(|name| claim(name, &[(GPU, json!(["*"]))]));
    let mut world = World::new(Profile::V1_37, &[]);
    let plan = world.cache.plan_prepare(&pod("p", &["a", "b"]), &objects, |_| false, world.settings).unwrap();
    let shared = world.cache.plan_prepare(&pod("q", &["a"]), &objects, |_| false, world.settings).unwrap();
    world.unprepare(&pod("p", &["a", "b"])).unwrap();
    drop(shared);
    let error = world.cache.finish_prepare(plan).unwrap_err().to_string();
    assert!(error.ends_with("unable to get claim info for ResourceClaim b in namespace ns"), "{error}");
    assert!(world.cache.claims().values().all(|info| !info.prepared), "a, which q holds");
}

#[test]
fn more_devices_than_a_claim_can_have_are_the_drivers_error() {
    // Devices count for their own driver and claim only.
    let claims =
        [claim("a", &[(GPU, json!(null)), (GPU, json!(null)), (NIC, json!(null))]), claim("b", &[(GPU, json!(null))])];
    let rows = [(GPU, "a-claim", 96, 2), (GPU, "b-claim", 64, 1), (NIC, "a-claim", 64, 1)];
    for (driver, uid, most, allocated) in rows {
        let mut world = World::new(Profile::V1_37, &[GPU, NIC]);
        let registered = |_: &str| true;
        let mut plan = world.cache.plan_prepare(&pod("p", &["a", "b"]), &claims, registered, world.settings).unwrap();
        let answers = |count: usize| -> Responses<Vec<PreparedDevice>> {
            let asked = plan_uids(driver);
            asked
                .iter()
                .map(|asked| {
                    let count = if *asked == uid { count } else { 1 };
                    ((*asked).to_owned(), Ok(vec![PreparedDevice::default(); count]))
                })
                .collect()
        };
        let (legal, too_many) = (answers(most), answers(most + 1));
        let refused = world.cache.apply_prepare(&mut plan, driver, Ok(too_many)).unwrap_err();
        let claim = uid.trim_end_matches("-claim");
        let text = format!(
            "prepare dynamic resources: NodePrepareResources failed for ResourceClaim {claim}: driver {driver} returned {} \
             devices for {allocated} allocated, which is more than {most}",
            most + 1
        );
        assert_eq!(refused.to_string(), text);
        assert!(matches!(
            refused,
            PrepareError::Call {
                source: CallError::TooManyDevices { devices, allocated: of, most: limit, .. }
            } if (devices, of, limit) == (most + 1, allocated, most)
        ));
        let stored = |world: &World| world.cache.claims()[&ClaimKey::new("ns", claim)].drivers[driver].devices.len();
        assert_eq!(stored(&world), 0, "nothing of it");
        assert!(plan.unanswered().any(|unanswered| unanswered == driver));
        world.cache.apply_prepare(&mut plan, driver, Ok(legal)).unwrap();
        assert_eq!(stored(&world), most);
    }
}

/// Returns the claims that a driver of the test above is asked about.
fn plan_uids(driver: &str) -> &'static [&'static str] {
    if driver == GPU { &["a-claim", "b-claim"] } else { &["a-claim"] }
}
