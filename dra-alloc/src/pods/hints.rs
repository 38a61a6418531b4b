//! Queueing hints: events that can help a pod which the plugin has refused.
//!
//! Source: `isSchedulableAfterClaimChange`, `isSchedulableAfterPodChange` of the plugin.

use dra_device::internal::{PodFields, TaintTimes, same_or_empty};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim};
use serde::Serialize;

use super::claims::claims_of_entries;
use super::identity::PodIdentity;
use super::lookup::{ClaimLookup, allocation_of, uid_of};
use super::options::PodOptions;
use super::special_claim;

/// Decision about a waiting pod after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[expect(clippy::exhaustive_enums, reason = "a pod is tried again or not")]
pub enum QueueHint {
    /// The pod is tried again.
    Queue,
    /// The event does not help the pod.
    #[serde(rename = "QueueSkip")]
    Skip,
}

impl QueueHint {
    /// Decides if a pod is tried again after a claim was added (`old` is `None`), updated or deleted (`new` is `None`).
    /// `claims` is the cache after the event.
    ///
    /// A pod with a claim in trouble waits for that claim. Otherwise devices that become free help, whoever had them, also if
    /// one update shows another allocation in place of the one before, and so does a change in the status of one of the pod's claims, and the deletion of a claim for its extended resources that was left
    /// over.
    ///
    /// # Complexity
    /// Linear in the pod's claims.
    pub fn after_claim_change(
        pod: &Pod,
        old: Option<&ResourceClaim>,
        new: Option<&ResourceClaim>,
        claims: &impl ClaimLookup,
        options: PodOptions,
    ) -> Self {
        let mut is_used = false;
        for claim in claims_of_entries(pod, claims, options) {
            let Ok((_, claim)) = claim else { return Self::Skip };
            is_used |= new.is_some_and(|new| uid_of(new) == uid_of(claim));
        }
        if old.is_some_and(|old| loses_allocation(old, new) || freed_drivers(old, new).next().is_some()) {
            return Self::Queue;
        }
        let was_made_for = |claim: &ResourceClaim| special_claim::is_made_for(&PodIdentity::new(pod, options), claim);
        if new.is_none() && old.is_some_and(was_made_for) {
            return Self::Queue;
        }
        let is_news = match (old, new) {
            (None, Some(_)) => true,
            (Some(old), Some(new)) => !same_or_empty(old.status.as_ref(), new.status.as_ref(), TaintTimes::Exact),
            (_, None) => false,
        };
        if is_used && is_news { Self::Queue } else { Self::Skip }
    }

    /// Decides if a waiting pod is tried again after a pod was updated: its generated claims may be recorded now.
    pub fn after_pod_change(waiting: &Pod, updated: &Pod, claims: &impl ClaimLookup, options: PodOptions) -> Self {
        if waiting.uid() != updated.uid() || claims_of_entries(updated, claims, options).any(|claim| claim.is_err()) {
            return Self::Skip;
        }
        Self::Queue
    }
}

/// Returns true if a claim had an allocation and has none any more.
fn loses_allocation(old: &ResourceClaim, new: Option<&ResourceClaim>) -> bool {
    allocation_of(old).is_some() && new.is_none_or(|new| allocation_of(new).is_none())
}

/// Returns the drivers of the devices that a change of a claim frees, once for each device. A watch that was cut off may show
/// another allocation, or another claim of the name, where nobody has seen the devices become free.
pub(crate) fn freed_drivers<'c>(
    old: &'c ResourceClaim,
    new: Option<&'c ResourceClaim>,
) -> impl Iterator<Item = &'c str> {
    let new = new.filter(|new| uid_of(new) == uid_of(old));
    let is_kept = move |result: &DeviceRequestAllocationResult| {
        new.is_some_and(|new| results_of(new).any(|kept| kept == result)) || result.admin_access == Some(true)
    };
    results_of(old).filter(move |result| !is_kept(result)).map(|result| result.driver.as_str())
}

fn results_of(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    let devices = allocation_of(claim).and_then(|allocation| allocation.devices.as_ref());
    devices.into_iter().flat_map(|devices| devices.results.iter().flatten())
}

/// Returns true if a change of a claim can matter to a pod that uses it: it is there or gone, or its status or its owners are
/// others.
pub(crate) fn is_news_of_claim(old: Option<&ResourceClaim>, new: Option<&ResourceClaim>) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return true };
    uid_of(old) != uid_of(new)
        || old.metadata.owner_references != new.metadata.owner_references
        || !same_or_empty(old.status.as_ref(), new.status.as_ref(), TaintTimes::Exact)
}
