//! A day of a cluster through queue and allocator: 20,000 pods come, most of them by day, stay and go; nodes report, drivers
//! publish anew, and one binding of a hundred fails. Time is the day's own, so that the figures are the same in each run.
//!
//!     cargo run --release -p benches --example queue_day [PODS] [NODES]
//!
//! The same day three times: a refused pod waits for what its refusal says, for any device as with kube-scheduler's hints, or for any event. Printed are
//! attempts, and of those that an event brought the ones that placed the pod, and the ones that did not.
#![allow(clippy::expect_used, clippy::print_stdout, clippy::float_arithmetic, reason = "a measurement, run by hand")]
#![allow(clippy::cast_precision_loss, reason = "a mean is printed")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use benches::objects::{GPU, NIC, by_name, class, local, some};
use dra_alloc::pods::{ClaimTracker, GroupRound, PodCycle, PodOptions, pre_enqueue};
use dra_alloc::queue::{
    Attempt, ClusterEvent, ObjectChange, Place, PrioritySort, QueueOptions, Refusal, Remedy, SchedulingQueue,
};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Allocator, Budget, ClaimId, Classes, Inventory, InventoryEvent, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{
    AllocationResult, ResourceClaim, ResourceClaimConsumerReference, ResourceClaimStatus, ResourceSlice,
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{from_value, json};

/// Milliseconds of an hour.
const HOUR: u64 = 3_600_000;
/// Longest stay of a pod; the mean is half of it.
const LONGEST_STAY: u64 = HOUR * 4 / 5;
/// Time until the claim of a pod is made from its template.
const CLAIM_AFTER: u64 = 300;
/// Times between reports of a node, slices that are published anew, and labels that change.
const REPORT: u64 = 300_000;
const PUBLISH: u64 = 600_000;
const LABEL: u64 = 1_800_000;
/// Time after which a refused pod is tried without an event.
const FLUSH_AFTER: u64 = 300_000;

/// What a refused pod waits for.
#[derive(Clone, Copy, PartialEq)]
enum Hints {
    /// What its refusal says.
    Refusal,
    /// Any device and any node, as kube-scheduler's plugin.
    Plugin,
    /// Every event.
    Everything,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    PodComes(usize),
    ClaimComes(usize),
    PodGoes(usize),
    NodeReports(usize),
    SlicePublished(usize),
    NodeLabeled(usize),
    /// The queue wants to be asked.
    Time,
}

#[derive(Default)]
struct Figures {
    attempts: usize,
    bound: usize,
    failed: usize,
    events: usize,
    /// Attempts after an event let the pod out, by whether the pod was placed.
    helped: usize,
    not_helped: usize,
    most_waiting: usize,
}

struct Cluster {
    hints: Hints,
    now: u64,
    agenda: BTreeSet<(u64, Happening)>,
    queue: SchedulingQueue,
    tracker: ClaimTracker,
    inventory: Inventory,
    slices: Vec<Arc<ResourceSlice>>,
    classes: Classes,
    nodes: Vec<Node>,
    selectors: SelectorCache,
    pods: BTreeMap<String, Arc<Pod>>,
    /// Times of the last refusals.
    refused: BTreeMap<String, u64>,
    latest: usize,
    random: Random,
    figures: Figures,
}

/// Numbers that look random, and are the same each time.
struct Random(u64);

impl Random {
    const fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let (pods, nodes) = (arguments.next().unwrap_or(20_000), arguments.next().unwrap_or(100));
    println!("{pods} pods, {nodes} nodes of 8 GPUs and 4 NICs");
    for (name, hints) in [("refusal", Hints::Refusal), ("plugin", Hints::Plugin), ("everything", Hints::Everything)] {
        let begin = Instant::now();
        let mut cluster = Cluster::new(hints, pods, nodes);
        cluster.play();
        let Figures { attempts, bound, failed, events, helped, not_helped, most_waiting } = cluster.figures;
        println!(
            "{name:>10}: bound {bound}, attempts {attempts} ({:.2} a pod), failed writes {failed}, events {events}, \
             attempts after an event: {helped} placed, {not_helped} not; at most {most_waiting} waited; \
             {:.1} s",
            attempts as f64 / pods as f64,
            begin.elapsed().as_secs_f64()
        );
        let left = [Place::Active, Place::BackingOff, Place::Unschedulable, Place::Gated, Place::InFlight];
        assert_eq!(left.map(|place| cluster.queue.count(place)), [0; 5], "the day ends with an empty queue");
        assert_eq!(cluster.queue.remembered(), 0, "memory follows the cluster");
    }
}

impl Cluster {
    fn new(hints: Hints, pods: usize, nodes: usize) -> Self {
        let slices = local(nodes, by_name);
        let mut random = Random(1);
        let mut agenda = BTreeSet::new();
        for pod in 0..pods {
            // Three quarters of the pods come in the ten hours of the working day.
            let hour = if random.below(4) < 3 { 8 + random.below(10) } else { random.below(20) };
            agenda.insert((hour * HOUR + random.below(HOUR), Happening::PodComes(pod)));
        }
        for node in 0..nodes {
            agenda.insert((random.below(REPORT), Happening::NodeReports(node)));
        }
        agenda.extend([(PUBLISH, Happening::SlicePublished(0)), (LABEL, Happening::NodeLabeled(0))]);
        Self {
            hints,
            now: 0,
            agenda,
            queue: SchedulingQueue::new(PrioritySort, QueueOptions::default()),
            tracker: ClaimTracker::new(Profile::V1_37),
            inventory: Inventory::new(slices.iter().cloned()),
            slices,
            classes: Classes::new([("gpu", GPU), ("nic", NIC)].map(|(name, driver)| class(name, driver))),
            nodes: some(nodes, nodes),
            selectors: SelectorCache::default(),
            pods: BTreeMap::new(),
            refused: BTreeMap::new(),
            latest: 0,
            random,
            figures: Figures::default(),
        }
    }

    fn play(&mut self) {
        while let Some((at, happening)) = self.agenda.pop_first() {
            self.now = at;
            self.happen(happening);
            self.schedule();
            self.figures.most_waiting = self.figures.most_waiting.max(self.queue.count(Place::Unschedulable));
            let next = self.queue.next_at().map(|next| u64::try_from(next.as_millisecond()).unwrap_or_default());
            if let Some(next) = next.filter(|next| self.agenda.first().is_none_or(|(at, _)| next < at)) {
                self.agenda.insert((next.max(self.now), Happening::Time));
            }
        }
    }

    fn time(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_millis(i64::try_from(self.now).expect("a day"))
    }

    /// Repeats a happening until the pods are gone.
    fn repeat(&mut self, after: u64, happening: Happening) {
        if self.now < 24 * HOUR {
            self.agenda.insert((self.now + after, happening));
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::PodComes(number) => {
                let pod = pod(number);
                let name = format!("p{number}");
                self.tell(&ClusterEvent::Pod(ObjectChange::Added(&pod)));
                self.pods.insert(name, pod);
                self.agenda.insert((self.now + CLAIM_AFTER, Happening::ClaimComes(number)));
            }
            Happening::ClaimComes(number) => {
                let claim = Arc::new(claim(number));
                self.tracker.observe(Arc::clone(&claim)).expect("a claim");
                self.tell(&ClusterEvent::Claim(ObjectChange::Added(&claim)));
            }
            Happening::PodGoes(number) => self.go(number),
            Happening::NodeReports(number) => {
                let node = self.nodes[number].clone();
                self.tell(&ClusterEvent::Node(ObjectChange::Updated { old: &node, new: &node }));
                self.repeat(REPORT, happening);
            }
            Happening::SlicePublished(number) => {
                let old = Arc::clone(&self.slices[number]);
                let mut new = ResourceSlice::clone(&old);
                new.spec.pool.generation += 1;
                let new = Arc::new(new);
                self.slices[number] = Arc::clone(&new);
                self.inventory.apply(InventoryEvent::Slice(Arc::clone(&new))).expect("a slice");
                let inventory = self.inventory.clone();
                let change = ObjectChange::Updated { old: &*old, new: &*new };
                self.tell(&ClusterEvent::Slice { change, inventory: &inventory });
                self.repeat(PUBLISH, Happening::SlicePublished((number + 1) % self.slices.len()));
            }
            Happening::NodeLabeled(number) => {
                let old = self.nodes[number].clone();
                let labels = self.nodes[number].metadata.labels.get_or_insert_default();
                labels.insert("changed".to_owned(), self.now.to_string());
                let new = self.nodes[number].clone();
                self.tell(&ClusterEvent::Node(ObjectChange::Updated { old: &old, new: &new }));
                self.repeat(LABEL, Happening::NodeLabeled((number + 1) % self.nodes.len()));
            }
            Happening::Time => {}
        }
    }

    /// Tells the queue of an event.
    fn tell(&mut self, event: &ClusterEvent<'_>) {
        self.figures.events += 1;
        let brought = match self.hints {
            Hints::Everything => vec![Remedy::AnyDevices],
            _ => Vec::new(),
        };
        let now = self.time();
        self.queue.observe(event, now).expect("a pod has a UID");
        self.queue.wake(&brought, now);
    }

    fn schedule(&mut self) {
        let options = PodOptions::new(Profile::V1_37);
        loop {
            let now = self.time();
            let tracker = &self.tracker;
            let check = |pods: &[Arc<Pod>]| {
                pods.iter().try_for_each(|pod| {
                    pre_enqueue(pod, tracker, options).map_err(|reason| Refusal::blocked(pod, &reason))
                })
            };
            let Some(attempt) = self.queue.pop(now, check) else { break };
            self.figures.attempts += 1;
            // No event: the queue lets a pod out after five minutes.
            let refused = self.refused.remove(name(&attempt));
            let was_let_out = refused.is_some_and(|refused| self.now < refused + FLUSH_AFTER);
            let is_placed = self.attempt(attempt);
            self.figures.helped += usize::from(was_let_out && is_placed);
            self.figures.not_helped += usize::from(was_let_out && !is_placed);
        }
    }

    /// Tries to place a pod, and returns true if a node fits.
    fn attempt(&mut self, attempt: Attempt) -> bool {
        let options = PodOptions::new(Profile::V1_37);
        let (now, pod) = (self.time(), Arc::clone(&attempt.pods()[0]));
        let allocator =
            Allocator::new(Profile::V1_37, &self.inventory, &self.classes).with_selector_cache(&self.selectors);
        let round = GroupRound::default();
        let cycle = PodCycle::pre_filter(&pod, None, &self.tracker, &self.classes, &round, options);
        let mut cycle = cycle.expect("the claim is there").expect("the pod has a claim");
        let mut refusal = Refusal::of_nodes();
        let filter = cycle.node_filter(&allocator, self.tracker.state());
        let mut found = None;
        for number in (self.latest..self.nodes.len()).chain(0..self.latest) {
            let verdict = filter.filter(&self.nodes[number], now, Budget::work(100_000));
            match verdict.refusal() {
                Some(reason) => refusal.add_node(&cycle, &allocator, reason),
                None => {
                    found = Some((number, verdict));
                    break;
                }
            }
        }
        let Some((number, verdict)) = found else {
            let refusal = match self.hints {
                Hints::Refusal => refusal,
                _ => Refusal::new([Remedy::AnyDevices, Remedy::NodeAdded, Remedy::NodeLabels]),
            };
            self.refused.insert(name(&attempt).to_owned(), self.now);
            self.queue.refused(attempt, refusal, now);
            return false;
        };
        self.latest = number;
        if self.random.below(100) == 0 {
            self.figures.failed += 1;
            self.queue.failed(attempt, now);
            return true;
        }
        let node = self.nodes[number].metadata.name.clone().expect("a name");
        cycle.record(&node, verdict);
        let allocation = cycle.results_on(&node).next().expect("a result").clone();
        self.bind(attempt, &pod, node, allocation);
        true
    }

    fn bind(&mut self, attempt: Attempt, pod: &Arc<Pod>, node: String, allocation: AllocationResult) {
        let (name, number) = (name(&attempt).to_owned(), number(&attempt));
        let old = claim(number);
        let mut new = old.clone();
        let consumer = ResourceClaimConsumerReference {
            name: name.clone(),
            resource: "pods".to_owned(),
            uid: name.clone(),
            ..Default::default()
        };
        new.status = Some(ResourceClaimStatus {
            allocation: Some(allocation),
            reserved_for: Some(vec![consumer]),
            ..ResourceClaimStatus::default()
        });
        self.tracker.assume(new.clone()).expect("a claim");
        self.queue.done(attempt);
        self.figures.bound += 1;
        self.tell(&ClusterEvent::Claim(ObjectChange::Updated { old: &old, new: &new }));
        let mut bound = Pod::clone(pod);
        bound.spec.get_or_insert_default().node_name = Some(node);
        let bound = Arc::new(bound);
        self.tell(&ClusterEvent::Pod(ObjectChange::Updated { old: pod, new: &bound }));
        self.pods.insert(name, bound);
        let stay = self.random.below(LONGEST_STAY);
        self.agenda.insert((self.now + stay, Happening::PodGoes(number)));
    }

    fn go(&mut self, number: usize) {
        let name = format!("p{number}");
        let pod = self.pods.remove(&name).expect("the pod is there");
        self.tell(&ClusterEvent::Pod(ObjectChange::Deleted(&pod)));
        let claim =
            Arc::clone(dra_alloc::pods::ClaimLookup::claim(&self.tracker, "ns", &name).expect("its claim is there"));
        self.tracker.observe_deleted(&ClaimId::from(&*claim));
        self.tell(&ClusterEvent::Claim(ObjectChange::Deleted(&claim)));
    }
}

fn name(attempt: &Attempt) -> &str {
    attempt.pods()[0].metadata.name.as_deref().unwrap_or_default()
}

fn number(attempt: &Attempt) -> usize {
    name(attempt).strip_prefix('p').and_then(|number| number.parse().ok()).expect("a number")
}

fn pod(number: usize) -> Arc<Pod> {
    let name = format!("p{number}");
    let entry = json!({"name": "devices", "resourceClaimName": name});
    Arc::new(
        from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": name},
            "spec": {"containers": [], "resourceClaims": [entry]}}))
        .expect("a pod"),
    )
}

/// Of 20 claims 12 are for a GPU, 5 for two, 2 for a NIC, and one for all GPUs of a node.
fn claim(number: usize) -> ResourceClaim {
    let (class, count) = match number % 20 {
        0..12 => ("gpu", 1),
        12..17 => ("gpu", 2),
        17..19 => ("nic", 1),
        _ => ("gpu", 8),
    };
    let name = format!("p{number}");
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("claim-{name}")},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": class, "count": count}}]}}}))
    .expect("a claim")
}
