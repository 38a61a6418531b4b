//! Programs on a large cluster: memory, start, and time to react to one change.
//!
//! `LIVE_NODES=5000 cargo test --release -p examples --all-features --test live_scale -- --nocapture` prints the figures for 5,000
//! nodes, 10,000 slices and 50,000 pods. A small cluster is tried with all other tests; no time decides there.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod stand_in;

use std::fmt::Debug;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use kube::Api;
use kube::api::PostParams;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

use stand_in::StandIn;

const POST: PostParams = PostParams { dry_run: false, field_manager: None };
const PATIENCE: Duration = Duration::from_secs(600);
const DRIVERS: [&str; 2] = ["gpu.example.com", "nic.example.com"];
const PODS_OF_A_NODE: usize = 10;
/// Calls at a time while the cluster is filled.
const AT_A_TIME: usize = 16;

/// Creates objects, several at a time.
async fn fill<K>(api: &Api<K>, objects: impl Iterator<Item = Value>)
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    let objects = objects.map(|object| from_value::<K>(object).unwrap());
    let created = stream::iter(objects).map(|object| async move { api.create(&POST, &object).await.unwrap() });
    created.buffer_unordered(AT_A_TIME).for_each(async |_| ()).await;
}

fn slice(driver: &str, node: usize) -> Value {
    let pool = json!({"name": format!("node-{node}"), "generation": 1, "resourceSliceCount": 1});
    let devices: Vec<Value> = (0..8).map(|device| json!({"name": format!("dev-{device}")})).collect();
    let spec = json!({"driver": driver, "nodeName": format!("node-{node}"), "pool": pool, "devices": devices});
    json!({"metadata": {"name": format!("{driver}-{node}")}, "spec": spec})
}

fn pod(name: &str) -> Value {
    let spec = json!({"schedulerName": "dra-sdk", "containers": [{"name": "c", "image": "none"}],
        "resourceClaims": [{"name": "r", "resourceClaimName": name}]});
    json!({"metadata": {"name": name}, "spec": spec})
}

/// Program that runs until it was measured.
struct Running {
    process: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    fn start(program: &str, server: &StandIn, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["--live", "--server", &server.url]).args(args).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        Self { process, stdout }
    }

    fn memory(&self) -> String {
        memory(self.process.id())
    }

    /// Reads up to a line with some words.
    fn says(&mut self, words: &str) {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "it never says {words:?}");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn memory(process: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: usize = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or_default();
    format!("{} MiB", kib / 1024)
}

fn passed(since: Instant) -> String {
    let passed = since.elapsed();
    assert!(passed < PATIENCE, "not in time");
    format!("{}.{:02} s", passed.as_secs(), passed.subsec_millis() / 10)
}

#[tokio::test]
async fn programs_follow_a_large_cluster() {
    let nodes: usize = std::env::var("LIVE_NODES").map_or(40, |text| text.parse().unwrap());
    let (server, begin) = (StandIn::start(&[]), Instant::now());
    let client = server.client();
    let (slices, pods, claims): (Api<ResourceSlice>, Api<Pod>, Api<ResourceClaim>) =
        (Api::all(client.clone()), Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
    let requests: Api<ResourcePoolStatusRequest> = Api::all(client.clone());
    fill(
        &Api::<Node>::all(client.clone()),
        (0..nodes).map(|node| json!({"metadata": {"name": format!("node-{node}")}})),
    )
    .await;
    fill(&slices, DRIVERS.iter().flat_map(|driver| (0..nodes).map(move |node| slice(driver, node)))).await;
    let bound = |number: usize| {
        let spec =
            json!({"nodeName": format!("node-{}", number % nodes), "containers": [{"name": "c", "image": "none"}]});
        json!({"metadata": {"name": format!("bound-{number}")}, "spec": spec})
    };
    fill(&pods, (0..nodes * PODS_OF_A_NODE).map(bound)).await;
    let expression = format!("device.driver == '{}'", DRIVERS[0]);
    let class = json!({"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}});
    fill(&Api::<DeviceClass>::all(client.clone()), [class].into_iter()).await;
    println!("{nodes} nodes: filled in {}, the stand-in has {}", passed(begin), memory(server.process()));

    let begin = Instant::now();
    let table = Command::new(env!("CARGO_BIN_EXE_pool-status")).args(["--live", "--server", &server.url]).output();
    assert!(String::from_utf8(table.unwrap().stdout).unwrap().contains(DRIVERS[1]));
    println!("pool-status --live: {}", passed(begin));

    let begin = Instant::now();
    let mut controller = Running::start(env!("CARGO_BIN_EXE_pool-status"), &server, &["--controller"]);
    let ask = async |name: &str| {
        let spec = json!({"driver": DRIVERS[0], "poolName": "node-0"});
        requests.create(&POST, &from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()).await.unwrap();
    };
    ask("first").await;
    controller.says("first: answered, 1 pools");
    println!("pool-status --controller: first answer after {}, {}", passed(begin), controller.memory());
    let begin = Instant::now();
    let mut changed = slices.get(&format!("{}-0", DRIVERS[0])).await.unwrap();
    changed.spec.devices.as_mut().unwrap().truncate(5);
    slices.replace(&format!("{}-0", DRIVERS[0]), &POST, &changed).await.unwrap();
    // The watch of slices and that of requests are two.
    for attempt in 0.. {
        let name = format!("again-{attempt}");
        ask(&name).await;
        controller.says(&format!("{name}: answered, 1 pools"));
        let status = requests.get(&name).await.unwrap().status.unwrap();
        if status.pools.unwrap()[0].total_devices == Some(5) {
            break;
        }
    }
    println!("pool-status --controller: a slice changed and a request answered in {}", passed(begin));
    drop(controller);

    let wanted = async |name: &str| {
        let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
        let claim = json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}});
        claims.create(&POST, &from_value(claim).unwrap()).await.unwrap();
        pods.create(&POST, &from_value(pod(name)).unwrap()).await.unwrap();
    };
    wanted("first").await;
    let begin = Instant::now();
    let why = Command::new(env!("CARGO_BIN_EXE_kubectl-dra")).args(["why", "first", "--server", &server.url]).output();
    assert!(String::from_utf8(why.unwrap().stdout).unwrap().contains("fits node-"));
    println!("kubectl dra why: {}", passed(begin));
    let begin = Instant::now();
    let mut scheduler = Running::start(env!("CARGO_BIN_EXE_scheduler"), &server, &["--bind"]);
    scheduler.says("default/first: node-");
    println!("scheduler --bind: first pod bound after {}, {}", passed(begin), scheduler.memory());
    let begin = Instant::now();
    wanted("second").await;
    scheduler.says("default/second: node-");
    println!("scheduler --bind: a pod created and bound in {}", passed(begin));
}
