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
    /// Pod network.
    Pod,
}

/// Age of a pod relative to kubelet's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "one or the other")]
pub enum PodAge {
    /// The pod was on the node before kubelet started.
    Existing,
    /// The pod is new.
    New,
}

/// State of the network by kubelet's local signals. Nothing comes from the API server, which may be unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the input of one function, made in place")]
pub struct LocalNetwork {
    /// Instant since which the node is ready.
    pub ready_since: Option<Timestamp>,
    /// Status of the network. `None` if no gate is about the network.
    pub network: Option<ConditionStatus>,
    /// Time to wait after Ready.
    pub timeout: SignedDuration,
}

/// Decision of kubelet about one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PodNetworkAdmission {
    /// Starts the pod.
    Admit,
    /// Starts the pod and sets the condition [`NETWORK_TIMEOUT`] to True: the network may not work.
    AdmitDegraded,
    /// Does not start the pod yet.
    Reject {
        /// Instant from which existing pods are started anyway.
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

/// Decides if kubelet starts a pod while the network may not be ready.
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
