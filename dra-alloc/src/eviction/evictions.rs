//! Evictions of a cluster's pods.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::Gate;
use dra_device::allocated_devices;
use dra_device::claims::{ClaimKey, ClaimOrigin, PodClaim};
use dra_device::internal::extended_claim;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::reason::{Eviction, EvictionReason};
use super::taint_index::TaintIndex;
use super::time::{Consequence, consequence};
use crate::pods::{PodOptions, check_owner, is_reserved_for};

/// Evictions of a cluster's pods by the taints of their devices.
///
/// A pod is evicted if it is on a node and one of its claims is: the claim is allocated, reserved for the pod, created for
/// the pod if it comes from a template, and has a device with a taint that is not tolerated for ever. Priority,
/// disruption budgets, phase and admin access make no difference.
#[derive(Clone, Debug)]
pub struct Evictions<'a> {
    options: PodOptions,
    /// Allocated claims.
    claims: BTreeMap<ClaimKey, TaintedClaim<'a>>,
}

#[derive(Clone, Debug)]
struct TaintedClaim<'a> {
    claim: &'a ResourceClaim,
    eviction: Option<Eviction<'a>>,
}

impl<'a> Evictions<'a> {
    /// Determines when the pods of each claim are evicted. While [`Gate::DeviceTaints`] is off, nobody is.
    ///
    /// # Complexity
    /// n log n in claims, results and the taints of their devices.
    pub fn new(
        taints: &TaintIndex<'a>,
        claims: impl IntoIterator<Item = &'a ResourceClaim>,
        options: PodOptions,
    ) -> Self {
        let is_on = options.has(Gate::DeviceTaints);
        let allocated = claims.into_iter().filter(|claim| is_allocated(claim));
        let claims = allocated.map(|claim| {
            let eviction = if is_on { eviction_of_claim(taints, claim) } else { None };
            (ClaimKey::from_metadata(&claim.metadata), TaintedClaim { claim, eviction })
        });
        Self { options, claims: claims.collect() }
    }

    /// Returns the eviction of a pod; `None` if it stays. A pod that is being deleted already is not left out.
    ///
    /// The claim for the pod's extended resources counts too, which kube-controller-manager 1.36 overlooks.
    ///
    /// # Complexity
    /// Linear in the claims of the pod, their consumers and their reasons, times the logarithm of the number of claims.
    #[must_use]
    pub fn of_pod(&self, pod: &Pod) -> Option<Eviction<'a>> {
        let spec = pod.spec.as_ref().filter(|spec| spec.node_name.as_deref().is_some_and(|node| !node.is_empty()))?;
        let entries = spec.resource_claims.iter().flatten();
        let named = entries.filter_map(|entry| PodClaim::of_entry(pod, entry).ok().flatten());
        let evictions = named.chain(extended_claim(pod)).filter_map(|claim| self.of_claim(pod, &claim));
        evictions.fold(None, |joined: Option<Eviction<'a>>, eviction| match joined {
            Some(joined) => Some(joined.join(eviction)),
            None => Some(eviction.clone()),
        })
    }

    /// Returns the eviction of a pod by one of its claims.
    fn of_claim(&self, pod: &Pod, named: &PodClaim) -> Option<&Eviction<'a>> {
        let TaintedClaim { claim, eviction } = self.claims.get(&named.claim)?;
        let eviction = eviction.as_ref()?;
        let is_owned = || named.origin != ClaimOrigin::Template || check_owner(pod, claim, self.options).is_ok();
        (is_owned() && is_reserved_for(pod, claim, self.options)).then_some(eviction)
    }
}

pub(super) fn is_allocated(claim: &ResourceClaim) -> bool {
    claim.status.as_ref().is_some_and(|status| status.allocation.is_some())
}

fn eviction_of_claim<'a>(taints: &TaintIndex<'a>, claim: &'a ResourceClaim) -> Option<Eviction<'a>> {
    let (mut earliest, mut reasons): (Option<Timestamp>, BTreeSet<EvictionReason<'a>>) = (None, BTreeSet::new());
    for result in allocated_devices(claim) {
        let tolerations = result.tolerations.as_deref().unwrap_or_default();
        for (reason, taint) in taints.evicting([&result.driver, &result.pool, &result.device]) {
            let Consequence::Evicts(at) = consequence(taint, tolerations) else { continue };
            reasons.insert(reason);
            earliest = earliest.into_iter().chain(at).min();
        }
    }
    earliest.map(|at| Eviction { at, reasons })
}
