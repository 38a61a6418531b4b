//! Publisher of a pool: the slices of this driver on this node are watched, and written until they are as wanted. When
//! that is due and with which writes, `dra_alloc::driver` decides.

use std::collections::BTreeMap;
use std::time::Duration;

use dra_alloc::driver::{
    Memory, NextStep, NodeChoice, PoolScope, PoolSpec, ReconcileOptions, SliceContents, SliceLimits, SliceWrite,
    SyncPlan, Timers, WriteFailure, reconcile, split_into_slices, withdraw_others,
};
use dra_alloc::{DroppedField, Gate};
use examples::live::connect::Cluster;
use examples::live::failure::{LiveError, watch_text};
use examples::live::now;
use examples::live::outage::Outage;
use examples::live::slice_calls::{SliceAnswer, rehearse, send};
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::resource::v1::{CounterSet, Device, ResourceSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::runtime::watcher::{self, Config, Event, watcher};
use tokio::time::Instant;

use super::counts::Counts;
use crate::note;
use crate::publish::{PublishingError, lines};

/// Longest sleep before the timers are looked at again.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Contents of a pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    pub(super) devices: Vec<Device>,
    pub(super) counter_sets: Vec<CounterSet>,
    pub(super) partition_type: Option<String>,
}

/// Publisher of one pool.
#[derive(Debug)]
pub(super) struct Publisher<'a> {
    cluster: &'a Cluster,
    driver: &'a str,
    node: &'a str,
    contents: Contents,
    owner: OwnerReference,
    limits: SliceLimits,
    /// Slices as the watch shows them, by name.
    stored: BTreeMap<String, ResourceSlice>,
    /// Slices of a list that is being read.
    listing: Vec<ResourceSlice>,
    is_listed: bool,
    /// True once the first writes were sent as a dry run.
    is_rehearsed: bool,
    memory: Memory,
    timers: Timers,
    counts: Counts,
}

impl<'a> Publisher<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        driver: &'a str,
        node: &'a str,
        contents: Contents,
        owner: OwnerReference,
        counts: Counts,
    ) -> Self {
        Self {
            cluster,
            driver,
            node,
            contents,
            owner,
            limits: SliceLimits::of(cluster.release),
            stored: BTreeMap::new(),
            listing: Vec::new(),
            is_listed: false,
            is_rehearsed: false,
            memory: Memory::default(),
            timers: quick_timers(),
            counts,
        }
    }

    /// Keeps the slices as wanted. Returns why it can't.
    pub(super) async fn run(&mut self) -> LiveError {
        let slices: Api<ResourceSlice> = Api::all(self.cluster.client.clone());
        let own = Config::default().fields(&format!("spec.driver={},spec.nodeName={}", self.driver, self.node));
        let mut events = std::pin::pin!(watcher(slices, own));
        let (mut outage, mut resume_at) = (Outage::default(), Instant::now());
        loop {
            tokio::select! {
                event = next_after(resume_at, &mut events) => match event {
                    Some(Ok(event)) => self.observe(event),
                    Some(Err(error)) => {
                        if let Some(failure) = LiveError::from_watch("resourceslices", &error) {
                            return failure;
                        }
                        let now = Instant::now();
                        let (pause, is_new) = outage.goes_on(now);
                        if is_new && !matches!(error, watcher::Error::WatchError(_)) {
                            note(&format_args!("the watch of slices is interrupted and tried again: {}", watch_text(&error)));
                        }
                        resume_at = now + pause;
                    }
                    None => {}
                },
                () = tokio::time::sleep(self.sleep()) => if self.is_due() { self.pass().await },
            }
        }
    }

    fn observe(&mut self, event: Event<ResourceSlice>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(slice) => self.listing.push(slice),
            Event::InitDone => self.listed(),
            Event::Apply(slice) => self.shown(slice),
            Event::Delete(slice) => self.vanished(&slice),
        }
    }

    /// Takes a complete list: slices that are not in it are gone.
    fn listed(&mut self) {
        let new: BTreeMap<String, ResourceSlice> =
            std::mem::take(&mut self.listing).into_iter().map(|slice| (name_of(&slice), slice)).collect();
        let gone: Vec<ResourceSlice> =
            self.stored.iter().filter(|(name, _)| !new.contains_key(*name)).map(|(_, slice)| slice.clone()).collect();
        for slice in &gone {
            self.vanished(slice);
        }
        if !self.is_listed && new.is_empty() {
            // A kubelet that restarts deletes the slices of its node: generations must go on rising.
            self.memory = Memory::default().with_generation_floor(now().as_second());
        }
        for slice in new.into_values() {
            self.shown(slice);
        }
        if !self.is_listed {
            self.timers.desired_changed_at = Some(now());
        }
        self.is_listed = true;
    }

    fn shown(&mut self, slice: ResourceSlice) {
        let is_foreign = self.memory.shown(&slice);
        let version = slice.metadata.resource_version.clone();
        let known = self.stored.insert(name_of(&slice), slice);
        if is_foreign && known.is_none_or(|known| known.metadata.resource_version != version) {
            self.timers.first_foreign_event_at.get_or_insert_with(now);
        }
    }

    fn vanished(&mut self, slice: &ResourceSlice) {
        self.stored.remove(&name_of(slice));
        if self.memory.deleted(slice, now()) {
            self.timers.own_slice_vanished_at = Some(now());
        }
    }

    fn due(&self) -> Option<Timestamp> {
        self.timers.due(now()).map(|(at, _)| at).filter(|_| self.is_listed)
    }

    fn is_due(&self) -> bool {
        self.due().is_some_and(|at| at <= now())
    }

    fn sleep(&self) -> Duration {
        let wait = self.due().map(|at| Duration::try_from(at.duration_since(now())).unwrap_or_default());
        wait.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
    }

    /// Plans once and sends the writes, up to the first that fails.
    async fn pass(&mut self) {
        let begin = now();
        let succeeded = self.rehearse().await && self.write().await;
        let failures = if succeeded { 0 } else { self.timers.failures.saturating_add(1) };
        self.timers = quick_timers();
        self.timers.last_unconfirmed_write_at = self.memory.last_unconfirmed_write_at();
        self.timers.failures = failures;
        self.timers.failed_at = (!succeeded).then(now);
        self.timers.synced_at = Some(begin);
        self.memory.expire(now());
    }

    /// Returns the deletes of pools that earlier versions of the driver published.
    fn former_pools(&self) -> Vec<SliceWrite> {
        withdraw_others(self.driver, Some(self.node), &[self.node], self.memory.view(self.stored.values()))
    }

    /// Sends the first writes as a dry run: which gates are off is known then before anything is published that would be
    /// misused without them. Returns false if there was no answer.
    async fn rehearse(&mut self) -> bool {
        let mut memory = self.memory.clone();
        let plan = if self.is_rehearsed { None } else { self.plan(&mut memory).ok() };
        for write in plan.iter().flat_map(|plan| &plan.writes) {
            let answer = rehearse(&self.cluster.client, write).await;
            if let SliceAnswer::Failed(WriteFailure::Unknown, text) = &answer {
                note(&format_args!("not tried, and tried again: {text}"));
                return false;
            }
            let answered = memory.answered(write, answer.as_answer(), now());
            answered.dropped.iter().filter(|lost| lost.is_unsafe()).for_each(note_dropped);
        }
        let gates: Vec<Gate> = memory.gates_off().iter().copied().collect();
        self.memory = std::mem::take(&mut self.memory).with_gates_off(gates);
        self.is_rehearsed = true;
        true
    }

    /// Plans once and sends the writes; returns false if another pass has to follow.
    async fn write(&mut self) -> bool {
        let mut memory = std::mem::take(&mut self.memory);
        let plan = self.plan(&mut memory);
        self.memory = memory;
        match plan {
            Ok(mut plan) => {
                // First, so that no device is in two pools.
                plan.writes.splice(..0, self.former_pools());
                if !plan.writes.is_empty() {
                    lines(&plan).iter().for_each(note);
                }
                self.carry_out(&plan).await
            }
            Err(error) => {
                note(&error);
                false
            }
        }
    }

    fn plan(&self, memory: &mut Memory) -> Result<SyncPlan, PublishingError> {
        let scope =
            PoolScope { driver: self.driver, pool: self.node, node_name: Some(self.node), owner: Some(&self.owner) };
        let pool = PoolSpec::new(self.driver, self.node, NodeChoice::Node(self.node))
            .with_devices(&self.contents.devices)
            .with_counter_sets(&self.contents.counter_sets)
            .with_partition_type_attribute(self.contents.partition_type.as_deref());
        let view: Vec<ResourceSlice> = memory.view(self.stored.values()).into_iter().cloned().collect();
        let layout = SliceContents::from_slices(&view);
        let plan = split_into_slices(&pool, &self.limits, Some(&layout))?;
        Ok(reconcile(&scope, &view, Some(&plan), memory, &ReconcileOptions::default())?)
    }

    /// Sends the writes of a pass; returns false if another pass has to follow.
    async fn carry_out(&mut self, pass: &SyncPlan) -> bool {
        for write in &pass.writes {
            let answer = send(&self.cluster.client, write).await;
            self.counts.write(matches!(answer, SliceAnswer::Failed(..)));
            if let SliceAnswer::Failed(_, text) = &answer {
                note(&format_args!("not written, and tried again: {text}"));
            }
            let answered = self.memory.answered(write, answer.as_answer(), now());
            answered.dropped.iter().for_each(note_dropped);
            if answered.next != NextStep::Continue {
                return false;
            }
        }
        pass.terminating.is_empty()
    }
}

/// Returns the next event of a watch, which is not asked for one before `resume_at`.
async fn next_after<S: Stream + Unpin>(resume_at: Instant, events: &mut S) -> Option<S::Item> {
    tokio::time::sleep_until(resume_at).await;
    events.next().await
}

fn note_dropped(lost: &DroppedField) {
    note(&format_args!("{} is off: {} is not stored: {}", lost.gate, lost.field, lost.consequence()));
}

fn name_of(slice: &ResourceSlice) -> String {
    slice.metadata.name.clone().unwrap_or_default()
}

/// Timers of a driver whose slices are written again soon after they vanish.
fn quick_timers() -> Timers {
    let mut timers = Timers::default();
    timers.has_quick_repair = true;
    timers
}
