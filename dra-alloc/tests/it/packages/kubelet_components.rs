//! Tests of API server, scheduler and kubelet, each with its own gate.

use std::sync::Arc;

use dra_alloc::declared_features::DeclaredFeature;
use dra_alloc::skip::SkipField;
use dra_alloc::validate::{ApiServer, Write};
use dra_alloc::{Gate, GateSet, Outcome};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimStatus};
use serde_json::json;

use super::kubelet_world::{BOTH, GPU, World, claim, pod};
use crate::cluster::{Cluster, node, pool, request, with};

fn features(gate: bool) -> GateSet {
    if gate { GateSet::all() } else { GateSet::all().without(Gate::OptionalNodeOperations) }
}

/// Where a claim ends on its way from the driver's slice through API server, scheduler and kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    SliceRefused,
    NotAllocated,
    PrepareRefused,
    /// The driver was called.
    Called,
    /// The pod started without a call of the driver.
    Skipped,
}

/// Gates of the three components.
#[derive(Clone, Copy, Debug)]
struct Gates {
    api_server: bool,
    scheduler: bool,
    kubelet: bool,
}

/// Sends a slice that skips node operations, and a claim for its device, through all three components. The node declares
/// what a kubelet with the gate `declared` does, which may have restarted since.
fn way(profile: Profile, gates: Gates, declared: bool) -> End {
    let server = ApiServer::new(Component::new(profile, features(gates.api_server)));
    let slice = with(pool(GPU, "node-1", json!([{"name": "gpu-0"}])), "skipNodeOperations", json!(true));
    let Ok(slice) = server.validate_slice(Write::create(&SkipField::read(slice).unwrap())) else {
        return End::SliceRefused;
    };

    let world = World::new(profile, &[GPU]);
    let mut world = if gates.kubelet { world } else { world.gate_off() };
    let mut node = node("node-1");
    let before = World::new(profile, &[GPU]);
    let before = if declared { before } else { before.gate_off() };
    let declared = DeclaredFeature::new(profile).declared_by(before.settings, &"1.37.0".parse().unwrap());
    node.status.as_mut().unwrap().declared_features = declared.map(|feature| vec![feature.to_owned()]);
    let mut cluster = Cluster::new([pool(GPU, "node-1", json!([]))]);
    cluster.slices = vec![Arc::new(slice.object)];
    (cluster.profile, cluster.gates) = (profile, features(gates.scheduler));
    let reserved = claim("c", &[]);
    let spec = crate::cluster::claim("c", json!([request("r", "gpu", json!({}))]), json!([])).spec;
    let pending = ResourceClaim { spec, status: None, ..reserved.clone() };
    let verdict = cluster.try_allocate(&node, std::slice::from_ref(&pending)).unwrap();
    let Outcome::Allocated(mut results) = verdict.outcome else { return End::NotAllocated };

    let status = ResourceClaimStatus { allocation: results.pop(), ..reserved.status.unwrap() };
    let allocated = ResourceClaim { status: Some(status), ..pending.clone() };
    let stored = server.validate_claim_status(Write::update(&pending, &allocated)).unwrap().object;

    match world.prepare(&pod("p", &["c"]), &[stored]) {
        Err(_) => End::PrepareRefused,
        Ok(()) if world.calls.is_empty() => End::Skipped,
        Ok(()) => End::Called,
    }
}

#[test]
fn each_component_decides_by_its_own_gate_in_all_eight_combinations() {
    // req: 5945-GATE-2
    let is_kep = |profile| profile == Profile::Kep;
    let end = |profile, gates: Gates, declared| match (gates.api_server, gates.scheduler && declared, gates.kubelet) {
        (false, ..) if is_kep(profile) => End::SliceRefused,
        // The field is dropped, so that nobody sees a device that skips.
        (false, ..) => End::Called,
        // The scheduler's gate is off, or the node does not declare the feature.
        (true, false, _) => End::NotAllocated,
        (true, true, true) => End::Skipped,
        (true, true, false) => End::PrepareRefused,
    };
    for profile in BOTH {
        for bits in 0..8 {
            let gates = Gates { api_server: bits & 1 != 0, scheduler: bits & 2 != 0, kubelet: bits & 4 != 0 };
            for declared in [false, true] {
                let expected = end(profile, gates, declared);
                assert_eq!(way(profile, gates, declared), expected, "{profile} {gates:?} {declared}");
            }
        }
    }
}

#[test]
fn a_gate_has_a_name_in_each_component() {
    for profile in BOTH {
        assert_eq!(Gate::OptionalNodeOperations.name(profile), Gate::OptionalNodeOperations.name(profile));
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
