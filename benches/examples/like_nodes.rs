//! One pod with one GPU on a cluster of like nodes: 8 GPUs and 4 NICs each, every device with a UUID and a PCI address of its own,
//! names without padding, and a pool that all nodes see. GPUs and NICs in use make the states.
//!
//!     cargo run --release -p benches --example like_nodes [REPEATS] [PATH] [NODES] [STATES]
//!
//! Printed is one JSON object a line: for 500 and 5,000 nodes in 1, 50 and as many states as there may be (2,048), and for each path, the
//! nanoseconds of one pod and the number of states that were searched. `by_state` asks each state and allocates on one node,
//! `attempt` asks each node, `filter` each node of a pod's cycle, `filter_record_score` scores them too, records the verdict of one
//! node and reserves. Paths that end in `_alone` ask each node for itself, as a caller without a list of nodes does.
//! The case `no` has 500 nodes all of whose GPUs are held, and a class that reads an attribute: `plain` and `explained` ask each node.
//! The case `gang` has eight pods, and GPUs on the last node alone: each node is asked for itself, or each state.
//! `one_node_changed` is `by_state` after a device of one node is held, and its Node object has changed.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a measurement, run by hand")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use dra_alloc::explain::Detail;
use dra_alloc::pods::{ClaimTracker, GangSearch, GroupRound, PodCycle, PodOptions};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DeviceId, Fit, Index, Inventory, Nodes, Outcome, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

/// Devices of a node, by driver.
const DEVICES: [(&str, usize); 2] = [("gpu", 8), ("nic", 4)];
const PATHS: [&str; 7] =
    ["by_state", "one_node_changed", "attempt", "filter", "filter_record_score", "attempt_alone", "filter_alone"];

/// Builds the slices of a node.
fn slices(node: usize) -> Result<Vec<ResourceSlice>, serde_json::Error> {
    let slice = |(kind, count): (&str, usize)| {
        let device = |index: usize| {
            json!({"name": format!("{kind}-{index}"), "capacity": {"memory": {"value": "80Gi"}}, "attributes": {
                "model": {"string": "h100"}, "uuid": {"string": format!("{kind}-{node}-{index}")},
                "resource.kubernetes.io/pciBusID": {"string": format!("0000:{:02x}:{index:02x}.0", node % 256)}}})
        };
        from_value(json!({"metadata": {"name": format!("{kind}-of-{node}")}, "spec": {
            "driver": format!("{kind}.example.com"), "nodeName": format!("n{node}"),
            "pool": {"name": format!("n{node}"), "generation": 1, "resourceSliceCount": 1},
            "devices": (0..count).map(device).collect::<Vec<Value>>()}}))
    };
    DEVICES.into_iter().map(slice).collect()
}

/// Cluster with what is asked of it.
struct World {
    list: Vec<Node>,
    inventory: Inventory,
    classes: Classes,
    claim: ResourceClaim,
    pod: Pod,
    tracker: ClaimTracker,
}

impl World {
    /// Builds a cluster whose nodes are in a number of states.
    fn new(nodes: usize, states: usize) -> Result<Self, Box<dyn Error>> {
        let shared = from_value(json!({"metadata": {"name": "fabric"}, "spec": {
            "driver": "fabric.example.com", "allNodes": true, "devices": [{"name": "port-0"}],
            "pool": {"name": "fabric", "generation": 1, "resourceSliceCount": 1}}}))?;
        let mut all: Vec<ResourceSlice> = vec![shared];
        for node in 0..nodes {
            all.extend(slices(node)?);
        }
        let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {"selectors": [
            {"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}}))?;
        let claim: ResourceClaim =
            from_value(json!({"metadata": {"name": "c", "namespace": "d", "uid": "1"}, "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}))?;
        let pod: Pod = from_value(json!({"metadata": {"name": "p", "namespace": "d", "uid": "2"}, "spec": {
            "containers": [], "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}}))?;
        let list = (0..nodes).map(|node| from_value(json!({"metadata": {"name": format!("n{node}")}})));
        let mut tracker = ClaimTracker::new(Profile::V1_37);
        tracker.observe(claim.clone())?;
        for (number, held) in held(nodes, states).into_iter().enumerate() {
            tracker.observe(holder(number, &held)?)?;
        }
        let (list, inventory) = (list.collect::<Result<_, _>>()?, Inventory::new(all));
        Ok(Self { list, inventory, classes: Classes::new([class]), claim, pod, tracker })
    }
}

/// Returns the devices in use that bring the nodes into a number of states, of each node.
fn held(nodes: usize, states: usize) -> Vec<Vec<DeviceId>> {
    let of_node = |node: usize| {
        // Bits of the number of the state, less one, are the devices in use; the last GPU stays free.
        let (state, name) = (node % states, format!("n{node}"));
        let devices = DEVICES.iter().flat_map(|(kind, count)| (0..*count).map(move |index| (*kind, index)));
        let open = devices.filter(|device| *device != ("gpu", 7)).enumerate();
        let used = open.filter(|(bit, _)| state >> bit & 1 == 1).map(|(_, device)| device);
        let id = |(kind, index)| DeviceId::new(&format!("{kind}.example.com"), &name, &format!("{kind}-{index}"));
        used.map(id).collect()
    };
    (0..nodes).map(of_node).collect()
}

/// Builds a claim that holds devices.
fn holder(number: usize, held: &[DeviceId]) -> Result<ResourceClaim, serde_json::Error> {
    let result = |id: &DeviceId| json!({"request": "r", "driver": id.driver, "pool": id.pool, "device": id.device});
    from_value(json!({"metadata": {"name": format!("h{number}"), "namespace": "d", "uid": format!("h{number}")},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {"allocation": {"devices": {"results": held.iter().map(result).collect::<Vec<_>>()}}}}))
}

/// Answer of a path: number of nodes that fit, and of states that were searched.
type Found = (usize, usize);

impl World {
    /// Asks each state, and allocates on the first node that fits.
    fn by_state(&self, nodes: &mut Nodes<Node>, state: &AllocatedState) -> Found {
        let allocator = Allocator::new(Profile::V1_37, &self.inventory, &self.classes);
        let asked = nodes.attempt(&allocator, state, [&self.claim]);
        let (mut fitting, mut searches, mut first) = (0, 0, None);
        for answer in asked.by_state(Budget::default()) {
            searches += 1;
            if answer.fit == Ok(Fit::Yes) {
                fitting += answer.number_of_nodes();
                first = first.or_else(|| answer.nodes().next());
            }
        }
        let node = first.and_then(|first| self.list.get(usize::from(first))).expect("a node fits");
        let verdict = asked.attempt().allocate(node, Budget::default()).expect("a verdict");
        assert!(matches!(verdict.outcome, Outcome::Allocated(_)));
        (fitting, searches)
    }

    fn attempt(&self, nodes: &mut Nodes<Node>, state: &AllocatedState) -> Found {
        let allocator = Allocator::new(Profile::V1_37, &self.inventory, &self.classes);
        let asked = nodes.attempt(&allocator, state, [&self.claim]);
        let all = (0..self.list.len()).map(Index::from);
        let fitting = all.filter(|node| asked.fits(*node, Budget::default()) == Ok(Fit::Yes)).count();
        (fitting, 0)
    }

    fn attempt_alone(&self, state: &AllocatedState) -> Found {
        let allocator = Allocator::new(Profile::V1_37, &self.inventory, &self.classes);
        let attempt = allocator.attempt(state, [&self.claim]);
        let is_allocated = |node: &&Node| {
            matches!(attempt.allocate(node, Budget::default()).expect("a verdict").outcome, Outcome::Allocated(_))
        };
        (self.list.iter().filter(is_allocated).count(), self.list.len())
    }

    fn cycle(&self) -> PodCycle {
        let (options, round) = (PodOptions::new(Profile::V1_37), GroupRound::default());
        let cycle = PodCycle::pre_filter(&self.pod, None, &self.tracker, &self.classes, &round, options);
        cycle.expect("no problem").expect("a claim")
    }

    fn filter(&mut self, nodes: &mut Nodes<Node>, scores: bool) -> Found {
        let (mut cycle, now, budget) = (self.cycle(), Timestamp::UNIX_EPOCH, Budget::default());
        let allocator = Allocator::new(Profile::V1_37, &self.inventory, &self.classes);
        let filter = cycle.filter_nodes(nodes, &allocator, self.tracker.state());
        let all = (0..self.list.len()).map(Index::from);
        let fitting = all.filter(|node| filter.refusal(*node, now, budget).is_none());
        if !scores {
            return (fitting.count(), 0);
        }
        let (mut count, mut best) = (0, None);
        for node in fitting {
            count += 1;
            let score = filter.score(node, now, budget).expect("a score");
            best = best.max(Some((score, std::cmp::Reverse(node))));
        }
        let (_, std::cmp::Reverse(node)) = best.expect("a node fits");
        let verdict = filter.filter(node, now, budget).expect("a node of the list");
        let name = self.list.get(usize::from(node)).and_then(|node| node.metadata.name.clone()).expect("a name");
        drop(filter);
        cycle.record(&name, verdict);
        cycle.reserve(&name, &mut self.tracker, &mut GroupRound::default()).expect("reserved");
        drop(cycle.unreserve(&mut self.tracker));
        (count, 0)
    }

    fn filter_alone(&self) -> Found {
        let cycle = self.cycle();
        let allocator = Allocator::new(Profile::V1_37, &self.inventory, &self.classes);
        let fits = |node: &&Node| {
            let verdict =
                cycle.filter(node, &allocator, self.tracker.state(), Timestamp::UNIX_EPOCH, Budget::default());
            verdict.refusal().is_none()
        };
        (self.list.iter().filter(fits).count(), self.list.len())
    }

    fn ask(&mut self, path: &str, nodes: &mut Nodes<Node>, state: &AllocatedState) -> Found {
        match path {
            "by_state" | "one_node_changed" => self.by_state(nodes, state),
            "attempt" => self.attempt(nodes, state),
            "filter" => self.filter(nodes, false),
            "filter_record_score" => self.filter(nodes, true),
            "attempt_alone" => self.attempt_alone(state),
            _ => self.filter_alone(),
        }
    }
}

/// Asks full nodes for a device of a class that reads an attribute, without explanations and with them.
fn refuse(repeats: usize) -> Result<(), Box<dyn Error>> {
    const NODES: usize = 500;
    let world = World::new(NODES, 1)?;
    let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {"selectors": [
        {"cel": {"expression": "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].model == 'h100'"}}]}}))?;
    let (classes, mut state) = (Classes::new([class]), AllocatedState::default());
    for (node, gpu) in (0..NODES).flat_map(|node| (0..8).map(move |gpu| (node, gpu))) {
        state.hold(&DeviceId::new("gpu.example.com", &format!("n{node}"), &format!("gpu-{gpu}")));
    }
    for (path, detail) in [("plain", Detail::Off), ("explained", Detail::Summary)] {
        let allocator = Allocator::new(Profile::V1_37, &world.inventory, &classes).with_explanation(detail);
        let mut best = u128::MAX;
        for _ in 0..repeats.max(2) {
            let begin = Instant::now();
            let verdicts = allocator.allocate_each(&state, &world.list, [&world.claim], Budget::default());
            let refused =
                verdicts.filter(|verdict| verdict.as_ref().is_ok_and(|it| it.outcome == Outcome::Unsatisfied));
            assert_eq!(black_box(refused.count()), NODES);
            best = best.min(begin.elapsed().as_nanos());
        }
        println!(
            "{}",
            json!({"case": "no", "nodes": NODES, "states": 1, "path": path, "ns_per_pod": u64::try_from(best)?})
        );
    }
    Ok(())
}

/// Places eight pods on a cluster whose last node alone has GPUs that are free.
fn gang(nodes: usize, repeats: usize) -> Result<(), Box<dyn Error>> {
    let mut world = World::new(nodes, 1)?;
    for node in 0..nodes - 1 {
        let gpus: Vec<_> =
            (0..8).map(|gpu| DeviceId::new("gpu.example.com", &format!("n{node}"), &format!("gpu-{gpu}"))).collect();
        world.tracker.observe(holder(node, &gpus)?)?;
    }
    let mut pods = Vec::new();
    for (number, pod) in std::iter::repeat_n(world.pod.clone(), 8).enumerate() {
        let (mut pod, mut claim) = (pod, world.claim.clone());
        (claim.metadata.name, claim.metadata.uid) = (Some(format!("c{number}")), Some(format!("c{number}")));
        pod.metadata.uid = Some(format!("p{number}"));
        if let Some(entry) = pod.spec.as_mut().and_then(|spec| spec.resource_claims.as_mut()?.first_mut()) {
            entry.resource_claim_name.clone_from(&claim.metadata.name);
        }
        world.tracker.observe(claim)?;
        pods.push(pod);
    }
    let allocator = Allocator::new(Profile::V1_37, &world.inventory, &world.classes);
    let mut list = Nodes::new(&world.list);
    for path in ["alone", "by_state"] {
        let mut best = u128::MAX;
        for _ in 0..repeats.max(2) {
            let mut tracker = world.tracker.clone();
            let search =
                GangSearch::new(&allocator, &world.list, PodOptions::new(Profile::V1_37), Timestamp::UNIX_EPOCH);
            let begin = Instant::now();
            let placed = match path {
                "alone" => search.place(&pods, None, &mut tracker),
                _ => search.place_on(&mut list, &pods, None, &mut tracker),
            };
            best = best.min(begin.elapsed().as_nanos());
            assert_eq!(placed.map(|placed| placed.pods.len()), Ok(8));
        }
        println!(
            "{}",
            json!({"case": "gang", "nodes": nodes, "states": 2, "path": path, "ns_per_pod": u64::try_from(best / 8)?})
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let repeats: usize = std::env::args().nth(1).map_or(Ok(20), |text| text.parse())?;
    let number = |at| std::env::args().nth(at).map(|text| text.parse::<usize>()).transpose();
    if std::env::args().nth(2).is_none_or(|only| only == "no") {
        refuse(repeats)?;
    }
    if std::env::args().nth(2).is_none_or(|only| only == "gang") {
        gang(500, repeats)?;
        gang(5_000, repeats)?;
    }
    let (only, sizes, counts) = (std::env::args().nth(2), number(3)?, number(4)?);
    for nodes in sizes.map_or_else(|| vec![500, 5_000], |only| vec![only]) {
        for states in counts.map_or_else(|| vec![1, 50, nodes], |only| vec![only]) {
            let states = states.min(1 << 11);
            let mut world = World::new(nodes, states)?;
            let mut list = Nodes::new(world.list.clone());
            let (_, in_all) = world.by_state(&mut list, &world.tracker.state().clone());
            for path in PATHS.into_iter().filter(|path| only.as_ref().is_none_or(|only| only == path)) {
                let mut state = world.tracker.state().clone();
                let _ = world.ask(path, &mut list, &state);
                let mut best = u128::MAX;
                let (mut fitting, mut searches) = (0, 0);
                for repeat in 0..repeats.max(1) {
                    if path == "one_node_changed" {
                        let (node, device) = (repeat % nodes, format!("nic-{}", repeat / nodes % 4));
                        state.hold(&DeviceId::new("nic.example.com", &format!("n{node}"), &device));
                        list.replace(Index::from(node), world.list.get(node).cloned().expect("a node of the list"));
                    }
                    let begin = Instant::now();
                    (fitting, searches) = black_box(world.ask(path, &mut list, &state));
                    best = best.min(begin.elapsed().as_nanos());
                }
                let searches = if searches == 0 { in_all } else { searches };
                let told = json!({"case": "one GPU", "nodes": nodes, "states": states, "path": path,
                    "ns_per_pod": u64::try_from(best)?, "searches": searches, "fitting": fitting});
                println!("{told}");
            }
        }
    }
    Ok(())
}
