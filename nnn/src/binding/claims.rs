//! A nomination reserves resources of a node, an allocation reserves devices: together they are the reservation of a pod
//! (KEP-5278, Node nominations need to be considered together with reserving DRA resources).

use std::time::Duration;

use serde::Serialize;

use super::prebind::{Plugin, delay_of};
use super::start::PermitWait;
use crate::command::Command;
use crate::pod::PodKey;

/// A claim of a pod in its binding cycle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "its allocation is written or it is not")]
pub enum ClaimState {
    /// Its status has the allocation.
    Allocated,
    /// The scheduler has chosen devices and must write them; the UID of the claim.
    Chosen(String),
}

/// The writes that announce a pod: its nomination, and the allocations that are not written yet, in one batch. A pod that
/// waits on permit gets the marker [`Command::Deferred`] instead of the allocations.
///
/// ```
/// use nnn::binding::claims::{ClaimState, announce};
/// use nnn::binding::start::PermitWait;
/// use nnn::command::Command;
/// use nnn::pod::PodKey;
/// let pod = PodKey::new("default", "train", "1");
/// let batch = announce(&pod, "node-1", &[ClaimState::Chosen("claim".to_owned())], PermitWait::None);
/// assert!(matches!(batch[..], [Command::PatchNnn { .. }, Command::PersistAllocation { .. }]));
/// ```
#[must_use]
pub fn announce(pod: &PodKey, node: &str, claims: &[ClaimState], permit: PermitWait) -> Vec<Command> {
    let patch = Command::PatchNnn { pod: pod.clone(), node: node.to_owned() };
    std::iter::once(patch).chain(persist(pod, claims, permit)).collect()
}

/// The allocations alone, or the marker that they are deferred.
#[must_use]
pub fn persist(pod: &PodKey, claims: &[ClaimState], permit: PermitWait) -> Vec<Command> {
    let chosen = claims.iter().filter_map(|claim| match claim {
        ClaimState::Allocated => None,
        ClaimState::Chosen(uid) => Some(Command::PersistAllocation { pod: pod.clone(), claim: uid.clone() }),
    });
    let chosen: Vec<Command> = chosen.collect();
    if permit == PermitWait::Waiting && !chosen.is_empty() {
        return vec![Command::Deferred { pod: pod.clone() }];
    }
    chosen
}

/// How much of a pod's reservation others can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum Reservation {
    /// Nothing.
    None,
    /// Node resources without all of the devices, or devices without the node: claims are allocated, and no nomination
    /// says where. This is no error.
    Partial,
    /// All of it.
    Complete,
}

/// How much of the reservation of a pod that is not bound can be seen.
#[must_use]
pub fn visible_reservation(nnn: Option<&str>, claims: &[ClaimState]) -> Reservation {
    match nnn {
        None if claims.contains(&ClaimState::Allocated) => Reservation::Partial,
        None => Reservation::None,
        Some(_) if claims.iter().all(|claim| *claim == ClaimState::Allocated) => Reservation::Complete,
        Some(_) => Reservation::Partial,
    }
}

/// For how long the nomination is visible without the allocation: the wait on permit, and whatever `PreBind` does before
/// the plugin that writes claims. The writes themselves take time that is not counted.
///
/// ```
/// use std::time::Duration;
/// use nnn::binding::claims::gap;
/// use nnn::binding::prebind::{Concurrency, Plugin, Work, groups};
/// let claims = Plugin::new("DynamicResources", Work::Runs, Concurrency::Parallel);
/// assert_eq!(gap(Duration::from_secs(5), "DynamicResources", &groups(&[claims])), Some(Duration::from_secs(5)));
/// ```
#[must_use]
pub fn gap(permit: Duration, claims_plugin: &str, groups: &[Vec<Plugin<'_>>]) -> Option<Duration> {
    delay_of(claims_plugin, groups).map(|delay| permit.saturating_add(delay))
}
