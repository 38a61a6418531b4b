//! Share IDs: the identities of the shares of a device.

use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::resource::v1::ResourceClaim;

/// Generates share IDs. Implemented for every `Fn(Share) -> String`.
pub trait ShareIds: Sync {
    /// Returns the ID of a share, unique among the shares of a device.
    fn share_id(&self, share: Share<'_>) -> String;
}

impl<F: Fn(Share<'_>) -> String + Sync> ShareIds for F {
    fn share_id(&self, share: Share<'_>) -> String {
        self(share)
    }
}

/// A share of a device that is about to be allocated and needs an ID.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Share<'a> {
    /// The claim that gets the share.
    pub claim: &'a ResourceClaim,
    /// Number of the share within one call of the allocator, from 1.
    pub number: u64,
}

/// Returns the number of a share in the form of a UUID. Every call of the allocator uses the same IDs, so that results
/// can be compared.
///
/// Share IDs must be unique among the shares of a device. Use [`ShareCounter`] if results are counted as allocated by
/// later calls, and random UUIDs in a cluster.
#[must_use]
pub fn numbered_share_id(share: Share<'_>) -> String {
    id(share.number)
}

/// Generator of share IDs that numbers shares from 1, across all calls of the allocator.
///
/// For simulations that start without such IDs and count their results as allocated. If two shares of a device have the
/// same ID, both consume capacity, but they can't be distinguished afterwards.
///
/// ```
/// use dra_alloc::ShareCounter;
/// let counter = ShareCounter::default();
/// assert_eq!(counter.next_id(), "00000000-0000-0000-0000-000000000001");
/// assert_eq!(counter.next_id(), "00000000-0000-0000-0000-000000000002");
/// let share_ids = |_share: dra_alloc::Share<'_>| counter.next_id();
/// # let _: &dyn dra_alloc::ShareIds = &share_ids;
/// ```
#[derive(Debug, Default)]
pub struct ShareCounter(AtomicU64);

impl ShareCounter {
    /// Returns the next ID.
    pub fn next_id(&self) -> String {
        id(self.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
    }
}

fn id(number: u64) -> String {
    format!("00000000-0000-0000-0000-{number:012x}")
}
