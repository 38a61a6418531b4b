//! Fuzzes steps over any nodes at any instants: nothing panics, a second step after the writes has no writes, and the state
//! reads back as it was.
#![no_main]

use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use readiness::validate::{ValidationOptions, validate_gates};
use readiness::{EvaluatorRole, GatedNode, NodeState, Policy, StepResult, step};

/// Returns true if every condition has a timestamp, by which a report can be told from one before a boot. The controller
/// alone relies on it until kubelet has written.
fn has_times(node: &GatedNode) -> bool {
    let conditions = node.node.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    conditions.into_iter().all(|one| one.last_transition_time.is_some() || one.last_heartbeat_time.is_some())
}

type Input = (Policy, EvaluatorRole, Vec<(i64, GatedNode)>);

fuzz_target!(|text: &[u8]| {
    let Ok((policy, role, nodes)) = serde_json::from_slice::<Input>(text) else { return };
    let mut state = NodeState::default();
    for (second, mut node) in nodes {
        let Ok(now) = Timestamp::from_second(second) else { continue };
        let is_valid = validate_gates(&node.gates, &ValidationOptions::default()).is_valid();
        let StepResult { writes, requeue_at, state: after, .. } = step(&policy, role, &node.view(), now, state);
        assert!(requeue_at.is_none_or(|requeue_at| requeue_at > now));
        state = after;
        // Nothing is written for a gate that the API server would refuse.
        let is_told = (role == EvaluatorRole::Combined && is_valid) || has_times(&node);
        let refused = writes.iter().filter(|write| !write.apply(&mut node.node, now)).count();
        if refused == 0 && is_told {
            let again = step(&policy, role, &node.view(), now, state);
            assert_eq!(again.writes, []);
            state = again.state;
        }
        let read: NodeState =
            serde_json::from_str(&serde_json::to_string(&state).expect("writable")).expect("readable");
        assert_eq!(read, state);
    }
});
