//! Programs on a large cluster: start, memory, and the reaction to one change, each with the processor time that it takes.
//!
//! After `cargo build --release -p examples --features live --bins`, the table for 5,000 nodes, 10,000 slices and 50,000 pods is printed by
//!
//! ```text
//! LIVE_NODES=5000 LIVE_PROGRAMS=$PWD/target/release cargo test -p examples --all-features --test live_scale -- --nocapture
//! ```
//!
//! A small cluster is tried with all other tests; no time decides there.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "live_scale/large_cluster.rs"]
mod large_cluster;
#[path = "live_scale/measured.rs"]
mod measured;
mod stand_in;

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use large_cluster::{DRIVERS, LargeCluster, VIRTUAL};
use measured::{Measured, Row, Usage, run};
use stand_in::StandIn;

const AUTOSCALER: &str = env!("CARGO_BIN_EXE_autoscaler");
const DRIVER: &str = env!("CARGO_BIN_EXE_driver");
const KUBECTL_DRA: &str = env!("CARGO_BIN_EXE_kubectl-dra");
const KUBELET: &str = env!("CARGO_BIN_EXE_kubelet");
const NODE_AGENT: &str = env!("CARGO_BIN_EXE_node-agent");
const POOL_STATUS: &str = env!("CARGO_BIN_EXE_pool-status");
const SCHEDULER: &str = env!("CARGO_BIN_EXE_scheduler");
/// Lease that outlasts a long list from a server on a busy machine.
const PATIENT: &[&str] = &["--lease-seconds", "120"];

#[tokio::test]
async fn programs_follow_a_large_cluster() {
    let nodes: usize = std::env::var("LIVE_NODES").map_or(40, |text| text.parse().unwrap());
    let (server, begin, folder) = (StandIn::start(&[]), Instant::now(), TempDir::new().unwrap());
    let cluster = LargeCluster::fill(&server, nodes).await;
    println!("| program | start | processor | memory | slowest reaction | processor of one |");
    println!("|---|---|---|---|---|---|");
    let of_server = Usage::of(server.process()).unwrap();
    Row::new(&format!("`apiserver`, {nodes} nodes created")).started(begin, of_server).print();
    pool_status(&server, &cluster).await;
    scheduler(&server, &cluster).await;
    autoscaler(&server, &cluster, &folder).await;
    node_agent(&server, &cluster, &folder).await;
    Box::pin(kubelet_and_driver(&server, &cluster, &folder)).await;
}

async fn pool_status(server: &StandIn, cluster: &LargeCluster) {
    run("`pool-status --live`", POOL_STATUS, server, &["--live"], DRIVERS[1]);
    let args = ["--live", "--watch"];
    let mut watch = Measured::start("`pool-status --watch`", POOL_STATUS, server, &args, "│ all ");
    for devices in 5..8 {
        watch.reacts(cluster.shrink(devices), "│ all ").await;
    }
    watch.print();
    drop(watch);

    let args = [&["--live", "--controller"], PATIENT].concat();
    let begin = Instant::now();
    let mut controller = Measured::spawn("`pool-status --controller`", POOL_STATUS, server, &args);
    cluster.ask("first").await;
    controller.says("first: answered, 1 pools");
    controller.has_started(begin);
    for devices in 5..8 {
        let name = format!("again-{devices}");
        let change = async {
            cluster.shrink(devices).await;
            cluster.ask(&name).await;
        };
        controller.reacts(change, &format!("{name}: answered, 1 pools")).await;
    }
    controller.print();
}

async fn scheduler(server: &StandIn, cluster: &LargeCluster) {
    cluster.want("first", "gpu").await;
    run("`kubectl dra why`", KUBECTL_DRA, server, &["why", "first"], "fits node-");
    let args = [&["--live", "--bind"], PATIENT].concat();
    let mut scheduler = Measured::start("`scheduler --bind`", SCHEDULER, server, &args, "default/first: node-");
    for number in 0..3 {
        let name = format!("next-{number}");
        scheduler.reacts(cluster.want(&name, "gpu"), &format!("default/{name}: node-")).await;
    }
    scheduler.another("a pod of a kind that no node fits");
    scheduler
        .reacts_by(async {
            cluster.want("late-0", "late").await;
            cluster.is_refused("late-0").await;
        })
        .await;
    scheduler.another("a slice for pods of that kind");
    for number in 0..3 {
        cluster.want(&format!("late-{}", number + 1), "late").await;
        scheduler.reacts(cluster.add_late_slice(number), "default/late-").await;
    }
    scheduler.print();
}

async fn autoscaler(server: &StandIn, cluster: &LargeCluster, folder: &TempDir) {
    run("`autoscaler --live`", AUTOSCALER, server, &["--live"], "node-0");
    let down = ["--live", "--scale-down"];
    run("`autoscaler --live --scale-down`", AUTOSCALER, server, &down, "nodes that can go together");
    let args = ["--live", "--watch", "-o", "json"];
    // The last pod by name is the end of the list.
    let end = "\"pod\": \"default/next-2\"";
    let mut list = Measured::start("`autoscaler --watch`", AUTOSCALER, server, &args, end);
    for number in 0..3 {
        let name = format!("more-{number}");
        list.reacts(cluster.run_pod(&name, "node-1"), &name).await;
    }
    list.print();
    drop(list);

    let file = folder.path().join("group.json").display().to_string();
    fs::write(&file, node_group().to_string()).unwrap();
    let args = ["--live", "--watch", "--simulate-group", &file];
    let mut group = Measured::start("`autoscaler --watch --simulate-group`", AUTOSCALER, server, &args, "price 1");
    for number in 0..3 {
        let name = format!("asks-{number}");
        group.reacts(cluster.want(&name, "gpu"), &format!("default/{name} on group: ")).await;
    }
    group.print();
}

/// Returns the node that one more of a group would be, with a slice.
fn node_group() -> Value {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "group"}});
    let mut slice = large_cluster::slice(DRIVERS[0], "group", 8);
    slice["apiVersion"] = json!("resource.k8s.io/v1");
    slice["kind"] = json!("ResourceSlice");
    json!({"apiVersion": "v1", "kind": "List", "items": [node, slice]})
}

async fn node_agent(server: &StandIn, cluster: &LargeCluster, folder: &TempDir) {
    let state = folder.path().join("node-agent").display().to_string();
    let args = [&["--live", "--state", &state], PATIENT].concat();
    let begin = Instant::now();
    let mut agent = Measured::spawn("`node-agent --live`", NODE_AGENT, server, &args);
    agent.says("node-0: open");
    cluster.is_labelled().await;
    agent.has_started(begin);
    // Its own writes are changes too, which it sees before this one.
    cluster.report("node-0", false).await;
    agent.says("node-0: blocked: ");
    for (is_true, verdict) in [(true, "node-0: open"), (false, "node-0: blocked: "), (true, "node-0: open")] {
        agent.reacts(cluster.report("node-0", is_true), verdict).await;
    }
    agent.print();
}

async fn kubelet_and_driver(server: &StandIn, cluster: &LargeCluster, folder: &TempDir) {
    for name in ["registry", "plugin", "state", "cdi"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (registry, checkpoint) = (at("registry"), at("checkpoint"));
    cluster.run_pod("early", VIRTUAL).await;
    let args = ["--live", "--node-name", VIRTUAL, "--registry", &registry, "--state", &checkpoint];
    let mut kubelet = Measured::start("`kubelet --live`", KUBELET, server, &args, "default/early: runs");

    let file = at("devices.json");
    let mut slice = large_cluster::slice("own.example.com", VIRTUAL, 8);
    slice["apiVersion"] = json!("resource.k8s.io/v1");
    slice["kind"] = json!("ResourceSlice");
    fs::write(&file, slice.to_string()).unwrap();
    let (plugin, state, cdi) = (at("plugin"), at("state"), at("cdi"));
    let args = ["serve", "--live", "--driver", "own.example.com", "--boot-id", "boot", "--node-name", VIRTUAL];
    let args = [&args[..], &["--devices", &file, "--registry", &registry, "--plugin-dir", &plugin]].concat();
    let args = [&args[..], &["--state", &state, "--cdi", &cdi]].concat();
    let begin = Instant::now();
    let mut driver = Measured::spawn("`driver serve --live`", DRIVER, server, &args);
    cluster.is_published("own.example.com").await;
    driver.has_started(begin);
    // The first pod may wait for the driver's registration.
    cluster.with_device("waits", "dev-0").await;
    cluster.bind("waits").await;
    kubelet.says("default/waits: runs with");
    for number in 1..4 {
        let (name, device) = (format!("uses-{number}"), format!("dev-{number}"));
        let runs = format!("default/{name}: runs with");
        cluster.with_device(&name, &device).await;
        driver.reacts_by(kubelet.reacts(cluster.bind(&name), &runs)).await;
    }
    kubelet.print();
    driver.another("its slice is deleted, and there again");
    driver
        .reacts_by(async {
            cluster.delete_slices("own.example.com").await;
            cluster.is_published("own.example.com").await;
        })
        .await;
    driver.print();
}
