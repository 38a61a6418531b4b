//! kubelet's admission of pods while the network is not ready.

use std::fmt;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::NETWORK_TIMEOUT;
use crate::condition::ConditionStatus;

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
        /// Time from which kubelet starts pods that were on the node before although the network is not ready.
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

impl LocalNetwork {
    /// Time for which kubelet waits for the network by default.
    pub const DEFAULT_TIMEOUT: SignedDuration = SignedDuration::from_secs(120);

    /// Decides if kubelet starts a pod that came to the node after kubelet started. A pod with the node's own network
    /// (`hostNetwork: true`) always starts.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use k8s_openapi::jiff::Timestamp;
    /// use readiness::ConditionStatus;
    /// use readiness::network::{LocalNetwork, PodNetworkAdmission};
    /// let at = |second| Timestamp::from_second(second).unwrap();
    /// let local = LocalNetwork {
    ///     ready_since: Some(at(0)), network: Some(ConditionStatus::Missing), timeout: LocalNetwork::DEFAULT_TIMEOUT,
    /// };
    /// let pod = Pod::default();
    /// assert_eq!(local.admit_new(&pod, at(120)), PodNetworkAdmission::Reject { until: Some(at(120)) });
    /// assert_eq!(local.admit_existing(&pod, at(120)), PodNetworkAdmission::AdmitDegraded);
    /// ```
    #[must_use]
    pub fn admit_new(&self, pod: &Pod, now: Timestamp) -> PodNetworkAdmission {
        match self.admit_existing(pod, now) {
            PodNetworkAdmission::AdmitDegraded => PodNetworkAdmission::Reject { until: self.until() },
            other => other,
        }
    }

    /// Decides if kubelet starts a pod that was on the node before kubelet started: also without a ready network, once the
    /// timeout has passed.
    #[must_use]
    pub fn admit_existing(&self, pod: &Pod, now: Timestamp) -> PodNetworkAdmission {
        let is_ready = self.network.is_none_or(|status| status == ConditionStatus::True);
        let is_on_host = pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true));
        let until = self.until();
        match until {
            _ if is_ready || is_on_host => PodNetworkAdmission::Admit,
            Some(until) if now >= until => PodNetworkAdmission::AdmitDegraded,
            _ => PodNetworkAdmission::Reject { until },
        }
    }

    /// Returns the end of kubelet's wait for the network; `None` if the node is not Ready, or it never ends.
    fn until(&self) -> Option<Timestamp> {
        self.ready_since?.checked_add(self.timeout).ok()
    }
}
