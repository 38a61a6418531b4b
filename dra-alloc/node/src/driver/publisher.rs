//! Publisher: the slices of a driver kept as wanted, over lists, events and the answers to writes.
//!
//! Source: the controller of `resourceslicecontroller.go`, with one memory and one set of timers for all pools.

use std::collections::BTreeMap;

use dra_attrs::Gate;
use dra_device::internal::name_of;
use k8s_openapi::api::resource::v1::ResourceSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::jiff::Timestamp;

use super::due::{DueReason, Timers};
use super::limits::SliceLimits;
use super::memory::{Answered, Memory, NextStep, WriteResponse};
use super::plan_error::PlanError;
use super::reconcile::{PoolScope, ReconcileError, ReconcileOptions, SyncPlan, reconcile};
use super::slice_plan::SliceContents;
use super::slice_write::SliceWrite;
use super::split::{PoolSpec, split_into_slices};
use super::withdraw::withdraw_others;

/// Publisher of all pools of a driver on one node, or of those that name no node.
///
/// It joins [`Memory`], [`Timers`] and the slices that a watch shows. The caller has the watch of the driver's slices on the node,
/// passes on each list and event, asks [`Publisher::next_at`] when a pass is due, and makes the writes of [`Publisher::begin`]. Own
/// writes that the watch shows are told from changes of others, slices that a list lacks count as deleted, and pools that the
/// driver has no longer are withdrawn first.
///
/// ```
/// use dra_attrs::Profile;
/// use dra_node::driver::{NodeChoice, PoolSpec, Publisher, SliceLimits, SliceWrite, WriteResponse};
/// use k8s_openapi::api::resource::v1::Device;
/// use k8s_openapi::jiff::Timestamp;
///
/// let now = Timestamp::UNIX_EPOCH;
/// let mut publisher = Publisher::new("gpu.example.com", Some("node-1"), SliceLimits::of(Profile::V1_37));
/// assert_eq!(publisher.next_at(now), None, "the list comes first");
/// publisher.listed([], now);
/// let devices = [Device { name: "gpu-0".to_owned(), ..Device::default() }];
/// let pools = [PoolSpec::new("gpu.example.com", "node-1", NodeChoice::Node("node-1")).with_devices(&devices)];
/// let pass = publisher.begin(&pools, now);
/// for write in pass.writes() {
///     let SliceWrite::Create { slice, .. } = write else { return Err("a create".into()) };
///     // The answer of the API server; here it stores the slice as it was sent.
///     publisher.answered(write, WriteResponse::Stored(slice), now);
/// }
/// publisher.end(&pass, now);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Publisher {
    driver: String,
    node_name: Option<String>,
    owner: Option<OwnerReference>,
    limits: SliceLimits,
    options: ReconcileOptions,
    /// Slices as the watch shows them, by name.
    stored: BTreeMap<String, ResourceSlice>,
    is_listed: bool,
    memory: Memory,
    timers: Timers,
    /// True if a write of the pass under way asks for another pass.
    has_failed: bool,
}

/// Writes of one pass over all pools, and remarks on each pool.
#[derive(Clone, Debug)]
#[must_use = "the pass ends by `Publisher::end`"]
#[non_exhaustive]
pub struct PublisherPass {
    /// Deletes of pools that the driver has no longer. They come first, so that no device is in two pools.
    pub withdrawn: Vec<SliceWrite>,
    /// Plan of each pool, in the order of the pools.
    pub plans: Vec<SyncPlan>,
    /// Pools of which nothing is written, with the reasons.
    pub errors: Vec<PoolPublishError>,
    begun_at: Timestamp,
}

/// Reason why nothing of a pool is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolPublishError {
    /// The devices make no slices.
    #[error("pool {pool}: {reason}")]
    Plan {
        /// Name of the pool.
        pool: String,
        /// The reason.
        #[source]
        reason: PlanError,
    },
    /// The slices would contradict themselves, or need a gate that is off.
    #[error("pool {pool}: {reason}")]
    Reconcile {
        /// Name of the pool.
        pool: String,
        /// The reason.
        #[source]
        reason: ReconcileError,
    },
}

/// First writes of a publisher as dry runs: the answers tell which gates are off before anything is published that would be
/// misused without them.
#[derive(Clone, Debug)]
#[must_use = "the answers are learned by `Publisher::learn`"]
pub struct Rehearsal {
    memory: Memory,
    writes: Vec<SliceWrite>,
}

impl Publisher {
    /// Creates a publisher that knows nothing yet. `node_name` is the node that the slices name; `None` for slices that name
    /// none, of which one instance of the driver publishes all.
    #[must_use]
    pub fn new(driver: &str, node_name: Option<&str>, limits: SliceLimits) -> Self {
        Self {
            driver: driver.to_owned(),
            node_name: node_name.map(str::to_owned),
            owner: None,
            limits,
            options: ReconcileOptions::default(),
            stored: BTreeMap::new(),
            is_listed: false,
            memory: Memory::default(),
            timers: Timers { has_quick_repair: true, ..Timers::default() },
            has_failed: false,
        }
    }

    /// Sets the owner of the slices, whose deletion deletes them: the node, for slices of a node.
    #[must_use]
    pub fn with_owner(self, owner: OwnerReference) -> Self {
        Self { owner: Some(owner), ..self }
    }

    /// Sets how passes are made.
    #[must_use]
    pub fn with_options(self, options: ReconcileOptions) -> Self {
        Self { options, ..self }
    }

    /// Adds gates that are known to be off: see [`Memory::with_gates_off`].
    #[must_use]
    pub fn with_gates_off(mut self, gates: impl IntoIterator<Item = Gate>) -> Self {
        self.memory = self.memory.with_gates_off(gates);
        self
    }

    /// Takes a complete list of the driver's slices on the node. Known slices that it lacks are gone. If the first list is empty,
    /// generations begin with the time in seconds: a kubelet that restarts has deleted slices with lower ones.
    ///
    /// # Complexity
    /// n log n in the slices.
    pub fn listed(&mut self, slices: impl IntoIterator<Item = ResourceSlice>, now: Timestamp) {
        let new: BTreeMap<String, ResourceSlice> =
            slices.into_iter().map(|slice| (name_of(&slice).to_owned(), slice)).collect();
        let gone: Vec<ResourceSlice> =
            self.stored.iter().filter(|(name, _)| !new.contains_key(*name)).map(|(_, slice)| slice.clone()).collect();
        for slice in &gone {
            self.vanished(slice, now);
        }
        if !self.is_listed {
            if new.is_empty() {
                self.memory = std::mem::take(&mut self.memory).with_generation_floor(now.as_second());
            }
            self.timers.desired_changed_at = Some(now);
        }
        for slice in new.into_values() {
            self.shown(slice, now);
        }
        self.is_listed = true;
    }

    /// Takes a slice that the watch shows, added or changed.
    ///
    /// # Complexity
    /// Logarithmic in the slices.
    pub fn shown(&mut self, slice: ResourceSlice, now: Timestamp) {
        let is_foreign = self.memory.shown(&slice);
        let version = slice.metadata.resource_version.clone();
        let known = self.stored.insert(name_of(&slice).to_owned(), slice);
        if is_foreign && known.is_none_or(|known| known.metadata.resource_version != version) {
            self.timers.first_foreign_event_at.get_or_insert(now);
        }
    }

    /// Takes a slice that the watch shows to be deleted.
    ///
    /// # Complexity
    /// Logarithmic in the slices.
    pub fn vanished(&mut self, slice: &ResourceSlice, now: Timestamp) {
        self.stored.remove(name_of(slice));
        if self.memory.deleted(slice, now) {
            self.timers.own_slice_vanished_at = Some(now);
        }
    }

    /// Notes that the driver has other devices than at the last pass.
    pub fn devices_changed(&mut self, now: Timestamp) {
        self.timers.desired_changed_at = Some(now);
    }

    /// Returns the time of the next pass and its reason; `None` if nothing is due, or before the first list.
    #[must_use]
    pub fn next_at(&self, now: Timestamp) -> Option<(Timestamp, DueReason)> {
        self.timers.due(now).filter(|_| self.is_listed)
    }

    /// Returns what is known of own writes, of generations and of gates.
    #[must_use]
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Plans the first writes as dry runs. Send each with `dryRun=All`, tell [`Rehearsal::answered`], and then
    /// [`Publisher::learn`].
    ///
    /// # Complexity
    /// That of [`Publisher::begin`], and a copy of the memory.
    pub fn rehearsal(&self, pools: &[PoolSpec<'_>], now: Timestamp) -> Rehearsal {
        let mut trial = self.clone();
        let pass = trial.begin(pools, now);
        Rehearsal { writes: pass.writes().cloned().collect(), memory: trial.memory }
    }

    /// Remembers which gates the answers to dry runs have shown to be off.
    pub fn learn(&mut self, rehearsal: &Rehearsal) {
        let gates: Vec<Gate> = rehearsal.memory.gates_off().iter().copied().collect();
        self.memory = std::mem::take(&mut self.memory).with_gates_off(gates);
    }

    /// Begins a pass over the pools that the driver has now. Make its writes in their order, tell [`Publisher::answered`] each answer, leave
    /// out the rest after one that does not continue, and call [`Publisher::end`].
    ///
    /// A pool with an error keeps no other from being written, and is tried again. Own writes that the watch has not shown for a
    /// minute are taken to be lost.
    ///
    /// # Complexity
    /// That of [`split_into_slices`] and [`reconcile`] for each pool, and the slices times the pools.
    pub fn begin(&mut self, pools: &[PoolSpec<'_>], now: Timestamp) -> PublisherPass {
        let mut memory = std::mem::take(&mut self.memory);
        // Before the view is made: a pass for any reason looks for what the watch should have shown by now.
        memory.expire(now);
        let view: Vec<ResourceSlice> = memory.view(self.stored.values()).into_iter().cloned().collect();
        let names: Vec<&str> = pools.iter().map(|pool| pool.name).collect();
        let withdrawn = withdraw_others(&self.driver, self.node_name.as_deref(), &names, &view);
        let (mut plans, mut errors) = (Vec::new(), Vec::new());
        for pool in pools {
            match self.plan(pool, &view, &mut memory) {
                Ok(plan) => plans.push(plan),
                Err(error) => errors.push(error),
            }
        }
        self.memory = memory;
        let timers = &mut self.timers;
        (timers.desired_changed_at, timers.first_foreign_event_at, timers.own_slice_vanished_at) = (None, None, None);
        self.has_failed = !errors.is_empty() || plans.iter().any(|plan| !plan.terminating.is_empty());
        PublisherPass { withdrawn, plans, errors, begun_at: now }
    }

    fn plan(
        &self,
        pool: &PoolSpec<'_>,
        view: &[ResourceSlice],
        memory: &mut Memory,
    ) -> Result<SyncPlan, PoolPublishError> {
        let named = || pool.name.to_owned();
        let scope = PoolScope {
            driver: &self.driver,
            pool: pool.name,
            node_name: self.node_name.as_deref(),
            owner: self.owner.as_ref(),
        };
        let layout = SliceContents::from_slices(view.iter().filter(|slice| slice.spec.pool.name == pool.name));
        let plan = split_into_slices(pool, &self.limits, Some(&layout))
            .map_err(|reason| PoolPublishError::Plan { pool: named(), reason })?;
        reconcile(&scope, view, Some(&plan), memory, &self.options)
            .map_err(|reason| PoolPublishError::Reconcile { pool: named(), reason })
    }

    /// Takes the answer to a write of the pass, sent at `now`.
    ///
    /// # Complexity
    /// That of comparing the slice with the stored one.
    pub fn answered(&mut self, write: &SliceWrite, answer: WriteResponse<'_>, now: Timestamp) -> Answered {
        let answered = self.memory.answered(write, answer, now);
        self.has_failed |= answered.next != NextStep::Continue;
        answered
    }

    /// Notes that the pass can't be made now: nothing of it is written, and the next one follows after a delay, as after a write that
    /// failed.
    pub const fn fail(&mut self) {
        self.has_failed = true;
    }

    /// Ends a pass: sets the time of the next one. Events that came while it was under way count.
    pub fn end(&mut self, pass: &PublisherPass, now: Timestamp) {
        let timers = &mut self.timers;
        timers.failures = if self.has_failed { timers.failures.saturating_add(1) } else { 0 };
        timers.failed_at = self.has_failed.then_some(now);
        timers.last_unconfirmed_write_at = self.memory.last_unconfirmed_write_at();
        timers.synced_at = Some(pass.begun_at);
    }
}

impl PublisherPass {
    /// Returns the writes in the order in which they are made.
    pub fn writes(&self) -> impl Iterator<Item = &SliceWrite> {
        self.withdrawn.iter().chain(self.plans.iter().flat_map(|plan| &plan.writes))
    }
}

impl Rehearsal {
    /// Returns the writes to send as dry runs.
    #[must_use]
    pub fn writes(&self) -> &[SliceWrite] {
        &self.writes
    }

    /// Takes the answer to a dry run. The fields that the API server would drop are in the result.
    pub fn answered(&mut self, write: &SliceWrite, answer: WriteResponse<'_>, now: Timestamp) -> Answered {
        self.memory.answered(write, answer, now)
    }
}
