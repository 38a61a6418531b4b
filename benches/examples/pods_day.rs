//! A day of a cluster: pods come and go, each with a claim of GPUs, NICs or a list of alternatives. The same day three
//! times, in turns: with the allocator and its state, with the API calls that a scheduler has to make besides, and with the
//! same calls through the phases of pods and the tracker. The API server is one in memory.
//!
//!     cargo run --release -p benches --example pods_day [PODS] [NODES]
//!
//! Printed are allocations a second of each side, and their ratios.
#![allow(clippy::expect_used, clippy::print_stdout, clippy::float_arithmetic, reason = "a measurement, run by hand")]

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dra_alloc::pods::{
    ApiResponse, BindStep, ClaimTracker, ClaimWrite, Consumer, GroupRound, PodCycle, PodOptions, PreBind,
};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{AllocatedState, Allocator, Budget, ClaimId, Classes, Gate, GateSet, Inventory, Outcome, Profile};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

/// GPUs and NICs of a node.
const DEVICES: [(&str, usize); 2] = [("gpu", 8), ("nic", 4)];
/// Pods that run at the height of the day, for each node: 43 % of the devices are in use.
const RUNNING: usize = 2;
/// Pods between two changes of the side.
const TURN: usize = 500;
const NUMA_NODE: &str = "resource.kubernetes.io/numaNode";

/// Builds the slices of a node: eight GPUs, of one model for each node, and four NICs, on two NUMA nodes.
fn slices(node: usize) -> Result<Vec<ResourceSlice>, serde_json::Error> {
    let slice = |(kind, count): (&str, usize)| {
        let model = if node.is_multiple_of(2) { "h100" } else { "l4" };
        let device = |index: usize| {
            let numa = if index * 2 < count { [0, 1] } else { [1, 0] };
            json!({"name": format!("{kind}-{index}"), "attributes": {
                "model": {"string": model}, "index": {"int": index}, "healthy": {"bool": true},
                "firmware": {"version": "1.2.3"}, NUMA_NODE: {"ints": numa}}})
        };
        let name = format!("n{node}");
        from_value(json!({"metadata": {"name": format!("{name}-{kind}")}, "spec": {
            "driver": format!("{kind}.example.com"), "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": (0..count).map(device).collect::<Vec<Value>>()}}))
    };
    DEVICES.into_iter().map(slice).collect()
}

fn classes() -> Result<Classes, serde_json::Error> {
    let class = |(name, expression): (&str, &str)| {
        from_value(json!({"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}))
    };
    let all: Vec<DeviceClass> = [
        ("gpu", "device.driver == 'gpu.example.com'"),
        ("nic", "device.driver == 'nic.example.com'"),
        ("h100", "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].model == 'h100'"),
        ("l4", "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].model == 'l4'"),
    ]
    .into_iter()
    .map(class)
    .collect::<Result<_, _>>()?;
    Ok(Classes::new(all))
}

/// Builds the claim of a pod: 60 % want a GPU, 25 % two GPUs and a NIC of one NUMA node, 5 % all GPUs of a node, and 10 %
/// two H100 or else four L4.
fn claim(pod: usize) -> Result<ResourceClaim, serde_json::Error> {
    let exactly = |name: &str, class: &str, count: usize| json!({"name": name, "exactly": {"deviceClassName": class, "count": count}});
    let devices = match pod % 20 {
        0..12 => json!({"requests": [exactly("gpu", "gpu", 1)]}),
        12..17 => json!({"requests": [exactly("gpu", "gpu", 2), exactly("nic", "nic", 1)],
            "constraints": [{"matchAttribute": NUMA_NODE}]}),
        17 => json!({"requests": [exactly("gpu", "gpu", 8)]}),
        _ => json!({"requests": [{"name": "gpu", "firstAvailable": [
            {"name": "big", "deviceClassName": "h100", "count": 2},
            {"name": "small", "deviceClassName": "l4", "count": 4}]}]}),
    };
    from_value(json!({"metadata": {"namespace": "ns", "name": format!("c{pod}"), "uid": format!("c{pod}"),
        "resourceVersion": "1"}, "spec": {"devices": devices}}))
}

fn pod(number: usize) -> Result<Pod, serde_json::Error> {
    from_value(json!({"metadata": {"namespace": "ns", "name": format!("p{number}"), "uid": format!("p{number}")},
        "spec": {"resourceClaims": [{"name": "r", "resourceClaimName": format!("c{number}")}]}}))
}

/// Returns the gates of all sides.
fn gates() -> GateSet {
    GateSet::of(Profile::V1_37).with(Gate::ListTypeAttributes)
}

struct Cluster {
    nodes: Vec<Node>,
    inventory: Inventory,
    classes: Classes,
    selectors: SelectorCache,
}

impl Cluster {
    fn allocator(&self) -> Allocator<'_> {
        Allocator::new(Component::new(Profile::V1_37, gates()), &self.inventory, &self.classes)
            .with_selector_cache(&self.selectors)
    }

    fn nodes_from(&self, first: usize) -> impl Iterator<Item = (usize, &Node)> {
        let all = self.nodes.iter().enumerate().cycle();
        all.skip(first).take(self.nodes.len())
    }
}

/// An API server in memory that answers at once, and whose watch shows each write. Claims by their number.
#[derive(Default)]
struct Server {
    claims: BTreeMap<usize, Arc<ResourceClaim>>,
}

impl Server {
    fn write(&mut self, number: usize, mut claim: Box<ResourceClaim>) -> Arc<ResourceClaim> {
        let version = claim.metadata.resource_version.as_deref().and_then(|version| version.parse::<u64>().ok());
        claim.metadata.resource_version = version.map(|version| (version + 1).to_string());
        let stored: Arc<ResourceClaim> = Arc::from(claim);
        self.claims.insert(number, Arc::clone(&stored));
        stored
    }
}

/// A scheduler on one side of the comparison.
trait Scheduler {
    /// Places the claim of a pod, on the first node from the last one on.
    fn place(&mut self, cluster: &Cluster, work: &Work<'_>, next: &mut usize) -> Result<bool, Box<dyn Error>>;

    /// Frees the devices of a claim that is gone.
    fn free(&mut self, number: usize, claim: &ResourceClaim);
}

/// A pod with its claim.
struct Work<'w> {
    number: usize,
    pod: &'w Pod,
    claim: &'w Arc<ResourceClaim>,
}

/// The allocator and its state; with a server, also the two calls that make an allocation known.
struct Alone {
    state: AllocatedState,
    server: Option<Server>,
}

impl Scheduler for Alone {
    fn place(&mut self, cluster: &Cluster, work: &Work<'_>, next: &mut usize) -> Result<bool, Box<dyn Error>> {
        let allocator = cluster.allocator();
        for (index, node) in cluster.nodes_from(*next) {
            let verdict = allocator.allocate(&self.state, node, [work.claim], Budget::default())?;
            let Outcome::Allocated(results) = verdict.outcome else { continue };
            *next = index;
            let result = results.into_iter().next().ok_or("a result")?;
            self.state.assume(work.claim, &result)?;
            if let Some(server) = &mut self.server {
                let mut claim = Box::new(ResourceClaim::clone(work.claim));
                claim.metadata.finalizers = Some(vec![ClaimWrite::FINALIZER.to_owned()]);
                let answer = server.write(work.number, claim);
                let mut claim = Box::new(ResourceClaim::clone(&answer));
                let status = claim.status.get_or_insert_default();
                status.allocation = Some(result);
                status.reserved_for = Some(vec![consumer(work.pod).reference()]);
                server.write(work.number, claim);
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn free(&mut self, number: usize, claim: &ResourceClaim) {
        if let Some(server) = &mut self.server {
            server.claims.remove(&number);
        }
        self.state.forget(claim);
    }
}

fn consumer(pod: &Pod) -> Consumer {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Consumer::Pod { name: text(&pod.metadata.name), uid: text(&pod.metadata.uid) }
}

/// The phases of pods, with the tracker.
struct Tracked {
    tracker: ClaimTracker,
    server: Server,
}

impl Scheduler for Tracked {
    fn place(&mut self, cluster: &Cluster, work: &Work<'_>, next: &mut usize) -> Result<bool, Box<dyn Error>> {
        let Self { tracker, server } = self;
        let (options, now) = (PodOptions::new(Component::new(Profile::V1_37, gates())), Timestamp::UNIX_EPOCH);
        tracker.observe(Arc::clone(work.claim))?;
        let mut round = GroupRound::default();
        let begun = PodCycle::pre_filter(work.pod, None, tracker, &cluster.classes, &round, options)?;
        let mut cycle = begun.ok_or("a claim")?;
        let allocator = cluster.allocator();
        for (index, node) in cluster.nodes_from(*next) {
            let verdict = cycle.filter(node, &allocator, tracker.state(), now, Budget::default());
            if verdict.refusal().is_some() {
                continue;
            }
            *next = index;
            let name = node.metadata.name.as_deref().unwrap_or_default();
            cycle.record(name, verdict);
            cycle.reserve(name, tracker, &mut round)?;
            let mut binding = PreBind::default();
            loop {
                match binding.next(&mut cycle, tracker, now) {
                    BindStep::Write(ClaimWrite::Update { claim } | ClaimWrite::UpdateStatus { claim }) => {
                        let stored = server.write(work.number, claim);
                        tracker.observe(Arc::clone(&stored))?;
                        let answer = ApiResponse::Object(Box::new(ResourceClaim::clone(&stored)));
                        binding.answer(&mut cycle, tracker, answer, now);
                    }
                    BindStep::Done => return Ok(true),
                    step => return Err(format!("{step:?}").into()),
                }
            }
        }
        Ok(false)
    }

    fn free(&mut self, number: usize, claim: &ResourceClaim) {
        self.server.claims.remove(&number);
        self.tracker.observe_deleted(&ClaimId::from(claim));
    }
}

/// One side of the comparison.
struct Side {
    name: &'static str,
    scheduler: Box<dyn Scheduler>,
    /// Numbers of the pods that run, the first one first.
    running: VecDeque<usize>,
    time: Duration,
    allocated: usize,
    refused: usize,
    /// Node from which the next search begins.
    next: usize,
}

impl Side {
    fn new(name: &'static str, scheduler: impl Scheduler + 'static) -> Self {
        let scheduler = Box::new(scheduler);
        Self { name, scheduler, running: VecDeque::new(), time: Duration::ZERO, allocated: 0, refused: 0, next: 0 }
    }

    fn rate(&self) -> f64 {
        f64::from(u32::try_from(self.allocated).expect("few pods")) / self.time.as_secs_f64()
    }

    /// Places some of the day's pods. Before each one, the first pod ends if as many run as may.
    fn turn(&mut self, cluster: &Cluster, day: &Day, first: usize, most: usize) -> Result<(), Box<dyn Error>> {
        let begin = Instant::now();
        for (number, (pod, claim)) in day.pods.iter().zip(&day.claims).enumerate().skip(first).take(TURN) {
            if self.running.len() >= most
                && let Some(gone) = self.running.pop_front()
            {
                self.scheduler.free(gone, day.claims.get(gone).ok_or("a claim")?);
            }
            if self.scheduler.place(cluster, &Work { number, pod, claim }, &mut self.next)? {
                self.allocated += 1;
                self.running.push_back(number);
            } else {
                self.refused += 1;
            }
        }
        self.time += begin.elapsed();
        Ok(())
    }
}

/// All pods of a day, with their claims.
struct Day {
    pods: Vec<Pod>,
    claims: Vec<Arc<ResourceClaim>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let pods = numbers.next().transpose()?.unwrap_or(50_000);
    let nodes = numbers.next().transpose()?.unwrap_or(5_000);
    let node = |node: usize| from_value(json!({"metadata": {"name": format!("n{node}")}}));
    let cluster = Cluster {
        nodes: (0..nodes).map(node).collect::<Result<_, _>>()?,
        inventory: Inventory::new((0..nodes).map(slices).collect::<Result<Vec<_>, _>>()?.into_iter().flatten()),
        classes: classes()?,
        selectors: SelectorCache::default(),
    };
    cluster.allocator().prepare(&AllocatedState::default(), &cluster.nodes);
    let claims = (0..pods).map(|pod| claim(pod).map(Arc::new)).collect::<Result<_, _>>()?;
    let day = Day { claims, pods: (0..pods).map(pod).collect::<Result<_, _>>()? };
    let alone = |server| Alone { state: AllocatedState::new(Component::new(Profile::V1_37, gates())), server };
    let mut sides = [
        Side::new("allocator and state", alone(None)),
        Side::new("the same, with the API calls", alone(Some(Server::default()))),
        Side::new(
            "pods and tracker, with the API calls",
            Tracked { tracker: ClaimTracker::new(Component::new(Profile::V1_37, gates())), server: Server::default() },
        ),
    ];
    for first in (0..pods).step_by(TURN) {
        for side in &mut sides {
            side.turn(&cluster, &day, first, nodes * RUNNING)?;
        }
    }
    let tracked = sides.last().map_or(0.0, Side::rate);
    for side in &sides {
        println!(
            "{}: {} allocated, {} refused, {:.0} allocations/s; with the tracker {:.2} of it",
            side.name,
            side.allocated,
            side.refused,
            side.rate(),
            tracked / side.rate()
        );
    }
    Ok(())
}
