//! Nodes that are emptied, of 1,000 nodes of eight devices at 40 % use: the processor time of a plan, and the nodes that are left beside
//! what packing needs at least.
//!
//! The bound by devices is their number through eight. L2 (Martello and Toth) counts units that can't share a node, too.
//!
//! `cargo run --release -p benches --example consolidate`
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, reason = "a program for developers")]

use std::time::Instant;

use benches::processor_time::processor_time;
use benches::random::Random;
use dra_alloc::autoscaler::{ClusterSnapshot, ScaleSimulator};
use dra_alloc::consolidation::MoveRules;
use dra_alloc::explain::Detail;
use dra_alloc::pods::{ClaimTracker, PodOptions};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Classes, Inventory, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

const NODES: usize = 1_000;
const DEVICES: usize = 8;
const USED_PERCENT: usize = 40;

fn read<T: k8s_openapi::serde::de::DeserializeOwned>(object: Value) -> T {
    from_value(object).unwrap()
}

#[derive(Default)]
struct Cluster {
    nodes: Vec<Node>,
    slices: Vec<ResourceSlice>,
    pods: Vec<Pod>,
    claims: Vec<ResourceClaim>,
    sizes: Vec<usize>,
}

impl Cluster {
    /// Units of random sizes on random nodes, until so many devices are in use.
    fn new(sizes: &[usize], seed: u64) -> Self {
        let random = &mut Random(seed);
        let mut cluster = Self::default();
        let mut used = vec![0; NODES];
        for number in 0..NODES {
            let name = format!("node-{number:05}");
            let devices: Vec<Value> = (0..DEVICES).map(|device| json!({"name": format!("gpu-{device}")})).collect();
            cluster.nodes.push(read(json!({"metadata": {"name": name}})));
            cluster.slices.push(read(json!({"metadata": {"name": name}, "spec": {"driver": "gpu.example.com",
                "nodeName": name, "devices": devices, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}}})));
        }
        while cluster.sizes.iter().sum::<usize>() * 100 < NODES * DEVICES * USED_PERCENT {
            let (node, size) = (random.below(NODES), sizes[random.below(sizes.len())]);
            if used[node] + size <= DEVICES {
                cluster.run(node, used[node], size);
                used[node] += size;
            }
        }
        cluster
    }

    fn run(&mut self, node: usize, first: usize, size: usize) {
        let (name, node) = (format!("pod-{:05}", self.pods.len()), format!("node-{node:05}"));
        let result = |device: usize| json!({"request": "r", "driver": "gpu.example.com", "pool": node, "device": format!("gpu-{device}")});
        let results: Vec<Value> = (first..first + size).map(result).collect();
        let here = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
        self.claims.push(read(json!({
            "metadata": {"namespace": "ml", "name": name, "uid": format!("claim-{name}"),
                "finalizers": ["resource.kubernetes.io/delete-protection"]},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": size}}]}},
            "status": {"reservedFor": [{"resource": "pods", "name": name, "uid": name}], "allocation": {
                "nodeSelector": {"nodeSelectorTerms": [here]}, "devices": {"results": results}}},
        })));
        self.pods
            .push(read(json!({"metadata": {"namespace": "ml", "name": name, "uid": name}, "spec": {"containers": [],
            "nodeName": node, "resourceClaims": [{"name": "r", "resourceClaimName": name}]}})));
        self.sizes.push(size);
    }
}

/// Returns the bound L2: for each threshold, units above its complement take a node each, those above half of a node too, and the
/// others fill what is left.
fn packing_bound(sizes: &[usize]) -> usize {
    let bound = |threshold: usize| {
        let large = sizes.iter().filter(|size| **size > DEVICES - threshold).count();
        let middle: Vec<usize> =
            sizes.iter().copied().filter(|size| *size * 2 > DEVICES && *size <= DEVICES - threshold).collect();
        let small: usize = sizes.iter().filter(|size| **size * 2 <= DEVICES && **size >= threshold).sum();
        let left: usize = middle.iter().map(|size| DEVICES - size).sum();
        large + middle.len() + small.saturating_sub(left).div_ceil(DEVICES)
    };
    (0..=DEVICES / 2).map(bound).max().unwrap()
}

fn main() {
    let class: DeviceClass = read(json!({"metadata": {"name": "gpu"}, "spec": {}}));
    let (classes, selectors) = (Classes::new([class]), SelectorCache::default());
    for sizes in [&[1, 2, 4, 8][..], &[1, 2, 3, 4, 5, 8], &[3, 5]] {
        for seed in 1..=3 {
            let cluster = Cluster::new(sizes, seed);
            let mut inventory = Inventory::new(cluster.slices);
            let mut tracker = ClaimTracker::new(Profile::V1_37);
            tracker.replace(cluster.claims, None).unwrap();
            let snapshot = ClusterSnapshot::new(&cluster.nodes, &cluster.pods);
            let simulator =
                ScaleSimulator::new(&classes, &selectors, PodOptions::new(Profile::V1_37), Timestamp::UNIX_EPOCH)
                    .with_explanation(Detail::Off);
            let names = cluster.nodes.iter().filter_map(|node| node.metadata.name.as_deref());
            let (begin, wall) = (processor_time(), Instant::now());
            let answer = simulator.consolidate(&mut inventory, &tracker, &snapshot, names, &MoveRules::default());
            let (time, wall) = (processor_time().saturating_sub(begin), wall.elapsed());
            let left = NODES - answer.plan.removed.len();
            let by_devices = cluster.sizes.iter().sum::<usize>().div_ceil(DEVICES);
            let packing = packing_bound(&cluster.sizes);
            println!(
                "{}",
                json!({"case": "consolidate", "sizes": sizes, "seed": seed, "nodes": NODES, "pods": cluster.pods.len(),
                    "left": left, "by_devices": by_devices, "l2": packing, "above_l2_permille": left * 1_000 / packing - 1_000,
                    "moves": answer.plan.waves.concat().len(), "processor_ms": time.as_millis(), "wall_ms": wall.as_millis()})
            );
        }
    }
}
