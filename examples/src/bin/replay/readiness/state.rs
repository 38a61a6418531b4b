//! State of `readiness.step`, with the keys that the door has always printed.

use readiness::NodeState;
use serde_json::{Map, Value};

use super::written;
use crate::refusal::Refusal;

/// Keys of a node: as stored by the library, and as printed.
const NODE_KEYS: [(&str, &str); 8] = [
    ("bootId", "boot_id"),
    ("kubeletInstance", "kubelet_instance"),
    ("ownedTaints", "owned_taints"),
    ("leavingTaints", "leaving_taints"),
    ("ownedLabels", "owned_labels"),
    ("leavingLabels", "leaving_labels"),
    ("ungated", "before"),
    ("isWarm", "is_warm"),
];

/// Keys of a gate: as stored, and as printed.
const GATE_KEYS: [(&str, &str); 8] = [
    ("timerStartedAt", "anchor"),
    ("firstTimerStartedAt", "first_anchor"),
    ("timeoutWritten", "timeout_written"),
    ("trueSince", "true_since"),
    ("beforeBoot", "before_boot"),
    ("resetIsDue", "reset_is_due"),
    ("timeoutWriteBase", "asked_over"),
    ("preexistingTimeout", "leftover"),
];

/// Keys of the counters: as stored, and as printed.
const COUNTER_KEYS: [(&str, &str); 1] = [("secondsToEstablished", "seconds_to_established")];

/// Phases of a gate: as stored, and as printed.
const PHASES: [(&str, &str); 4] =
    [("waiting", "Waiting"), ("established", "Established"), ("regressed", "Regressed"), ("timedOut", "TimedOut")];

/// Returns the state as the door prints it.
pub(super) fn printed(state: &NodeState) -> Result<Value, Refusal> {
    let mut tree = written(state)?;
    let Some(node) = tree.as_object_mut() else { return Ok(tree) };
    node.remove("version");
    rename(node, &NODE_KEYS);
    if let Some(counters) = node.get_mut("counters").and_then(Value::as_object_mut) {
        rename(counters, &COUNTER_KEYS);
    }
    for gate in node.get_mut("gates").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        let Some(gate) = gate.as_object_mut() else { continue };
        rename(gate, &GATE_KEYS);
        if let Some(phase) = gate.get_mut("phase") {
            let name = PHASES.into_iter().find(|(stored, _)| *phase == *stored);
            *phase = name.map_or_else(|| phase.take(), |(_, name)| Value::from(name));
        }
    }
    Ok(tree)
}

fn rename(fields: &mut Map<String, Value>, keys: &[(&str, &str)]) {
    for (stored, printed) in keys {
        if let Some(value) = fields.remove(*stored) {
            fields.insert((*printed).to_owned(), value);
        }
    }
}
