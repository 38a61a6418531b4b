//! Validation of an update of a node's gates.

use std::collections::BTreeMap;

use dra_attrs::{FieldError, FieldPath};
use k8s_openapi::api::core::v1::Taint;

use super::gate::check_gates;
use super::{ValidationOptions, ValidationReport};
use crate::gate::{FailureAction, NodeReadinessGate};
use crate::lookup::Lookup;
use crate::taint::is_same;

/// Validates an update of a node's list of gates, of which every field may change. Two rules differ from
/// [`validate_gates`](super::validate_gates):
///
/// - **Ratcheting**: an entry that was stored before in the same form is not refused, so that a tighter rule does not block
///   other changes of the node.
/// - **A node may not weaken its own gates** ([`ValidationOptions::by_node`]): it may not remove a gate, change `Taint` into another action, shorten a
///   timeout, or give a timeout to a gate that time never released. It may not add or change a taint either, by a new gate
///   or an old one: the reconciler adds and removes the taints of gates, and nodes may not change taints after their
///   registration. The admission plugin `NodeRestriction` protects only taints and labels; without this rule a compromised
///   node could drop its gates, or a taint of the administrator. On creation there is nothing to weaken: use
///   [`validate_gates`](super::validate_gates).
///
/// Of several gates of one type the first counts. An empty value of a taint is the same as none.
///
/// ```
/// use readiness::NodeReadinessGate;
/// use readiness::validate::{ValidationOptions, validate_gate_update};
/// let old = [NodeReadinessGate::new("a.example/Ready", 180).with_bypass_warning()];
/// assert!(validate_gate_update(&old, &[], &ValidationOptions::default()).is_valid());
/// let report = validate_gate_update(&old, &[], &ValidationOptions::default().by_node());
/// assert_eq!(
///     report.errors.to_string(),
///     "spec.readinessGates: Forbidden: a node may not remove its gate \"a.example/Ready\""
/// );
/// ```
#[must_use]
pub fn validate_gate_update(
    old: &[NodeReadinessGate],
    new: &[NodeReadinessGate],
    options: &ValidationOptions,
) -> ValidationReport {
    let (stored, mut report) = (stored(old, new), ValidationReport::default());
    let was_stored = |index: usize| stored.get(index).copied().unwrap_or_default();
    for (index, findings) in check_gates(new, was_stored, options).into_iter().enumerate() {
        if !was_stored(index) {
            report.errors.extend(findings.errors);
        }
        report.errors.extend(findings.conflict);
        report.warnings.extend(findings.warnings);
    }
    if options.is_by_node {
        report.errors.extend(overreach(old, new, &FieldPath::new(&options.path)));
    }
    report
}

/// Returns for each new gate true if it was stored unchanged before, so that its errors are ignored (ratcheting). A
/// gate whose type is listed more often than before does not count as stored.
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

/// Returns an error for each change that a node may not make to its own gates.
fn overreach(old: &[NodeReadinessGate], new: &[NodeReadinessGate], path: &FieldPath<'_>) -> Vec<FieldError> {
    let (before, after) = (Lookup::new(old), Lookup::new(new));
    let removed = before.distinct().filter(|gate| after.find(&gate.condition_type).is_none());
    let forbid = |gate: &NodeReadinessGate| {
        FieldError::forbidden(path, format!("a node may not remove its gate {:?}", gate.condition_type))
    };
    let mut errors: Vec<FieldError> = removed.map(forbid).collect();
    for (index, gate) in new.iter().enumerate() {
        if after.is_first(gate) {
            let wrong = change_errors(before.find(&gate.condition_type), gate);
            errors.extend(wrong.map(|(field, action)| {
                let detail = format!("a node may not {action} of its gate {:?}", gate.condition_type);
                FieldError::forbidden(&path.index(index).child(field), detail)
            }));
        }
    }
    errors
}

/// Returns the fields of a new or changed gate that a node may not write, each with the refused action, such as
/// `shorten the timeout`.
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

/// Returns true if a change of the failure action makes a gate less strict: any change but from `BypassWithWarning` to
/// `Taint`. A gate with an unknown action never times out, so that replacing the action weakens it.
fn weakens(before: &FailureAction, after: &FailureAction) -> bool {
    before != after && (*after != FailureAction::Taint || matches!(before, FailureAction::Other(_)))
}

/// Returns true if the gate `after` times out earlier than `before`. A timeout that is missing or not positive never
/// ends.
fn shortens(before: &NodeReadinessGate, after: &NodeReadinessGate) -> bool {
    let seconds = |gate: &NodeReadinessGate| gate.timeout_seconds.filter(|seconds| *seconds > 0);
    match (seconds(before), seconds(after)) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(before), Some(after)) => after < before,
    }
}
