//! Slices of a driver on its node, kept as its pools are: watched, and written until they are right. When that is due and with
//! which writes, [`Publisher`] decides.

use std::time::Duration;

use dra_attrs::DroppedField;
use dra_node::driver::{NextStep, PoolSpec, Publisher, PublisherPass, SliceLimits, WriteFailure};
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::resource::v1::ResourceSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::runtime::watcher::{self, Config, Event, watcher};
use tokio::sync::watch;
use tokio::time::Instant;

use super::connect::Cluster;
use super::failure::{LiveError, Trouble, trouble, watch_text};
use super::metrics::{Metrics, Series};
use super::now;
use super::outage::Outage;
use super::pages::list_selected;
use super::plugin::Pool;
use super::retry::answered;
use super::say::say;
use super::slice_calls::{SliceAnswer, rehearse, send};
use super::slice_lines::slice_lines;

/// Longest sleep before the timers are looked at again.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Publisher of the pools of a driver on one node.
#[derive(Debug)]
pub struct SlicePublisher<'a> {
    cluster: &'a Cluster,
    driver: &'a str,
    node: &'a str,
    publisher: Publisher,
    /// Slices of a list that is being read.
    listing: Vec<ResourceSlice>,
    /// True once the first writes were sent as a dry run.
    is_rehearsed: bool,
    writes: Series,
}

impl<'a> SlicePublisher<'a> {
    /// Creates the publisher. `owner` is the node, with which its slices go.
    #[must_use]
    pub fn new(cluster: &'a Cluster, driver: &'a str, node: &'a str, owner: OwnerReference, metrics: &Metrics) -> Self {
        let publisher = Publisher::new(driver, Some(node), SliceLimits::of(cluster.release)).with_owner(owner);
        let writes = metrics.counter("dra_driver_slice_writes_total", "Writes of slices", &["is_error"]);
        Self { cluster, driver, node, publisher, listing: Vec::new(), is_rehearsed: false, writes }
    }

    /// Keeps the slices as `pools` says, which may change at any time. Returns why it can't go on.
    pub async fn run(&mut self, mut pools: watch::Receiver<Vec<Pool>>) -> LiveError {
        let slices: Api<ResourceSlice> = Api::all(self.cluster.client.clone());
        let own = Config::default().fields(&own_slices(self.driver, self.node));
        let mut events = std::pin::pin!(watcher(slices, own));
        let (mut outage, mut resume_at, mut may_change) = (Outage::default(), Instant::now(), true);
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
                            let reason = watch_text(&error);
                            self.note(format_args!("the watch of slices is interrupted and tried again: {reason}"));
                        }
                        resume_at = now.checked_add(pause).unwrap_or(now);
                    }
                    None => {}
                },
                changed = pools.changed(), if may_change => match changed {
                    Ok(()) => self.publisher.devices_changed(now()),
                    // Nobody changes them any more: they stay as they are.
                    Err(_) => may_change = false,
                },
                () = tokio::time::sleep(self.sleep()) => if self.is_due() {
                    let wanted = pools.borrow_and_update().clone();
                    self.pass(&wanted).await;
                },
            }
        }
    }

    fn observe(&mut self, event: Event<ResourceSlice>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(slice) => self.listing.push(slice),
            Event::InitDone => self.publisher.listed(std::mem::take(&mut self.listing), now()),
            Event::Apply(slice) => self.publisher.shown(slice, now()),
            Event::Delete(slice) => self.publisher.vanished(&slice, now()),
        }
    }

    fn due(&self) -> Option<Timestamp> {
        self.publisher.next_at(now()).map(|(at, _)| at)
    }

    fn is_due(&self) -> bool {
        self.due().is_some_and(|at| at <= now())
    }

    fn sleep(&self) -> Duration {
        let wait = self.due().map(|at| Duration::try_from(at.duration_since(now())).unwrap_or_default());
        wait.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
    }

    /// Plans once and sends the writes, up to the first that fails.
    async fn pass(&mut self, pools: &[Pool]) {
        let specs: Vec<PoolSpec<'_>> = pools.iter().map(|pool| pool.spec(self.driver, self.node)).collect();
        let is_tried = self.rehearse(&specs).await;
        let pass = self.publisher.begin(&specs, now());
        if is_tried {
            pass.errors.iter().for_each(|error| self.note(error));
            if pass.writes().next().is_some() {
                let plans = pass.plans.iter().filter(|plan| !plan.writes.is_empty());
                let lines = pass.withdrawn.iter().map(ToString::to_string);
                lines.chain(plans.flat_map(slice_lines)).for_each(|line| self.note(line));
            }
            self.carry_out(&pass).await;
        } else {
            self.publisher.fail();
        }
        self.publisher.end(&pass, now());
    }

    /// Sends the first writes as a dry run. Returns false if there was no answer.
    async fn rehearse(&mut self, pools: &[PoolSpec<'_>]) -> bool {
        if self.is_rehearsed {
            return true;
        }
        let mut rehearsal = self.publisher.rehearsal(pools, now());
        for write in rehearsal.writes().to_vec() {
            let answer = rehearse(&self.cluster.client, &write).await;
            if let SliceAnswer::Failed(WriteFailure::Unknown, text) = &answer {
                self.note(format_args!("not tried, and tried again: {text}"));
                return false;
            }
            let answered = rehearsal.answered(&write, answer.as_answer(), now());
            answered.dropped.iter().filter(|lost| lost.is_unsafe()).for_each(|lost| self.note_dropped(lost));
        }
        self.publisher.learn(&rehearsal);
        self.is_rehearsed = true;
        true
    }

    async fn carry_out(&mut self, pass: &PublisherPass) {
        for write in pass.writes() {
            let answer = send(&self.cluster.client, write).await;
            let is_error = matches!(answer, SliceAnswer::Failed(..));
            self.writes.add(&[if is_error { "true" } else { "false" }], 1);
            if let SliceAnswer::Failed(_, text) = &answer {
                self.note(format_args!("not written, and tried again: {text}"));
            }
            let answered = self.publisher.answered(write, answer.as_answer(), now());
            answered.dropped.iter().for_each(|lost| self.note_dropped(lost));
            if answered.next != NextStep::Continue {
                return;
            }
        }
    }

    fn note(&self, line: impl std::fmt::Display) {
        say(&format_args!("{}: {line}", self.driver));
    }

    fn note_dropped(&self, lost: &DroppedField) {
        self.note(format_args!("{} is off: {} is not stored: {}", lost.gate, lost.field, lost.consequence()));
    }
}

fn own_slices(driver: &str, node: &str) -> String {
    format!("spec.driver={driver},spec.nodeName={node}")
}

/// Returns the next event of a watch, which is not asked for one before `resume_at`.
async fn next_after<S: Stream + Unpin>(resume_at: Instant, events: &mut S) -> Option<S::Item> {
    tokio::time::sleep_until(resume_at).await;
    events.next().await
}

/// Deletes the slices of a driver that leaves a node for good, and returns their names.
///
/// # Errors
/// The slices can't be listed or deleted.
pub async fn withdraw(cluster: &Cluster, driver: &str, node: &str) -> Result<Vec<String>, LiveError> {
    let slices: Api<ResourceSlice> = Api::all(cluster.client.clone());
    let own = ListParams::default().fields(&own_slices(driver, node));
    let failed = |verb| move |error: kube::Error| LiveError::from_call(verb, "resourceslices", &error);
    let mut names = Vec::new();
    for slice in list_selected(&slices, &own).await.map_err(failed("list"))? {
        let name = slice.metadata.name.unwrap_or_default();
        let same = Preconditions { uid: slice.metadata.uid, resource_version: None };
        let params = DeleteParams::default().preconditions(same);
        match answered(|| slices.delete(&name, &params)).await.outcome {
            Err(error) if trouble(&error) != Trouble::Missing => return Err(failed("delete")(error)),
            _ => names.push(name),
        }
    }
    Ok(names)
}
