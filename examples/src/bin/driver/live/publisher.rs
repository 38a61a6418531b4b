//! Publisher of a pool: the slices of this driver on this node are watched, and written until they are as wanted. When
//! that is due and with which writes, `dra_alloc::driver` decides.

use std::time::Duration;

use dra_alloc::DroppedField;
use dra_alloc::driver::{NextStep, NodeChoice, PoolSpec, Publisher, PublisherPass, SliceLimits, WriteFailure};
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
use crate::publish::{line, lines};

/// Longest sleep before the timers are looked at again.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Contents of a pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    pub(super) devices: Vec<Device>,
    pub(super) counter_sets: Vec<CounterSet>,
    pub(super) partition_type: Option<String>,
}

/// Calls of a publisher of one pool.
#[derive(Debug)]
pub(super) struct LivePublisher<'a> {
    cluster: &'a Cluster,
    driver: &'a str,
    node: &'a str,
    contents: Contents,
    publisher: Publisher,
    /// Slices of a list that is being read.
    listing: Vec<ResourceSlice>,
    /// True once the first writes were sent as a dry run.
    is_rehearsed: bool,
    counts: Counts,
}

impl<'a> LivePublisher<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        driver: &'a str,
        node: &'a str,
        contents: Contents,
        owner: OwnerReference,
        counts: Counts,
    ) -> Self {
        let publisher = Publisher::new(driver, Some(node), SliceLimits::of(cluster.release)).with_owner(owner);
        Self { cluster, driver, node, contents, publisher, listing: Vec::new(), is_rehearsed: false, counts }
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
    async fn pass(&mut self) {
        let is_tried = self.rehearse().await;
        let pass = self.publisher.begin(&pool(self.driver, self.node, &self.contents), now());
        if is_tried {
            pass.errors.iter().for_each(note);
            if pass.writes().next().is_some() {
                pass.withdrawn.iter().for_each(|write| note(&line(write)));
                pass.plans.iter().filter(|plan| !plan.writes.is_empty()).flat_map(lines).for_each(|line| note(&line));
            }
            self.carry_out(&pass).await;
        } else {
            self.publisher.fail();
        }
        self.publisher.end(&pass, now());
    }

    /// Sends the first writes as a dry run. Returns false if there was no answer.
    async fn rehearse(&mut self) -> bool {
        if self.is_rehearsed {
            return true;
        }
        let mut rehearsal = self.publisher.rehearsal(&pool(self.driver, self.node, &self.contents), now());
        for write in rehearsal.writes().to_vec() {
            let answer = rehearse(&self.cluster.client, &write).await;
            if let SliceAnswer::Failed(WriteFailure::Unknown, text) = &answer {
                note(&format_args!("not tried, and tried again: {text}"));
                return false;
            }
            let answered = rehearsal.answered(&write, answer.as_answer(), now());
            answered.dropped.iter().filter(|lost| lost.is_unsafe()).for_each(note_dropped);
        }
        self.publisher.learn(&rehearsal);
        self.is_rehearsed = true;
        true
    }

    async fn carry_out(&mut self, pass: &PublisherPass) {
        for write in pass.writes() {
            let answer = send(&self.cluster.client, write).await;
            self.counts.write(matches!(answer, SliceAnswer::Failed(..)));
            if let SliceAnswer::Failed(_, text) = &answer {
                note(&format_args!("not written, and tried again: {text}"));
            }
            let answered = self.publisher.answered(write, answer.as_answer(), now());
            answered.dropped.iter().for_each(note_dropped);
            if answered.next != NextStep::Continue {
                return;
            }
        }
    }
}

/// Returns the pool of a node, in a list.
fn pool<'a>(driver: &'a str, node: &'a str, contents: &'a Contents) -> [PoolSpec<'a>; 1] {
    let pool = PoolSpec::new(driver, node, NodeChoice::Node(node))
        .with_devices(&contents.devices)
        .with_counter_sets(&contents.counter_sets)
        .with_partition_type_attribute(contents.partition_type.as_deref());
    [pool]
}

/// Returns the next event of a watch, which is not asked for one before `resume_at`.
async fn next_after<S: Stream + Unpin>(resume_at: Instant, events: &mut S) -> Option<S::Item> {
    tokio::time::sleep_until(resume_at).await;
    events.next().await
}

fn note_dropped(lost: &DroppedField) {
    note(&format_args!("{} is off: {} is not stored: {}", lost.gate, lost.field, lost.consequence()));
}
