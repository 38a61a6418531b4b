//! Objectives as texts: what is read is shown, and is used on a small node within its steps, with a solution that is not worse
//! than the first one and a bound that is not above its value.
#![no_main]

use dra_alloc::objective::{Objective, Proof};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DeviceId, Inventory, Outcome};
use dra_attrs::Profile;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, from_value, json};

const STEPS: u64 = 500;

fn slices() -> Vec<ResourceSlice> {
    let device = |number: usize| {
        let card = format!("card-{}", number / 2);
        json!({
            "name": format!("gpu-{number}"),
            "attributes": {"model": {"string": "a"}, "resource.kubernetes.io/numaNode": {"ints": [number / 3, 1]}},
            "capacity": {"memory": {"value": number.to_string()}},
            "consumesCounters": [{"counterSet": card, "counters": {"slots": {"value": "1"}}}],
        })
    };
    let set = |card: usize| json!({"name": format!("card-{card}"), "counters": {"slots": {"value": "2"}}});
    let slice = |name: &str, field: &str, list: Vec<Value>| {
        let pool = json!({"name": "a", "generation": 1, "resourceSliceCount": 2});
        let spec = json!({"driver": "gpu.example.com", "nodeName": "a", "pool": pool, field: list});
        from_value(json!({"metadata": {"name": name}, "spec": spec})).expect("a slice")
    };
    vec![slice("0", "sharedCounters", (0..3).map(set).collect()), slice("1", "devices", (0..6).map(device).collect())]
}

fuzz_target!(|text: &[u8]| {
    let Ok(json) = serde_json::from_slice::<Value>(text) else { return };
    let Ok(objective) = Objective::from_json(&json) else { return };
    assert!(!objective.to_string().is_empty());
    let objective = objective.with_steps(STEPS);
    let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}})).expect("a class");
    let requests = ["a", "b"].map(|name| json!({"name": name, "exactly": {"deviceClassName": "gpu"}}));
    let claim: ResourceClaim =
        from_value(json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}})).expect("a claim");
    let node: Node = from_value(json!({"metadata": {"name": "a"}})).expect("a node");
    let (inventory, classes) = (Inventory::new(slices()), Classes::new([class]));
    let mut state = AllocatedState::default();
    state.hold(&DeviceId::new("gpu.example.com", "a", "gpu-2"));
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes).with_objective(&objective);
    let verdict = allocator.allocate(&state, &node, [&claim], Budget::default()).expect("valid claims");
    assert!(matches!(verdict.outcome, Outcome::Allocated(_)), "{verdict:?}");
    let Some(score) = verdict.score else { return };
    assert!(score.value <= score.first_fit && score.steps <= STEPS, "{score:?}");
    if let Proof::Best { bound } = &score.proof {
        assert!(*bound <= score.value, "{score:?}");
    }
});
