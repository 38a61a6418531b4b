//! Preemption on full nodes of eight devices, each held by a pod of its own: the processor time of a pod of higher priority that
//! wants some devices, by each rule, and the number of searches of the allocator.
//!
//! `cargo run --release -p benches --example preempt`
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a program for developers")]

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use dra_alloc::preemption::{CandidateLimit, Harm, Preemption, PreemptionAnswer, PreemptionView, Room};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Component, Index, Inventory, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

const DEVICES: usize = 8;
const REPEATS: usize = 5;

fn read<T: k8s_openapi::serde::de::DeserializeOwned>(object: Value) -> T {
    from_value(object).unwrap()
}

/// Objects of a cluster in which each device is held.
struct Cluster {
    nodes: Vec<Node>,
    slices: Vec<ResourceSlice>,
    pods: Vec<Pod>,
    claims: Vec<ResourceClaim>,
}

impl Cluster {
    fn new(nodes: usize) -> Self {
        let mut cluster = Self { nodes: Vec::new(), slices: Vec::new(), pods: Vec::new(), claims: Vec::new() };
        for number in 0..nodes {
            let node = format!("node-{number:05}");
            let devices: Vec<Value> = (0..DEVICES).map(|device| json!({"name": format!("gpu-{device}")})).collect();
            let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
            let spec = json!({"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices});
            cluster.nodes.push(read(json!({"metadata": {"name": node}})));
            cluster.slices.push(read(json!({"metadata": {"name": node}, "spec": spec})));
            for device in 0..DEVICES {
                cluster.hold(&node, device, (number * 7 + device * 13) % 50);
            }
        }
        cluster
    }

    fn hold(&mut self, node: &str, device: usize, priority: usize) {
        let name = format!("{node}-{device}");
        let result =
            json!({"request": "r", "driver": "gpu.example.com", "pool": node, "device": format!("gpu-{device}")});
        let user = json!({"resource": "pods", "name": name, "uid": name});
        let mut claim = claim(&name, 1);
        claim.status = read(json!({"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}));
        self.claims.push(claim);
        let mut pod = pod(&name, i32::try_from(priority).unwrap());
        pod.spec.get_or_insert_default().node_name = Some(node.to_owned());
        self.pods.push(pod);
    }
}

fn claim(name: &str, count: usize) -> ResourceClaim {
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}});
    let metadata = json!({"namespace": "ml", "name": name, "uid": format!("claim-{name}")});
    read(json!({"metadata": metadata, "spec": {"devices": {"requests": [request]}}}))
}

fn pod(name: &str, priority: i32) -> Pod {
    let spec = json!({"containers": [], "priority": priority,
        "resourceClaims": [{"name": "r", "resourceClaimName": name}]});
    read(json!({"metadata": {"namespace": "ml", "name": name, "uid": name}, "spec": spec}))
}

/// Returns the least time of some calls, and the answer.
fn least(ask: impl Fn() -> PreemptionAnswer) -> (Duration, Box<Room>) {
    let mut times = Vec::new();
    let mut answer = None;
    for _ in 0..REPEATS {
        let begin = Instant::now();
        let PreemptionAnswer::Room(room) = ask() else { panic!("no room") };
        times.push(begin.elapsed());
        answer = Some(room);
    }
    (times.into_iter().min().unwrap(), answer.unwrap())
}

fn main() {
    let class: DeviceClass = read(json!({"metadata": {"name": "gpu"}, "spec": {}}));
    for nodes in [500, 5_000] {
        for wanted in [1, 4] {
            let mut cluster = Cluster::new(nodes);
            cluster.claims.push(claim("first", wanted));
            let first = pod("first", 100);
            let (inventory, classes) = (Inventory::new(cluster.slices), Classes::new([class.clone()]));
            let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
            let state = AllocatedState::from_claims(&cluster.claims, Component::of(Profile::V1_37)).unwrap();
            let begin = Instant::now();
            let view = PreemptionView::new(&cluster.nodes, &cluster.pods, &cluster.claims);
            let indexed = begin.elapsed();
            let preemption = Preemption::new(&allocator, &state, &view, Timestamp::UNIX_EPOCH);
            let tenth = NonZeroUsize::new((nodes / 10).max(100)).unwrap();
            let limited = preemption.clone().with_candidates(CandidateLimit { first: Index::from(0), count: tenth });
            let rows = [
                ("kube, a tenth of the nodes", limited.with_harm(Harm::Kube)),
                ("kube, all nodes", preemption.clone().with_harm(Harm::Kube)),
                ("least harm", preemption.clone().with_harm(Harm::KubeExact)),
            ];
            for (rule, preemption) in rows {
                let (time, room) = least(|| preemption.make_room(&first, Budget::default()).unwrap());
                println!(
                    "{}",
                    json!({"nodes": nodes, "wanted": wanted, "rule": rule, "us": time.as_micros(), "index_us": indexed.as_micros(),
                        "node": room.node(), "victims": room.victims.len(), "proof": format!("{:?}", room.proof)})
                );
            }
        }
    }
}
