//! Cycles of pods: shared claims, groups, undoing, freeing.

use dra_alloc::pods::{
    ApiResponse, BindError, BindStep, BlockedError, ClaimLookup, ClaimSituation, ClaimWrite, NodeFilterError, PodCycle,
    PodOptions, PostFilter, PreBind, QueueHint, StatusCode, claims_score,
};
use dra_alloc::{Allocator, Budget, DeviceId, Gate, GateSet, Profile};
use dra_attrs::Component;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
use nnn::PreFlight;
use serde_json::{from_value, json};

use super::world::{NOW, World, allocated, claim, group, node, pod};

#[test]
fn the_second_pod_of_a_shared_claim_is_reserved_too() {
    let mut world = World::new(2, [claim("c", 1)]);
    let mut first = world.reserve(&pod("p", &["c"], None), None, "n1");
    assert_eq!(first.pre_flight(), PreFlight::Success);
    let waits = PodCycle::pre_filter(
        &pod("q", &["c"], None),
        None,
        &world.tracker,
        &world.classes,
        &world.round,
        world.options,
    );
    assert!(matches!(waits, Err(BlockedError::InFlight { .. })));
    world.bind(&mut first).unwrap();
    // Before the watch shows the write: what was written is assumed.
    let mut second = world.begin(&pod("q", &["c"], None), None);
    assert!(!second.needs_allocation());
    let elsewhere = world.filter(&second, "n2");
    assert!(matches!(elsewhere.refusal(), Some(NodeFilterError::OutOfReach { .. })));
    let verdict = world.filter(&second, "n1");
    assert_eq!(verdict.refusal(), None);
    second.record("n1", verdict);
    second.reserve("n1", &mut world.tracker, &mut world.round).unwrap();
    assert_eq!(second.pre_flight(), PreFlight::Success, "a reservation is to be written");
    world.bind(&mut second).unwrap();
    assert_eq!(world.reserved_for("c"), ["p", "q"]);
    let again = world.reserve(&pod("q", &["c"], None), None, "n1");
    assert_eq!(again.pre_flight(), PreFlight::Skip, "all is written");
}

#[test]
fn a_claim_of_unusable_nodes_blocks_its_pod() {
    let mut held = allocated("c", "n1", "a", &[]);
    let allocation = held.status.as_mut().unwrap().allocation.as_mut().unwrap();
    let field =
        |operator: &str, values: &[&str]| json!({"key": "metadata.name", "operator": operator, "values": values});
    let label = json!({"key": "zone", "operator": "In", "values": []});
    allocation.node_selector = from_value(json!({"nodeSelectorTerms": [
        {"matchExpressions": [label], "matchFields": [field("In", &["n1"]), field("Exists", &["n1"]), field("In", &[])]}]}))
    .unwrap();
    let world = World::new(1, [held]);
    let pod = pod("p", &["c"], None);
    let blocked =
        PodCycle::pre_filter(&pod, None, &world.tracker, &world.classes, &world.round, world.options).unwrap_err();
    let BlockedError::NodeSelector { problems } = blocked else { panic!("{blocked:?}") };
    let of = "nodeSelectorTerms[0]";
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            format!(
                "{of}.matchExpressions[0].values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
            ),
            format!("{of}.matchFields[1].operator: Unsupported value: \"Exists\": supported values: \"In\", \"NotIn\""),
            format!("{of}.matchFields[2].values: Invalid value: []: must have one element"),
        ]
    );
}

#[test]
fn the_score_of_a_pod_is_the_sum_of_its_claims() {
    let claim = |served: &str, is_allocated: bool| -> (ResourceClaim, AllocationResult) {
        let results = json!({"devices": {"results": [{"request": served, "driver": "d", "pool": "p", "device": "a"}]}});
        let list = json!([{"name": "big", "deviceClassName": "x"}, {"name": "small", "deviceClassName": "x"}]);
        let mut claim = json!({"spec": {"devices": {"requests": [{"name": "r", "firstAvailable": list}]}}});
        if is_allocated {
            claim["status"] = json!({"allocation": results});
        }
        (from_value(claim).unwrap(), from_value(results).unwrap())
    };
    let (held, _) = claim("r/big", true);
    let (new, result) = claim("r/small", false);
    assert_eq!(claims_score([&held, &new], [&result]), Ok(8 + 7));
    assert_eq!(claims_score([&new, &held], [&result]), Ok(7 + 8));
    let error = claims_score([&new, &held, &new], [&result]).unwrap_err();
    assert_eq!(error.allocations, 1);
}

#[test]
fn nodes_have_scores_since_1_35() {
    let best = |profile: Profile| {
        let list = json!([{"name": "big", "deviceClassName": "gpu"}, {"name": "small", "deviceClassName": "gpu"}]);
        let mut wanted = claim("c", 1);
        wanted.spec.as_mut().unwrap().devices.as_mut().unwrap().requests =
            Some(vec![from_value(json!({"name": "r", "firstAvailable": list})).unwrap()]);
        let mut world = World::new(1, [wanted]);
        world.options = PodOptions::new(profile);
        world.begin(&pod("p", &["c"], None), None).best_score()
    };
    assert_eq!(Profile::RELEASES.map(best), [0, 8, 8, 8]);
}

#[test]
fn a_claim_under_two_entries_is_allocated_once() {
    let mut world = World::new(1, [claim("c", 1)]);
    let mut twice = pod("p", &["c"], None);
    let entries = twice.spec.as_mut().unwrap().resource_claims.as_mut().unwrap();
    entries.push(k8s_openapi::api::core::v1::PodResourceClaim { name: "again".into(), ..entries[0].clone() });
    let mut cycle = world.reserve(&twice, None, "n1");
    assert_eq!(cycle.claims().len(), 1);
    world.bind(&mut cycle).unwrap();
    assert_eq!(world.reserved_for("c"), ["p"]);
}

#[test]
fn a_pending_claim_keeps_its_own_allocation_and_its_node() {
    let mut world = World::new(2, [claim("c", 1), claim("d", 1)]).with_groups();
    let of_group = group("g", &["c"]);
    let mut first = world.reserve(&pod("p", &["c"], Some("g")), Some(&of_group), "n1");
    let second = pod("q", &["c", "d"], Some("g"));
    let cycle = world.begin(&second, Some(&of_group));
    assert!(matches!(cycle.claims()[0].situation(), ClaimSituation::Pending(_)));
    assert!(matches!(world.filter(&cycle, "n2").refusal(), Some(NodeFilterError::OutOfReach { .. })));
    let mut cycle = world.reserve(&second, Some(&of_group), "n1");
    assert_eq!(cycle.claims()[0].chosen(), first.claims()[0].chosen());
    assert_ne!(cycle.claims()[1].chosen(), first.claims()[0].chosen());
    // The first pod gives up: the second one still counts on the allocation.
    world.unreserve(&mut first);
    assert_eq!(world.tracker.in_flight().count(), 2);
    world.unreserve(&mut cycle);
    assert_eq!(world.tracker.in_flight().count(), 0);
    assert_eq!(world.tracker.state(), World::new(2, []).tracker.state());
}

#[test]
fn the_allocation_of_another_pod_of_the_group_is_refused_or_accepted() {
    for expected in [false, true] {
        let mut world = World::new(1, [claim("c", 1)]).with_groups();
        if expected {
            world.options = world.options.accepting_group_allocations();
        }
        let of_group = group("g", &["c"]);
        let mut first = world.reserve(&pod("p", &["c"], Some("g")), Some(&of_group), "n1");
        let mut second = world.reserve(&pod("q", &["c"], Some("g")), Some(&of_group), "n1");
        world.bind(&mut first).unwrap();
        let bound = world.bind(&mut second);
        assert_eq!(bound.is_ok(), expected);
        assert_eq!(world.reserved_for("c"), ["g"]);
        assert_eq!(world.tracker.in_flight().count(), 0);
    }
}

#[test]
fn conflicts_are_answered_by_reading_and_deciding_anew() {
    let mut world = World::new(1, [claim("c", 1), claim("d", 1)]);
    let mut cycle = world.reserve(&pod("p", &["c"], None), None, "n1");
    // Somebody writes a label: the second try succeeds.
    let mut labelled = world.stored("c");
    labelled.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    world.store(labelled);
    world.bind(&mut cycle).unwrap();
    assert_eq!(world.reserved_for("c"), ["p"]);

    let mut late = world.reserve(&pod("q", &["d"], None), None, "n1");
    world.store(allocated("d", "n1", "b", &["other"]));
    let error = world.bind(&mut late).unwrap_err();
    assert_eq!(error.to_string(), "claim ns/d got allocated elsewhere in the meantime");
    assert_eq!(error.code(), StatusCode::Error);
    world.unreserve(&mut late);
    assert_eq!(world.reserved_for("d"), ["other"]);
}

/// Binds a pod whose `UpdateStatus` of the claim is stored or not, and answered with `told` the first time.
fn bind_with_lost_answer(world: &mut World, cycle: &mut PodCycle, is_stored: bool, told: ApiResponse) -> BindStep {
    let (mut binding, mut told) = (PreBind::default(), Some(told));
    loop {
        let write = match binding.next(cycle, &mut world.tracker, NOW) {
            BindStep::Write(write) => write,
            step => return step,
        };
        let lost = told.take_if(|_| matches!(write, ClaimWrite::UpdateStatus { .. }));
        let answer = match lost {
            Some(_) if !is_stored => lost,
            _ => Some(world.server.call(&write)).filter(|_| lost.is_none()).or(lost),
        };
        binding.answer(cycle, &mut world.tracker, answer.unwrap(), NOW);
    }
}

#[test]
fn a_write_without_an_answer_is_looked_for() {
    let told = |text: &str| {
        let text = text.to_owned();
        [
            ApiResponse::Lost(text.clone()),
            ApiResponse::Conflict(text.clone()),
            ApiResponse::Unavailable(text),
            ApiResponse::Done,
        ]
    };
    for (is_stored, told) in [true, false].into_iter().flat_map(|is_stored| told("?").map(|told| (is_stored, told))) {
        let mut world = World::new(1, [claim("c", 1), claim("d", 2)]);
        let mut cycle = world.reserve(&pod("p", &["c"], None), None, "n1");
        let end = bind_with_lost_answer(&mut world, &mut cycle, is_stored, told);
        assert_eq!(end, BindStep::Done);
        drop(cycle);
        assert_eq!((world.reserved_for("c"), world.tracker.state().len()), (vec!["p".to_owned()], 1));
        // The watch has not shown it yet.
        let next = world.begin(&pod("q", &["d"], None), None);
        assert_eq!(world.filter(&next, "n1").refusal(), Some(&NodeFilterError::CannotAllocate));
    }
}

#[test]
fn a_claim_that_somebody_else_has_allocated_is_held() {
    let mut world = World::new(1, [claim("c", 1), claim("d", 1)]);
    let mut late = world.reserve(&pod("q", &["d"], None), None, "n1");
    world.store(allocated("d", "n1", "b", &["other"]));
    assert!(matches!(world.bind(&mut late), Err(BindError::AllocatedElsewhere { .. })));
    world.unreserve(&mut late);
    let held: Vec<String> = world.tracker.state().devices().map(|(device, _)| device.device).collect();
    assert_eq!(held, ["b"], "and the chosen one is free");
}

#[test]
fn a_scheduler_gives_way() {
    let mut world = World::new(1, [claim("c", 1), allocated("shared", "n1", "b", &["other"])]);
    let mut cycle = world.reserve(&pod("p", &["c", "shared"], None), None, "n1");
    world.bind(&mut cycle).unwrap();
    // Another scheduler has given the same device away.
    let device = DeviceId::new("d.example.com", "n1", "a");
    let observed = world.tracker.observe(world.server.clone().store(allocated("theirs", "n1", "a", &["q"]))).unwrap();
    assert_eq!(observed.held_twice, [device]);
    let mut calls = cycle.give_way(&mut world.tracker);
    while let Some(write) = calls.next() {
        let answer = world.server.call(&write);
        calls.answer(&mut world.tracker, answer);
    }
    assert!(calls.errors().is_empty());
    assert_eq!(world.stored("c").status.and_then(|status| status.allocation), None);
    assert_eq!((world.reserved_for("c"), world.reserved_for("shared")), (vec![], vec!["other".to_owned()]));
    assert_eq!(world.tracker.state().len(), 2, "theirs, and the shared one");
}

#[test]
fn a_claim_that_is_not_found_is_gone() {
    let mut world = World::new(1, [claim("c", 1)]);
    let mut cycle = world.reserve(&pod("p", &["c"], None), None, "n1");
    let mut binding = PreBind::default();
    for answer in [ApiResponse::Conflict("modified".to_owned()), ApiResponse::Done] {
        assert!(matches!(binding.next(&mut cycle, &mut world.tracker, NOW), BindStep::Write(_)));
        binding.answer(&mut cycle, &mut world.tracker, answer, NOW);
    }
    let end = binding.next(&mut cycle, &mut world.tracker, NOW);
    assert!(matches!(end, BindStep::Failed(BindError::Deleted { .. })), "{end:?}");
    assert!(world.tracker.claim("ns", "c").is_none() && world.tracker.state().is_empty());
}

#[test]
fn a_write_that_nobody_knows_of_keeps_its_devices() {
    let mut world = World::new(1, [claim("c", 1), claim("d", 2)]);
    let mut cycle = world.reserve(&pod("p", &["c"], None), None, "n1");
    let mut binding = PreBind::default();
    // The finalizer is written, and then the server is gone.
    while let BindStep::Write(write) = binding.next(&mut cycle, &mut world.tracker, NOW) {
        let answer = match write {
            ClaimWrite::Update { .. } => world.server.call(&write),
            _ => ApiResponse::Lost("no answer".to_owned()),
        };
        binding.answer(&mut cycle, &mut world.tracker, answer, NOW);
    }
    let calls = cycle.unreserve(&mut world.tracker);
    assert!(matches!(calls.next(), Some(ClaimWrite::Get { .. })));
    drop((cycle, calls));
    assert_eq!(world.tracker.state().len(), 1, "the allocation may be stored");
    // The next attempt takes the same devices, and its write tells.
    let mut again = world.reserve(&pod("p", &["c"], None), None, "n1");
    assert!(matches!(again.claims()[0].situation(), ClaimSituation::Pending(_)));
    world.bind(&mut again).unwrap();
    assert_eq!((world.tracker.in_flight().count(), world.tracker.state().len()), (0, 1));
}

#[test]
fn a_write_that_comes_long_after_it_was_lost_conflicts() {
    let mut world = World::new(1, [claim("c", 1)]);
    let mut dropped = world.reserve(&pod("p", &["c"], None), None, "n1");
    let mut binding = PreBind::default();
    let late = loop {
        match binding.next(&mut dropped, &mut world.tracker, NOW) {
            BindStep::Write(write @ ClaimWrite::UpdateStatus { .. }) => break write,
            BindStep::Write(write) => {
                let answer = world.server.call(&write);
                binding.answer(&mut dropped, &mut world.tracker, answer, NOW);
            }
            step => panic!("{step:?}"),
        }
    };
    drop(dropped);
    let mut calls = world.tracker.calls_in_doubt();
    assert_eq!((calls.len(), world.tracker.state().len()), (1, 1));
    calls.answer(&mut world.tracker, world.server.call(&calls.next().unwrap()));
    assert_eq!(world.tracker.state().len(), 1, "the claim is as it was: the write may still come");
    assert!(matches!(calls.next(), Some(ClaimWrite::Update { claim }) if claim.metadata.finalizers == Some(vec![])));
    // Nobody hears the answer, and the claim is read once more.
    world.server.call(&calls.next().unwrap());
    calls.answer(&mut world.tracker, ApiResponse::Lost("no answer".to_owned()));
    calls.answer(&mut world.tracker, world.server.call(&calls.next().unwrap()));
    assert!(calls.is_empty() && world.tracker.state().is_empty());
    assert!(matches!(world.server.call(&late), ApiResponse::Conflict(_)));
}

#[test]
fn a_refusal_says_nothing_about_an_earlier_write() {
    let mut world = World::new(1, [claim("c", 1)]);
    let mut cycle = world.reserve(&pod("p", &["c"], None), None, "n1");
    let mut binding = PreBind::default();
    let mut answers = vec![ApiResponse::Failed("refused".to_owned()), ApiResponse::Lost("no answer".to_owned())];
    while let BindStep::Write(write) = binding.next(&mut cycle, &mut world.tracker, NOW) {
        let answer = match write {
            ClaimWrite::UpdateStatus { .. } => answers.pop().unwrap(),
            _ => world.server.call(&write),
        };
        binding.answer(&mut cycle, &mut world.tracker, answer, NOW);
    }
    assert!(answers.is_empty());
    let calls = cycle.unreserve(&mut world.tracker);
    assert!(matches!(calls.next(), Some(ClaimWrite::Get { .. })));
    assert_eq!(world.tracker.state().len(), 1, "the first write may be stored");
}

#[test]
fn another_claim_of_the_same_name_is_not_allocated() {
    let mut world = World::new(1, [claim("c", 1)]);
    let mut cycle = world.reserve(&pod("p", &["c"], None), None, "n1");
    let mut other = claim("c", 1);
    other.metadata.uid = Some("another".to_owned());
    world.store(other);
    assert!(matches!(world.bind(&mut cycle), Err(BindError::Deleted { .. })));
    assert_eq!(world.tracker.in_flight().count(), 0);
}

#[test]
fn a_claim_that_loses_its_allocation_is_not_reserved() {
    let mut world = World::new(1, [allocated("c", "n1", "a", &[])]);
    let mut cycle = world.reserve(&pod("p", &["c"], None), None, "n1");
    world.store(claim("c", 1));
    assert!(matches!(world.bind(&mut cycle), Err(BindError::Deallocated { .. })));
}

#[test]
fn a_claim_that_has_moved_to_other_devices_is_not_reserved() {
    let mut world = World::new(2, [allocated("c", "n1", "a", &[])]);
    let mut cycle = world.reserve(&pod("p", &["c"], None), None, "n1");
    world.store(allocated("c", "n2", "a", &[]));
    assert!(matches!(world.bind(&mut cycle), Err(BindError::AllocatedElsewhere { .. })));
    assert_eq!(world.reserved_for("c"), [""; 0]);
    // Other changes do not matter.
    let mut cycle = world.reserve(&pod("q", &["c"], None), None, "n2");
    world.store(allocated("c", "n2", "a", &["r"]));
    world.bind(&mut cycle).unwrap();
    assert_eq!(world.reserved_for("c"), ["r", "q"]);
}

#[test]
fn unreserve_takes_the_reservation_and_leaves_the_allocation() {
    let mut world = World::new(1, [claim("c", 1)]);
    let mut cycle = world.reserve(&pod("p", &["c"], None), None, "n1");
    world.bind(&mut cycle).unwrap();
    world.unreserve(&mut cycle);
    world.unreserve(&mut cycle);
    assert_eq!(world.reserved_for("c"), [""; 0]);
    assert!(world.stored("c").status.unwrap().allocation.is_some());
}

#[test]
fn a_claim_out_of_reach_is_freed_if_nobody_else_uses_it() {
    for (users, freed) in [(&[][..], true), (&["p"], true), (&["q"], false), (&["p", "q"], false)] {
        let world = World::new(2, [allocated("c", "n2", "a", users)]);
        let mut cycle = world.begin(&pod("p", &["c"], None), None);
        assert_eq!(cycle.post_filter(0), PostFilter::Nothing);
        let verdict = world.filter(&cycle, "n1");
        cycle.record("n1", verdict);
        assert_eq!(matches!(cycle.post_filter(0), PostFilter::Deallocate { .. }), freed, "{users:?}");
    }
}

#[test]
fn a_claim_is_not_remembered_as_out_of_reach_where_the_allocator_said_no() {
    let world = World::new(2, [allocated("c", "n2", "a", &[]), claim("d", 3)]);
    let mut cycle = world.begin(&pod("p", &["c", "d"], None), None);
    let verdict = world.filter(&cycle, "n1");
    assert_eq!(verdict.refusal(), Some(&NodeFilterError::CannotAllocate));
    cycle.record("n1", verdict);
    assert_eq!(cycle.post_filter(0), PostFilter::Nothing);
}

#[test]
fn reserve_needs_a_node_that_passed_the_filter() {
    let mut world = World::new(1, [claim("c", 1)]);
    let mut cycle = world.begin(&pod("p", &["c"], None), None);
    let error = cycle.reserve("n1", &mut world.tracker, &mut world.round).unwrap_err();
    assert_eq!(error.to_string(), "claim allocation not found for node");
}

#[test]
fn a_budget_that_is_used_up_ends_the_attempt() {
    let world = World::new(1, [claim("c", 1)]);
    let cycle = world.begin(&pod("p", &["c"], None), None);
    let allocator = Allocator::new(Profile::V1_37, &world.inventory, &world.classes);
    let verdict = cycle.filter(&node("n1"), &allocator, world.tracker.state(), NOW, Budget::work(0));
    let refusal = verdict.refusal().unwrap();
    assert_eq!(
        (refusal.code(), refusal.to_string().as_str()),
        (StatusCode::Error, "node n1: timed out trying to allocate devices",)
    );
}

#[test]
fn a_deleted_claim_wakes_those_who_may_use_its_devices() {
    let world = World::new(1, [claim("c", 1)]);
    let (waiting, options) = (pod("p", &["c"], None), world.options);
    let (held, unallocated, before) = (allocated("other", "n1", "a", &[]), claim("other", 1), claim("c", 1));
    let hint = |old, new| QueueHint::after_claim_change(&waiting, old, new, &world.tracker, options);
    assert_eq!(hint(Some(&held), None), QueueHint::Queue);
    assert_eq!(hint(Some(&unallocated), None), QueueHint::Skip);
    let mut listed = before.clone();
    listed.status = Some(k8s_openapi::api::resource::v1::ResourceClaimStatus::default());
    assert_eq!(hint(Some(&before), Some(&listed)), QueueHint::Skip);
}

#[test]
fn devices_of_an_unreserved_cycle_are_free() {
    let mut world = World::new(1, [claim("c", 2)]);
    let mut cycle = world.reserve(&pod("p", &["c"], None), None, "n1");
    let device = DeviceId::new("d.example.com", "n1", "a");
    assert!(world.tracker.state().is_allocated(&device));
    world.unreserve(&mut cycle);
    assert!(!world.tracker.state().is_allocated(&device));
}

#[test]
fn the_best_fit_is_the_node_with_the_least_room_left() {
    let world = World::new(2, [allocated("held", "n2", "a", &["x"]), claim("c", 1)]);
    let mut cycle = world.begin(&pod("p", &["c"], None), None);
    for name in ["n1", "n2"] {
        let verdict = world.filter(&cycle, name);
        cycle.record(name, verdict);
    }
    let room = |name| cycle.room_left(&node(name), &world.inventory, world.tracker.state());
    assert_eq!((room("n1").free, room("n1").devices), (1, 2));
    assert_eq!((room("n2").free, room("n2").devices), (0, 2));
    assert_eq!(["n1", "n2"].into_iter().min_by_key(|name| room(name)), Some("n2"));
}

#[test]
fn a_node_that_does_not_declare_the_feature_of_an_allocation_is_refused() {
    let mut skipping = allocated("c", "n1", "a", &[]);
    let allocation = skipping.status.as_mut().unwrap().allocation.as_mut().unwrap();
    let results = allocation.devices.as_mut().unwrap().results.as_mut().unwrap();
    results[0].skip_node_operations = Some(vec!["*".to_owned()]);
    let mut world = World::new(1, [skipping]);
    let cycle = world.begin(&pod("p", &["c"], None), None);
    assert_eq!(world.filter(&cycle, "n1").refusal(), None, "the gate is off");
    world.options =
        PodOptions::new(Component::new(Profile::V1_37, GateSet::of(Profile::V1_37).with(Gate::OptionalNodeOperations)));
    let cycle = world.begin(&pod("p", &["c"], None), None);
    let verdict = world.filter(&cycle, "n1");
    assert!(matches!(verdict.refusal(), Some(NodeFilterError::FeatureNotDeclared { .. })));
    assert_eq!(verdict.refusal().unwrap().code(), StatusCode::UnschedulableAndUnresolvable);
}
