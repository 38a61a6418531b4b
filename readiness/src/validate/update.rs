//! Changes of a stored list.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;

use super::error::FieldError;
use super::gate::reports;
use super::{Limits, Report};
use crate::gate::{FailureAction, NodeReadinessGate};
use crate::lookup::Lookup;
use crate::taint::is_same;

/// Who asks for a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Writer {
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
///   shorten a timeout, not make a gate one that time releases if it was none. Nor may it bring or change a taint, by a new
///   gate or an old one: with the gate a taint comes and goes, which nodes may not do once they are registered.
///   `NodeRestriction` guards taints and labels only; a compromised node could drop its gates, or an administrator's
///   taint, otherwise. On creation there is nothing to weaken: use [`super::validate`].
///
/// Of several gates of one type the first counts. A taint's value that is empty is as good as none.
///
/// ```
/// use readiness::gate::NodeReadinessGate;
/// use readiness::validate::{Writer, Limits, validate_update};
/// let old = [NodeReadinessGate::new("a.example/Ready", 180).bypassing()];
/// assert!(validate_update(&old, &[], Writer::Admin, &Limits::default()).is_valid());
/// let report = validate_update(&old, &[], Writer::Node, &Limits::default());
/// assert_eq!(
///     report.errors[0].to_string(),
///     "spec.readinessGates: Forbidden: a node may not remove its gate \"a.example/Ready\""
/// );
/// ```
#[must_use]
pub fn validate_update(
    old: &[NodeReadinessGate],
    new: &[NodeReadinessGate],
    writer: Writer,
    limits: &Limits,
) -> Report {
    let (stored, mut report) = (stored(old, new), Report::default());
    let was_stored = |index: usize| stored.get(index).copied().unwrap_or_default();
    for (index, of_gate) in reports(new, was_stored, limits).into_iter().enumerate() {
        if !was_stored(index) {
            report.errors.extend(of_gate.report.errors);
        }
        report.errors.extend(of_gate.conflict);
        report.warnings.extend(of_gate.report.warnings);
    }
    if writer == Writer::Node {
        report.errors.extend(overreach(old, new, &limits.path));
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
        let has_form = |list: &Vec<&NodeReadinessGate>| list.iter().any(|other| is_same_form(other, gate));
        before.get(gate.condition_type.as_str()).is_some_and(has_form) && of_type(&before) >= of_type(&after)
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

fn is_same_form(one: &NodeReadinessGate, other: &NodeReadinessGate) -> bool {
    let is_same_rest = one.condition_type == other.condition_type
        && one.timeout_seconds == other.timeout_seconds
        && one.failure_action == other.failure_action;
    is_same_rest && is_same_taint(one.readiness_taint.as_ref(), other.readiness_taint.as_ref())
}

fn is_same_taint(one: Option<&Taint>, other: Option<&Taint>) -> bool {
    let value = |taint: &Taint| taint.value.clone().unwrap_or_default();
    match (one, other) {
        (Some(one), Some(other)) => {
            is_same(one, other) && value(one) == value(other) && one.time_added == other.time_added
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// What a node may not do to its own gates.
fn overreach(old: &[NodeReadinessGate], new: &[NodeReadinessGate], path: &str) -> Vec<FieldError> {
    let (before, after) = (Lookup::new(old), Lookup::new(new));
    let removed = before.distinct().filter(|gate| after.find(&gate.condition_type).is_none());
    let forbid = |gate: &NodeReadinessGate| {
        FieldError::forbidden(path, &format!("a node may not remove its gate {:?}", gate.condition_type))
    };
    let mut errors: Vec<FieldError> = removed.map(forbid).collect();
    for (index, gate) in new.iter().enumerate() {
        if after.is_first(gate) {
            let wrong = change_errors(before.find(&gate.condition_type), gate);
            errors.extend(wrong.map(|(field, what)| {
                let detail = format!("a node may not {what} of its gate {:?}", gate.condition_type);
                FieldError::forbidden(format!("{path}[{index}].{field}"), &detail)
            }));
        }
    }
    errors
}

/// The fields of a gate, new or changed, that a node may not write so, and what it would do.
fn change_errors(
    before: Option<&NodeReadinessGate>,
    after: &NodeReadinessGate,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let old_taint = before.and_then(NodeReadinessGate::taint);
    let is_weaker = before.is_some_and(|before| weakens(&before.failure_action, &after.failure_action));
    let taint = match (old_taint, after.taint()) {
        _ if is_weaker => None,
        (None, Some(_)) => Some(("readinessTaint", "choose the taint")),
        (old, new) => (!is_same_taint(old, new)).then_some(("readinessTaint", "change the taint")),
    };
    let timeout = before.is_some_and(|before| shortens(before, after));
    let timeout = timeout.then_some(("timeoutSeconds", "shorten the timeout"));
    let action = is_weaker.then_some(("failureAction", "weaken the action"));
    [timeout, action, taint].into_iter().flatten()
}

/// Only `Taint` is stronger than another action, and only than one that time ends: an unknown one is never released.
fn weakens(before: &FailureAction, after: &FailureAction) -> bool {
    before != after && (*after != FailureAction::Taint || matches!(before, FailureAction::Other(_)))
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
