//! Feature gates for `nominatedNodeName`, and the components that read them.
//!
//! KEP-5278 has two: `NominatedNodeNameForExpectation` is kube-scheduler's, `ClearingNominatedNodeNameAfterBinding`
//! kube-apiserver's. They are independent, and a component that is too old for its gate behaves as with the gate off
//! (KEP-5278, Version Skew Strategy). Gates of other KEPs are listed where they change a decision of this crate.

use dra_attrs::{FeatureGate, GateSet, Profile};
use serde::Serialize;

/// A feature gate of kube-scheduler or kube-apiserver that affects nominations.
///
/// ```
/// use dra_attrs::{GateSet, Profile};
/// use nnn::NominationGate;
///
/// let gates = GateSet::parse("NominatedNodeNameForExpectation=false", Profile::V1_37)?;
/// assert!(!gates.has(NominationGate::Expectation) && gates.has(NominationGate::Clearing));
/// # Ok::<(), dra_attrs::GateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub enum NominationGate {
    /// `NominatedNodeNameForExpectation`: kube-scheduler writes the chosen node into `nominatedNodeName` at the start
    /// of a binding cycle that has work to do.
    #[serde(rename = "NominatedNodeNameForExpectation")]
    Expectation,
    /// `ClearingNominatedNodeNameAfterBinding`: kube-apiserver clears `nominatedNodeName` when it binds the pod.
    #[serde(rename = "ClearingNominatedNodeNameAfterBinding")]
    Clearing,
    /// `InPlacePodVerticalScalingSchedulerPreemption`: kube-scheduler preempts other pods for a bound pod whose
    /// in-place resize is deferred for lack of room.
    #[serde(rename = "InPlacePodVerticalScalingSchedulerPreemption")]
    ResizePreemption,
    /// `PodTopologyLabelsAdmission`: an admission plugin of kube-apiserver adds the node's topology labels to a
    /// binding, and kube-apiserver copies them to the pod.
    #[serde(rename = "PodTopologyLabelsAdmission")]
    TopologyLabels,
}

/// Control plane component that reads a [`NominationGate`].
#[derive(Clone, Copy)]
enum ControlPlaneComponent {
    /// kube-scheduler
    Scheduler,
    /// kube-apiserver
    ApiServer,
}

/// Constant properties of one [`NominationGate`].
struct GateInfo {
    name: &'static str,
    component: ControlPlaneComponent,
    /// First minor version of Kubernetes 1 that has the gate.
    alpha: u32,
    /// First minor version of Kubernetes 1 that has the gate on by default.
    beta: Option<u32>,
}

const EXPECTATION: GateInfo = GateInfo {
    name: "NominatedNodeNameForExpectation",
    component: ControlPlaneComponent::Scheduler,
    alpha: 34,
    beta: Some(35),
};

const CLEARING: GateInfo = GateInfo {
    name: "ClearingNominatedNodeNameAfterBinding",
    component: ControlPlaneComponent::ApiServer,
    alpha: 34,
    beta: Some(35),
};

const RESIZE_PREEMPTION: GateInfo = GateInfo {
    name: "InPlacePodVerticalScalingSchedulerPreemption",
    component: ControlPlaneComponent::Scheduler,
    alpha: 37,
    beta: None,
};

const TOPOLOGY_LABELS: GateInfo = GateInfo {
    name: "PodTopologyLabelsAdmission",
    component: ControlPlaneComponent::ApiServer,
    alpha: 33,
    beta: Some(35),
};

/// Minor version of the Kubernetes release whose defaults [`GateSet::default`] has.
const CURRENT_MINOR: u32 = 37;

impl dra_attrs::internal::Sealed for NominationGate {}

impl FeatureGate for NominationGate {
    const ALL: &'static [Self] = &[Self::Expectation, Self::Clearing, Self::ResizePreemption, Self::TopologyLabels];

    fn name(self, _: Profile) -> &'static str {
        self.info().name
    }

    fn is_default(self, _: Profile) -> bool {
        self.is_default_in(CURRENT_MINOR)
    }

    fn position(self) -> u32 {
        self as u32
    }
}

impl NominationGate {
    const fn info(self) -> GateInfo {
        match self {
            Self::Expectation => EXPECTATION,
            Self::Clearing => CLEARING,
            Self::ResizePreemption => RESIZE_PREEMPTION,
            Self::TopologyLabels => TOPOLOGY_LABELS,
        }
    }

    /// Returns true if the gate is on by default in Kubernetes 1.`minor`.
    ///
    /// ```
    /// use nnn::NominationGate;
    /// assert!(NominationGate::Expectation.is_default_in(35) && !NominationGate::Expectation.is_default_in(34));
    /// ```
    #[must_use]
    pub const fn is_default_in(self, minor: u32) -> bool {
        match self.info().beta {
            Some(beta) => minor >= beta,
            None => false,
        }
    }

    /// Returns true if Kubernetes 1.`minor` has the gate, so that it can be switched on there.
    ///
    /// ```
    /// use nnn::NominationGate;
    /// assert!(NominationGate::Expectation.exists_in(34) && !NominationGate::Expectation.exists_in(33));
    /// ```
    #[must_use]
    pub const fn exists_in(self, minor: u32) -> bool {
        minor >= self.info().alpha
    }

    /// Returns the gates that are on by default in a kube-scheduler and a kube-apiserver of Kubernetes 1.`scheduler`
    /// and 1.`api_server`. A gate that a component does not have counts as off.
    ///
    /// ```
    /// use dra_attrs::GateSet;
    /// use nnn::NominationGate;
    /// assert_eq!(NominationGate::defaults_of_versions(37, 37), GateSet::default());
    /// assert!(!NominationGate::defaults_of_versions(37, 33).has(NominationGate::Clearing));
    /// let old_scheduler = NominationGate::defaults_of_versions(33, 37);
    /// assert_eq!(old_scheduler, GateSet::default().without(NominationGate::Expectation));
    /// ```
    #[must_use]
    pub fn defaults_of_versions(scheduler: u32, api_server: u32) -> GateSet<Self> {
        let is_on = |gate: &Self| match gate.info().component {
            ControlPlaneComponent::Scheduler => gate.is_default_in(scheduler),
            ControlPlaneComponent::ApiServer => gate.is_default_in(api_server),
        };
        Self::ALL.iter().copied().filter(is_on).collect()
    }
}
