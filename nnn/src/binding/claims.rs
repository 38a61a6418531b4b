//! Claims in the binding cycle (KEP-5278, Node nominations need to be considered together with reserving DRA
//! resources).
//!
//! A nomination reserves resources of a node, an allocation reserves devices. Both together are the reservation of a
//! pod.

use std::time::Duration;

use serde::Serialize;

use super::prebind::{PreBindPlugin, delay_before};
use super::start::PermitWait;
use crate::command::Command;
use crate::pod::PodKey;

/// A claim of a pod in its binding cycle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "its allocation is written or it is not")]
pub enum BindingClaim {
    /// The allocation is in the claim's status.
    Allocated,
    /// The scheduler has chosen devices for the claim with this UID, and the allocation is not written yet.
    Chosen(String),
}

/// Returns the writes that announce a pod: its nomination, and the allocations that are not written yet.
///
/// A pod that waits on permit gets [`Command::Deferred`] instead of the allocations.
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

/// Returns the writes of the allocations alone, or [`Command::Deferred`].
#[must_use]
pub fn persist(pod: &PodKey, claims: &[BindingClaim], permit: PermitWait) -> Vec<Command> {
    let chosen = claims.iter().filter_map(|claim| match claim {
        BindingClaim::Allocated => None,
        BindingClaim::Chosen(uid) => Some(Command::PersistAllocation { pod: pod.clone(), claim: uid.clone() }),
    });
    let chosen: Vec<Command> = chosen.collect();
    if permit == PermitWait::Waiting && !chosen.is_empty() {
        return vec![Command::Deferred { pod: pod.clone() }];
    }
    chosen
}

/// Part of a pod's reservation that readers of the API see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum VisibleReservation {
    /// Nothing is visible.
    None,
    /// Some of it: node resources without all devices, or devices without a nomination that names the node. This is no
    /// error.
    Partial,
    /// Node resources and all devices are visible.
    Complete,
}

/// Returns the part of the reservation that readers see of a pod that is not bound.
#[must_use]
pub fn visible_reservation(nnn: Option<&str>, claims: &[BindingClaim]) -> VisibleReservation {
    match nnn {
        None if claims.contains(&BindingClaim::Allocated) => VisibleReservation::Partial,
        None => VisibleReservation::None,
        Some(_) if claims.iter().all(|claim| *claim == BindingClaim::Allocated) => VisibleReservation::Complete,
        Some(_) => VisibleReservation::Partial,
    }
}

/// Returns the time during which the nomination is visible without the allocation: the wait on permit, and the
/// `PreBind` plugins before the one that writes claims. The duration of the writes is not counted.
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
