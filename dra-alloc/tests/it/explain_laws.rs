//! Property tests of explanations, on random clusters.

use dra_alloc::explain::{Cause, DeviceRejection, Reason, Suggestion};
use dra_alloc::{AllocatedState, DeviceId, Gate};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NUMA, claim, device, pool, request};
use crate::explain::{GPU, ask, explained, selector, without};

/// A generated GPU, with the properties that can prevent its allocation.
#[derive(Clone, Debug)]
struct Gpu {
    held: bool,
    tainted: bool,
    model: &'static str,
    numa: Option<i64>,
    binding: bool,
}

fn gpu() -> impl Strategy<Value = Gpu> {
    let often = |rarely| prop::bool::weighted(rarely);
    (often(0.3), often(0.3), prop::sample::select(vec!["l4", "h100"]), prop::option::of(0..2_i64), often(0.2))
        .prop_map(|(held, tainted, model, numa, binding)| Gpu { held, tainted, model, numa, binding })
}

fn cluster_of(gpus: &[Gpu]) -> Cluster {
    let devices = gpus.iter().enumerate().map(|(index, gpu)| {
        let mut device = device(&format!("gpu-{index}"), "model", json!({"string": gpu.model}));
        if let Some(numa) = gpu.numa {
            device["attributes"][NUMA] = json!({"int": numa});
        }
        if gpu.tainted {
            device["taints"] = json!([{"key": "health", "effect": "NoSchedule"}]);
        }
        if gpu.binding {
            device["bindingConditions"] = json!(["ready"]);
        }
        device
    });
    let mut cluster = Cluster::new([pool(GPU, "node-1", devices.collect())]);
    for (index, _) in gpus.iter().enumerate().filter(|(_, gpu)| gpu.held) {
        cluster.state.hold(&DeviceId::new(GPU, "node-1", &format!("gpu-{index}")));
    }
    without(cluster, Gate::DeviceBindingConditions)
}

/// Generates a device with or without memory, which may be in use, shared, or need a gate that is off.
fn memory_device() -> impl Strategy<Value = (Value, bool)> {
    let memory = prop::option::of(prop::sample::select(vec!["3Gi", "10Gi"]));
    let rarely = || prop::bool::weighted(0.3);
    (memory, rarely(), rarely(), rarely()).prop_map(|(memory, held, shared, binding)| {
        let mut device = json!({"allowMultipleAllocations": shared});
        if let Some(memory) = memory {
            device["capacity"] = json!({"memory": {"value": memory}});
        }
        if binding {
            device["bindingConditions"] = json!(["ready"]);
        }
        (device, held)
    })
}

fn memory_cluster(devices: Vec<(Value, bool)>) -> Cluster {
    let mut state = AllocatedState::default();
    let mut listed = Vec::new();
    for (index, (mut device, held)) in devices.into_iter().enumerate() {
        let name = format!("gpu-{index}");
        if held {
            state.hold(&DeviceId::new(GPU, "node-1", &name));
        }
        device["name"] = json!(name);
        listed.push(device);
    }
    let cluster = Cluster { state, ..Cluster::new([pool(GPU, "node-1", json!(listed))]) };
    without(cluster, Gate::DeviceBindingConditions)
}

fn memory_request() -> impl Strategy<Value = Value> {
    let fields = vec![json!({"allocationMode": "All"}), json!({"count": 1}), json!({"count": 2})];
    (prop::sample::select(fields), any::<bool>()).prop_map(|(mut fields, sized)| {
        if sized {
            fields["capacity"] = json!({"requests": {"memory": "5Gi"}});
        }
        fields
    })
}

/// Returns the leaves of an explanation: each device with the reason why it is rejected.
fn leaves(reasons: &[Reason]) -> Vec<(String, DeviceRejection)> {
    let mut found = Vec::new();
    for reason in reasons {
        if let Cause::Devices { devices, rejection, .. } = &reason.cause {
            found.extend(devices.iter().map(|device| (device.device, rejection.clone())));
        }
        found.extend(leaves(&reason.because));
    }
    found
}

/// Removes the reason of a leaf from its device.
fn remove(gpus: &mut [Gpu], device: &str, rejection: &DeviceRejection) {
    let gpu = &mut gpus[device.strip_prefix("gpu-").unwrap().parse::<usize>().unwrap()];
    match rejection {
        DeviceRejection::Held => gpu.held = false,
        DeviceRejection::Tainted { .. } => gpu.tainted = false,
        DeviceRejection::Selector { .. } => gpu.model = "h100",
        DeviceRejection::GateOff { .. } => gpu.binding = false,
        DeviceRejection::Constraint { .. } => gpu.numa = Some(0),
        other => panic!("nothing in this cluster explains {other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_leaf_is_true(gpus in prop::collection::vec(gpu(), 1..5), count in 1..4_u64, constrained in any::<bool>()) {
        let mut fields = selector("device.attributes['gpu.example.com'].model == 'h100'");
        fields["count"] = json!(count);
        let constraints = if constrained { json!([{"matchAttribute": NUMA}]) } else { json!([]) };
        let claims = [claim("training", json!([request("gpu", "gpu", fields)]), constraints)];
        let Some(explanation) = explained(&cluster_of(&gpus), &claims) else { return Ok(()) };
        prop_assert!(!explanation.reasons.is_empty());
        for (device, rejection) in leaves(&explanation.reasons) {
            let mut changed = gpus.clone();
            remove(&mut changed, &device, &rejection);
            let again = explained(&cluster_of(&changed), &claims).map(|again| leaves(&again.reasons)).unwrap_or_default();
            prop_assert!(!again.contains(&(device, rejection)));
        }
    }

    #[test]
    fn a_request_that_is_named_is_impossible_alone(
        devices in prop::collection::vec(memory_device(), 1..5),
        asked in prop::collection::vec(memory_request(), 1..4),
    ) {
        let cluster = memory_cluster(devices);
        let requests: Vec<Value> =
            asked.into_iter().enumerate().map(|(index, fields)| request(&index.to_string(), "gpu", fields)).collect();
        let together = claim("training", json!(requests), json!([]));
        let Some(explanation) = explained(&cluster, &[together]) else { return Ok(()) };
        for reason in &explanation.reasons {
            let Cause::Request { at, .. } = &reason.cause else { continue };
            let request = &requests[at.request.parse::<usize>().unwrap()];
            let alone = claim("training", json!([request]), json!([]));
            prop_assert!(cluster.devices("node-1", &[alone]).is_none(), "{}", explanation);
        }
    }

    #[test]
    fn every_suggestion_helps(gpus in prop::collection::vec(gpu(), 1..5), count in 1..4_u64) {
        let cluster = cluster_of(&gpus);
        let claims = ask(json!({"count": count}));
        let Some(explanation) = explained(&cluster, &claims) else { return Ok(()) };
        for suggestion in explanation.suggestions {
            let (mut cluster, mut fields) = (cluster.clone(), json!({"count": count}));
            match suggestion {
                Suggestion::Gates { .. } => cluster.gates = cluster.gates.with(Gate::DeviceBindingConditions),
                Suggestion::Tolerate { .. } => fields["tolerations"] = json!([{"key": "health", "operator": "Exists"}]),
                Suggestion::Fewer { count, .. } => fields["count"] = json!(count),
                Suggestion::Release => cluster.state = AllocatedState::default(),
                other => panic!("nothing in this cluster suggests {other:?}"),
            }
            prop_assert!(cluster.devices("node-1", &ask(fields)).is_some());
        }
    }
}
