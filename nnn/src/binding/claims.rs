//! Resource claims of a pod in its binding cycle (KEP-5278, Node nominations need to be considered together with
//! reserving DRA resources).
//!
//! A nomination reserves resources of a node, an allocation reserves devices. Both together are the reservation of a
//! pod.

use std::time::Duration;

use serde::Serialize;

use super::prebind::{PreBindPlugin, delay_before};
use super::start::PermitWait;
use crate::commands::Command;
use crate::pod::PodKey;

/// Allocation state of one claim when the pod's binding cycle starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "allocation and reservation are written, the first only, or neither")]
pub enum BindingClaim {
    /// The allocation is in the claim's status, and the pod in its `reservedFor`.
    Allocated,
    /// The allocation of the claim with this UID is not this pod's to write, since it is there already or another pod of
    /// the same group has it in flight; the pod is not in its `reservedFor` yet. So is a claim that pods share, for all of
    /// them but the first. The write of an allocation in flight comes before the reservation.
    Shared(String),
    /// The scheduler has chosen devices for the claim with this UID, and the allocation is not written yet.
    Chosen(String),
}

/// Returns the commands that make a pod's reservation visible: the PATCH of its nomination, then the claim allocations
/// and reservations that are not written yet.
///
/// A pod that waits on permit gets [`Command::Deferred`] instead of them; [`persist`] without a wait returns them once the
/// permit is granted, and so does the tracker on
/// [`TrackerInput::PermitGranted`](crate::TrackerInput::PermitGranted).
///
/// ```
/// use nnn::binding::announce;
/// use nnn::{BindingClaim, Command, PermitWait, PodKey};
/// let pod = PodKey::new("default", "train", "1");
/// let batch = announce(&pod, "node-1", &[BindingClaim::Chosen("claim".to_owned())], PermitWait::None);
/// assert!(matches!(batch[..], [Command::PatchNnn { .. }, Command::PersistAllocation { .. }]));
/// ```
#[must_use]
pub fn announce(pod: &PodKey, node: &str, claims: &[BindingClaim], permit: PermitWait) -> Vec<Command> {
    let patch = Command::PatchNnn { pod: pod.clone(), node: node.to_owned() };
    std::iter::once(patch).chain(persist(pod, claims, permit)).collect()
}

/// Returns the commands that write the pending claim allocations and reservations, or [`Command::Deferred`] if `Permit`
/// plugins wait.
///
/// ```
/// use nnn::binding::persist;
/// use nnn::{BindingClaim, Command, PermitWait, PodKey};
/// // The second pod of a claim that two pods share.
/// let pod = PodKey::new("default", "second", "2");
/// let batch = persist(&pod, &[BindingClaim::Shared("claim".to_owned())], PermitWait::None);
/// assert!(matches!(batch[..], [Command::PersistReservation { .. }]));
/// ```
#[must_use]
pub fn persist(pod: &PodKey, claims: &[BindingClaim], permit: PermitWait) -> Vec<Command> {
    let writes = claims.iter().filter_map(|claim| match claim {
        BindingClaim::Allocated => None,
        BindingClaim::Shared(uid) => Some(Command::PersistReservation { pod: pod.clone(), claim: uid.clone() }),
        BindingClaim::Chosen(uid) => Some(Command::PersistAllocation { pod: pod.clone(), claim: uid.clone() }),
    });
    let writes: Vec<Command> = writes.collect();
    if permit == PermitWait::Waiting && !writes.is_empty() {
        return vec![Command::Deferred { pod: pod.clone() }];
    }
    writes
}

/// Part of a pod's reservation (node resources and devices) that the API objects show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum VisibleReservation {
    /// The API shows no part of the reservation.
    None,
    /// The API shows node resources without all devices, or devices without a nomination to the node. This is no error.
    Partial,
    /// The API shows the node resources and all devices.
    Complete,
}

/// Returns the part of an unbound pod's reservation that the API objects show.
#[must_use]
pub fn visible_reservation(nnn: Option<&str>, claims: &[BindingClaim]) -> VisibleReservation {
    match nnn {
        None if claims.contains(&BindingClaim::Allocated) => VisibleReservation::Partial,
        None => VisibleReservation::None,
        Some(_) if claims.iter().all(|claim| *claim == BindingClaim::Allocated) => VisibleReservation::Complete,
        Some(_) => VisibleReservation::Partial,
    }
}

/// Returns the time during which API readers see a pod's nomination but not the allocation of its claims: the wait on
/// permit plus the `PreBind` groups before the claims plugin. Excludes the duration of the writes.
///
/// ```
/// use nnn::binding::{PreBindConcurrency, PreBindExecution, PreBindPlugin, gap, groups};
/// use std::time::Duration;
/// let claims = PreBindPlugin::new("DynamicResources", PreBindExecution::Runs, PreBindConcurrency::Parallel);
/// assert_eq!(gap(Duration::from_secs(5), "DynamicResources", &groups(&[claims])), Some(Duration::from_secs(5)));
/// ```
#[must_use]
pub fn gap(permit: Duration, claims_plugin: &str, groups: &[Vec<PreBindPlugin<'_>>]) -> Option<Duration> {
    delay_before(claims_plugin, groups).map(|delay| permit.saturating_add(delay))
}
