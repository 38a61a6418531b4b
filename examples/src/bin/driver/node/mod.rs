//! The driver on its node: prepares and unprepares claims by the plans of `dra_alloc::driver::Ledger`, one call at a time,
//! also beside a second instance of the driver.

mod command;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(not(feature = "grpc"))]
#[path = "no_grpc.rs"]
mod grpc;
mod hardware;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dra_alloc::driver::{
    CdiDevice, CdiEdits, CdiError, CdiKind, CdiSpec, ClaimPlan, ClaimReply, CleanUp, EntryState, HeldDevice, Ledger,
    LedgerError, LedgerStep, LookedUpClaim, NodeContext, NotStartedError, PrepareClaimError, StartAction,
};
#[cfg(feature = "grpc")]
use dra_alloc::driver::{DeviceHealth, HealthStatus};
use dra_alloc::kubelet::{ClaimRef, PreparedDevice};
use examples::state_file::{FileLock, StateFile, StateFileError, UNFINISHED};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::jiff::Timestamp;

#[cfg(feature = "live")]
pub(crate) use command::now as clock;
pub(crate) use command::{NodeCommand, NodeCommandError, ServeArgs, run};
#[cfg(feature = "live")]
pub(crate) use grpc::{ClaimSource, ServeError, serving};
use hardware::Hardware;

/// Time that a call waits for another one, such as that of a second instance of the driver.
const LOCK_WAIT: Duration = Duration::from_secs(3);

/// Reason that a claim was not prepared or unprepared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    /// The ledger can't be used; nothing is done until an operator has looked at it.
    #[error("{path}: {error}")]
    Ledger { path: PathBuf, error: LedgerError },
    /// The ledger is lost: what the files belong to is not known.
    #[error(
        "{}: no ledger there, but {} has the files of {count} claims, such as {claim_uid}: put the ledger back; or drain the node and \
         start with --new-ledger, which removes the files and resets the devices", path.display(), cdi.display()
    )]
    LedgerGone { path: PathBuf, cdi: PathBuf, count: usize, claim_uid: String },
    /// A file of the driver can't be used.
    #[error(transparent)]
    StateFile(#[from] StateFileError),
    /// The claim can't be prepared now.
    #[error(transparent)]
    Refused(#[from] PrepareClaimError),
    /// The claim or driver gives no name of CDI, or no spec.
    #[error(transparent)]
    Cdi(#[from] CdiError),
    /// The steps are out of order.
    #[error(transparent)]
    NotStarted(#[from] NotStartedError),
    /// A CDI spec can't be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Nothing tells one boot from another.
    #[error("{}: {_0}; --boot-id gives another one", command::BOOT_ID)]
    BootId(io::Error),
    /// The API server did not answer.
    #[error("{0}")]
    Api(String),
    /// A step failed; the next call repeats it.
    #[error("{place}: {error}")]
    Io { place: PathBuf, error: io::Error },
}

/// Look-up in the API server: the claim that has the name now, or the reason that there is no answer.
pub(crate) type FindClaim<'a> = dyn Fn(&ClaimRef) -> Result<Option<ResourceClaim>, String> + 'a;

/// Directories of the driver, and the boot.
#[derive(Clone, Debug)]
pub(crate) struct NodeSettings {
    pub(crate) driver: String,
    pub(crate) boot_id: String,
    /// Directory of the ledger, its lock and the stand-in for hardware.
    pub(crate) state: PathBuf,
    pub(crate) cdi: PathBuf,
    /// Treatment of CDI files without any ledger.
    pub(crate) lost: LostLedger,
}

/// Treatment of CDI files that are there without any ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostLedger {
    /// The driver does nothing before a person has looked.
    Refused,
    /// A person says that nothing on the node is in use: the files go, and the devices are reset.
    BegunAnew,
}

/// The driver on its node. It keeps nothing in memory: each call reads the ledger under the lock.
#[derive(Clone, Debug)]
pub(crate) struct NodePlugin {
    settings: NodeSettings,
    kind: CdiKind,
    ledger: StateFile,
    hardware: Hardware,
}

fn at<T>(place: &Path, outcome: io::Result<T>) -> Result<T, NodeError> {
    outcome.map_err(|error| NodeError::Io { place: place.to_owned(), error })
}

impl NodePlugin {
    /// Creates the directories that are missing.
    ///
    /// # Errors
    /// The driver's name is none of CDI, or a directory can't be created.
    pub(crate) fn new(settings: NodeSettings) -> Result<Self, NodeError> {
        let kind = CdiKind::new(&format!("k8s.{}", settings.driver), "claim")?;
        at(&settings.cdi, fs::create_dir_all(&settings.cdi))?;
        let hardware = Hardware(settings.state.join("hardware"));
        at(&hardware.0, fs::create_dir_all(&hardware.0))?;
        let ledger = StateFile::new(settings.state.join("ledger.json"));
        let plugin = Self { settings, kind, ledger, hardware };
        plugin.locked(|| Ok(plugin.hardware.begin_boot(&plugin.settings.boot_id)?))?;
        Ok(plugin)
    }

    fn context(&self) -> NodeContext<'_> {
        NodeContext::new(&self.settings.driver, &self.settings.boot_id)
    }

    /// Runs `work` while no other instance of the driver does anything.
    fn locked<T>(&self, work: impl FnOnce() -> Result<T, NodeError>) -> Result<T, NodeError> {
        let lock = self.settings.state.join("serialize.lock");
        let _lock = FileLock::take(&lock, &lock, env!("CARGO_BIN_NAME"), LOCK_WAIT)?;
        work()
    }

    fn read(&self) -> Result<Ledger, NodeError> {
        let path = || self.ledger.path().to_owned();
        if let Some(bytes) = self.ledger.read()? {
            return Ledger::from_checkpoint(&bytes).map_err(|error| NodeError::Ledger { path: path(), error });
        }
        let names = self.cdi_file_names()?;
        let mut claims = names.iter().filter_map(|name| self.kind.claim_of_file(name)).peekable();
        match (claims.peek().map(|uid| (*uid).to_owned()), self.settings.lost) {
            (None, _) => Ok(Ledger::default()),
            (Some(_), LostLedger::BegunAnew) => {
                self.hardware.reset()?;
                Ok(Ledger::default())
            }
            (Some(claim_uid), LostLedger::Refused) => {
                let cdi = self.settings.cdi.clone();
                Err(NodeError::LedgerGone { path: path(), cdi, count: claims.count(), claim_uid })
            }
        }
    }

    fn write(&self, ledger: &Ledger) -> Result<(), NodeError> {
        Ok(self.ledger.write(&ledger.to_checkpoint())?)
    }

    fn cdi_file(&self, claim_uid: &str) -> StateFile {
        StateFile::new(self.settings.cdi.join(self.kind.file_name(claim_uid)))
    }

    /// Mends what a crash or a reboot has left, before the first call.
    ///
    /// # Errors
    /// The ledger can't be read, or a step failed.
    pub(crate) fn start(&self, find: &FindClaim<'_>, now: Timestamp) -> Result<(), NodeError> {
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
                    self.ensure_cdi(uid, &entry.devices)?;
                }
            }
            for uid in &start.remove_cdi_files {
                self.cdi_file(uid).remove()?;
            }
            self.remove_unfinished(&names)?;
            ledger.adopt_boot(&self.settings.boot_id);
            self.write(&ledger)?;
            self.clean_up(ledger, find, now)
        })
    }

    /// Removes entries of calls that were interrupted and whose claim is gone.
    fn clean_up(&self, mut ledger: Ledger, find: &FindClaim<'_>, now: Timestamp) -> Result<(), NodeError> {
        for (uid, entry) in ledger.clone().entries() {
            let found = find(&ClaimRef::new(&entry.namespace, &entry.name, uid));
            let lookup = found.map_or(LookedUpClaim::Failed, |found| LookedUpClaim::from_claim(uid, found.as_ref()));
            match entry.clean_up(&self.settings.boot_id, lookup) {
                CleanUp::Undo | CleanUp::Drop => {
                    let plan = ledger.plan_unprepare(&self.context(), uid);
                    self.carry_out(&plan, &mut ledger, now)?;
                }
                CleanUp::Report => {
                    examples::output::say(&format_args!("driver: claim {uid} is gone and still prepared"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the claims that are prepared, with their devices.
    ///
    /// # Errors
    /// The ledger can't be read.
    #[cfg(feature = "live")]
    pub(crate) fn prepared(&self) -> Result<Vec<(ClaimRef, Vec<PreparedDevice>)>, NodeError> {
        let ledger = self.read()?;
        let completed = ledger.entries().iter().filter(|(_, entry)| entry.state == EntryState::Completed);
        let claim = |(uid, entry): (&String, &dra_alloc::driver::LedgerEntry)| {
            (ClaimRef::new(&entry.namespace, &entry.name, uid), entry.answer())
        };
        Ok(completed.map(claim).collect())
    }

    /// Prepares a claim.
    ///
    /// # Errors
    /// The claim can't be prepared, or a step failed.
    pub(crate) fn prepare(
        &self,
        asked: &ClaimRef,
        find: &FindClaim<'_>,
        now: Timestamp,
    ) -> Result<Vec<PreparedDevice>, NodeError> {
        self.locked(|| {
            let mut ledger = self.read()?;
            let found = find(asked).map_err(NodeError::Api)?;
            let plan = ledger.plan_prepare(&self.context(), asked, found.as_ref(), now)?;
            self.carry_out(&plan, &mut ledger, now)?;
            let entry = ledger.entries().get(&asked.uid).filter(|_| plan.reply() != ClaimReply::Empty);
            Ok(entry.map(dra_alloc::driver::LedgerEntry::answer).unwrap_or_default())
        })
    }

    /// Unprepares a claim, also one that is not known.
    ///
    /// # Errors
    /// The ledger can't be read, or a step failed.
    pub(crate) fn unprepare(&self, claim_uid: &str, now: Timestamp) -> Result<(), NodeError> {
        self.locked(|| {
            let mut ledger = self.read()?;
            let plan = ledger.plan_unprepare(&self.context(), claim_uid);
            self.carry_out(&plan, &mut ledger, now)
        })
    }

    /// Returns the health of the devices in use. A device is well if its claim is prepared.
    #[cfg(feature = "grpc")]
    fn health(&self) -> Vec<DeviceHealth> {
        let ledger = self.read().unwrap_or_default();
        let device = |held: &HeldDevice, state: EntryState| DeviceHealth {
            pool: held.pool.clone(),
            device: held.device.clone(),
            health: if state == EntryState::Completed { HealthStatus::Healthy } else { HealthStatus::Unknown },
            ..DeviceHealth::default()
        };
        let entries = ledger.entries().values();
        entries.flat_map(|entry| entry.devices.iter().map(|held| device(held, entry.state))).collect()
    }

    /// Carries out the steps of a plan, each durable before the next.
    fn carry_out(&self, plan: &ClaimPlan, ledger: &mut Ledger, now: Timestamp) -> Result<(), NodeError> {
        let uid = plan.claim_uid();
        for step in plan.steps() {
            match step {
                LedgerStep::WriteStarted => ledger.start(plan),
                LedgerStep::WriteCompleted => ledger.complete(uid, &self.cdi_ids(uid, plan.devices())?)?,
                LedgerStep::WriteUndoing => ledger.begin_undo(uid),
                LedgerStep::DeleteEntry => ledger.remove(uid, now),
                LedgerStep::Setup => self.each(plan.devices(), |device| self.hardware.set_up(device, uid))?,
                LedgerStep::Undo => self.each(plan.devices_to_undo(), |device| self.hardware.undo(device, uid))?,
                LedgerStep::WriteCdi | LedgerStep::EnsureCdi => self.ensure_cdi(uid, plan.devices())?,
                LedgerStep::RemoveCdi => self.cdi_file(uid).remove()?,
                // These devices have no settings that outlive a boot.
                _ => {}
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

    fn each(&self, devices: &[HeldDevice], work: impl FnMut(&HeldDevice) -> io::Result<()>) -> Result<(), NodeError> {
        at(&self.hardware.0, devices.iter().try_for_each(work))
    }

    /// Returns the qualified CDI names of each device, in order.
    fn cdi_ids(&self, uid: &str, devices: &[HeldDevice]) -> Result<Vec<Vec<String>>, NodeError> {
        let names = CdiDevice::names(uid, devices).into_iter();
        names.map(|name| Ok(vec![self.kind.device_id(&name)?])).collect()
    }

    /// Writes the spec of a claim, an environment variable for each device, unless the file has it. A file that was cut or zeroed is
    /// written anew like one that is missing.
    fn ensure_cdi(&self, uid: &str, devices: &[HeldDevice]) -> Result<(), NodeError> {
        let device = |(name, held): (String, &HeldDevice)| {
            let env = vec![format!("DRA_DEVICE_{}={}", held.device.replace(['-', '.'], "_").to_uppercase(), held.pool)];
            let mut edits = CdiEdits::default();
            edits.env = env;
            CdiDevice::new(&name, edits)
        };
        let spec =
            CdiSpec::new(&self.kind, CdiDevice::names(uid, devices).into_iter().zip(devices).map(device).collect())?;
        let (file, text) = (self.cdi_file(uid), serde_json::to_string_pretty(&spec)?);
        if file.read()?.as_deref() == Some(text.as_bytes()) { Ok(()) } else { Ok(file.write(&text)?) }
    }

    fn cdi_file_names(&self) -> Result<Vec<String>, NodeError> {
        let folder = &self.settings.cdi;
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        at(folder, fs::read_dir(folder).and_then(|entries| entries.map(name).collect()))
    }

    /// Removes files of this driver that a crash has left half-written.
    fn remove_unfinished(&self, names: &[String]) -> Result<(), NodeError> {
        let is_ours =
            |name: &&String| name.strip_suffix(UNFINISHED).is_some_and(|name| self.kind.claim_of_file(name).is_some());
        for name in names.iter().filter(is_ours) {
            let path = self.settings.cdi.join(name);
            at(&path, fs::remove_file(&path))?;
        }
        Ok(())
    }
}
