//! Decisions of `NodePrepareResources` for one claim.

use std::collections::BTreeSet;

use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
use k8s_openapi::jiff::Timestamp;

use super::Ledger;
use super::entry::{EntryState, HeldDevice, LedgerEntry};
use super::node::NodeContext;
use super::plan::{ClaimPlan, ClaimReply, LedgerStep};
use crate::driver::claim::own_results;
use crate::kubelet::ClaimRef;

/// Reason why a claim is not prepared. Nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareClaimError {
    /// The API server has no claim of that name.
    #[error("the claim does not exist")]
    ClaimNotFound,
    /// The API server has another claim under that name.
    #[error("the claim was deleted, and another one created under its name")]
    ClaimReplaced,
    /// The claim is not allocated.
    #[error("the claim is not allocated")]
    NotAllocated,
    /// Two results of the claim are for one device, or for devices that overlap.
    #[error("device {pool}/{device} is allocated twice in the claim")]
    DeviceTwiceInClaim {
        /// Name of the pool.
        pool: String,
        /// Name of the device.
        device: String,
    },
    /// The claim was unprepared a short time ago and has not changed since: this is a late retry.
    #[error("the claim was unprepared and has not changed since")]
    StalePrepare,
    /// The claim is prepared with other devices than it has now; the kubelet must unprepare it first.
    #[error("the claim is prepared with other devices and must be unprepared first")]
    Reallocated,
    /// Another claim still holds a device.
    #[error("device {pool}/{device} is in use by claim {claim}")]
    InUse {
        /// Name of the pool.
        pool: String,
        /// Name of the device.
        device: String,
        /// UID of the other claim.
        claim: String,
    },
}

/// Steps that prepare a claim.
const fn prepare_steps(node: &NodeContext<'_>) -> &'static [LedgerStep] {
    use LedgerStep::{Setup, WriteCdi, WriteCompleted, WriteMetadata, WriteStarted};
    if node.has_metadata() {
        &[WriteStarted, Setup, WriteMetadata, WriteCdi, WriteCompleted]
    } else {
        &[WriteStarted, Setup, WriteCdi, WriteCompleted]
    }
}

/// Steps for a claim that was prepared before.
const fn stored_steps(node: &NodeContext<'_>) -> &'static [LedgerStep] {
    if node.has_metadata() { &[LedgerStep::WriteMetadata, LedgerStep::EnsureCdi] } else { &[LedgerStep::EnsureCdi] }
}

impl Ledger {
    /// Plans `NodePrepareResources` for one claim. `claim` is as the kubelet names it, `stored` is what the API server has
    /// under that name, read for this call.
    ///
    /// # Errors
    /// The claim can't be prepared now; the error is the answer for this claim, and does not touch other claims of the
    /// call.
    ///
    /// Complexity: linear in the devices of the ledger times those of the claim.
    pub fn plan_prepare(
        &self,
        node: &NodeContext<'_>,
        claim: &ClaimRef,
        stored: Option<&ResourceClaim>,
        now: Timestamp,
    ) -> Result<ClaimPlan, PrepareClaimError> {
        let stored = stored.ok_or(PrepareClaimError::ClaimNotFound)?;
        let wanted = own_devices(node, claim, stored)?;
        let uid = claim.uid.as_str();
        let entry = self.entries.get(uid);
        if wanted.is_empty() && entry.is_none_or(|entry| entry.devices.is_empty()) {
            return Ok(ClaimPlan::new(uid, ClaimReply::Empty, &[]));
        }
        check_distinct(node, &wanted)?;
        let resource_version = stored.metadata.resource_version.as_ref();
        if entry.is_none() && self.was_unprepared(uid, resource_version, now) {
            return Err(PrepareClaimError::StalePrepare);
        }
        let of_this_boot = entry.filter(|entry| entry.is_of_boot(node.boot_id()));
        if let Some(entry) = of_this_boot.filter(|entry| entry.state == EntryState::Completed) {
            return if same(&entry.devices, &wanted) {
                let plan = ClaimPlan::new(uid, ClaimReply::Stored, stored_steps(node));
                Ok(ClaimPlan { stored: entry.devices.clone(), ..plan })
            } else {
                Err(PrepareClaimError::Reallocated)
            };
        }
        self.check_free(node, uid, &wanted)?;
        let mut plan = ClaimPlan::new(uid, ClaimReply::Prepared, prepare_steps(node));
        if let Some(entry) = of_this_boot {
            plan.steps.insert(0, LedgerStep::Undo);
            plan.devices_to_undo = self.devices_to_undo(node, uid, entry);
        }
        plan.dropped_entries = self.in_the_way(node, uid, &wanted);
        plan.started = Some(LedgerEntry::started(&claim.key, node.boot_id(), stored, wanted));
        Ok(plan)
    }

    fn was_unprepared(&self, uid: &str, resource_version: Option<&String>, now: Timestamp) -> bool {
        let tombstone = self.tombstones.get(uid).filter(|tombstone| now < tombstone.until.0);
        tombstone.is_some_and(|tombstone| Some(&tombstone.resource_version) == resource_version)
    }

    /// Checks that no other claim of this boot, in any state, has a device of `wanted`: the last line of defence, since a
    /// pod that was deleted by force frees its devices in the API before its containers have ended.
    fn check_free(&self, node: &NodeContext<'_>, uid: &str, wanted: &[HeldDevice]) -> Result<(), PrepareClaimError> {
        for device in wanted {
            let holder =
                self.others(node, uid).find(|(_, entry)| entry.devices.iter().any(|held| node.conflict(device, held)));
            if let Some((holder, _)) = holder {
                let HeldDevice { pool, device, .. } = device.clone();
                return Err(PrepareClaimError::InUse { pool, device, claim: holder.to_owned() });
            }
        }
        Ok(())
    }

    /// Returns the entries of other claims of this boot.
    pub(super) fn others(&self, node: &NodeContext<'_>, uid: &str) -> impl Iterator<Item = (&str, &LedgerEntry)> {
        let of_this_boot = self.entries.iter().filter(|(_, entry)| entry.is_of_boot(node.boot_id()));
        of_this_boot.filter(move |(other, _)| *other != uid).map(|(uid, entry)| (uid.as_str(), entry))
    }

    /// Returns the UIDs of other claims of earlier boots that have a device of `wanted`.
    fn in_the_way(&self, node: &NodeContext<'_>, uid: &str, wanted: &[HeldDevice]) -> Vec<String> {
        let earlier = self.entries.iter().filter(|(_, entry)| !entry.is_of_boot(node.boot_id()));
        let held =
            earlier.filter(|(other, entry)| *other != uid && node.first_conflict(wanted, &entry.devices).is_some());
        held.map(|(uid, _)| uid.clone()).collect()
    }
}

/// Returns the devices of the driver in a claim, after a check that it is the claim that the kubelet means.
fn own_devices(
    node: &NodeContext<'_>,
    claim: &ClaimRef,
    stored: &ResourceClaim,
) -> Result<Vec<HeldDevice>, PrepareClaimError> {
    if stored.metadata.uid.as_deref() != Some(claim.uid.as_str()) {
        return Err(PrepareClaimError::ClaimReplaced);
    }
    let allocation: Option<&AllocationResult> = stored.status.as_ref().and_then(|status| status.allocation.as_ref());
    let allocation = allocation.ok_or(PrepareClaimError::NotAllocated)?;
    Ok(own_results(allocation, node.driver()).map(HeldDevice::from).collect())
}

/// Checks that no two devices of a claim exclude each other.
fn check_distinct(node: &NodeContext<'_>, wanted: &[HeldDevice]) -> Result<(), PrepareClaimError> {
    let twice = wanted
        .iter()
        .enumerate()
        .find(|(number, device)| wanted.iter().take(*number).any(|earlier| node.conflict(earlier, device)));
    match twice {
        None => Ok(()),
        Some((_, device)) => {
            Err(PrepareClaimError::DeviceTwiceInClaim { pool: device.pool.clone(), device: device.device.clone() })
        }
    }
}

fn same(stored: &[HeldDevice], wanted: &[HeldDevice]) -> bool {
    let stored: BTreeSet<_> = stored.iter().map(HeldDevice::key).collect();
    let wanted: BTreeSet<_> = wanted.iter().map(HeldDevice::key).collect();
    stored == wanted
}
