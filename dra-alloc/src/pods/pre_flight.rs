//! Work that is left for the binding of a pod (`PreBindPreFlight`).
//!
//! Source: `PreBindPreFlight` of the plugin `dynamicresources`, KEP-5278.

use nnn::PreFlight;

use super::consumer::is_reserved;
use super::cycle::{ClaimSituation, CycleClaim, PodCycle};

impl PodCycle {
    /// Returns `Success` if the binding of the pod has claims to write, and `Skip` if all of them are reserved for the pod
    /// already. Call it after [`PodCycle::reserve`].
    ///
    /// A pod is nominated before its binding only if a pre-flight says `Success`
    /// ([`Assumed::with_pre_flights`](nnn::Assumed::with_pre_flights)). The writes themselves are those of
    /// [`PreBind`](super::PreBind): an [`Assumed`](nnn::Assumed) beside it gets no claims, so that nothing is written twice.
    ///
    /// # Complexity
    /// Linear in the claims of the pod and their consumers.
    #[must_use]
    pub fn pre_flight(&self) -> PreFlight {
        let is_open = |claim: &CycleClaim| match claim.situation() {
            ClaimSituation::Allocated => !is_reserved(&self.pod, claim.claim()),
            ClaimSituation::Pending(_) => true,
            ClaimSituation::ToAllocate => claim.chosen().is_some(),
        };
        if self.claims().iter().any(is_open) { PreFlight::Success } else { PreFlight::Skip }
    }
}
