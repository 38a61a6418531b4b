//! Plays any history of a scheduler with pods that share claims: nothing panics, memory counts what the cache shows, and what
//! is given back is free.
#![no_main]

use dra_alloc::pods::{
    ApiResponse, BindStep, ClaimLookup, ClaimTracker, ClaimWrite, GroupRound, PodCycle, PodOptions, PreBind, QueueHint,
    pre_enqueue,
};
use dra_alloc::{AllocatedState, Allocator, Budget, ClaimId, Classes, Inventory, Profile};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use serde_json::{from_value, json};

const NAMES: [&str; 3] = ["a", "b", "c"];

fuzz_target!(|bytes: &[u8]| {
    let slice: ResourceSlice = from_value(json!({"metadata": {"name": "s"}, "spec": {"driver": "d.example.com",
        "nodeName": "n", "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "0"}, {"name": "1"}]}}))
    .unwrap();
    let class: DeviceClass =
        from_value(json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}})).unwrap();
    let node: Node = from_value(json!({"metadata": {"name": "n"}})).unwrap();
    let (inventory, classes) = (Inventory::new([slice]), Classes::new([class]));
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
    let (options, now) = (PodOptions::new(Profile::V1_37), Timestamp::UNIX_EPOCH);
    let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
    let mut cycles: [Option<(PodCycle, PreBind)>; 3] = [None, None, None];
    let mut version = 0_u64;
    for step in bytes.chunks_exact(2) {
        version += 1;
        let (index, other) = (usize::from(step[1] % 3), usize::from(step[1] / 3 % 3));
        let mut claim: ResourceClaim = from_value(json!({"metadata": {"namespace": "ns", "name": NAMES[index],
            "uid": format!("{}{}", NAMES[index], step[1] / 200), "resourceVersion": version.to_string()},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}))
        .unwrap();
        if step[1] & 64 != 0 {
            claim.status = from_value(json!({"allocation": {"devices": {"results": [
                {"request": "r", "driver": "d.example.com", "pool": "n", "device": (step[1] % 2).to_string()}]}}}))
            .unwrap();
        }
        let pod: Pod = from_value(json!({"metadata": {"namespace": "ns", "name": NAMES[index], "uid": NAMES[index]},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"example.com/gpu": (step[0] / 128).to_string()}}}],
                "resourceClaims": [{"name": "x", "resourceClaimName": NAMES[index]},
                {"name": "y", "resourceClaimName": NAMES[other]}]}}))
        .unwrap();
        match step[0] % 7 {
            0 => drop(tracker.observe(claim).unwrap()),
            1 => drop(tracker.observe_deleted(&ClaimId::from(&claim))),
            2 => drop(tracker.assume(claim).unwrap()),
            3 => {
                let _ = pre_enqueue(&pod, &tracker, options);
                let _ = QueueHint::after_claim_change(&pod, None, Some(&claim), &tracker, options);
                let mut round = GroupRound::default();
                if cycles[index].is_some() {
                    continue;
                }
                if let Ok(Some(mut cycle)) = PodCycle::pre_filter(&pod, None, &tracker, &classes, &round, options) {
                    let verdict = cycle.filter(&node, &allocator, tracker.state(), now, Budget::work(1_000));
                    cycle.record("n", verdict);
                    let _ = cycle.reserve("n", &mut tracker, &mut round);
                    cycles[index] = Some((cycle, PreBind::default()));
                }
            }
            4 | 5 => {
                let Some((cycle, binding)) = &mut cycles[index] else { continue };
                let BindStep::Write(write) = binding.next(cycle, &mut tracker, now) else { continue };
                let answer = match write {
                    _ if step[1] & 32 != 0 => ApiResponse::Conflict("conflict".to_owned()),
                    _ if step[1] & 128 != 0 => ApiResponse::Failed("failed".to_owned()),
                    ClaimWrite::Update { mut claim } | ClaimWrite::UpdateStatus { mut claim } => {
                        claim.metadata.resource_version = Some(version.to_string());
                        ApiResponse::Object(claim)
                    }
                    ClaimWrite::Create { mut claim } => {
                        claim.metadata.name = Some(format!("{}-extended", NAMES[index]));
                        claim.metadata.uid = Some(format!("{}-extended-{version}", NAMES[index]));
                        claim.metadata.resource_version = Some(version.to_string());
                        ApiResponse::Object(claim)
                    }
                    ClaimWrite::PatchPodStatus { .. } => ApiResponse::Done,
                    _ => ApiResponse::Object(Box::new(claim)),
                };
                binding.answer(cycle, &mut tracker, answer, now);
            }
            _ => {
                if let Some((mut cycle, _)) = cycles[index].take() {
                    let _ = cycle.post_filter(0);
                    let mut calls = cycle.unreserve(&mut tracker);
                    while let Some(write) = calls.next() {
                        let answer = match write {
                            _ if step[1] & 32 != 0 => ApiResponse::Conflict("conflict".to_owned()),
                            ClaimWrite::Update { mut claim } => {
                                claim.metadata.resource_version = Some(version.to_string());
                                ApiResponse::Object(claim)
                            }
                            _ => ApiResponse::Done,
                        };
                        calls.answer(&mut tracker, answer);
                    }
                    assert_eq!(cycle.unreserve(&mut tracker), cycle.unreserve(&mut tracker));
                }
            }
        }
    }
    for (mut cycle, _) in cycles.into_iter().flatten() {
        let _ = cycle.unreserve(&mut tracker);
    }
    let mut doubts = tracker.calls_in_doubt();
    while doubts.next().is_some() {
        // Each of these claims is gone.
        doubts.answer(&mut tracker, ApiResponse::Done);
    }
    assert_eq!(tracker.in_flight().count(), 0, "something stays in flight");
    let names: Vec<String> = NAMES.iter().flat_map(|name| [(*name).to_owned(), format!("{name}-extended")]).collect();
    let cached: Vec<ResourceClaim> =
        names.iter().filter_map(|name| tracker.claim("ns", name)).map(|claim| (**claim).clone()).collect();
    assert_eq!(*tracker.state(), AllocatedState::from_claims(&cached, Component::of(Profile::V1_37)).unwrap());
    for claim in &cached {
        tracker.observe_deleted(&ClaimId::from(claim));
    }
    assert!(tracker.state().is_empty(), "something leaks");
});
