//! Stored states: one that is read is written and read back as the same, and a step over any node goes on from it.
#![no_main]

use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use readiness::network::HoldDown;
use readiness::{EvaluatorRole, GatedNode, NodeState, Policy, step};
use serde_json::Value;

fuzz_target!(|text: &[u8]| {
    let Ok(text) = str::from_utf8(text) else { return };
    if let Ok(hold_down) = HoldDown::from_json(text) {
        let written = serde_json::to_string(&hold_down).expect("writable");
        assert_eq!(HoldDown::from_json(&written).expect("readable"), hold_down);
    }
    // A state, and perhaps the node that it is of.
    let (state, node) = match serde_json::from_str::<(Value, GatedNode)>(text) {
        Ok((state, node)) => (state.to_string(), node),
        Err(_) => (text.to_owned(), GatedNode::default()),
    };
    let Ok(state) = NodeState::from_json(&state) else { return };
    let written = serde_json::to_string(&state).expect("writable");
    assert_eq!(NodeState::from_json(&written).expect("readable"), state);
    for policy in [Policy::kep(), Policy::hardened()] {
        let after = step(&policy, EvaluatorRole::Combined, &node.view(), Timestamp::UNIX_EPOCH, state.clone());
        assert!(after.requeue_at.is_none_or(|at| at > Timestamp::UNIX_EPOCH));
    }
});
