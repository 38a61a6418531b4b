//! Decisions of `NodeUnprepareResources` for one claim.

use super::Ledger;
use super::entry::{EntryState, HeldDevice, LedgerEntry};
use super::node::NodeContext;
use super::plan::{ClaimPlan, ClaimReply, LedgerStep};

impl Ledger {
    /// Plans `NodeUnprepareResources` for one claim, and the removal of an entry that [`super::CleanUp`] finds stale. It
    /// needs no API server, and a claim that is unknown is no error: the kubelet repeats calls whose answer it has lost.
    pub fn plan_unprepare(&self, node: &NodeContext<'_>, claim_uid: &str) -> ClaimPlan {
        let remove_files: &[LedgerStep] = if node.has_metadata() {
            &[LedgerStep::RemoveMetadata, LedgerStep::RemoveCdi]
        } else {
            &[LedgerStep::RemoveCdi]
        };
        let Some(entry) = self.entries.get(claim_uid) else {
            return ClaimPlan::new(claim_uid, ClaimReply::Unprepared, remove_files);
        };
        let undo: &[LedgerStep] = match entry.state {
            _ if !entry.is_of_boot(node.boot_id()) => &[LedgerStep::UndoPersistent],
            EntryState::Undoing => &[LedgerStep::Undo],
            EntryState::Started | EntryState::Completed => &[LedgerStep::WriteUndoing, LedgerStep::Undo],
        };
        let steps = [undo, remove_files, &[LedgerStep::DeleteEntry]].concat();
        let devices_to_undo = self.devices_to_undo(node, claim_uid, entry);
        ClaimPlan { devices_to_undo, ..ClaimPlan::new(claim_uid, ClaimReply::Unprepared, &steps) }
    }

    /// Returns the devices of an entry that no other claim of this boot holds.
    pub(super) fn devices_to_undo(&self, node: &NodeContext<'_>, uid: &str, entry: &LedgerEntry) -> Vec<HeldDevice> {
        let is_free = |device: &&HeldDevice| {
            let wanted = std::slice::from_ref(*device);
            self.others(node, uid).all(|(_, other)| node.first_conflict(wanted, &other.devices).is_none())
        };
        entry.devices.iter().filter(is_free).cloned().collect()
    }
}
