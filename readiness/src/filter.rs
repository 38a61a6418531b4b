//! Scheduler filter: decides from readiness gates if a pod may be scheduled to a node (KEP-5233, Evaluation Logic).
//! Stateless and without a clock.

use std::fmt;

use k8s_openapi::api::core::v1::NodeCondition;

use crate::condition::{ConditionStatus, READY, TRUE, status_text};
use crate::gate::NodeReadinessGate;
use crate::node::GatedNodeView;
use crate::pod::{GatedPodView, NodeReadinessRequirement};
use crate::policy::{Policy, PolicyMode};

/// Options of [`filter`](crate::filter()).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterOptions {
    /// True if a pod with `nodeReadinessRequirements` must meet the gates of the node too, so that it can't bypass them. In
    /// the KEP such a pod is checked against its requirements alone.
    pub(crate) adds_requirements: bool,
    /// True if a timed-out gate with the action `Taint` keeps blocking pods until its taint is on the node.
    pub waits_for_taint: bool,
    /// Mode of the readiness gates: active, without writes, or off. `Off` allows every pod.
    pub mode: PolicyMode,
}

impl FilterOptions {
    /// Returns the options that follow the text of the KEP literally.
    #[must_use]
    pub const fn kep() -> Self {
        Self { adds_requirements: false, waits_for_taint: false, mode: PolicyMode::Active }
    }

    /// Like [`FilterOptions::kep`], but a timed-out gate blocks pods until its taint is on the node.
    #[must_use]
    pub const fn hardened() -> Self {
        Self { waits_for_taint: true, ..Self::kep() }
    }

    /// Lets a pod's `nodeReadinessRequirements` add to the gates of the node instead of replacing them, so that it can't bypass
    /// the gates.
    #[must_use]
    pub const fn with_added_requirements(self) -> Self {
        Self { adds_requirements: true, ..self }
    }
}

/// Copies the fields `waits_for_taint` and `mode` of a reconciler's policy, so that filter and reconciler agree.
impl From<&Policy> for FilterOptions {
    fn from(policy: &Policy) -> Self {
        Self { waits_for_taint: policy.waits_for_taint, mode: policy.mode, ..Self::kep() }
    }
}

/// Outcome of [`filter`](crate::filter()): the pod is allowed or blocked, and the rule that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FilterOutcome {
    /// Allowed: readiness gates are switched off ([`PolicyMode::Off`]).
    Disabled,
    /// Allowed: gates do not apply to pods of daemon sets. Ready and taints are checked by other plugins.
    DaemonSetExempt,
    /// Allowed: the node has no gates.
    NoGates,
    /// Allowed: the condition of every gate is True or has timed out.
    GatesMet,
    /// Allowed: the pod's own requirements are met.
    PodScoped,
    /// Blocked: kubelet's condition Ready is not True, or is missing.
    NodeNotReady,
    /// Blocked: the node is ready, but a gate of the node or a requirement of the pod is not met.
    Unmet,
}

/// Decision of [`filter`](crate::filter()) on one node and one pod.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReadinessVerdict<'a> {
    /// Outcome: allowed or blocked, and the rule that decided.
    pub outcome: FilterOutcome,
    /// Unmet conditions of a blocked pod: Ready, then gates, then requirements. For an allowed pod, the gates that have
    /// timed out.
    pub reasons: Vec<FilterReason<'a>>,
}

impl ReadinessVerdict<'_> {
    /// Returns true if the pod may be scheduled to the node.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        !matches!(self.outcome, FilterOutcome::NodeNotReady | FilterOutcome::Unmet)
    }
}

/// Formats all reasons in one line, as a scheduler does. Empty without reasons.
impl fmt::Display for ReadinessVerdict<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, reason) in self.reasons.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{reason}")?;
        }
        Ok(())
    }
}

/// Condition that blocks a pod, or that does not block it only because its gate has timed out.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct FilterReason<'a> {
    /// Type of the condition.
    pub condition_type: &'a str,
    /// Condition as stored in the status of the node; `None` if the node has no condition of this type.
    pub condition: Option<&'a NodeCondition>,
    /// Cause for which the condition is listed, such as an unmet gate.
    pub cause: FilterCause,
}

/// Cause for which a condition is listed in [`ReadinessVerdict::reasons`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FilterCause {
    /// kubelet's condition Ready is not True, or is missing.
    NotReady,
    /// The condition of a gate is neither True nor timed out.
    Gate,
    /// The gate has timed out, but its taint is not on the node yet.
    AwaitingTaint,
    /// The gate has timed out and does not block pods.
    Released,
    /// The condition is required by the pod and is not True.
    Requirement,
    /// The pod requires a status other than True, which blocks it on every node.
    UnsupportedStatus,
}

impl fmt::Display for FilterReason<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, state) = (self.condition_type, status_text(self.condition));
        match self.cause {
            FilterCause::NotReady => write!(formatter, "node is not ready: condition {name:?} {state}"),
            FilterCause::Gate => write!(formatter, "readiness gate {name:?}: condition {state}"),
            FilterCause::AwaitingTaint => {
                write!(formatter, "readiness gate {name:?}: condition {state}, its taint is not on the node")
            }
            FilterCause::Released => write!(formatter, "readiness gate {name:?}: released by its timeout"),
            FilterCause::Requirement => write!(formatter, "required condition {name:?} {state}"),
            FilterCause::UnsupportedStatus => {
                write!(formatter, "required condition {name:?}: only status True can be required; {state}")
            }
        }
    }
}

/// Decides from the readiness gates of a node if a pod may be scheduled to it.
///
/// The first row that applies counts:
///
/// | Ready | pod of a daemon set | pod's requirements | gates or requirements | answer |
/// |---|---|---|---|---|
/// | any | yes | any | any | allowed |
/// | not True, or missing | no | any | any | blocked |
/// | True | no | none | no gates | allowed |
/// | True | no | none | every gate True, or Unknown with reason `TimeoutExceeded` | allowed |
/// | True | no | none | any other | blocked |
/// | True | no | given | every requirement True | allowed |
/// | True | no | given | any other, also `TimeoutExceeded` | blocked |
///
/// A scheduler treats "blocked" as `UnschedulableAndUnresolvable`: preemption can't help. It tries the pod again when a
/// condition, a taint or the list of gates changes, or a node is added.
///
/// Of several gates of one type the first counts, as in [`step`](crate::step()).
///
/// Running pods are not affected: the filter evicts nothing, and kubelet's admission does not call it.
///
/// # Complexity
/// Linear in gates and requirements for up to 32 conditions, with a logarithm beyond; no allocation when everything is
/// True.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use readiness::{FilterOptions, GatedNode, GatedPodView, filter};
/// let node: GatedNode = serde_json::from_str(r#"{
///     "spec": {"readinessGates": [{"conditionType": "datadog.com/AgentReady", "timeoutSeconds": 180}]},
///     "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#)?;
/// let pod = Pod::default();
/// let verdict = filter(FilterOptions::kep(), &node.view(), GatedPodView::new(&pod));
/// assert!(!verdict.is_allowed());
/// assert_eq!(verdict.to_string(), r#"readiness gate "datadog.com/AgentReady": condition does not exist"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn filter<'a>(options: FilterOptions, view: &GatedNodeView<'a>, pod: GatedPodView<'a>) -> ReadinessVerdict<'a> {
    if options.mode == PolicyMode::Off {
        return allowed(FilterOutcome::Disabled);
    }
    if pod.is_daemon_pod() {
        return allowed(FilterOutcome::DaemonSetExempt);
    }
    let is_scoped = !pod.requirements.is_empty();
    let mut reasons = Vec::new();
    if !view.is_ready() {
        reasons.push(FilterReason {
            condition_type: READY,
            condition: view.condition(READY),
            cause: FilterCause::NotReady,
        });
    }
    if !is_scoped || options.adds_requirements {
        let unmet = view.gates().iter().filter_map(|gate| Some((gate, gate_reason(gate, view, options)?)));
        reasons.extend(unmet.filter(|(gate, _)| view.is_first(gate)).map(|(_, reason)| reason));
    }
    reasons.extend(pod.requirements.iter().filter_map(|requirement| requirement_reason(requirement, view)));
    let blocks = |reason: &FilterReason<'_>| reason.cause != FilterCause::Released;
    if reasons.iter().any(blocks) {
        reasons.retain(blocks);
        let outcome = if view.is_ready() { FilterOutcome::Unmet } else { FilterOutcome::NodeNotReady };
        return ReadinessVerdict { outcome, reasons };
    }
    let outcome = match (is_scoped, view.gates().is_empty()) {
        (true, _) => FilterOutcome::PodScoped,
        (false, true) => FilterOutcome::NoGates,
        (false, false) => FilterOutcome::GatesMet,
    };
    ReadinessVerdict { outcome, reasons }
}

const fn allowed(outcome: FilterOutcome) -> ReadinessVerdict<'static> {
    ReadinessVerdict { outcome, reasons: Vec::new() }
}

fn gate_reason<'a>(
    gate: &'a NodeReadinessGate,
    view: &GatedNodeView<'a>,
    options: FilterOptions,
) -> Option<FilterReason<'a>> {
    let condition = view.condition(&gate.condition_type);
    let cause = match ConditionStatus::from_condition(condition) {
        ConditionStatus::True => return None,
        ConditionStatus::TimeoutExceeded if options.waits_for_taint && !view.has_failure_action(gate) => {
            FilterCause::AwaitingTaint
        }
        ConditionStatus::TimeoutExceeded => FilterCause::Released,
        _ => FilterCause::Gate,
    };
    Some(FilterReason { condition_type: &gate.condition_type, condition, cause })
}

fn requirement_reason<'a>(
    requirement: &'a NodeReadinessRequirement,
    view: &GatedNodeView<'a>,
) -> Option<FilterReason<'a>> {
    let condition_type = requirement.condition_type.as_str();
    let condition = view.condition(condition_type);
    let cause = match ConditionStatus::from_condition(condition) {
        _ if requirement.status != TRUE => FilterCause::UnsupportedStatus,
        ConditionStatus::True => return None,
        _ => FilterCause::Requirement,
    };
    Some(FilterReason { condition_type, condition, cause })
}
