//! A day of a queue: pods come, wait, stay and go, while slices are published anew, nodes are cordoned, claims come late and
//! writes are refused. The queue says which pod is tried next, and which event lets one be tried again.
//!
//!     cargo run --release -p benches --example queue_day [PODS] [NODES]
//!
//! Printed are the attempts of all pods, the wake-ups with the attempts that they led to, and how many there would be if each
//! event that helps anybody woke every pod that waits.
#![allow(clippy::expect_used, clippy::print_stdout, clippy::float_arithmetic, reason = "a measurement, run by hand")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dra_alloc::pods::{ClaimTracker, GroupRound, PodCycle, PodOptions, pre_enqueue};
use dra_alloc::queue::{
    ClusterEvent, ObjectChange, Place, PrioritySort, QueueAttempt, QueueOptions, Refusal, Remedy, SchedulingQueue,
};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Allocator, Budget, ClaimId, Classes, Inventory, InventoryEvent, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, from_value, json};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Seconds of the day in which pods come.
const DAY: u64 = 86_400;

/// GPUs and NICs of a node.
const DEVICES: [(&str, usize); 2] = [("gpu", 8), ("nic", 4)];

/// Something that happens in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happening {
    PodComes(usize),
    ClaimComes(usize),
    PodGoes(usize),
    Publishes(usize),
    Cordons(usize, bool),
    Labels(usize),
}

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Numbers of a day.
#[derive(Debug, Default)]
struct Counts {
    events: usize,
    first: usize,
    woken: usize,
    everybody: usize,
    failed: usize,
    placed_first: usize,
    placed_later: usize,
    refused_first: usize,
    refused_later: usize,
    after_failure: usize,
    most_attempts: u32,
    longest_queue: usize,
    time_of_queue: Duration,
}

struct Cluster {
    nodes: Vec<Node>,
    inventory: Inventory,
    classes: Classes,
    selectors: SelectorCache,
    tracker: ClaimTracker,
    options: PodOptions,
    /// Number of versions up to now.
    version: u64,
}

fn slice(node: usize, (kind, count): (&str, usize), generation: usize) -> Outcome<ResourceSlice> {
    let name = format!("n{node}");
    let devices: Vec<Value> = (0..count).map(|number| json!({"name": format!("{kind}-{number}")})).collect();
    Ok(from_value(json!({"metadata": {"name": format!("{name}-{kind}"), "resourceVersion": generation.to_string()},
        "spec": {"driver": format!("{kind}.example.com"), "nodeName": name, "devices": devices,
            "pool": {"name": name, "generation": generation, "resourceSliceCount": 1}}}))?)
}

/// Builds the claim of a pod: 60 % want a GPU, 25 % two GPUs and a NIC, 5 % all GPUs of a node, 10 % a NIC.
fn claim(pod: usize, version: u64) -> Outcome<ResourceClaim> {
    let exactly =
        |name: &str, count: usize| json!({"name": name, "exactly": {"deviceClassName": name, "count": count}});
    let requests = match pod % 20 {
        0..12 => json!([exactly("gpu", 1)]),
        12..17 => json!([exactly("gpu", 2), exactly("nic", 1)]),
        17 => json!([exactly("gpu", 8)]),
        _ => json!([exactly("nic", 1)]),
    };
    Ok(from_value(json!({"metadata": {"namespace": "ns", "name": format!("c{pod}"), "uid": format!("c{pod}"),
        "resourceVersion": version.to_string()}, "spec": {"devices": {"requests": requests}}}))?)
}

fn pod(number: usize, node: Option<&str>, version: u64) -> Outcome<Arc<Pod>> {
    Ok(Arc::new(from_value(json!({
        "metadata": {"namespace": "ns", "name": format!("p{number}"), "uid": format!("p{number}"),
            "resourceVersion": version.to_string()},
        "spec": {"containers": [], "nodeName": node, "priority": number % 3,
            "resourceClaims": [{"name": "r", "resourceClaimName": format!("c{number}")}]}}))?))
}

fn name_of(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default()
}

impl Cluster {
    fn new(nodes: usize) -> Outcome<Self> {
        let node = |number: usize| from_value::<Node>(json!({"metadata": {"name": format!("n{number}")}, "spec": {}}));
        let class = |(kind, _): (&str, usize)| {
            let expression = format!("device.driver == '{kind}.example.com'");
            from_value::<DeviceClass>(
                json!({"metadata": {"name": kind}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}),
            )
        };
        let slices: Vec<ResourceSlice> =
            (0..nodes).flat_map(|node| DEVICES.map(|kind| slice(node, kind, 1))).collect::<Result<_, _>>()?;
        let options = PodOptions::new(Profile::V1_37);
        Ok(Self {
            nodes: (0..nodes).map(node).collect::<Result<_, _>>()?,
            inventory: Inventory::new(slices),
            classes: Classes::new(DEVICES.map(class).into_iter().collect::<Result<Vec<_>, _>>()?),
            selectors: SelectorCache::default(),
            tracker: ClaimTracker::new(options.scheduler()),
            options,
            version: 1,
        })
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn known(&self, number: usize) -> Option<Arc<ResourceClaim>> {
        use dra_alloc::pods::ClaimLookup;
        self.tracker.claim("ns", &format!("c{number}")).cloned()
    }

    /// Finds the first node for a pod; none with the reasons of all.
    fn place(&self, pod: &Pod, next: usize) -> Outcome<Result<(String, PodCycle), Refusal>> {
        let allocator = Allocator::new(self.options.scheduler(), &self.inventory, &self.classes)
            .with_selector_cache(&self.selectors);
        let round = GroupRound::default();
        let begun = PodCycle::pre_filter(pod, None, &self.tracker, &self.classes, &round, self.options);
        let mut cycle = match begun {
            Ok(cycle) => cycle.ok_or("each pod has a claim")?,
            Err(blocked) => return Ok(Err(Refusal::blocked(pod, &blocked))),
        };
        let (mut refusal, mut fitting) = (Refusal::of_nodes(), None);
        {
            let filter = cycle.node_filter(&allocator, self.tracker.state());
            for node in self.nodes.iter().cycle().skip(next).take(self.nodes.len()) {
                if is_cordoned(node) {
                    refusal.add(Remedy::NodeTaints);
                    continue;
                }
                let verdict = filter.filter(node, Timestamp::UNIX_EPOCH, Budget::default());
                let Some(reason) = verdict.refusal() else {
                    fitting = Some((name_of(node).to_owned(), verdict));
                    break;
                };
                refusal.add_node(&cycle, &allocator, reason);
            }
        }
        let Some((node, verdict)) = fitting else { return Ok(Err(refusal)) };
        cycle.record(&node, verdict);
        Ok(Ok((node, cycle)))
    }
}

struct Day {
    cluster: Cluster,
    queue: SchedulingQueue,
    /// Happenings by their second.
    plan: BTreeMap<u64, Vec<Happening>>,
    dice: Dice,
    counts: Counts,
    placed: BTreeMap<usize, String>,
    /// Number of attempts of each pod that a refused write has ended.
    failures: BTreeMap<String, usize>,
    next_node: usize,
    next_generation: usize,
}

impl Day {
    fn new(pods: usize, nodes: usize) -> Outcome<Self> {
        let (mut plan, mut dice) = (BTreeMap::<u64, Vec<Happening>>::new(), Dice(1));
        for number in 0..pods {
            let at = DAY * number as u64 / pods as u64;
            plan.entry(at).or_default().push(Happening::PodComes(number));
            // One claim in ten is made later.
            let late = if number % 10 == 9 { 1 + dice.below(20) } else { 0 };
            plan.entry(at + late).or_default().push(Happening::ClaimComes(number));
            let node = usize::try_from(dice.below(nodes as u64))?;
            if number % 50 == 0 {
                plan.entry(at).or_default().push(Happening::Publishes(node));
            }
            if number % 61 == 0 {
                plan.entry(at).or_default().push(Happening::Labels(node));
            }
            if number % 97 == 0 {
                plan.entry(at).or_default().push(Happening::Cordons(node, true));
                plan.entry(at + 900).or_default().push(Happening::Cordons(node, false));
            }
        }
        Ok(Self {
            cluster: Cluster::new(nodes)?,
            queue: SchedulingQueue::new(PrioritySort, QueueOptions::default()),
            plan,
            dice,
            counts: Counts::default(),
            placed: BTreeMap::new(),
            failures: BTreeMap::new(),
            next_node: 0,
            next_generation: 2,
        })
    }

    fn at(second: u64) -> Outcome<Timestamp> {
        Ok(Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(i64::try_from(second)?))?)
    }

    fn observe(&mut self, event: &ClusterEvent<'_>, now: Timestamp) -> Outcome {
        let waiting = self.queue.count(Place::Unschedulable) + self.queue.count(Place::Gated);
        self.counts.events += 1;
        if !event.remedies().is_empty() {
            self.counts.everybody += waiting;
        }
        let begin = Instant::now();
        self.counts.woken += self.queue.observe(event, now)?;
        self.counts.time_of_queue += begin.elapsed();
        Ok(())
    }

    fn happen(&mut self, happening: Happening, now: Timestamp) -> Outcome {
        let version = self.cluster.next_version();
        match happening {
            Happening::PodComes(number) => {
                self.observe(&ClusterEvent::Pod(ObjectChange::Added(&pod(number, None, version)?)), now)
            }
            Happening::ClaimComes(number) => {
                let claim = Arc::new(claim(number, version)?);
                self.cluster.tracker.observe(Arc::clone(&claim))?;
                self.observe(&ClusterEvent::Claim(ObjectChange::Added(&claim)), now)
            }
            Happening::PodGoes(number) => self.goes(number, version, now),
            Happening::Publishes(node) => {
                let generation = self.next_generation;
                self.next_generation += 1;
                let name = format!("n{node}");
                for kind in DEVICES {
                    let new = Arc::new(slice(node, kind, generation)?);
                    let known = self.cluster.inventory.slices_of_pool(&new.spec.driver, &name).next().cloned();
                    let old = known.ok_or("each pool has a slice")?;
                    self.cluster.inventory.apply(InventoryEvent::Slice(Arc::clone(&new)))?;
                    let inventory = self.cluster.inventory.clone();
                    let change = ObjectChange::Updated { old: &old, new: &*new };
                    self.observe(&ClusterEvent::Slice { change, inventory: &inventory }, now)?;
                }
                Ok(())
            }
            Happening::Cordons(node, is_cordoned) => self.change_node(node, now, |node| {
                node.spec.get_or_insert_default().unschedulable = Some(is_cordoned);
            }),
            Happening::Labels(node) => self.change_node(node, now, |node| {
                node.metadata.labels.get_or_insert_default().insert("version".to_owned(), version.to_string());
            }),
        }
    }

    fn change_node(&mut self, number: usize, now: Timestamp, change: impl FnOnce(&mut Node)) -> Outcome {
        let node = self.cluster.nodes.get_mut(number).ok_or("no such node")?;
        let old = node.clone();
        change(node);
        let new = node.clone();
        self.observe(&ClusterEvent::Node(ObjectChange::Updated { old: &old, new: &new }), now)
    }

    /// Ends a pod: its claim is free, and both are deleted.
    fn goes(&mut self, number: usize, version: u64, now: Timestamp) -> Outcome {
        let node = self.placed.remove(&number).ok_or("the pod runs")?;
        let old = self.cluster.known(number).ok_or("its claim is known")?;
        let new = Arc::new(claim(number, version)?);
        self.cluster.tracker.observe(Arc::clone(&new))?;
        self.observe(&ClusterEvent::Claim(ObjectChange::Updated { old: &old, new: &new }), now)?;
        self.observe(&ClusterEvent::Pod(ObjectChange::Deleted(&pod(number, Some(&node), version)?)), now)?;
        self.cluster.tracker.observe_deleted(&ClaimId::from(&*new));
        self.observe(&ClusterEvent::Claim(ObjectChange::Deleted(&new)), now)
    }

    /// Tries the pods that are to be tried at a time.
    fn decide(&mut self, second: u64, now: Timestamp) -> Outcome {
        loop {
            let (tracker, options, begin) = (&self.cluster.tracker, self.cluster.options, Instant::now());
            let attempt = self.queue.pop(now, |pods| {
                pods.iter().try_for_each(|pod| {
                    pre_enqueue(pod, tracker, options).map_err(|reason| Refusal::blocked(pod, &reason))
                })
            });
            self.counts.time_of_queue += begin.elapsed();
            let Some(attempt) = attempt else { return Ok(()) };
            self.attempt(attempt, second, now)?;
            let waiting = self.queue.count(Place::Unschedulable) + self.queue.count(Place::BackingOff);
            self.counts.longest_queue = self.counts.longest_queue.max(waiting);
        }
    }

    fn attempt(&mut self, attempt: QueueAttempt, second: u64, now: Timestamp) -> Outcome {
        let pod_of = Arc::clone(attempt.pods().first().ok_or("an attempt has a pod")?);
        let name = pod_of.metadata.name.clone().unwrap_or_default();
        let number: usize = name.trim_start_matches('p').parse()?;
        let counts = &mut self.counts;
        counts.most_attempts = counts.most_attempts.max(attempt.number());
        let (is_first, has_failed) = (attempt.number() == 1, self.failures.remove(&name).is_some());
        counts.first += usize::from(is_first);
        counts.after_failure += usize::from(has_failed);
        let placed = self.cluster.place(&pod_of, self.next_node)?;
        let (node, mut cycle) = match placed {
            Ok(placed) => placed,
            Err(refusal) => {
                counts.refused_first += usize::from(is_first);
                counts.refused_later += usize::from(!is_first);
                let begin = Instant::now();
                self.queue.refused(attempt, refusal, now);
                self.counts.time_of_queue += begin.elapsed();
                return Ok(());
            }
        };
        self.next_node = node.trim_start_matches('n').parse()?;
        cycle.reserve(&node, &mut self.cluster.tracker, &mut GroupRound::default())?;
        // One write in a hundred is refused.
        if self.dice.below(100) == 0 {
            self.counts.failed += 1;
            self.failures.insert(name, number);
            let remedies = Remedy::given_back(&cycle);
            let _ = cycle.unreserve(&mut self.cluster.tracker);
            self.counts.woken += self.queue.wake(&remedies, now);
            self.queue.failed(attempt, now);
            return Ok(());
        }
        self.counts.placed_first += usize::from(is_first);
        self.counts.placed_later += usize::from(!is_first);
        let old = self.cluster.known(number).ok_or("its claim is known")?;
        let mut new = ResourceClaim::clone(&old);
        let version = self.cluster.next_version();
        new.metadata.resource_version = Some(version.to_string());
        let status = new.status.get_or_insert_default();
        status.allocation = cycle.claims().first().and_then(|claim| claim.chosen().cloned());
        let new = Arc::new(new);
        self.cluster.tracker.observe(Arc::clone(&new))?;
        self.observe(&ClusterEvent::Claim(ObjectChange::Updated { old: &old, new: &new }), now)?;
        self.queue.done(attempt);
        let bound = pod(number, Some(&node), version)?;
        self.observe(&ClusterEvent::Pod(ObjectChange::Updated { old: &pod_of, new: &bound }), now)?;
        self.placed.insert(number, node);
        let stay = 60 + self.dice.below(3300);
        self.plan.entry(second + stay).or_default().push(Happening::PodGoes(number));
        Ok(())
    }

    /// Plays until nothing happens any more.
    fn play(&mut self) -> Outcome {
        while let Some((second, happenings)) = self.plan.pop_first() {
            let now = Self::at(second)?;
            for happening in happenings {
                self.happen(happening, now)?;
            }
            self.decide(second, now)?;
            // A pause, or a wait without an event, that is over before something happens.
            let next = self.plan.first_key_value().map(|(second, _)| *second);
            if let Some(at) = self.queue.next_at() {
                let at = u64::try_from(at.as_second())? + u64::from(at.subsec_nanosecond() > 0);
                if next.is_none_or(|next| at < next) {
                    self.plan.entry(at.max(second + 1)).or_default();
                }
            }
        }
        Ok(())
    }
}

fn main() -> Outcome {
    let mut args = std::env::args().skip(1).filter_map(|text| text.parse::<usize>().ok());
    let (pods, nodes) = (args.next().unwrap_or(20_000), args.next().unwrap_or(100));
    let mut day = Day::new(pods, nodes)?;
    let begin = Instant::now();
    day.play()?;
    let Day { counts, queue, .. } = &day;
    let placed = counts.placed_first + counts.placed_later;
    let attempts = placed + counts.refused_first + counts.refused_later + counts.failed;
    assert_eq!((placed, queue.count(Place::InFlight), queue.count(Place::Unschedulable)), (pods, 0, 0));
    let hundredths = attempts * 100 / pods;
    println!("{pods} pods on {nodes} nodes, {} events", counts.events);
    println!(
        "{attempts} attempts, {}.{:02} a pod, at most {}",
        hundredths / 100,
        hundredths % 100,
        counts.most_attempts
    );
    println!("{} pods waited at the longest; all were placed", counts.longest_queue);
    println!("{} wake-ups; if each event that may help woke everybody: {}", counts.woken, counts.everybody);
    let later = counts.placed_later + counts.refused_later;
    println!("{later} later attempts: {} helped, {} did not", counts.placed_later, counts.refused_later);
    println!("{} refused writes, {} attempts after one", counts.failed, counts.after_failure);
    let each = counts.time_of_queue.as_nanos() / (counts.events + attempts).max(1) as u128;
    println!(
        "{:?} in all, of it {:?} in the queue: {each} ns for an event or an attempt",
        begin.elapsed(),
        counts.time_of_queue
    );
    Ok(())
}
