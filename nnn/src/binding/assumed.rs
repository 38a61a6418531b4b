//! A pod that is assumed on a node: the input of its binding cycle.

use super::claims::BindingClaim;
use super::start::PreFlight;
use crate::pod::PodKey;

/// Result of a successful scheduling cycle: a pod and the node on which it is assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assumed {
    /// Pod for which the cycle chose a node.
    pub pod: PodKey,
    /// Node on which the pod is assumed.
    pub node: String,
    /// Results of `PreBindPreFlight` of all plugins.
    pub pre_flights: Vec<PreFlight>,
    /// True if at least one `Permit` plugin asked to wait.
    pub waits_on_permit: bool,
    /// Claims of the pod.
    pub claims: Vec<BindingClaim>,
}

impl Assumed {
    /// Builds the result for a pod without claims whose binding cycle neither waits on permit nor runs `PreBind`.
    #[must_use]
    pub fn new(pod: &PodKey, node: &str) -> Self {
        let (pod, node) = (pod.clone(), node.to_owned());
        Self { pod, node, pre_flights: Vec::new(), waits_on_permit: false, claims: Vec::new() }
    }

    /// Sets the results of `PreBindPreFlight`.
    #[must_use]
    pub fn with_pre_flights(self, pre_flights: Vec<PreFlight>) -> Self {
        Self { pre_flights, ..self }
    }

    /// Lets the binding cycle wait on permit.
    #[must_use]
    pub fn with_permit_wait(self) -> Self {
        Self { waits_on_permit: true, ..self }
    }

    /// Sets the claims of the pod.
    #[must_use]
    pub fn with_claims(self, claims: Vec<BindingClaim>) -> Self {
        Self { claims, ..self }
    }
}
