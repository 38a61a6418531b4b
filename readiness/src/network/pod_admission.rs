//! kubelet's admission of pods while the network is not ready.

use std::fmt;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::NETWORK_TIMEOUT;
use crate::condition::ConditionStatus;

/// Network that a pod uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "hostNetwork is true or false")]
pub enum PodNetwork {
    /// Network of the node (`hostNetwork: true`).
    Host,
    /// Pod network (CNI).
    Pod,
}

/// Age of a pod relative to kubelet's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "one or the other")]
pub enum PodAge {
    /// The pod was on the node before kubelet started.
    Existing,
    /// The pod came to the node after kubelet started.
    New,
}

/// State of a node's network as kubelet knows it locally, without asking the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the input of one function, made in place")]
pub struct LocalNetwork {
    /// Time at which the node became Ready; `None` if it is not Ready.
    pub ready_since: Option<Timestamp>,
    /// Status of the network condition; `None` if the node has no network gate.
    pub network: Option<ConditionStatus>,
    /// Time for which kubelet waits for the network after the node is Ready.
    pub timeout: SignedDuration,
}

/// kubelet's decision on one pod: start it, start it although the network is not ready, or wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PodNetworkAdmission {
    /// kubelet starts the pod.
    Admit,
    /// kubelet starts the pod and sets the condition `KubeletNetworkPrerequisiteTimeout` to True, since the network may not work.
    AdmitDegraded,
    /// kubelet does not start the pod yet.
    Reject {
        /// Time from which kubelet starts pods of [`PodAge::Existing`] although the network is not ready.
        until: Option<Timestamp>,
    },
}

impl fmt::Display for PodNetworkAdmission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admit => formatter.write_str("admitted"),
            Self::AdmitDegraded => write!(formatter, "admitted without a ready network: {NETWORK_TIMEOUT}"),
            Self::Reject { until: Some(until) } => write!(formatter, "the network is not ready, waiting until {until}"),
            Self::Reject { until: None } => formatter.write_str("the network is not ready"),
        }
    }
}

/// Decides if kubelet starts a pod, by the state of the node's network.
///
/// ```
/// use k8s_openapi::jiff::{SignedDuration, Timestamp};
/// use readiness::ConditionStatus;
/// use readiness::network::{LocalNetwork, PodAge, PodNetwork, PodNetworkAdmission, admit_pod};
/// let at = |second| Timestamp::from_second(second).unwrap();
/// let local = LocalNetwork {
///     ready_since: Some(at(0)), network: Some(ConditionStatus::Missing), timeout: SignedDuration::from_secs(120),
/// };
/// assert_eq!(admit_pod(local, PodNetwork::Host, PodAge::New, at(1)), PodNetworkAdmission::Admit);
/// assert_eq!(admit_pod(local, PodNetwork::Pod, PodAge::New, at(1)), PodNetworkAdmission::Reject { until: Some(at(120)) });
/// assert_eq!(admit_pod(local, PodNetwork::Pod, PodAge::Existing, at(120)), PodNetworkAdmission::AdmitDegraded);
/// ```
#[must_use]
pub fn admit_pod(local: LocalNetwork, network: PodNetwork, age: PodAge, now: Timestamp) -> PodNetworkAdmission {
    let is_ready = local.network.is_none_or(|status| status == ConditionStatus::True);
    if network == PodNetwork::Host || is_ready {
        return PodNetworkAdmission::Admit;
    }
    let until = local.ready_since.and_then(|since| since.checked_add(local.timeout).ok());
    let has_expired = until.is_some_and(|until| now >= until);
    match age {
        PodAge::Existing if has_expired => PodNetworkAdmission::AdmitDegraded,
        _ => PodNetworkAdmission::Reject { until },
    }
}
