//! Agent that carries out the plans of `dra_alloc::kubelet`.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use dra_alloc::Component;
use dra_alloc::declared_features::{AdmissionError, DeclaredFeature};
use dra_alloc::kubelet::{
    CheckpointError, ClaimCache, ClaimRef, ContainerError, Operation, Plan, Prepare, PrepareError, SkipCounts, Skipped,
    Unprepare, UnprepareError,
};
use dra_attrs::Version;
use dra_live::state_file::{FileLock, StateFile, StateFileError, leaves_room};
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::grpc;

/// Time that kubelet gives a driver for a call.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(45);

/// Reason that the agent could not do a task.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    /// The checkpoint is damaged.
    #[error("{path}: {error}{}", advice(error))]
    Checkpoint {
        /// Path of the file.
        path: String,
        /// Reason that it is damaged.
        error: CheckpointError,
    },
    /// There is no checkpoint to show.
    #[error("{}: no checkpoint there", _0.display())]
    NoCheckpoint(PathBuf),
    /// The checkpoint can't be read or written.
    #[error(transparent)]
    StateFile(#[from] StateFileError),
    /// The answer of a driver is too big to be stored.
    #[error(
        "{}: the answer of driver {driver} to NodePrepareResources is too big for the checkpoint, and is dropped",
        PrepareError::EVENT_REASON
    )]
    NoRoom {
        /// Name of the driver.
        driver: String,
    },
    /// The pod is rejected before its claims are looked at.
    #[error("{}: {_0}", _0.reason())]
    NotAdmitted(#[from] AdmissionError),
    /// The pod can't start now.
    #[error("{}: {_0}", PrepareError::EVENT_REASON)]
    Prepare(#[from] PrepareError),
    /// The pod can't be removed now.
    #[error(transparent)]
    Unprepare(#[from] UnprepareError),
    /// The devices of a container are unknown.
    #[error(transparent)]
    Container(#[from] ContainerError),
}

/// Returns what to do about a checkpoint that can't be read, unless the error says so.
const fn advice(error: &CheckpointError) -> &'static str {
    match error {
        CheckpointError::OtherVersion { .. } => "",
        _ => "; drain the node, then remove the file",
    }
}

/// Calls made and skipped for a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Calls that were made: the driver and its claims.
    pub(crate) called: Vec<(String, Vec<ClaimRef>)>,
    /// Calls that were skipped.
    pub(crate) skipped: Vec<Skipped>,
}

/// Agent for the claims of one node. Operations on pods without a common claim may go on at the same time: nothing is
/// borrowed while a driver is called, and the checkpoint is written in one piece.
#[derive(Debug)]
pub(crate) struct Agent {
    cache: RefCell<ClaimCache>,
    settings: Component,
    file: StateFile,
    /// No other agent works on the file.
    _lock: FileLock,
    /// Time that a driver has for a call.
    timeout: Duration,
    /// Sockets of the registered drivers, by driver name.
    plugins: RefCell<BTreeMap<String, PathBuf>>,
    counts: RefCell<SkipCounts>,
    /// Number of operations, by operation and whether it failed.
    operations: RefCell<BTreeMap<(Operation, bool), u64>>,
}

impl Agent {
    /// Starts with the state of the checkpoint, or with an empty one if there is no file. No other agent starts on it
    /// before this one is dropped.
    ///
    /// # Errors
    /// The file can't be read or is damaged, or another agent has it; the agent does not start with an empty state then.
    pub(crate) fn start(
        file: StateFile,
        settings: Component,
        plugins: BTreeMap<String, PathBuf>,
        timeout: Duration,
    ) -> Result<Self, AgentError> {
        let lock = file.lock(env!("CARGO_BIN_NAME"))?;
        let found = Self::remembered(&file)?;
        let is_new = found.is_none();
        let agent = Self {
            cache: RefCell::new(found.unwrap_or_default()),
            settings,
            file,
            _lock: lock,
            timeout,
            plugins: RefCell::new(plugins),
            counts: RefCell::default(),
            operations: RefCell::default(),
        };
        if is_new {
            agent.store()?;
        }
        Ok(agent)
    }

    /// Reads the checkpoint; `None` if there is no file.
    ///
    /// # Errors
    /// The file can't be read or is damaged.
    pub(crate) fn remembered(file: &StateFile) -> Result<Option<ClaimCache>, AgentError> {
        let cache = file.read()?.map(|bytes| ClaimCache::from_checkpoint(&bytes)).transpose();
        cache.map_err(|error| AgentError::Checkpoint { path: file.path().display().to_string(), error })
    }

    /// Returns the remembered claims.
    pub(crate) fn cache(&self) -> Ref<'_, ClaimCache> {
        self.cache.borrow()
    }

    /// Returns the counters of skipped calls since the start.
    #[cfg(feature = "live")]
    pub(crate) fn skips(&self) -> SkipCounts {
        self.counts.borrow().clone()
    }

    /// Replaces the registered drivers.
    #[cfg(feature = "live")]
    pub(crate) fn set_plugins(&self, plugins: BTreeMap<String, PathBuf>) {
        self.plugins.replace(plugins);
    }

    fn is_registered(&self, driver: &str) -> bool {
        self.plugins.borrow().contains_key(driver)
    }

    /// Returns the socket of a driver, which may have gone since the plan was made.
    fn socket(&self, driver: &str) -> Result<PathBuf, String> {
        let socket = self.plugins.borrow().get(driver).cloned();
        socket.ok_or_else(|| format!("DRA driver {driver} is not registered"))
    }

    /// Returns the counters of skipped calls since the start, as a line for each driver.
    pub(crate) fn metrics(&self) -> Vec<String> {
        let counts = self.counts.borrow();
        let counts = counts.iter().map(|(operation, driver, count)| {
            let name = operation.skips_metric(self.settings.profile());
            format!("{name}{{{}={driver:?}}} {count}", SkipCounts::DRIVER_LABEL)
        });
        let lines: Vec<String> = counts.collect();
        if lines.is_empty() {
            return vec![format!("{}: nothing was skipped", Operation::Prepare.skips_metric(self.settings.profile()))];
        }
        lines
    }

    /// Returns how many operations the histogram of durations has, as a line for each operation and result. The
    /// durations themselves would be those of this machine.
    pub(crate) fn operations(&self) -> Vec<String> {
        let name = Operation::duration_metric(self.settings.profile());
        let line = |((operation, is_error), count): (&(Operation, bool), &u64)| {
            let operation = match operation {
                Operation::Prepare => "PrepareResources",
                Operation::Unprepare => "UnprepareResources",
            };
            format!("{name}_count{{operation_name={operation:?},is_error=\"{is_error}\"}} {count}")
        };
        self.operations.borrow().iter().map(line).collect()
    }

    fn count<T>(&self, operation: Operation, outcome: &Result<T, AgentError>) {
        let mut operations = self.operations.borrow_mut();
        let count = operations.entry((operation, outcome.is_err())).or_default();
        *count = count.saturating_add(1);
    }

    /// Checks that the node declares the features that a pod requires.
    ///
    /// # Errors
    /// The features that the node does not declare.
    pub(crate) fn admit(&self, pod: &Pod, claims: &[ResourceClaim], version: &Version) -> Result<(), AgentError> {
        let feature = DeclaredFeature::new(self.settings.profile());
        let required = feature.required_by(pod, claims, version);
        let declared = feature.declared_by(self.settings, version).map(str::to_owned);
        Ok(DeclaredFeature::check_admission(required.as_slice(), declared.as_slice())?)
    }

    /// Prepares the claims of a pod before it starts.
    ///
    /// # Errors
    /// The reason that the pod can't start now.
    pub(crate) async fn prepare(&self, pod: &Pod, claims: &[ResourceClaim]) -> Result<Done, AgentError> {
        let outcome = self.try_prepare(pod, claims).await;
        self.count(Operation::Prepare, &outcome);
        outcome
    }

    async fn try_prepare(&self, pod: &Pod, claims: &[ResourceClaim]) -> Result<Done, AgentError> {
        let registered = |driver: &str| self.is_registered(driver);
        let plan = self.cache.borrow_mut().plan_prepare(pod, claims, registered, self.settings);
        self.save(plan.as_ref().is_ok_and(|plan| !plan.calls().is_empty()))?;
        let mut plan = plan?;
        self.counts.borrow_mut().add(plan.skipped());
        let mut done = Done { skipped: plan.skipped().to_vec(), ..Done::default() };
        for (driver, claims) in plan.calls().clone() {
            let outcome = match self.socket(&driver) {
                Ok(socket) => grpc::prepare(&socket, &claims, self.timeout).await,
                Err(reason) => Err(reason),
            };
            let applied = self.cache.borrow_mut().apply_prepare(&mut plan, &driver, outcome);
            self.check_room(&mut plan, &driver)?;
            applied?;
            done.called.push((driver, claims));
        }
        self.cache.borrow_mut().finish_prepare(plan)?;
        self.save(false)?;
        Ok(done)
    }

    /// Forgets the devices of a driver's answer that would leave the checkpoint no room. Without this, no claim of any
    /// driver could be stored any more.
    fn check_room(&self, plan: &mut Plan<Prepare>, driver: &str) -> Result<(), AgentError> {
        let text = self.cache.borrow().to_checkpoint(self.settings.profile());
        if leaves_room(&text) {
            return Ok(());
        }
        self.cache.borrow_mut().forget_devices(plan, driver);
        Err(AgentError::NoRoom { driver: driver.to_owned() })
    }

    /// Unprepares the claims of a pod after it has ended.
    ///
    /// # Errors
    /// The reason that the pod can't be removed now.
    pub(crate) async fn unprepare(&self, pod: &Pod) -> Result<Done, AgentError> {
        let outcome = self.try_unprepare(pod).await;
        self.count(Operation::Unprepare, &outcome);
        outcome
    }

    async fn try_unprepare(&self, pod: &Pod) -> Result<Done, AgentError> {
        let registered = |driver: &str| self.is_registered(driver);
        let plan = self.cache.borrow_mut().plan_unprepare(pod, registered, self.settings)?;
        self.save(!plan.calls().is_empty())?;
        let done = self.carry_out(plan).await?;
        self.save(false)?;
        Ok(done)
    }

    /// Unprepares the claims of all pods that are not active. Returns the result for each pod UID.
    ///
    /// The checkpoint is written once, at the end: a claim that is still in it when the machine stops is unprepared once
    /// more, which every driver must allow.
    ///
    /// # Errors
    /// The checkpoint can't be written. If it could not be written before the first call, no driver was called.
    pub(crate) async fn reconcile(
        &self,
        active: &BTreeSet<String>,
    ) -> Result<Vec<(String, Result<Done, AgentError>)>, AgentError> {
        let registered = |driver: &str| self.is_registered(driver);
        let orphans = self.cache.borrow_mut().plan_orphans(active, registered, self.settings);
        self.save(orphans.iter().any(|(_, plan)| plan.as_ref().is_ok_and(|plan| !plan.calls().is_empty())))?;
        let mut all = Vec::new();
        for (pod_uid, plan) in orphans {
            let done = match plan {
                Ok(plan) => self.carry_out(plan).await,
                Err(error) => Err(error.into()),
            };
            all.push((pod_uid, done));
        }
        self.save(false)?;
        Ok(all)
    }

    /// Returns the CDI ids of a container's devices.
    ///
    /// # Errors
    /// A claim of the container is not prepared.
    pub(crate) fn container_devices(&self, pod: &Pod, container: &Container) -> Result<Vec<String>, AgentError> {
        let cache = self.cache.borrow();
        let devices = cache.container_devices(pod, container, self.settings)?;
        Ok(devices.into_iter().map(str::to_owned).collect())
    }

    async fn carry_out(&self, mut plan: Plan<Unprepare>) -> Result<Done, AgentError> {
        self.counts.borrow_mut().add(plan.skipped());
        let mut done = Done { skipped: plan.skipped().to_vec(), ..Done::default() };
        for (driver, claims) in plan.calls().clone() {
            let outcome = match self.socket(&driver) {
                Ok(socket) => grpc::unprepare(&socket, &claims, self.timeout).await,
                Err(reason) => Err(reason),
            };
            self.cache.borrow_mut().apply_unprepare(&mut plan, &driver, outcome)?;
            done.called.push((driver, claims));
        }
        self.cache.borrow_mut().finish_unprepare(plan)?;
        Ok(done)
    }

    /// Writes the checkpoint if it has changed, and in any case if drivers are called next: what they answer can then be
    /// stored.
    fn save(&self, before_calls: bool) -> Result<(), AgentError> {
        let due = self.cache.borrow_mut().take_checkpoint(self.settings.profile());
        match due {
            Some(text) => Ok(self.file.write(&text)?),
            None if before_calls => self.store(),
            None => Ok(()),
        }
    }

    fn store(&self) -> Result<(), AgentError> {
        Ok(self.file.write(&self.cache.borrow().to_checkpoint(self.settings.profile()))?)
    }
}
