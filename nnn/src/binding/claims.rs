//! Resource claims of a pod in its binding cycle (KEP-5278, Node nominations need to be considered together with
//! reserving DRA resources).
//!
//! A nomination reserves resources of a node, an allocation reserves devices. Both together are the reservation of a
//! pod.

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

/// Returns the commands that write the pending claim allocations and reservations of a pod.
pub(crate) fn claim_writes(pod: &PodKey, claims: &[BindingClaim]) -> Vec<Command> {
    let writes = claims.iter().filter_map(|claim| match claim {
        BindingClaim::Allocated => None,
        BindingClaim::Shared(uid) => Some(Command::PersistReservation { pod: pod.clone(), claim: uid.clone() }),
        BindingClaim::Chosen(uid) => Some(Command::PersistAllocation { pod: pod.clone(), claim: uid.clone() }),
    });
    writes.collect()
}
