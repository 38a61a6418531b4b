//! Decisions at the start of a driver, and about entries whose claim may be gone.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::resource::v1::ResourceClaim;
use serde::Serialize;

use super::Ledger;
use super::entry::{EntryState, LedgerEntry};

/// Action for one entry when the driver starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StartAction {
    /// The claim is prepared, with its CDI file. The driver may compare its contents, which a crash may have cut.
    Keep,
    /// The claim is prepared and its CDI file is gone. The driver writes it again: the kubelet does not call for claims
    /// that it has as prepared.
    RebuildCdi,
    /// A call was interrupted. The kubelet's next call mends it.
    KeepPending,
    /// The entry is of an earlier boot: its set-up is gone, and its CDI file goes. It stays until the claim is unprepared
    /// or prepared again, for what outlives a boot.
    MarkRebooted,
    /// The entry was written by a version without boot ids and gets the current one: [`Ledger::adopt_boot`].
    AdoptBoot {
        /// True if the claim is prepared and its CDI file is gone, as for [`StartAction::RebuildCdi`].
        rebuild_cdi: bool,
    },
}

/// Actions when the driver starts, before it serves any call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartUp {
    /// Action for each entry, by claim UID.
    pub entries: BTreeMap<String, StartAction>,
    /// UIDs of claims whose CDI files are removed, sorted: they have no entry, or one of an earlier boot.
    pub remove_cdi_files: Vec<String>,
}

/// Answer of the API server to a look-up of an entry's claim by namespace and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LookedUpClaim {
    /// The claim is there and allocated.
    Same,
    /// No claim has the name.
    Gone,
    /// Another claim has the name.
    Replaced,
    /// The claim is there and not allocated.
    Deallocated,
    /// The look-up failed: nothing is known.
    Failed,
}

impl LookedUpClaim {
    /// Returns the answer for an entry of the claim `claim_uid`, with what the API server has under its name.
    #[must_use]
    pub fn from_claim(claim_uid: &str, found: Option<&ResourceClaim>) -> Self {
        match found {
            None => Self::Gone,
            Some(claim) if claim.metadata.uid.as_deref() != Some(claim_uid) => Self::Replaced,
            Some(claim) if claim.status.as_ref().is_none_or(|status| status.allocation.is_none()) => Self::Deallocated,
            Some(_) => Self::Same,
        }
    }

    const fn is_stale(self) -> bool {
        matches!(self, Self::Gone | Self::Replaced | Self::Deallocated)
    }
}

/// Action for one entry after a look-up of its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub enum CleanUp {
    /// Nothing is done.
    Keep,
    /// The interrupted call is taken back by the steps of [`Ledger::plan_unprepare`].
    Undo,
    /// The entry stays, and an operator may be told: a container may still run, and the kubelet will unprepare.
    Report,
    /// The entry of an earlier boot goes by the steps of [`Ledger::plan_unprepare`].
    Drop,
}

impl Ledger {
    /// Returns what to do when the driver starts. `cdi_files` has the UIDs of claims for which a spec file of this driver
    /// was found ([`crate::driver::CdiKind::claim_of_file`]).
    ///
    /// A driver that finds CDI files but no ledger must not ask: an empty ledger lists all files for removal, while
    /// containers may use the devices. An operator puts the ledger back, or drains the node.
    pub fn start_up<'a>(&self, boot_id: &str, cdi_files: impl IntoIterator<Item = &'a str>) -> StartUp {
        let files: BTreeSet<&str> = cdi_files.into_iter().collect();
        let action = |(uid, entry): (&String, &LedgerEntry)| {
            (uid.clone(), start_action(entry, boot_id, files.contains(uid.as_str())))
        };
        let is_live = |uid: &str| self.entries.get(uid).is_some_and(|entry| entry.is_of_boot(boot_id));
        StartUp {
            entries: self.entries.iter().map(action).collect(),
            remove_cdi_files: files.iter().filter(|uid| !is_live(uid)).map(|uid| (*uid).to_owned()).collect(),
        }
    }
}

fn start_action(entry: &LedgerEntry, boot_id: &str, has_file: bool) -> StartAction {
    let rebuild_cdi = entry.state == EntryState::Completed && !has_file;
    match entry.state {
        _ if entry.boot_id.is_none() => StartAction::AdoptBoot { rebuild_cdi },
        _ if !entry.is_of_boot(boot_id) => StartAction::MarkRebooted,
        EntryState::Started | EntryState::Undoing => StartAction::KeepPending,
        EntryState::Completed if rebuild_cdi => StartAction::RebuildCdi,
        EntryState::Completed => StartAction::Keep,
    }
}

impl LedgerEntry {
    /// Returns what to do with the entry after a look-up of its claim. A driver looks up claims when it starts, and from
    /// time to time.
    ///
    /// ```
    /// use dra_node::driver::{CleanUp, LookedUpClaim, LedgerEntry};
    /// let entry: LedgerEntry = serde_json::from_str(
    ///     r#"{"namespace": "default", "name": "train", "state": "Started", "bootId": "3c1e"}"#,
    /// )?;
    /// assert_eq!(entry.clean_up("3c1e", LookedUpClaim::Gone), CleanUp::Undo);
    /// assert_eq!(entry.clean_up("3c1e", LookedUpClaim::Failed), CleanUp::Keep);
    /// assert_eq!(entry.clean_up("77d0", LookedUpClaim::Gone), CleanUp::Drop, "the node was booted since");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn clean_up(&self, boot_id: &str, lookup: LookedUpClaim) -> CleanUp {
        match self.state {
            _ if !lookup.is_stale() => CleanUp::Keep,
            _ if !self.is_of_boot(boot_id) => CleanUp::Drop,
            EntryState::Started | EntryState::Undoing => CleanUp::Undo,
            EntryState::Completed => CleanUp::Report,
        }
    }
}
