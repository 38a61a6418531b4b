//! Answers of a tracker that is told what the API server has.

use dra_device::DeviceId;

/// Answer of [`super::ClaimTracker::observe`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Observed {
    /// Relation of the claim to what the tracker knew.
    pub change: ClaimChange,
    /// Devices of the claim that other claims hold as well, in the order of its allocation: two schedulers have given them
    /// away, say. The driver will refuse one of the claims.
    pub held_twice: Vec<DeviceId>,
}

impl Observed {
    pub(super) const fn older() -> Self {
        Self { change: ClaimChange::Older, held_twice: Vec::new() }
    }
}

/// Relation of a claim that was shown to what a tracker knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimChange {
    /// No claim of the name was known.
    Added,
    /// The claim was known, in this version or an older one.
    Changed,
    /// Another claim of the name was known, which is gone.
    Replaced,
    /// The claim is known in a newer version: nothing has changed.
    Older,
}

/// Answer of [`super::ClaimTracker::observe_deleted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimDeletion {
    /// The claim was known, and is not any more.
    Deleted,
    /// Another claim of the name is known, and stays.
    OtherUid,
    /// No claim of the name was known.
    Unknown,
}
