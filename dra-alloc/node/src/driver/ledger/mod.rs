//! Ledger of prepared claims: what a driver must remember to prepare each device once, and to leave nothing behind.
//!
//! The kubelet may ask for anything twice, give up a call after 45 seconds and come back, or restart; the driver may be
//! killed between any two steps, and a reboot takes the hardware's state away, but not the files. [`Ledger`] answers each
//! call with a [`ClaimPlan`]: steps in an order such that a crash between any two of them is mended by the next call.
//!
//! | found | `NodePrepareResources` | `NodeUnprepareResources` |
//! |---|---|---|
//! | no entry | write Started, set up, write CDI, write Completed | remove a CDI file that is left |
//! | Started, or Undoing | undo, then as without an entry | write Undoing, undo, remove CDI, delete the entry |
//! | Completed | the stored answer, if the devices are the same | as above |
//! | an entry of an earlier boot | as without an entry | undo what outlives a boot, remove CDI, delete the entry |
//!
//! The caller carries out the steps, and makes each one durable before the next: it writes
//! [`Ledger::to_checkpoint`] to a temporary file, syncs, renames, and syncs the directory. A step that fails ends the call
//! with an error for the claim; the kubelet calls again. Two instances of a driver during a rolling update read the file
//! again in each call, under a lock.
//!
//! ```
//! use dra_node::driver::{Ledger, LedgerStep, NodeContext};
//! use dra_node::kubelet::ClaimRef;
//! use k8s_openapi::api::resource::v1::ResourceClaim;
//! use k8s_openapi::jiff::Timestamp;
//! use serde_json::{from_value, json};
//!
//! let claim: ResourceClaim = from_value(json!({
//!     "metadata": {"namespace": "default", "name": "train", "uid": "5f1c", "resourceVersion": "7"},
//!     "status": {"allocation": {"devices": {"results": [
//!         {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"},
//!     ]}}},
//! }))?;
//! let asked = ClaimRef::new("default", "train", "5f1c");
//! let node = NodeContext::new("gpu.example.com", "3c1e"); // the boot id is in /proc/sys/kernel/random/boot_id
//! let mut ledger = Ledger::default();
//!
//! let plan = ledger.plan_prepare(&node, &asked, Some(&claim), Timestamp::UNIX_EPOCH)?;
//! for step in plan.steps() {
//!     match step {
//!         LedgerStep::WriteStarted => ledger.start(&plan),      // then write the checkpoint
//!         LedgerStep::Setup => {}                               // the hardware, by `plan.devices()`
//!         LedgerStep::WriteCdi => {}                            // the spec file of the claim
//!         LedgerStep::WriteCompleted => {
//!             ledger.complete("5f1c", &[vec!["gpu.example.com/claim=5f1c-gpu-0".to_owned()]])?;
//!         }
//!         other => unreachable!("{other:?}"),
//!     }
//! }
//! let answer = ledger.entries()["5f1c"].answer();
//! assert_eq!(answer[0].cdi_ids, ["gpu.example.com/claim=5f1c-gpu-0"]);
//!
//! let again = ledger.plan_prepare(&node, &asked, Some(&claim), Timestamp::UNIX_EPOCH)?;
//! assert_eq!(again.steps(), [LedgerStep::EnsureCdi], "nothing is set up twice");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Sources of the rules: KEP-4381, the kubelet's calls in `pkg/kubelet/cm/dra`, and what drivers of five vendors learned.
//!
//! Tests: `tests/it/driver_node`.

mod checkpoint;
mod entry;
mod node;
mod plan;
mod prepare;
mod start;
mod unprepare;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use checkpoint::LedgerError;
pub use entry::{EntryState, HeldDevice, LedgerEntry};
pub use node::NodeContext;
pub use plan::{ClaimPlan, ClaimReply, LedgerStep};
pub use prepare::PrepareClaimError;
pub use start::{CleanUp, LookedUpClaim, StartAction, StartUp};

/// Time for which an unprepared claim is remembered: longer than a call of the kubelet may be on its way.
const TOMBSTONE_TIME: SignedDuration = SignedDuration::from_secs(100);

/// Ledger of the claims that a driver has prepared on its node.
///
/// Fields that this version does not know survive reading and writing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Entries by claim UID.
    entries: BTreeMap<String, LedgerEntry>,
    /// Claims that were unprepared a short time ago, by UID.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tombstones: BTreeMap<String, Tombstone>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// Claim that was unprepared: a late retry of its prepare call must not recreate what was undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tombstone {
    /// `resourceVersion` of the claim when it was prepared.
    resource_version: String,
    until: Time,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// Error of a step that does not follow from the ledger: [`Ledger::complete`] without [`Ledger::start`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("claim {uid} is not being prepared")]
#[non_exhaustive]
pub struct NotStartedError {
    /// UID of the claim.
    pub uid: String,
}

impl Ledger {
    /// Returns the entries by claim UID.
    #[must_use]
    pub const fn entries(&self) -> &BTreeMap<String, LedgerEntry> {
        &self.entries
    }

    /// Carries out [`LedgerStep::WriteStarted`]: records that the claim of `plan` is being prepared, and drops the entries
    /// of earlier boots that have its devices.
    pub fn start(&mut self, plan: &ClaimPlan) {
        for uid in plan.dropped_entries() {
            self.entries.remove(uid);
        }
        if let Some(entry) = plan.started() {
            self.tombstones.remove(plan.claim_uid());
            self.entries.insert(plan.claim_uid().to_owned(), entry.clone());
        }
    }

    /// Carries out [`LedgerStep::WriteCompleted`]: records that the claim is prepared. `cdi_ids` has the qualified CDI
    /// device names of each device, in the order of [`ClaimPlan::devices`]; a device that it leaves out has none.
    ///
    /// # Errors
    /// The claim has no entry in state [`EntryState::Started`].
    pub fn complete(&mut self, claim_uid: &str, cdi_ids: &[Vec<String>]) -> Result<(), NotStartedError> {
        let entry = self.entries.get_mut(claim_uid).filter(|entry| entry.state == EntryState::Started);
        let entry = entry.ok_or_else(|| NotStartedError { uid: claim_uid.to_owned() })?;
        entry.state = EntryState::Completed;
        for (device, ids) in entry.devices.iter_mut().zip(cdi_ids) {
            device.cdi_ids.clone_from(ids);
        }
        Ok(())
    }

    /// Carries out [`LedgerStep::WriteUndoing`]: records that the claim is being unprepared.
    pub fn begin_undo(&mut self, claim_uid: &str) {
        if let Some(entry) = self.entries.get_mut(claim_uid) {
            entry.state = EntryState::Undoing;
        }
    }

    /// Carries out [`LedgerStep::DeleteEntry`]: forgets the claim, but for its `resourceVersion`, which is remembered for
    /// 100 seconds.
    pub fn remove(&mut self, claim_uid: &str, now: Timestamp) {
        self.tombstones.retain(|_, tombstone| now < tombstone.until.0);
        let removed = self.entries.remove(claim_uid);
        if let Some(resource_version) = removed.and_then(|entry| entry.resource_version) {
            let until = now.saturating_add(TOMBSTONE_TIME).unwrap_or(Timestamp::MAX);
            let tombstone = Tombstone { resource_version, until: Time(until), other: Map::new() };
            self.tombstones.insert(claim_uid.to_owned(), tombstone);
        }
    }

    /// Carries out [`StartAction::AdoptBoot`]: gives entries without a boot id the current one.
    pub fn adopt_boot(&mut self, boot_id: &str) {
        for entry in self.entries.values_mut() {
            entry.boot_id.get_or_insert_with(|| boot_id.to_owned());
        }
    }
}
