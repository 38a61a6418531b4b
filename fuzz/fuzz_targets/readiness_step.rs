//! Any nodes, one after the other, at any instants: nothing panics, a second look at what was written has nothing to add, and
//! the state reads back as it was.
#![no_main]

use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use readiness::node::GatedNode;
use readiness::policy::Policy;
use readiness::reconcile::{Role, State, Step, apply, step};
use readiness::validate::{Limits, validate};

/// Whether a report can be told from one before a boot. The controller alone relies on that until kubelet has written.
fn has_times(node: &GatedNode) -> bool {
    let conditions = node.node.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    conditions.into_iter().all(|one| one.last_transition_time.is_some() || one.last_heartbeat_time.is_some())
}

type Input = (Policy, Role, Vec<(i64, GatedNode)>);

fuzz_target!(|text: &[u8]| {
    let Ok((policy, role, nodes)) = serde_json::from_slice::<Input>(text) else { return };
    let mut state = State::default();
    for (second, mut node) in nodes {
        let Ok(now) = Timestamp::from_second(second) else { continue };
        let is_valid = validate(&node.gates, &Limits::default()).is_valid();
        let Step { outputs, wake_up, state: after, .. } = step(&policy, role, &node.view(), now, state);
        assert!(wake_up.is_none_or(|wake_up| wake_up > now));
        state = after;
        // Nothing is written for a gate that the API server would refuse.
        let is_told = (role == Role::Combined && is_valid) || has_times(&node);
        if apply(&mut node.node, &outputs, now).is_empty() && is_told {
            let again = step(&policy, role, &node.view(), now, state);
            assert_eq!(again.outputs, []);
            state = again.state;
        }
        let read: State = serde_json::from_str(&serde_json::to_string(&state).expect("writable")).expect("readable");
        assert_eq!(read, state);
    }
});
