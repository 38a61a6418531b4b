//! Tests of upgrades, downgrades and gate changes while claims exist.

use dra_alloc::kubelet::Operation;
use dra_alloc::skip::SkipField;
use dra_alloc::validate::{ApiServer, Write};
use dra_alloc::{Gate, GateSet, Outcome};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimStatus, ResourceSlice};
use serde_json::json;

use super::kubelet_world::{BOTH, GPU, World, changed, claim, forget_skips, pod};
use crate::cluster::{Cluster, pool, request, with};

#[test]
fn what_the_slice_says_later_does_not_matter() {
    // req: 5945-RISK-1, 5945-RISK-2, 5945-ALLOC-5, 5945-KUBELET-16
    // The slice changes after one claim was allocated from it, and a second claim is allocated from it then.
    for profile in BOTH {
        for first in [true, false] {
            let (mut cluster, later) = (cluster_that_skips(profile, first), cluster_that_skips(profile, !first));
            let earlier = allocated(&cluster, "earlier");
            cluster.slices = later.slices;
            let second = allocated(&cluster, "later");

            for (claim, skips) in [(earlier, first), (second, !first)] {
                let name = claim.metadata.name.clone().unwrap();
                let mut world = World::new(profile, &[GPU]);
                world.prepare(&pod("p", &[&name]), &[claim]).unwrap();
                world.unprepare(&pod("p", &[&name])).unwrap();
                assert_eq!(world.calls.len(), if skips { 0 } else { 2 }, "{profile} {name} {:?}", world.calls);
            }
        }
    }
}

/// Creates a cluster with one slice, whose device skips node operations or does not.
fn cluster_that_skips(profile: Profile, skips: bool) -> Cluster {
    let devices = json!([{"name": "gpu-0"}]);
    let mut cluster = Cluster::new([with(pool(GPU, "node-1", devices), "skipNodeOperations", json!(skips))]);
    cluster.profile = profile;
    cluster
}

/// Returns a claim for a device of the cluster, allocated and reserved for the pod `p`.
fn allocated(cluster: &Cluster, name: &str) -> ResourceClaim {
    let reserved = claim(name, &[]);
    let spec = crate::cluster::claim(name, json!([request("r", "gpu", json!({}))]), json!([])).spec;
    let pending = ResourceClaim { spec, status: None, ..reserved.clone() };
    let Outcome::Allocated(mut results) = cluster.allocate("node-1", std::slice::from_ref(&pending)) else {
        panic!("not allocated");
    };
    let status = ResourceClaimStatus { allocation: results.pop(), ..reserved.status.unwrap() };
    ResourceClaim { status: Some(status), ..pending }
}

fn skipping_of(claim: &ResourceClaim) -> Option<Vec<String>> {
    let devices = claim.status.as_ref()?.allocation.as_ref()?.devices.as_ref()?;
    devices.results.as_ref()?.first()?.skip_node_operations.clone()
}

#[test]
fn a_result_without_the_field_needs_a_driver_that_may_do_nothing() {
    // req: 5945-RISK-3, 5945-SKEW-2
    let object = claim("c", &[(GPU, json!(null))]);
    let mut world = World::new(Profile::Kep, &[]);
    assert!(world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).is_err());
    world.registered.insert(GPU.to_owned());
    world.prepare(&pod("p", &["c"]), &[object]).unwrap();
    world.unprepare(&pod("p", &["c"])).unwrap();
    assert_eq!(world.calls.len(), 2);
}

#[test]
fn older_release_in_between_then_new_again() {
    // The file has lost the skips, the claim still has them. A kubelet that looks up drivers by the claim, but selects
    // the calls by the file, would call a driver that it has not looked up.
    let object = claim("c", &[(GPU, json!(["*"]))]);
    let mut world = World::new(Profile::V1_37, &[]);
    world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap();
    world = world.restart_in_older_release().restart();
    world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap();
    assert!(world.calls.is_empty());
    assert!(world.file.contains("SkipNodeOperations"), "the file is healed");
    world = world.restart();
    world.unprepare(&pod("p", &["c"])).unwrap();
    assert!(world.calls.is_empty() && world.cache.claims().is_empty());
}

#[test]
fn the_kep_takes_a_claim_without_the_field_for_one_that_drivers_prepare() {
    // req: 5945-CKPT-8
    let object = claim("c", &[(GPU, json!(true))]);
    let mut world = World::new(Profile::Kep, &[]);
    world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap();
    world = world.restart_in_older_release().restart();
    let error = world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap_err();
    assert_eq!(error.to_string(), "prepare dynamic resources: DRA driver gpu.example.com is not registered");
    let error = world.unprepare(&pod("p", &["c"])).unwrap_err();
    assert_eq!(error.to_string(), "unprepare dynamic resources: DRA driver gpu.example.com is not registered");

    world.registered.insert(GPU.to_owned());
    world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap();
    world = world.restart();
    world.unprepare(&pod("p", &["c"])).unwrap();
    assert_eq!(world.calls.len(), 2);
    // The next claim of the same name is a new one.
    world.calls.clear();
    world.prepare(&pod("q", &["c"]), &[object]).unwrap();
    world.unprepare(&pod("q", &["c"])).unwrap();
    assert!(world.calls.is_empty());
}

#[test]
fn one_operation_in_a_file_is_none_where_the_field_is_a_bool() {
    for (profile, calls) in [(Profile::Kep, 1), (Profile::V1_37, 0)] {
        let object = claim("c", &[(GPU, json!(["NodeUnprepareResources"]))]);
        let mut world = World::new(Profile::V1_37, &[GPU]);
        world.prepare(&pod("p", &["c"]), &[object]).unwrap();
        world.settings = Component::of(profile);
        world = world.restart();
        let orphans = world.cache.plan_orphans(&[].into(), |_| true, world.settings);
        assert_eq!(orphans[0].1.as_ref().unwrap().calls().len(), calls);
        world = world.restart();
        world.calls.clear();
        world.unprepare(&pod("p", &["c"])).unwrap();
        assert_eq!(world.calls.len(), calls);
    }
}

#[test]
fn upgrade_downgrade_upgrade() {
    // req: 5945-SKEW-4, 5945-SKEW-5
    for profile in BOTH {
        let (on, off) = servers(profile);
        let slice: ResourceSlice =
            SkipField::read(with(pool(GPU, "node-1", devices()), "skipNodeOperations", json!(true))).unwrap();
        let stored = on.validate_slice(Write::create(&slice)).unwrap().object;

        // Release N: the pods start without a driver.
        let skipping = |name| claim(name, &[(GPU, json!(true))]);
        let mut world = World::new(profile, &[]);
        world.prepare(&pod("p", &["c1"]), &[skipping("c1")]).unwrap();
        world.prepare(&pod("q", &["c2"]), &[skipping("c2")]).unwrap();

        // Release N with the gate off: no new pod starts, running pods end without a call.
        world = world.restart().gate_off();
        let mut republished = stored.clone();
        republished.spec.pool.generation = 2;
        let stored = off.validate_slice(Write::update(&stored, &republished)).unwrap().object;
        assert_eq!(stored.spec.skip_node_operations, slice.spec.skip_node_operations, "the true is kept");
        let before = skipping("c2");
        let mut released = before.clone();
        released.status.as_mut().unwrap().reserved_for = None;
        let updated = off.validate_claim_status(Write::update(&before, &released)).unwrap().object;
        assert_eq!(skipping_of(&updated), skipping_of(&before), "the true is kept");
        assert!(
            world.prepare(&pod("r", &["c1"]), &[changed(&skipping("c1"), "/status/reservedFor", for_r())]).is_err()
        );
        world.unprepare(&pod("p", &["c1"])).unwrap();

        // Release N-1: the driver must be registered for the other pod.
        world.file = forget_skips(&world.file);
        world = world.restart();
        assert!(world.unprepare(&pod("q", &["c2"])).is_err());
        world.registered.insert(GPU.to_owned());
        world.unprepare(&pod("q", &["c2"])).unwrap();
        assert_eq!(world.called(Operation::Unprepare)[GPU], [["c2-claim"]]);

        // A claim that was allocated in the meantime does not skip, and is still prepared by the driver.
        let plain = claim("c3", &[(GPU, json!(null))]);
        world.prepare(&pod("p", &["c3"]), std::slice::from_ref(&plain)).unwrap();

        // Release N again: the slice still skips, and a new claim from it needs no driver.
        let mut cluster = Cluster::new([serde_json::to_value(&stored).unwrap()]);
        cluster.profile = profile;
        let wanted = crate::cluster::claim("c4", json!([request("r", "gpu", json!({}))]), json!([]));
        let Outcome::Allocated(results) = cluster.allocate("node-1", &[wanted]) else { panic!("not allocated") };
        let allocation = results[0].devices.as_ref().unwrap().results.as_ref().unwrap();
        assert_eq!(allocation[0].skip_node_operations, skipping_of(&skipping("c4")));
        world = world.restart().gate_on();
        world.calls.clear();
        world.prepare(&pod("p", &["c3"]), &[plain]).unwrap();
        assert_eq!(world.called(Operation::Prepare)[GPU], [["c3-claim"]]);
        world.registered.clear();
        world.calls.clear();
        world.prepare(&pod("q", &["c4"]), &[skipping("c4")]).unwrap();
        world.unprepare(&pod("q", &["c4"])).unwrap();
        assert!(world.calls.is_empty());
    }
}

fn devices() -> serde_json::Value {
    json!([{"name": "gpu-0"}])
}

/// Creates API servers with the gate on and off.
fn servers(profile: Profile) -> (ApiServer, ApiServer) {
    let off = GateSet::all().without(Gate::OptionalNodeOperations);
    (ApiServer::new(Component::new(profile, GateSet::all())), ApiServer::new(Component::new(profile, off)))
}

fn for_r() -> serde_json::Value {
    json!([{"resource": "pods", "name": "r", "uid": "r-uid"}])
}

#[test]
fn a_control_plane_that_goes_back_does_not_disturb_a_prepared_claim() {
    // req: 5945-SKEW-7, 5945-KUBELET-16
    // Unprepare has no parameter for the claim: the API server may be older, have the gate off, or be unavailable.
    for profile in BOTH {
        let mut world = World::new(profile, &[]);
        world.prepare(&pod("p", &["c"]), &[claim("c", &[(GPU, json!(true))])]).unwrap();
        assert!(world.cache.claims().values().all(|info| info.prepared));
        world.unprepare(&pod("p", &["c"])).unwrap();
        assert!(world.calls.is_empty());
    }
}

#[test]
fn an_older_kubelet_expects_the_driver_and_a_gated_one_refuses() {
    // req: 5945-SKEW-6
    // Release N-1 does not know the field: for it, the claim does not skip.
    let mut older = World::new(Profile::Kep, &[]).gate_off();
    let seen_by_older = claim("c", &[(GPU, json!(null))]);
    let error = older.prepare(&pod("p", &["c"]), &[seen_by_older]).unwrap_err();
    assert!(error.to_string().ends_with("is not registered"));
    let error = older.prepare(&pod("p", &["c"]), &[claim("c", &[(GPU, json!(true))])]).unwrap_err();
    assert!(error.to_string().contains("DRAOptionalNodePreparationDisabled"));
}

#[test]
fn an_older_control_plane_that_drops_the_field_does_not_disturb_a_prepared_claim() {
    // req: 5945-SKEW-7, 5945-KUBELET-16
    let stored = claim("c", &[(GPU, json!(true))]);
    for profile in BOTH {
        let (_, off) = servers(profile);
        let mut world = World::new(profile, &[]);
        world.prepare(&pod("p", &["c"]), std::slice::from_ref(&stored)).unwrap();
        // The gate of the API server is turned off, and a consumer is removed from the claim: the value true is kept.
        let mut reserved = stored.clone();
        reserved.status.as_mut().unwrap().reserved_for.as_mut().unwrap().truncate(1);
        let served = off.validate_claim_status(Write::update(&stored, &reserved)).unwrap().object;
        world.prepare(&pod("p", &["c"]), &[served]).unwrap();
        // An API server of the previous release does not know the field.
        let older = world.prepare(&pod("p", &["c"]), &[claim("c", &[(GPU, json!(null))])]);
        assert_eq!(older.is_ok(), profile == Profile::Kep, "as shipped, drivers are looked up by the claim");
        assert!(world.cache.claims().values().all(|info| info.prepared && info.drivers[GPU].skips.unprepare));
        let mut restarted = world.clone().restart();
        for world in [&mut world, &mut restarted] {
            world.unprepare(&pod("p", &["c"])).unwrap();
            assert!(world.calls.is_empty() && world.cache.claims().is_empty());
        }
    }
}

#[test]
fn a_prepared_claim_keeps_what_it_skips_whatever_is_served_later() {
    // An older API server serves the claim without the field, and the driver is registered by now.
    for profile in BOTH {
        let mut world = World::new(profile, &[]);
        world.prepare(&pod("p", &["c"]), &[claim("c", &[(GPU, json!(true))])]).unwrap();
        world.registered.insert(GPU.to_owned());
        world.prepare(&pod("q", &["c"]), &[claim("c", &[(GPU, json!(null))])]).unwrap();
        world = world.restart();
        world.unprepare(&pod("p", &["c"])).unwrap();
        world.unprepare(&pod("q", &["c"])).unwrap();
        assert!(world.calls.is_empty() && world.cache.claims().is_empty());
    }
}
