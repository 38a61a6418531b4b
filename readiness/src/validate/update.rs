//! Changes of a stored list.

use std::collections::BTreeMap;

use super::error::FieldError;
use super::gate::reports;
use super::{Limits, Report};
use crate::gate::{FailureAction, NodeReadinessGate};

/// Who asks for a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Actor {
    /// Anyone who may write nodes.
    #[default]
    Admin,
    /// The node's own identity (`system:node:NAME`).
    Node,
}

/// Checks a change of the list. The list is fully mutable; two rules differ from [`super::validate`]:
///
/// - An entry that was stored before in the same form is not refused (ratcheting), so that a tighter rule does not block
///   other changes of the node.
/// - A node may add gates to itself, but not weaken them: not remove one, not change `Taint` into another action, not
///   shorten a timeout, not change a taint. `NodeRestriction` guards taints and labels only; a compromised node could drop
///   its gates otherwise. On creation there is nothing to weaken: use [`super::validate`].
///
/// ```
/// use readiness::gate::NodeReadinessGate;
/// use readiness::validate::{Actor, Limits, validate_update};
/// let old = [NodeReadinessGate::new("a.example/Ready", 180).bypassing()];
/// assert!(validate_update(&old, &[], Actor::Admin, &Limits::default()).is_valid());
/// let report = validate_update(&old, &[], Actor::Node, &Limits::default());
/// assert_eq!(
///     report.errors[0].to_string(),
///     "spec.readinessGates: Forbidden: a node may not remove its gate \"a.example/Ready\""
/// );
/// ```
#[must_use]
pub fn validate_update(old: &[NodeReadinessGate], new: &[NodeReadinessGate], actor: Actor, limits: &Limits) -> Report {
    let (stored, mut report) = (stored(old, new), Report::default());
    let was_stored = |index: usize| stored.get(index).copied().unwrap_or_default();
    for (index, of_gate) in reports(new, limits).into_iter().enumerate() {
        if !was_stored(index) {
            report.errors.extend(of_gate.report.errors);
        }
        report
            .errors
            .extend(of_gate.conflict.filter(|(first, _)| !(was_stored(index) && was_stored(*first))).map(|c| c.1));
        report.warnings.extend(of_gate.report.warnings);
    }
    if actor == Actor::Node {
        report.errors.extend(weakened(old, new, &limits.path));
    }
    report
}

/// For each new gate, whether it was there before: in the same form, and its type as often as now.
fn stored(old: &[NodeReadinessGate], new: &[NodeReadinessGate]) -> Vec<bool> {
    let (before, after) = (by_type(old), by_type(new));
    let was_stored = |gate: &NodeReadinessGate| {
        let of_type = |lists: &BTreeMap<&str, Vec<&NodeReadinessGate>>| {
            lists.get(gate.condition_type.as_str()).map_or(0, Vec::len)
        };
        let same_form = |list: &Vec<&NodeReadinessGate>| list.contains(&gate);
        before.get(gate.condition_type.as_str()).is_some_and(same_form) && of_type(&before) >= of_type(&after)
    };
    new.iter().map(was_stored).collect()
}

fn by_type(gates: &[NodeReadinessGate]) -> BTreeMap<&str, Vec<&NodeReadinessGate>> {
    let mut lists: BTreeMap<&str, Vec<&NodeReadinessGate>> = BTreeMap::new();
    for gate in gates {
        lists.entry(&gate.condition_type).or_default().push(gate);
    }
    lists
}

fn weakened(old: &[NodeReadinessGate], new: &[NodeReadinessGate], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut first: BTreeMap<&str, (usize, &NodeReadinessGate)> = BTreeMap::new();
    for (index, gate) in new.iter().enumerate() {
        first.entry(&gate.condition_type).or_insert((index, gate));
    }
    for before in old {
        let name = &before.condition_type;
        let Some(&(index, after)) = first.get(name.as_str()) else {
            errors.push(FieldError::forbidden(path, &format!("a node may not remove its gate {name:?}")));
            continue;
        };
        let mut forbid = |field: &str, what: &str| {
            let detail = format!("a node may not {what} of its gate {name:?}");
            errors.push(FieldError::forbidden(format!("{path}[{index}].{field}"), &detail));
        };
        if shortens(before, after) {
            forbid("timeoutSeconds", "shorten the timeout");
        }
        if before.failure_action != after.failure_action && after.failure_action != FailureAction::Taint {
            forbid("failureAction", "weaken the action");
        } else if before.taint().is_some() && before.taint() != after.taint() {
            forbid("readinessTaint", "change the taint");
        }
    }
    errors
}

/// A timeout that is missing or not positive never passes.
fn shortens(before: &NodeReadinessGate, after: &NodeReadinessGate) -> bool {
    let seconds = |gate: &NodeReadinessGate| gate.timeout_seconds.filter(|seconds| *seconds > 0);
    match (seconds(before), seconds(after)) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(before), Some(after)) => after < before,
    }
}
