//! The feature gates, the components that read them, and what readers see in each combination.
//!
//! The KEP has two: `NominatedNodeNameForExpectation` is kube-scheduler's, `ClearingNominatedNodeNameAfterBinding`
//! kube-apiserver's. They are independent, and a component that is too old for its gate behaves as with the gate off
//! (KEP-5278, Version Skew Strategy). Gates of other KEPs are here as far as they change what this crate decides.

use serde::Serialize;

/// A feature gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub enum Gate {
    /// kube-scheduler writes the chosen node at the start of a binding cycle that has work to do.
    #[serde(rename = "NominatedNodeNameForExpectation")]
    Expectation,
    /// kube-apiserver clears the field when it binds.
    #[serde(rename = "ClearingNominatedNodeNameAfterBinding")]
    Clearing,
    /// kube-scheduler looks for victims for a bound pod whose resize in place waits for room.
    #[serde(rename = "InPlacePodVerticalScalingSchedulerPreemption")]
    ResizePreemption,
    /// kube-apiserver copies the labels of a binding, which an admission plugin has taken from the node, to the pod.
    #[serde(rename = "PodTopologyLabelsAdmission")]
    TopologyLabels,
}

/// A component that reads a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub enum Component {
    /// kube-scheduler
    Scheduler,
    /// kube-apiserver
    ApiServer,
}

struct GateInfo {
    name: &'static str,
    component: Component,
    /// The first minor version of Kubernetes 1 that has the code.
    alpha: u32,
    /// The first one in which it is on by default.
    beta: Option<u32>,
}

const EXPECTATION: GateInfo =
    GateInfo { name: "NominatedNodeNameForExpectation", component: Component::Scheduler, alpha: 34, beta: Some(35) };

const CLEARING: GateInfo = GateInfo {
    name: "ClearingNominatedNodeNameAfterBinding",
    component: Component::ApiServer,
    alpha: 34,
    beta: Some(35),
};

const RESIZE_PREEMPTION: GateInfo = GateInfo {
    name: "InPlacePodVerticalScalingSchedulerPreemption",
    component: Component::Scheduler,
    alpha: 37,
    beta: None,
};

const TOPOLOGY_LABELS: GateInfo =
    GateInfo { name: "PodTopologyLabelsAdmission", component: Component::ApiServer, alpha: 33, beta: Some(35) };

impl Gate {
    /// All gates.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Expectation, Self::Clearing, Self::ResizePreemption, Self::TopologyLabels].into_iter()
    }

    const fn info(self) -> GateInfo {
        match self {
            Self::Expectation => EXPECTATION,
            Self::Clearing => CLEARING,
            Self::ResizePreemption => RESIZE_PREEMPTION,
            Self::TopologyLabels => TOPOLOGY_LABELS,
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// The name on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// The component that reads it.
    #[must_use]
    pub const fn component(self) -> Component {
        self.info().component
    }

    /// Whether Kubernetes 1.`minor` has it on by default.
    ///
    /// ```
    /// use nnn::gates::Gate;
    /// assert!(Gate::Expectation.is_default_in(35) && !Gate::Expectation.is_default_in(34));
    /// ```
    #[must_use]
    pub const fn is_default_in(self, minor: u32) -> bool {
        match self.info().beta {
            Some(beta) => minor >= beta,
            None => false,
        }
    }

    /// Whether Kubernetes 1.`minor` has the code at all. Without it the gate can't be switched on.
    ///
    /// ```
    /// use nnn::gates::Gate;
    /// assert!(Gate::Expectation.exists_in(34) && !Gate::Expectation.exists_in(33));
    /// ```
    #[must_use]
    pub const fn exists_in(self, minor: u32) -> bool {
        minor >= self.info().alpha
    }
}

/// Which gates are on. Off is also: the component is too old.
///
/// ```
/// use nnn::gates::{Gate, Gates};
/// assert_eq!(Gates::default(), Gates::of_versions(37, 37));
/// assert!(!Gates::of_versions(37, 33).has(Gate::Clearing));
/// assert_eq!(Gates::of_versions(33, 37), Gates::default().without(Gate::Expectation));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gates(u8);

impl Default for Gates {
    /// As Kubernetes 1.37 has them: both gates of the KEP are on, as since 1.35.
    fn default() -> Self {
        Self::of_versions(37, 37)
    }
}

impl Gates {
    /// All off.
    pub const NONE: Self = Self(0);

    /// The defaults of a kube-scheduler and a kube-apiserver of minor versions of Kubernetes 1.
    #[must_use]
    pub fn of_versions(scheduler: u32, api_server: u32) -> Self {
        Gate::all().fold(Self::NONE, |gates, gate| {
            let minor = match gate.component() {
                Component::Scheduler => scheduler,
                Component::ApiServer => api_server,
            };
            if gate.is_default_in(minor) { gates.with(gate) } else { gates }
        })
    }

    /// Gates by their names. What `is_on` has no value for keeps its default.
    #[must_use]
    pub fn from_gates(is_on: impl Fn(&str) -> Option<bool>) -> Self {
        Gate::all().fold(Self::default(), |gates, gate| match is_on(gate.name()) {
            Some(true) => gates.with(gate),
            Some(false) => gates.without(gate),
            None => gates,
        })
    }

    /// Whether a gate is on.
    #[must_use]
    pub const fn has(self, gate: Gate) -> bool {
        self.0 & gate.bit() != 0
    }

    /// With a gate on.
    #[must_use]
    pub const fn with(self, gate: Gate) -> Self {
        Self(self.0 | gate.bit())
    }

    /// With a gate off.
    #[must_use]
    pub const fn without(self, gate: Gate) -> Self {
        Self(self.0 & !gate.bit())
    }
}

/// What the field holds at a moment of a pod's life, as far as the gates decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum FieldValue {
    /// The node of the binding.
    Host,
    /// Unset.
    Unset,
    /// Whatever was there before the binding cycle, which may be another node.
    Old,
}

/// The field while a binding cycle has work to do, and after the binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Visible {
    /// From the start of the binding cycle to the binding.
    pub while_binding: FieldValue,
    /// After the binding.
    pub bound: FieldValue,
}

impl Gates {
    /// What readers see of a pod whose binding cycle has work to do. Readers that prefer `spec.nodeName`
    /// ([`crate::pod::PodView::placement`]) need not care about the last column.
    ///
    /// ```
    /// use nnn::gates::{FieldValue, Gate, Gates};
    /// let old_scheduler = Gates::default().without(Gate::Expectation).visible();
    /// assert_eq!((old_scheduler.while_binding, old_scheduler.bound), (FieldValue::Old, FieldValue::Unset));
    /// ```
    #[must_use]
    pub const fn visible(self) -> Visible {
        let while_binding = if self.has(Gate::Expectation) { FieldValue::Host } else { FieldValue::Old };
        let bound = if self.has(Gate::Clearing) { FieldValue::Unset } else { while_binding };
        Visible { while_binding, bound }
    }
}
