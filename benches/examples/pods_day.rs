//! A day of a cluster: pods come and go, each with a claim of one or two devices. The same day twice, side by side: with the
//! allocator and its state alone, and through the phases of pods with the tracker, an API server in memory included.
//!
//!     cargo run --release -p benches --example pods_day [PODS] [NODES]
//!
//! Printed are allocations a second of either side, and their ratio.
#![allow(clippy::expect_used, clippy::print_stdout, clippy::float_arithmetic, reason = "a measurement, run by hand")]

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dra_alloc::pods::{ApiAnswer, BindStep, ClaimTracker, ClaimWrite, GroupRound, PodCycle, PodOptions, PreBind};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, GateSet, Inventory, Outcome, Profile, SelectorCache};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

const DEVICES: usize = 8;
/// Pods between two changes of the side.
const TURN: usize = 500;

fn slice(node: usize) -> Result<ResourceSlice, serde_json::Error> {
    let name = format!("n{node}");
    let devices: Vec<Value> = (0..DEVICES).map(|device| json!({"name": format!("gpu-{device}")})).collect();
    from_value(json!({"metadata": {"name": name}, "spec": {"driver": "gpu.example.com", "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}, "devices": devices}}))
}

fn claim(pod: usize) -> Result<ResourceClaim, serde_json::Error> {
    from_value(json!({"metadata": {"namespace": "ns", "name": format!("c{pod}"), "uid": format!("c{pod}"),
        "resourceVersion": "1"}, "spec": {"devices": {"requests": [
            {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1 + pod % 2}}]}}}))
}

fn pod(number: usize) -> Result<Pod, serde_json::Error> {
    from_value(json!({"metadata": {"namespace": "ns", "name": format!("p{number}"), "uid": format!("p{number}")},
        "spec": {"resourceClaims": [{"name": "r", "resourceClaimName": format!("c{number}")}]}}))
}

/// One side of the comparison.
#[derive(Default)]
struct Side {
    time: Duration,
    allocated: usize,
    refused: usize,
    /// Node from which the next search begins.
    next: usize,
}

impl Side {
    fn rate(&self) -> f64 {
        f64::from(u32::try_from(self.allocated).expect("few pods")) / self.time.as_secs_f64()
    }
}

struct Cluster {
    nodes: Vec<Node>,
    inventory: Inventory,
    classes: Classes,
    selectors: SelectorCache,
}

impl Cluster {
    fn allocator(&self) -> Allocator<'_> {
        Allocator::new(Profile::V1_37, &self.inventory, &self.classes).with_selector_cache(&self.selectors)
    }

    fn nodes_from(&self, first: usize) -> impl Iterator<Item = (usize, &Node)> {
        let all = self.nodes.iter().enumerate().cycle();
        all.skip(first).take(self.nodes.len())
    }
}

/// Places a claim by the allocator alone.
fn alone(
    cluster: &Cluster,
    side: &mut Side,
    state: &mut AllocatedState,
    claim: &ResourceClaim,
) -> Result<bool, Box<dyn Error>> {
    let allocator = cluster.allocator();
    for (index, node) in cluster.nodes_from(side.next) {
        if let Outcome::Allocated(results) = allocator.allocate(state, node, [claim], Budget::default())?.outcome {
            side.next = index;
            let result: &AllocationResult = results.first().ok_or("a result")?;
            state.assume(claim, result)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Places a pod through all phases. The server answers at once, and the watch shows each write.
fn tracked(
    cluster: &Cluster,
    side: &mut Side,
    tracker: &mut ClaimTracker,
    pod: &Pod,
    claim: &Arc<ResourceClaim>,
) -> Result<bool, Box<dyn Error>> {
    let (options, now) = (PodOptions::new(Profile::V1_37), Timestamp::UNIX_EPOCH);
    tracker.observe(Arc::clone(claim))?;
    let mut round = GroupRound::default();
    let begun = PodCycle::pre_filter(pod, None, tracker, &cluster.classes, &round, options)?;
    let mut cycle = begun.ok_or("a claim")?;
    let allocator = cluster.allocator();
    for (index, node) in cluster.nodes_from(side.next) {
        let verdict = cycle.filter(node, &allocator, tracker.state(), now, Budget::default());
        if verdict.refusal().is_some() {
            continue;
        }
        side.next = index;
        let name = node.metadata.name.as_deref().unwrap_or_default();
        cycle.record(name, verdict);
        cycle.reserve(name, tracker, &mut round)?;
        let (mut binding, mut version) = (PreBind::default(), 1);
        loop {
            match binding.next(&mut cycle, tracker, now) {
                BindStep::Write(ClaimWrite::Update { mut claim } | ClaimWrite::UpdateStatus { mut claim }) => {
                    version += 1;
                    claim.metadata.resource_version = Some(version.to_string());
                    tracker.observe(ResourceClaim::clone(&claim))?;
                    binding.answer(&mut cycle, tracker, ApiAnswer::Object(claim), now);
                }
                BindStep::Done => return Ok(true),
                step => return Err(format!("{step:?}").into()),
            }
        }
    }
    Ok(false)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let pods = numbers.next().transpose()?.unwrap_or(50_000);
    let nodes = numbers.next().transpose()?.unwrap_or(5_000);
    let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}}))?;
    let node = |node: usize| from_value(json!({"metadata": {"name": format!("n{node}")}}));
    let cluster = Cluster {
        nodes: (0..nodes).map(node).collect::<Result<_, _>>()?,
        inventory: Inventory::new((0..nodes).map(slice).collect::<Result<Vec<_>, _>>()?),
        classes: Classes::new([class]),
        selectors: SelectorCache::default(),
    };
    cluster.allocator().prepare(&AllocatedState::default(), &cluster.nodes);
    let claims: Vec<Arc<ResourceClaim>> = (0..pods).map(|pod| claim(pod).map(Arc::new)).collect::<Result<_, _>>()?;
    let objects: Vec<Pod> = (0..pods).map(pod).collect::<Result<_, _>>()?;
    let (mut plain, mut with_tracker) = (Side::default(), Side::default());
    let (mut state, mut tracker) = (AllocatedState::default(), ClaimTracker::new(GateSet::default()));
    let (mut running, mut running_tracked) = (VecDeque::new(), VecDeque::new());
    // Three quarters of the devices are in use at the height of the day: 1.5 devices a pod.
    let most = nodes * DEVICES / 2;
    for (turn, (claims, objects)) in claims.chunks(TURN).zip(objects.chunks(TURN)).enumerate() {
        let begin = Instant::now();
        for claim in claims {
            if running.len() >= most
                && let Some(gone) = running.pop_front()
            {
                let gone: &Arc<ResourceClaim> = gone;
                state.forget(gone);
            }
            if alone(&cluster, &mut plain, &mut state, claim)? {
                plain.allocated += 1;
                running.push_back(claim);
            } else {
                plain.refused += 1;
            }
        }
        plain.time += begin.elapsed();
        let begin = Instant::now();
        for (number, (claim, pod)) in claims.iter().zip(objects).enumerate() {
            if running_tracked.len() >= most
                && let Some(gone) = running_tracked.pop_front()
            {
                let gone: usize = gone;
                tracker.observe_deleted("ns", &format!("c{gone}"));
            }
            if tracked(&cluster, &mut with_tracker, &mut tracker, pod, claim)? {
                with_tracker.allocated += 1;
                running_tracked.push_back(turn * TURN + number);
            } else {
                with_tracker.refused += 1;
            }
        }
        with_tracker.time += begin.elapsed();
    }
    for (name, side) in [("allocator alone", &plain), ("pods and tracker", &with_tracker)] {
        println!("{name}: {} allocated, {} refused, {:.0} allocations/s", side.allocated, side.refused, side.rate());
    }
    println!("ratio {:.2}", with_tracker.rate() / plain.rate());
    Ok(())
}
