//! Entries of pods and groups: names, owners, consumers, room for consumers.

use dra_alloc::pods::{
    BlockedError, ClaimTracker, Consumer, PodCycle, PodOptions, StatusCode, can_reserve, pre_enqueue,
};
use dra_alloc::{Gate, GateSet, Profile};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{from_value, json};

use super::world::{World, claim, group, pod};

fn blocked(world: &World, pod: &Pod) -> BlockedError {
    let begun = PodCycle::pre_filter(pod, None, &world.tracker, &world.classes, &world.round, world.options);
    begun.unwrap_err()
}

#[test]
fn each_problem_of_a_claim_has_its_text_and_status() {
    let mut deleted = claim("deleted", 1);
    deleted.metadata.deletion_timestamp = Some(from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    let with_request = |name: &str, request| -> ResourceClaim {
        let mut claim = claim(name, 1);
        claim.spec = from_value(json!({"devices": {"requests": [request]}})).unwrap();
        claim
    };
    let claims = [
        deleted,
        with_request("classless", json!({"name": "r", "exactly": {"deviceClassName": ""}})),
        with_request("unknown", json!({"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "none"}]})),
        with_request("empty", json!({"name": "r"})),
    ];
    let mut world = World::new(1, claims);
    let rows = [
        ("gone", "could not find resource claim \"ns/gone\"", StatusCode::UnschedulableAndUnresolvable),
        ("deleted", "resourceclaim \"deleted\" is being deleted", StatusCode::UnschedulableAndUnresolvable),
        ("classless", "request r: unsupported request type", StatusCode::Error),
        ("unknown", "request r/s: device class none does not exist", StatusCode::UnschedulableAndUnresolvable),
        ("empty", "resource claim ns/empty, request r: unknown request type", StatusCode::UnschedulableAndUnresolvable),
    ];
    for (name, text, code) in rows {
        let blocked = blocked(&world, &pod("p", &[name], None));
        assert_eq!((blocked.to_string().as_str(), blocked.code()), (text, code));
    }
    world.options =
        PodOptions::new(Component::new(Profile::V1_37, GateSet::of(Profile::V1_37).without(Gate::PrioritizedList)));
    let off = blocked(&world, &pod("p", &["unknown"], None));
    assert!(off.to_string().ends_with("has subrequests, but the DRAPrioritizedList feature is disabled"));
}

#[test]
fn a_pod_without_claims_has_no_cycle_and_enters_the_queue() {
    let world = World::new(1, []);
    let pod = pod("p", &[], None);
    assert!(pre_enqueue(&pod, &world.tracker, world.options).is_ok());
    let begun = PodCycle::pre_filter(&pod, None, &world.tracker, &world.classes, &world.round, world.options);
    assert_eq!(begun, Ok(None));
}

#[test]
fn a_claim_of_a_template_must_be_the_pods_or_its_groups() {
    let owned_by = |kind: &str, name: &str| -> ResourceClaim {
        let mut claim = claim("c", 1);
        let owner =
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": kind, "name": name, "uid": "1", "controller": true});
        claim.metadata.owner_references = from_value(json!([owner])).unwrap();
        claim
    };
    let pod: Pod = from_value(json!({"metadata": {"namespace": "ns", "name": "p", "uid": "p-uid"},
        "spec": {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}],
            "schedulingGroup": {"podGroupName": "g"}},
        "status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "c"}]}}))
    .unwrap();
    let with = |claim, options| {
        let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
        tracker.observe(claim).unwrap();
        pre_enqueue(&pod, &tracker, options).map_err(|blocked| blocked.to_string())
    };
    let off = PodOptions::new(Profile::V1_37);
    let on =
        PodOptions::new(Component::new(Profile::V1_37, GateSet::of(Profile::V1_37).with(Gate::WorkloadResourceClaims)));
    assert_eq!(with(owned_by("PodGroup", "g"), on), Ok(()));
    let not_created = "ResourceClaim ns/c was not created for Pod ns/p";
    assert_eq!(with(owned_by("PodGroup", "g"), off), Err(format!("{not_created} (Pod is not owner)")));
    let neither = format!("{not_created} (neither Pod nor PodGroup g is the owner)");
    assert_eq!(with(owned_by("PodGroup", "h"), on), Err(neither));
}

#[test]
fn the_consumer_is_the_group_only_for_an_entry_that_it_has() {
    let options =
        PodOptions::new(Component::new(Profile::V1_37, GateSet::of(Profile::V1_37).with(Gate::WorkloadResourceClaims)));
    let (pod, group) = (pod("p", &["shared", "own"], Some("g")), group("g", &["shared"]));
    let entries = pod.spec.as_ref().unwrap().resource_claims.clone().unwrap();
    let consumer = |entry: usize| Consumer::of_entry(&pod, &entries[entry], Some(&group), options).unwrap();
    assert_eq!(consumer(0), Consumer::PodGroup { name: "g".into(), uid: "g-uid".into() });
    assert_eq!(consumer(1), Consumer::Pod { name: "p".into(), uid: "p-uid".into() });
}

#[test]
fn a_full_claim_has_room_for_those_that_are_in_it() {
    let mut full = claim("c", 1);
    let entry = |index: usize| json!({"resource": "pods", "name": index.to_string(), "uid": index.to_string()});
    let entries: Vec<_> = (0..Consumer::MAX_PER_CLAIM).map(entry).collect();
    full.status = from_value(json!({"reservedFor": entries})).unwrap();
    let pod = |uid: &str| Consumer::Pod { name: "p".into(), uid: uid.into() };
    assert_eq!(can_reserve(&full, &pod("17")), Ok(()));
    assert_eq!(can_reserve(&full, &pod("256")).unwrap_err().consumers, Consumer::MAX_PER_CLAIM);
    full.status.as_mut().unwrap().reserved_for.as_mut().unwrap().pop();
    assert_eq!(can_reserve(&full, &pod("256")), Ok(()));
}
