//! Claims that a driver has prepared on its node: the steps that [`Ledger`] plans, carried out on files and hardware, one call at a
//! time, also beside a second instance of the driver.

mod error;
mod files;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dra_node::driver::{
    CdiKind, ClaimPlan, ClaimReply, CleanUp, EntryState, HeldDevice, Ledger, LedgerEntry, LedgerStep, LookedUpClaim,
    MetadataVersion, NodeContext, StartAction, device_configs,
};
use dra_node::kubelet::{ClaimRef, PreparedDevice};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
use k8s_openapi::jiff::Timestamp;

use crate::plugin::{Plugin, PluginError};
use crate::say::say;
use crate::state_file::{FileLock, StateFile};
pub use error::PreparedClaimsError;

/// Time that a call waits for another one, such as that of a second instance of the driver.
const LOCK_WAIT: Duration = Duration::from_secs(3);

/// File of Linux with an id of the boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Look-up in the API server: the claim that has the name now, or the reason that there is no answer.
pub type FindClaim<'a> = dyn Fn(&ClaimRef) -> Result<Option<ResourceClaim>, String> + 'a;

/// Directories of a driver, and the boot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "arguments by name")]
pub struct ClaimSettings {
    /// Name of the driver.
    pub driver: String,
    /// Id of the boot: [`boot_id`].
    pub boot_id: String,
    /// Directory of the ledger and its lock, which outlives a boot.
    pub state: PathBuf,
    /// Directory of CDI specs.
    pub cdi: PathBuf,
    /// Metadata files, if containers get any.
    pub metadata: Option<MetadataSettings>,
    /// Treatment of CDI files without any ledger.
    pub lost: LostLedger,
}

/// Place and versions of metadata files (KEP-5304).
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "arguments by name")]
pub struct MetadataSettings {
    /// Plugin directory of the driver.
    pub plugin_dir: PathBuf,
    /// Versions, best first: [`MetadataVersion::written`].
    pub versions: Vec<MetadataVersion>,
}

/// Treatment of CDI files that are there without any ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver may go on, or not")]
pub enum LostLedger {
    /// The driver does nothing before a person has looked.
    Refused,
    /// A person says that nothing on the node is in use: the files go, and the devices are reset.
    BegunAnew,
}

/// Claims of a driver on its node. Nothing is kept in memory: each call reads the ledger under the lock.
#[derive(Clone, Debug)]
pub struct PreparedClaims<P> {
    plugin: P,
    settings: ClaimSettings,
    kind: CdiKind,
    ledger: StateFile,
}

/// Returns the id of the boot.
///
/// # Errors
/// The operating system has none.
pub fn boot_id() -> Result<String, PreparedClaimsError> {
    let id = fs::read_to_string(BOOT_ID).map_err(|error| PreparedClaimsError::io(Path::new(BOOT_ID), error))?;
    Ok(id.trim().to_owned())
}

impl<P: Plugin> PreparedClaims<P> {
    /// Creates the directories that are missing.
    ///
    /// # Errors
    /// The driver's name is none of CDI, or a directory can't be created.
    pub fn new(plugin: P, settings: ClaimSettings) -> Result<Self, PreparedClaimsError> {
        let kind = CdiKind::new(&format!("k8s.{}", settings.driver), "claim")?;
        for folder in [&settings.state, &settings.cdi] {
            fs::create_dir_all(folder).map_err(|error| PreparedClaimsError::io(folder, error))?;
        }
        let ledger = StateFile::new(settings.state.join("ledger.json"));
        Ok(Self { plugin, settings, kind, ledger })
    }

    /// Returns the hardware.
    #[must_use]
    pub const fn plugin(&self) -> &P {
        &self.plugin
    }

    /// Returns the directories and the boot.
    #[must_use]
    pub const fn settings(&self) -> &ClaimSettings {
        &self.settings
    }

    /// Mends what a crash or a reboot has left, before the first call.
    ///
    /// # Errors
    /// The ledger can't be read, or a step failed.
    pub fn start(&self, find: &FindClaim<'_>, now: Timestamp) -> Result<(), PreparedClaimsError> {
        self.locked(|| {
            let mut ledger = self.read()?;
            let names = self.cdi_file_names()?;
            let files = names.iter().filter_map(|name| self.kind.claim_of_file(name));
            let start = ledger.start_up(&self.settings.boot_id, files);
            for (uid, action) in &start.entries {
                let is_of_boot =
                    matches!(action, StartAction::Keep | StartAction::RebuildCdi | StartAction::AdoptBoot { .. });
                let completed = ledger.entries().get(uid).filter(|entry| entry.state == EntryState::Completed);
                if let Some(entry) = completed.filter(|_| is_of_boot) {
                    self.ensure_metadata(uid, entry)?;
                    self.ensure_cdi(uid, &entry.devices)?;
                }
            }
            for uid in &start.remove_cdi_files {
                self.cdi_file(uid).remove()?;
            }
            self.remove_unfinished(&names)?;
            self.remove_metadata(&|uid| !ledger.entries().contains_key(uid))?;
            ledger.adopt_boot(&self.settings.boot_id);
            self.write(&ledger)?;
            self.clean_up(ledger, find, now)
        })
    }

    /// Removes entries of calls that were interrupted and whose claim is gone.
    fn clean_up(&self, mut ledger: Ledger, find: &FindClaim<'_>, now: Timestamp) -> Result<(), PreparedClaimsError> {
        for (uid, entry) in ledger.clone().entries() {
            let found = find(&ClaimRef::new(&entry.namespace, &entry.name, uid));
            let lookup = found.map_or(LookedUpClaim::Failed, |found| LookedUpClaim::from_claim(uid, found.as_ref()));
            match entry.clean_up(&self.settings.boot_id, lookup) {
                CleanUp::Undo | CleanUp::Drop => {
                    let plan = self.in_context(|node| ledger.plan_unprepare(node, uid));
                    self.carry_out(&plan, None, &mut ledger, now)?;
                }
                CleanUp::Report => {
                    say(&format_args!("{}: claim {uid} is gone and still prepared", self.settings.driver));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Prepares a claim, and returns its devices of this driver.
    ///
    /// # Errors
    /// The claim can't be prepared, or a step failed.
    pub fn prepare(
        &self,
        asked: &ClaimRef,
        find: &FindClaim<'_>,
        now: Timestamp,
    ) -> Result<Vec<PreparedDevice>, PreparedClaimsError> {
        self.locked(|| {
            let mut ledger = self.read()?;
            let found = find(asked).map_err(PreparedClaimsError::Api)?;
            let plan = self.in_context(|node| ledger.plan_prepare(node, asked, found.as_ref(), now))?;
            let status = found.as_ref().and_then(|claim| claim.status.as_ref());
            self.carry_out(&plan, status.and_then(|status| status.allocation.as_ref()), &mut ledger, now)?;
            let entry = ledger.entries().get(&asked.uid).filter(|_| plan.reply() != ClaimReply::Empty);
            Ok(entry.map(LedgerEntry::answer).unwrap_or_default())
        })
    }

    /// Unprepares a claim, also one that is not known.
    ///
    /// # Errors
    /// The ledger can't be read, or a step failed.
    pub fn unprepare(&self, claim_uid: &str, now: Timestamp) -> Result<(), PreparedClaimsError> {
        self.locked(|| {
            let mut ledger = self.read()?;
            let plan = self.in_context(|node| ledger.plan_unprepare(node, claim_uid));
            self.carry_out(&plan, None, &mut ledger, now)
        })
    }

    /// Returns the claims with devices on this node, in any state.
    ///
    /// # Errors
    /// The ledger can't be read.
    pub fn ledger(&self) -> Result<Ledger, PreparedClaimsError> {
        self.read()
    }

    /// Returns the claims that are prepared, with their devices.
    ///
    /// # Errors
    /// The ledger can't be read.
    pub fn prepared(&self) -> Result<Vec<(ClaimRef, Vec<PreparedDevice>)>, PreparedClaimsError> {
        let ledger = self.read()?;
        let completed = ledger.entries().iter().filter(|(_, entry)| entry.state == EntryState::Completed);
        let claim =
            |(uid, entry): (&String, &LedgerEntry)| (ClaimRef::new(&entry.namespace, &entry.name, uid), entry.answer());
        Ok(completed.map(claim).collect())
    }

    /// Asks the ledger with the driver, the boot, and which devices overlap.
    fn in_context<T>(&self, ask: impl FnOnce(&NodeContext<'_>) -> T) -> T {
        let overlaps = |one: &HeldDevice, other: &HeldDevice| self.plugin.overlaps(one, other);
        let node = NodeContext::new(&self.settings.driver, &self.settings.boot_id).with_overlaps(&overlaps);
        if self.settings.metadata.is_some() { ask(&node.with_metadata()) } else { ask(&node) }
    }

    /// Runs `work` while no other instance of the driver does anything.
    fn locked<T>(&self, work: impl FnOnce() -> Result<T, PreparedClaimsError>) -> Result<T, PreparedClaimsError> {
        let lock = self.settings.state.join("serialize.lock");
        let _lock = FileLock::take(&lock, &lock, &self.settings.driver, LOCK_WAIT)?;
        work()
    }

    fn read(&self) -> Result<Ledger, PreparedClaimsError> {
        let path = || self.ledger.path().to_owned();
        if let Some(bytes) = self.ledger.read()? {
            let read = Ledger::from_checkpoint(&bytes);
            return read.map_err(|error| PreparedClaimsError::Ledger { path: path(), error });
        }
        let names = self.cdi_file_names()?;
        let mut claims = names.iter().filter_map(|name| self.kind.claim_of_file(name)).peekable();
        match (claims.peek().map(|uid| (*uid).to_owned()), self.settings.lost) {
            (None, _) => Ok(Ledger::default()),
            (Some(_), LostLedger::BegunAnew) => {
                self.plugin.reset().map_err(PreparedClaimsError::Plugin)?;
                Ok(Ledger::default())
            }
            (Some(claim_uid), LostLedger::Refused) => {
                let cdi = self.settings.cdi.clone();
                Err(PreparedClaimsError::LedgerGone { path: path(), cdi, count: claims.count(), claim_uid })
            }
        }
    }

    fn write(&self, ledger: &Ledger) -> Result<(), PreparedClaimsError> {
        Ok(self.ledger.write(&ledger.to_checkpoint())?)
    }

    /// Carries out the steps of a plan, each durable before the next.
    fn carry_out(
        &self,
        plan: &ClaimPlan,
        allocation: Option<&AllocationResult>,
        ledger: &mut Ledger,
        now: Timestamp,
    ) -> Result<(), PreparedClaimsError> {
        let uid = plan.claim_uid();
        for step in plan.steps() {
            match step {
                LedgerStep::WriteStarted => ledger.start(plan),
                LedgerStep::WriteCompleted => ledger.complete(uid, &self.cdi_ids(uid, ledger)?)?,
                LedgerStep::WriteUndoing => ledger.begin_undo(uid),
                LedgerStep::DeleteEntry => ledger.remove(uid, now),
                LedgerStep::Setup => self.set_up(plan, allocation)?,
                LedgerStep::Undo => each(plan.devices_to_undo(), |device| self.plugin.take_down(device, uid))?,
                LedgerStep::UndoPersistent => {
                    each(plan.devices_to_undo(), |device| self.plugin.take_down_settings(device, uid))?;
                }
                LedgerStep::WriteMetadata => {
                    ledger.entries().get(uid).map_or(Ok(()), |entry| self.ensure_metadata(uid, entry))?;
                }
                LedgerStep::WriteCdi | LedgerStep::EnsureCdi => self.ensure_cdi(uid, plan.devices())?,
                LedgerStep::RemoveMetadata => self.remove_metadata(&|other| other == uid)?,
                LedgerStep::RemoveCdi => self.cdi_file(uid).remove()?,
                other => return Err(PreparedClaimsError::UnknownStep(*other)),
            }
            if matches!(
                step,
                LedgerStep::WriteStarted
                    | LedgerStep::WriteCompleted
                    | LedgerStep::WriteUndoing
                    | LedgerStep::DeleteEntry
            ) {
                self.write(ledger)?;
            }
        }
        Ok(())
    }

    fn set_up(&self, plan: &ClaimPlan, allocation: Option<&AllocationResult>) -> Result<(), PreparedClaimsError> {
        for device in plan.devices() {
            let configs = allocation.map(|found| device_configs(found, &self.settings.driver, &device.request));
            let configs = configs.transpose()?.unwrap_or_default();
            self.plugin.set_up(device, plan.claim_uid(), &configs).map_err(PreparedClaimsError::Plugin)?;
        }
        Ok(())
    }
}

/// Does work for each device, up to the first that fails.
fn each(
    devices: &[HeldDevice],
    work: impl FnMut(&HeldDevice) -> Result<(), PluginError>,
) -> Result<(), PreparedClaimsError> {
    devices.iter().try_for_each(work).map_err(PreparedClaimsError::Plugin)
}
