//! Two copies of each program side by side: nothing is written twice.
//!
//! `COPIES_SECONDS=100 cargo test -p examples --all-features --test copies` lets them work for 100 seconds, and with
//! `COPIES_SEEDS=50` schedulers are killed in fifty ways.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod recorder;
mod stand_in;

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};
use tempfile::TempDir;

use recorder::{Mischief, Recorder, Running};
use stand_in::{StandIn, listed};

const POST: PostParams = PostParams { dry_run: false, field_manager: None };
const PATIENCE: Duration = Duration::from_secs(120);
const DEVICES: usize = 4;

fn read<T: DeserializeOwned>(object: Value) -> T {
    from_value(object).unwrap()
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Number of calls of both copies that were carried out.
fn sum(copies: &[Running], verb: &str, resource: &str) -> usize {
    copies.iter().map(|copy| copy.door.carried_out(verb, resource)).sum()
}

/// Creates a pod that wants a GPU, and its claim.
async fn want_gpu(claims: &Api<ResourceClaim>, pods: &Api<Pod>, name: &str) {
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
    let spec = json!({"devices": {"requests": [request]}});
    claims.create(&POST, &read(json!({"metadata": {"name": name}, "spec": spec}))).await.unwrap();
    let spec = json!({"schedulerName": "dra-sdk", "containers": [{"name": "c", "image": "none"}],
        "resourceClaims": [{"name": "r", "resourceClaimName": name}]});
    pods.create(&POST, &read(json!({"metadata": {"name": name}, "spec": spec}))).await.unwrap();
}

#[tokio::test]
async fn two_copies_write_what_one_does() {
    let seconds: u64 = std::env::var("COPIES_SECONDS").map_or(3, |text| text.parse().unwrap());
    let (server, folder) = (StandIn::start(&[]), TempDir::new().unwrap());
    let client = server.client();
    for name in ["registry", "plugin", "state", "cdi"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let at = |name: &str| folder.path().join(name).display().to_string();
    let two = |path: &'static str, program: &'static str| {
        ["one", "two"].map(|copy| {
            let door = Recorder::start(&server.url, None, Mischief::None);
            Running::new(path, door, folder.path().join(format!("{program}-{copy}.log")), program)
        })
    };
    let node: Node = read(json!({"metadata": {"name": "node-1"}}));
    Api::all(client.clone()).create(&POST, &node).await.unwrap();
    let class: DeviceClass = read(json!({"metadata": {"name": "gpu"}, "spec": {}}));
    Api::all(client.clone()).create(&POST, &class).await.unwrap();
    let devices: Vec<Value> = (0..DEVICES).map(|device| json!({"name": format!("gpu-{device}")})).collect();
    let slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"},
        "spec": {"driver": "gpu.example.com", "nodeName": "node-1", "devices": devices,
            "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1}}});
    fs::write(at("devices.json"), slice.to_string()).unwrap();

    let mut drivers = two(env!("CARGO_BIN_EXE_driver"), "driver");
    let (file, registry, plugin, cdi) = (at("devices.json"), at("registry"), at("plugin"), at("cdi"));
    for (copy, (state, uid)) in drivers.iter_mut().zip([("state-one", "one"), ("state-two", "two")]) {
        let state = at(state);
        fs::create_dir(&state).unwrap();
        let args = ["serve", "--live", "--driver", "gpu.example.com", "--boot-id", "boot", "--devices", &file];
        let more = ["--registry", &registry, "--plugin-dir", &plugin, "--cdi", &cdi, "--state", &state];
        copy.start(&[&args[..], &more, &["--pod-uid", uid]].concat());
    }
    let mut schedulers = two(env!("CARGO_BIN_EXE_scheduler"), "scheduler");
    let mut controllers = two(env!("CARGO_BIN_EXE_pool-status"), "pool-status");
    for copy in &mut schedulers {
        copy.start(&["--live", "--bind", "--lease-seconds", "1"]);
    }
    for copy in &mut controllers {
        copy.start(&["--live", "--controller", "--lease-seconds", "1"]);
    }

    let (pods, claims): (Api<Pod>, Api<ResourceClaim>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
    let requests: Api<ResourcePoolStatusRequest> = Api::all(client.clone());
    let (begin, mut number) = (Instant::now(), 0);
    while begin.elapsed() < Duration::from_secs(seconds) {
        let name = format!("n{number}");
        number += 1;
        want_gpu(&claims, &pods, &name).await;
        let spec = json!({"driver": "gpu.example.com"});
        requests.create(&POST, &read(json!({"metadata": {"name": name}, "spec": spec}))).await.unwrap();
        let is_bound = async || pods.get(&name).await.unwrap().spec.unwrap().node_name.is_some();
        until("the pod is bound", is_bound).await;
        let is_answered = async || requests.get(&name).await.unwrap().status.is_some();
        until("the request is answered", is_answered).await;
        // No kubelet is there to let go, and no controller to take back.
        pods.delete(&name, &DeleteParams::default().grace_period(0)).await.unwrap();
        claims.delete(&name, &DeleteParams::default()).await.unwrap();
        let mut claim = claims.get_opt(&name).await.unwrap();
        if let Some(claim) = &mut claim {
            claim.status = None;
            let mut kept = claims.replace_status(&name, &POST, claim).await.unwrap();
            kept.metadata.finalizers = None;
            claims.replace(&name, &POST, &kept).await.unwrap();
        }
    }

    println!("{number} pods and requests");
    assert_eq!(sum(&schedulers, "create", "pods/binding"), number);
    assert_eq!(sum(&schedulers, "update", "resourceclaims/status"), number);
    assert_eq!(sum(&controllers, "update", "resourcepoolstatusrequests/status"), number);
    let stored = Api::<ResourceSlice>::all(client).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(stored.len(), 1);
    assert_eq!(sum(&drivers, "create", "resourceslices"), 1);
    assert_eq!(sum(&drivers, "update", "resourceslices") + sum(&drivers, "delete", "resourceslices"), 0);
}

const NODES: usize = 4;
const PER_NODE: usize = 8;
const BURSTS: usize = 3;
const BURST: usize = 10;

/// Numbers that decide who is killed when.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Returns the number of pods that are bound. Fails if two claims have one device.
async fn bound(pods: &Api<Pod>, claims: &Api<ResourceClaim>) -> usize {
    let mut holders = BTreeMap::new();
    for claim in listed(claims, &ListParams::default()).await.unwrap() {
        for device in dra_alloc::allocated_devices(&claim) {
            let name = claim.metadata.name.clone();
            let before = holders.insert((device.pool.clone(), device.device.clone()), name);
            assert_eq!(before, None, "{} of {} is used twice", device.device, device.pool);
        }
    }
    let pods = listed(pods, &ListParams::default()).await.unwrap();
    pods.iter().filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())).count()
}

async fn killed_schedulers(seed: u64) {
    let (server, folder, mut dice) = (StandIn::start(&["--delay-ms", "3"]), TempDir::new().unwrap(), Dice(seed));
    let client = server.client();
    let class: DeviceClass = read(json!({"metadata": {"name": "gpu"}, "spec": {}}));
    Api::all(client.clone()).create(&POST, &class).await.unwrap();
    for number in 0..NODES {
        let name = format!("node-{number}");
        let node: Node = read(json!({"metadata": {"name": name}}));
        Api::all(client.clone()).create(&POST, &node).await.unwrap();
        let devices: Vec<Value> = (0..PER_NODE).map(|device| json!({"name": format!("gpu-{device}")})).collect();
        let slice = json!({"metadata": {"name": name}, "spec": {"driver": "gpu.example.com", "nodeName": name,
            "devices": devices, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}}});
        Api::all(client.clone()).create(&POST, &read::<ResourceSlice>(slice)).await.unwrap();
    }
    let args = ["--live", "--bind", "--lease-seconds", "1", "--binds", "8"];
    let mut schedulers = ["one", "two"].map(|copy| {
        let door = Recorder::start(&server.url, None, Mischief::None);
        let log = folder.path().join(format!("scheduler-{copy}.log"));
        let mut running = Running::new(env!("CARGO_BIN_EXE_scheduler"), door, log, "scheduler");
        running.start(&args);
        running
    });
    let (pods, claims): (Api<Pod>, Api<ResourceClaim>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
    for burst in 0..BURSTS {
        for number in 0..BURST {
            let name = format!("p{burst}-{number}");
            want_gpu(&claims, &pods, &name).await;
        }
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(dice.below(600))).await;
            let killed = &mut schedulers[usize::try_from(dice.below(2)).unwrap()];
            killed.kill();
            killed.start(&args);
        }
    }
    let begin = Instant::now();
    while bound(&pods, &claims).await < BURSTS * BURST {
        let logs = || schedulers.iter().map(Running::log).collect::<Vec<_>>().join("\n==\n");
        assert!(begin.elapsed() < PATIENCE, "seed {seed}: not all are bound\n{}", logs());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // One that was killed may not have lived to count its last call.
    assert!(sum(&schedulers, "create", "pods/binding") <= BURSTS * BURST, "seed {seed}: a pod was bound twice");
    let written = sum(&schedulers, "update", "resourceclaims/status");
    assert!(written <= BURSTS * BURST, "seed {seed}: a claim was allocated twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_schedulers_bind_each_pod_once() {
    let seeds: u64 = std::env::var("COPIES_SEEDS").map_or(2, |text| text.parse().unwrap());
    for seed in 1..=seeds {
        killed_schedulers(seed).await;
    }
}
