//! Tests of API server, scheduler and kubelet, each with its own gate.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::declared_features::DeclaredFeature;
use dra_alloc::kubelet::KubeletGate;
use dra_alloc::validate::{ApiServer, Write};
use dra_alloc::{DraGate, GateSet};
use dra_attrs::{FeatureGate, Profile};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use serde_json::json;

use super::world::{BOTH, GPU, World, claim, pod};
use crate::cluster::{Cluster, pool, request, with};

fn features(gate: bool) -> GateSet<DraGate> {
    if gate { GateSet::all() } else { GateSet::all().without(DraGate::OptionalNodeOperations) }
}

/// Returns the API server's result for a new slice and a new allocation that skip node operations.
fn stored(profile: Profile, gate: bool) -> String {
    let server = ApiServer::new(profile, features(gate));
    let slice: ResourceSlice =
        dra_alloc::skip::wire::read(with(pool(GPU, "node-1", json!([])), "skipNodeOperations", json!(true))).unwrap();
    let mut new = claim("c", &[(GPU, json!(true))]);
    new.spec = crate::cluster::claim("c", json!([request("r", "gpu", json!({}))]), json!([])).spec;
    let old = ResourceClaim { status: None, ..new.clone() };
    let slice = server.validate_slice(Write::create(&slice)).map(|admitted| admitted.object.spec.skip_node_operations);
    let claim = server.validate_claim_status(Write::update(&old, &new)).map(|admitted| admitted.object.status);
    format!("{slice:?} {claim:?}")
}

/// Returns the scheduler's result for a slice that skips node operations.
fn scheduled(profile: Profile, gate: bool) -> String {
    let slice = with(pool(GPU, "node-1", json!([{"name": "gpu-0"}])), "skipNodeOperations", json!(true));
    let mut cluster = Cluster::new([slice]);
    (cluster.profile, cluster.gates) = (profile, features(gate));
    let claims = [crate::cluster::claim("c", json!([request("r", "gpu", json!({}))]), json!([]))];
    format!("{:?}", cluster.allocate("node-1", &claims))
}

/// Returns the kubelet's results for a claim that skips node operations, without a driver, and the feature that its
/// node declares.
fn prepared(profile: Profile, gate: bool) -> String {
    let world = World::new(profile, &[]);
    let mut world = if gate { world } else { world.gate_off() };
    let prepared = world.prepare(&pod("p", &["c"]), &[claim("c", &[(GPU, json!(true))])]);
    let ended = world.unprepare(&pod("p", &["c"]));
    let declared = DeclaredFeature::new(profile).declared_by(world.settings, &"1.37.0".parse().unwrap());
    format!("{prepared:?} {ended:?} {:?} {declared:?}", world.calls)
}

#[test]
fn each_component_decides_by_its_own_gate_in_all_eight_combinations() {
    // req: 5945-GATE-2
    for profile in BOTH {
        let mut seen: BTreeMap<(&str, bool), BTreeSet<String>> = BTreeMap::new();
        for combination in 0..8 {
            let gate = |bit: i32| combination & (1 << bit) != 0;
            // Each component is created with its own gate and has no parameter for another's.
            seen.entry(("api server", gate(0))).or_default().insert(stored(profile, gate(0)));
            seen.entry(("scheduler", gate(1))).or_default().insert(scheduled(profile, gate(1)));
            seen.entry(("kubelet", gate(2))).or_default().insert(prepared(profile, gate(2)));
        }
        for component in ["api server", "scheduler", "kubelet"] {
            let [off, on] = [false, true].map(|gate| &seen[&(component, gate)]);
            assert_eq!((off.len(), on.len()), (1, 1), "{component} has one answer for each value of its gate");
            assert_ne!(off, on, "{component} has a gate");
        }
    }
}

#[test]
fn a_gate_has_a_name_in_each_component() {
    for profile in BOTH {
        assert_eq!(KubeletGate::OptionalNodeOperations.name(profile), DraGate::OptionalNodeOperations.name(profile));
    }
}

#[test]
fn without_a_true_no_pod_requires_anything() {
    // req: 5945-GATE-3
    // `required_by` has no parameter for a gate: its result is the same with the gate on and off.
    for profile in BOTH {
        for skip in [json!(null), json!(false)] {
            let claims = [claim("c", &[(GPU, skip.clone()), (GPU, skip)])];
            let target = "1.37.0".parse().unwrap();
            assert_eq!(DeclaredFeature::new(profile).required_by(&pod("p", &["c"]), &claims, &target), None);
        }
    }
}
