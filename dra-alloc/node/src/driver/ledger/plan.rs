//! Plan for one claim of a call: the steps, and the reply after the last one.

use serde::Serialize;

use super::entry::{HeldDevice, LedgerEntry};

/// Step of a plan. Each one is durable before the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub enum LedgerStep {
    /// Record that set-up begins: [`super::Ledger::start`].
    WriteStarted,
    /// Set up the hardware for [`ClaimPlan::devices`].
    Setup,
    /// Write the metadata files of the claim and the CDI specs that mount them, with the devices of its entry, unless they are
    /// there with these contents. Only with [`super::NodeContext::with_metadata`].
    WriteMetadata,
    /// Write the CDI spec file of the claim, with [`ClaimPlan::devices`].
    WriteCdi,
    /// Record that the claim is prepared: [`super::Ledger::complete`].
    WriteCompleted,
    /// Write the CDI spec file, with [`ClaimPlan::devices`], if it is missing or has other contents: a crash may have cut it.
    EnsureCdi,
    /// Record that undoing begins: [`super::Ledger::begin_undo`].
    WriteUndoing,
    /// Take back the set-up of [`ClaimPlan::devices_to_undo`]. Some or all of it may not be there.
    Undo,
    /// Take back of the set-up of [`ClaimPlan::devices_to_undo`] only what outlives a boot. Some or all of it may not be
    /// there.
    UndoPersistent,
    /// Remove the metadata files of the claim and their CDI specs, by its UID; they may not be there. Only with
    /// [`super::NodeContext::with_metadata`].
    RemoveMetadata,
    /// Remove the CDI spec file, which may not be there.
    RemoveCdi,
    /// Forget the claim: [`super::Ledger::remove`].
    DeleteEntry,
}

/// Reply to the kubelet for one claim, after all steps have succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ClaimReply {
    /// The claim was prepared: [`LedgerEntry::answer`].
    Prepared,
    /// The claim was prepared before: [`LedgerEntry::answer`].
    Stored,
    /// The claim has no device of this driver: success without devices.
    Empty,
    /// The claim is not prepared any more.
    Unprepared,
}

/// Steps of a call for one claim.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a plan does nothing until its steps are carried out"]
pub struct ClaimPlan {
    pub(super) claim_uid: String,
    pub(super) reply: ClaimReply,
    pub(super) steps: Vec<LedgerStep>,
    /// Entry that `WriteStarted` records.
    pub(super) started: Option<LedgerEntry>,
    /// Devices of a claim that was prepared before.
    pub(super) stored: Vec<HeldDevice>,
    pub(super) dropped_entries: Vec<String>,
    pub(super) devices_to_undo: Vec<HeldDevice>,
}

impl ClaimPlan {
    pub(super) fn new(claim_uid: &str, reply: ClaimReply, steps: &[LedgerStep]) -> Self {
        Self {
            claim_uid: claim_uid.to_owned(),
            reply,
            steps: steps.to_vec(),
            started: None,
            stored: Vec::new(),
            dropped_entries: Vec::new(),
            devices_to_undo: Vec::new(),
        }
    }

    /// Returns the UID of the claim.
    #[must_use]
    pub fn claim_uid(&self) -> &str {
        &self.claim_uid
    }

    /// Returns the reply to give after the last step.
    #[must_use]
    pub const fn reply(&self) -> ClaimReply {
        self.reply
    }

    /// Returns the steps in order.
    #[must_use]
    pub fn steps(&self) -> &[LedgerStep] {
        &self.steps
    }

    /// Returns the devices of the claim, which [`LedgerStep::Setup`] sets up and [`LedgerStep::WriteCdi`] and
    /// [`LedgerStep::EnsureCdi`] write, in the order of the allocation. A plan without these steps has none.
    #[must_use]
    pub fn devices(&self) -> &[HeldDevice] {
        self.started.as_ref().map_or(&self.stored, |entry| &entry.devices)
    }

    /// Returns the devices that [`LedgerStep::Undo`] and [`LedgerStep::UndoPersistent`] take back. Devices that another
    /// claim holds by now are left out.
    #[must_use]
    pub fn devices_to_undo(&self) -> &[HeldDevice] {
        &self.devices_to_undo
    }

    /// Returns the UIDs of claims of earlier boots whose entries [`LedgerStep::WriteStarted`] removes, because they have
    /// devices of this claim.
    #[must_use]
    pub fn dropped_entries(&self) -> &[String] {
        &self.dropped_entries
    }

    pub(super) const fn started(&self) -> Option<&LedgerEntry> {
        self.started.as_ref()
    }
}
