//! The agent: the plans of `dra_alloc::kubelet`, carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use dra_alloc::kubelet::checkpoint::CheckpointError;
use dra_alloc::kubelet::metrics::SkipCounts;
use dra_alloc::kubelet::{
    ClaimCache, ClaimRef, ContainerError, Plan, PrepareError, Settings, Skipped, Unprepare, UnprepareError,
};
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::driver_client;
use super::state_file::StateFile;

/// Why the agent could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The checkpoint is damaged.
    #[error("{path}: {error}")]
    Checkpoint {
        /// The file.
        path: String,
        /// What is wrong with it.
        error: CheckpointError,
    },
    /// The checkpoint can't be read or written.
    #[error("{path}: {error}")]
    StateFile {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// The pod can't start.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The pod can't go.
    #[error(transparent)]
    Unprepare(#[from] UnprepareError),
    /// The devices of a container are not known.
    #[error(transparent)]
    Container(#[from] ContainerError),
}

/// What was done for a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Done {
    /// The calls that were made: the driver and its claims.
    pub called: Vec<(String, Vec<ClaimRef>)>,
    /// The calls that were not.
    pub skipped: Vec<Skipped>,
}

/// A kubelet's work with claims on one node.
#[derive(Debug)]
pub struct Agent {
    cache: ClaimCache,
    settings: Settings,
    file: StateFile,
    /// The sockets of the drivers that are registered.
    plugins: BTreeMap<String, PathBuf>,
    counts: SkipCounts,
}

impl Agent {
    /// Starts with what the file says, or with nothing if there is none.
    ///
    /// # Errors
    /// A file that can't be read or is damaged: the agent does not start with an empty state instead.
    pub fn start(file: StateFile, settings: Settings, plugins: BTreeMap<String, PathBuf>) -> Result<Self, AgentError> {
        let found = Self::remembered(&file)?;
        let is_new = found.is_none();
        let agent = Self { cache: found.unwrap_or_default(), settings, file, plugins, counts: SkipCounts::default() };
        if is_new {
            agent.write(&agent.cache.to_checkpoint(settings.profile()))?;
        }
        Ok(agent)
    }

    /// What a file says; nothing if there is none.
    ///
    /// # Errors
    /// A file that can't be read or is damaged.
    pub fn remembered(file: &StateFile) -> Result<Option<ClaimCache>, AgentError> {
        let path = || file.path().display().to_string();
        let found = file.read().map_err(|error| AgentError::StateFile { path: path(), error })?;
        let cache = found.map(|bytes| ClaimCache::from_checkpoint(&bytes)).transpose();
        cache.map_err(|error| AgentError::Checkpoint { path: path(), error })
    }

    /// What is remembered of claims.
    #[must_use]
    pub const fn cache(&self) -> &ClaimCache {
        &self.cache
    }

    /// The skipped calls so far.
    #[must_use]
    pub const fn counts(&self) -> &SkipCounts {
        &self.counts
    }

    /// Prepares the claims of a pod before it starts.
    ///
    /// # Errors
    /// Why the pod can't start now.
    pub async fn prepare(&mut self, pod: &Pod, claims: &[ResourceClaim]) -> Result<Done, AgentError> {
        let registered = |driver: &str| self.plugins.contains_key(driver);
        let plan = self.cache.plan_prepare(pod, claims, registered, self.settings);
        self.save()?;
        let mut plan = plan?;
        self.counts.add(plan.skipped());
        let mut done = Done { skipped: plan.skipped().to_vec(), ..Done::default() };
        for (driver, claims) in plan.calls().clone() {
            let outcome = match self.plugins.get(&driver) {
                Some(socket) => driver_client::prepare(socket, &claims).await,
                None => Err(format!("DRA driver {driver} is not registered")),
            };
            self.cache.apply_prepare(&mut plan, &driver, outcome)?;
            done.called.push((driver, claims));
        }
        self.cache.finish_prepare(plan)?;
        self.save()?;
        Ok(done)
    }

    /// Unprepares the claims of a pod after it has ended.
    ///
    /// # Errors
    /// Why the pod has to stay.
    pub async fn unprepare(&mut self, pod: &Pod) -> Result<Done, AgentError> {
        let registered = |driver: &str| self.plugins.contains_key(driver);
        let plan = self.cache.plan_unprepare(pod, registered, self.settings)?;
        self.carry_out(plan).await
    }

    /// Unprepares the claims of all pods that are not active: by the UID of the pod, what was done or why not.
    pub async fn reconcile(&mut self, active: &BTreeSet<String>) -> Vec<(String, Result<Done, AgentError>)> {
        let registered = |driver: &str| self.plugins.contains_key(driver);
        let orphans = self.cache.plan_orphans(active, registered, self.settings);
        let mut all = Vec::new();
        for orphan in orphans {
            let done = match orphan.plan {
                Ok(plan) => self.carry_out(plan).await,
                Err(error) => Err(error.into()),
            };
            all.push((orphan.pod_uid, done));
        }
        all
    }

    /// The CDI ids of a container.
    ///
    /// # Errors
    /// A claim that has not been prepared.
    pub fn container_devices(&self, pod: &Pod, container: &Container) -> Result<Vec<&str>, AgentError> {
        Ok(self.cache.container_devices(pod, container, self.settings)?)
    }

    async fn carry_out(&mut self, mut plan: Plan<Unprepare>) -> Result<Done, AgentError> {
        self.counts.add(plan.skipped());
        let mut done = Done { skipped: plan.skipped().to_vec(), ..Done::default() };
        for (driver, claims) in plan.calls().clone() {
            let outcome = match self.plugins.get(&driver) {
                Some(socket) => driver_client::unprepare(socket, &claims).await,
                None => Err(format!("DRA driver {driver} is not registered")),
            };
            self.cache.apply_unprepare(&mut plan, &driver, outcome)?;
            done.called.push((driver, claims));
        }
        self.cache.finish_unprepare(plan)?;
        self.save()?;
        Ok(done)
    }

    fn save(&mut self) -> Result<(), AgentError> {
        match self.cache.take_checkpoint(self.settings.profile()) {
            Some(text) => self.write(&text),
            None => Ok(()),
        }
    }

    fn write(&self, text: &str) -> Result<(), AgentError> {
        let path = || self.file.path().display().to_string();
        self.file.write(text).map_err(|error| AgentError::StateFile { path: path(), error })
    }
}
