//! The filter of a scheduler (KEP-5233, Evaluation Logic): stateless, without a clock, literal.

use std::fmt;

use k8s_openapi::api::core::v1::NodeCondition;

use crate::condition::{Observation, READY, TRUE, in_words};
use crate::gate::{FailureAction, NodeReadinessGate};
use crate::node::NodeView;
use crate::pod::{NodeReadinessRequirement, PodView, is_daemon_pod};
use crate::policy::{Handoff, Mode, Policy};

/// What the requirements of a pod do to the gates of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Requirements {
    /// They stand in place of the gates.
    #[default]
    Replace,
    /// They come on top, so that a pod can't pass by what the cluster demands.
    Additive,
}

/// Settings of the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterOptions {
    /// What requirements of pods do.
    pub requirements: Requirements,
    /// Whether a timed-out gate with action `Taint` has to have its taint on the node.
    pub handoff: Handoff,
    /// `Off`: the plugin is disabled.
    pub mode: Mode,
}

impl FilterOptions {
    /// The text of the KEP.
    #[must_use]
    pub const fn kep() -> Self {
        Self { requirements: Requirements::Replace, handoff: Handoff::Immediate, mode: Mode::Active }
    }

    /// As the KEP, and no pod comes between a timeout and its taint.
    #[must_use]
    pub const fn hardened() -> Self {
        Self { handoff: Handoff::AwaitTaint, ..Self::kep() }
    }

    /// The settings that agree with those of the reconciler.
    #[must_use]
    pub const fn of(policy: &Policy) -> Self {
        Self { requirements: Requirements::Replace, handoff: policy.handoff, mode: policy.mode }
    }

    /// The same settings with requirements that come on top of gates.
    #[must_use]
    pub const fn additive(self) -> Self {
        Self { requirements: Requirements::Additive, ..self }
    }
}

/// Why the filter answers as it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Allowed: the plugin is off.
    Disabled,
    /// Allowed: pods of daemon sets are not held back. Ready and taints are judged elsewhere.
    DaemonSetExempt,
    /// Allowed: the node has no gates.
    NoGates,
    /// Allowed: every gate is met.
    GatesMet,
    /// Allowed: what the pod requires is met.
    PodScoped,
    /// Blocked: the node is not ready.
    NodeNotReady,
    /// Blocked: something is not met.
    Unmet,
}

/// The answer for one node and one pod.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FilterVerdict<'a> {
    /// Which row of the decision table holds.
    pub outcome: Outcome,
    /// When blocked, everything that is not met: Ready first, then gates in their order, then requirements. When allowed,
    /// the gates that only a timeout has released.
    pub reasons: Vec<Reason<'a>>,
}

impl FilterVerdict<'_> {
    /// Whether the pod may go to the node.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        !matches!(self.outcome, Outcome::NodeNotReady | Outcome::Unmet)
    }
}

/// One line like a scheduler's, empty if there is nothing to say.
impl fmt::Display for FilterVerdict<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, reason) in self.reasons.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{reason}")?;
        }
        Ok(())
    }
}

/// What is with one condition.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reason<'a> {
    /// Type of the condition.
    pub condition_type: &'a str,
    /// The condition, if it exists.
    pub condition: Option<&'a NodeCondition>,
    /// What is with it.
    pub cause: Cause,
}

/// The kinds of [`Reason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// kubelet does not report Ready.
    NotReady,
    /// A gate of the node is not satisfied.
    Gate,
    /// A timeout has been written, but its taint is not on the node.
    AwaitingTaint,
    /// Not a hindrance: a timeout has released the gate.
    Released,
    /// A requirement of the pod is not met.
    Requirement,
    /// A requirement of the pod asks for a status that it can't ask for.
    UnsupportedStatus,
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, state) = (self.condition_type, in_words(self.condition));
        match self.cause {
            Cause::NotReady => write!(formatter, "node is not ready: condition {name:?} {state}"),
            Cause::Gate => write!(formatter, "readiness gate {name:?}: condition {state}"),
            Cause::AwaitingTaint => {
                write!(formatter, "readiness gate {name:?}: condition {state}, its taint is not on the node")
            }
            Cause::Released => write!(formatter, "readiness gate {name:?}: released by its timeout"),
            Cause::Requirement => write!(formatter, "required condition {name:?} {state}"),
            Cause::UnsupportedStatus => {
                write!(formatter, "required condition {name:?}: only status True can be required; {state}")
            }
        }
    }
}

/// Whether a pod may go to a node, as far as gates decide.
///
/// The first row that fits holds:
///
/// | Ready | pod of a daemon set | pod's requirements | | answer |
/// |---|---|---|---|---|
/// | any | yes | any | any | allowed |
/// | not True, or missing | no | any | any | blocked |
/// | True | no | none | no gates | allowed |
/// | True | no | none | every gate True, or Unknown with reason `TimeoutExceeded` | allowed |
/// | True | no | none | anything else | blocked |
/// | True | no | given | every requirement True | allowed |
/// | True | no | given | anything else, `TimeoutExceeded` too | blocked |
///
/// A scheduler treats "blocked" as unschedulable and unresolvable: preemption can't help. It asks again when a condition, a
/// taint or the list of gates changes, or a node comes.
///
/// Of several gates of one type the first counts, as in [`crate::reconcile`].
///
/// Running pods are not concerned: nothing here evicts, and kubelet's admission does not ask.
///
/// # Complexity
/// Linear in gates and requirements for short lists of conditions, with a logarithm beyond; no allocation when everything
/// is True.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use readiness::evaluate::{FilterOptions, filter};
/// use readiness::{node::GatedNode, pod::PodView};
/// let node: GatedNode = serde_json::from_str(r#"{
///     "spec": {"readinessGates": [{"conditionType": "datadog.com/AgentReady", "timeoutSeconds": 180}]},
///     "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#)?;
/// let pod = Pod::default();
/// let verdict = filter(FilterOptions::kep(), &node.view(), PodView::new(&pod));
/// assert!(!verdict.is_allowed());
/// assert_eq!(verdict.to_string(), r#"readiness gate "datadog.com/AgentReady": condition does not exist"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn filter<'a>(options: FilterOptions, view: &NodeView<'a>, pod: PodView<'a>) -> FilterVerdict<'a> {
    if options.mode == Mode::Off {
        return allowed(Outcome::Disabled);
    }
    if is_daemon_pod(pod.pod) {
        return allowed(Outcome::DaemonSetExempt);
    }
    let is_scoped = !pod.requirements.is_empty();
    let mut reasons = Vec::new();
    if !view.is_ready() {
        reasons.push(Reason { condition_type: READY, condition: view.condition(READY), cause: Cause::NotReady });
    }
    if !is_scoped || options.requirements == Requirements::Additive {
        let unmet = view.gates().iter().filter_map(|gate| Some((gate, of_gate(gate, view, options.handoff)?)));
        reasons.extend(unmet.filter(|(gate, _)| view.is_first(gate)).map(|(_, reason)| reason));
    }
    reasons.extend(pod.requirements.iter().filter_map(|requirement| of_requirement(requirement, view)));
    let blocks = |reason: &Reason<'_>| reason.cause != Cause::Released;
    if reasons.iter().any(blocks) {
        reasons.retain(blocks);
        let outcome = if view.is_ready() { Outcome::Unmet } else { Outcome::NodeNotReady };
        return FilterVerdict { outcome, reasons };
    }
    let outcome = match (is_scoped, view.gates().is_empty()) {
        (true, _) => Outcome::PodScoped,
        (false, true) => Outcome::NoGates,
        (false, false) => Outcome::GatesMet,
    };
    FilterVerdict { outcome, reasons }
}

const fn allowed(outcome: Outcome) -> FilterVerdict<'static> {
    FilterVerdict { outcome, reasons: Vec::new() }
}

fn of_gate<'a>(gate: &'a NodeReadinessGate, view: &NodeView<'a>, handoff: Handoff) -> Option<Reason<'a>> {
    let condition = view.condition(&gate.condition_type);
    let cause = match Observation::of(condition) {
        Observation::True => return None,
        Observation::TimeoutExceeded if handoff == Handoff::AwaitTaint && !is_taken_over(gate, view) => {
            Cause::AwaitingTaint
        }
        Observation::TimeoutExceeded => Cause::Released,
        _ => Cause::Gate,
    };
    Some(Reason { condition_type: &gate.condition_type, condition, cause })
}

/// Whether the failure action of a gate is in force: its taint is on the node, or there is none to wait for.
pub(crate) fn is_taken_over(gate: &NodeReadinessGate, view: &NodeView<'_>) -> bool {
    match gate.usable_taint() {
        Some(taint) => view.taint(&taint.key, &taint.effect).is_some(),
        None => gate.failure_action == FailureAction::BypassWithWarning,
    }
}

fn of_requirement<'a>(requirement: &'a NodeReadinessRequirement, view: &NodeView<'a>) -> Option<Reason<'a>> {
    let condition_type = requirement.condition_type.as_str();
    let condition = view.condition(condition_type);
    let cause = match Observation::of(condition) {
        _ if requirement.status != TRUE => Cause::UnsupportedStatus,
        Observation::True => return None,
        _ => Cause::Requirement,
    };
    Some(Reason { condition_type, condition, cause })
}
