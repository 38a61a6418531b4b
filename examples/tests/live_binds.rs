//! `scheduler --bind` with many bindings in flight: how many pods a second, beside other schedulers, and under several names.
//!
//! A small cluster is tried with all other tests; no time decides there. After `cargo build --release -p examples --features live
//! --bins`, the table for 500 nodes, 1,000 slices and 2,000 pods is printed by
//!
//! ```text
//! BINDS_NODES=500 BINDS_PODS=2000 LIVE_PROGRAMS=$PWD/target/release cargo test -p examples --all-features --test live_binds \
//!     table -- --nocapture
//! ```
//!
//! `BINDS_BEFORE=PATH` adds the scheduler of another commit to it, which gets pods without requests.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "live_scale/measured.rs"]
#[allow(dead_code, reason = "the usage of a process is read, and no rows are made")]
mod measured;
#[path = "live_binds/shapes.rs"]
mod shapes;
mod stand_in;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, from_value, json};

use measured::Usage;
use shapes::{Cluster, DEVICES, POST, Shape};
use stand_in::background::{Background, until};
use stand_in::{StandIn, listed, program_at};

const SCHEDULER: &str = env!("CARGO_BIN_EXE_scheduler");
const PATIENCE: Duration = Duration::from_secs(600);

/// Scheduler that is measured.
struct Measured {
    process: Child,
    /// Times at which it has bound pods.
    bound: Receiver<Instant>,
    /// Time at which it has read the first lists.
    read: Receiver<Instant>,
}

/// Returns the times of the lines with some words.
fn times(pipe: impl Read + Send + 'static, words: &'static str) -> Receiver<Instant> {
    let (sender, times) = channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(pipe).lines().map_while(Result::ok);
        lines.filter(|line| line.contains(words)).try_for_each(|_| sender.send(Instant::now()))
    });
    times
}

impl Measured {
    fn start(program: &Path, server: &StandIn, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["--live", "--bind", "--lease-seconds", "120", "--server", &server.url]).args(args);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
        Self { process, bound: times(stdout, ": node-"), read: times(stderr, "has read") }
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Row of the table.
struct Figures {
    /// Pods a second, from the first binding to the last.
    rate: usize,
    processor: Duration,
    /// Time from the end of the first lists to the first binding, of a scheduler that says when it has read them.
    first: Option<Duration>,
}

/// Lets a scheduler bind pods of all shapes that wait when it begins.
async fn figures(program: &Path, args: &[&str], delay: &str, nodes: usize, pods: usize, has_requests: bool) -> Figures {
    let server = StandIn::start(&["--delay-ms", delay, "--chunk", "500"]);
    let cluster = Cluster::fill(&server, nodes).await;
    cluster.want(pods, "p", "dra-sdk", has_requests).await;
    let scheduler = Measured::start(program, &server, args);
    let next = || scheduler.bound.recv_timeout(PATIENCE).unwrap();
    let begin = next();
    let mut end = begin;
    for _ in 1..pods {
        end = next();
    }
    let processor = Usage::of(scheduler.process.id()).unwrap().processor;
    let first = scheduler.read.try_recv().ok().map(|read| begin - read);
    cluster.check_devices().await;
    let rate = pods * 1000 / usize::try_from((end - begin).as_millis().max(1)).unwrap();
    Figures { rate, processor, first }
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_schedulers() {
    let (nodes, pods) = (number("BINDS_NODES", 12), number("BINDS_PODS", 42));
    let now = program_at(SCHEDULER);
    println!("| scheduler | delay | pods a second | processor | first binding after the lists |");
    println!("|---|---|---|---|---|");
    let row = |name: &str, delay: &str, figures: &Figures| {
        let first = figures.first.map_or_else(|| "-".to_owned(), |first| format!("{} ms", first.as_millis()));
        println!("| {name} | {delay} ms | {} | {} ms | {first} |", figures.rate, figures.processor.as_millis());
    };
    for delay in ["5", "0"] {
        if let Some(before) = std::env::var_os("BINDS_BEFORE").map(PathBuf::from) {
            row("before", delay, &figures(&before, &[], delay, nodes, pods, false).await);
        }
        for binds in ["1", "32"] {
            let figures = figures(&now, &["--binds", binds], delay, nodes, pods, true).await;
            row(&format!("`--binds {binds}`"), delay, &figures);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_schedulers_on_disjoint_drivers_work_side_by_side() {
    let server = StandIn::start(&[]);
    let cluster = Cluster::fill(&server, 8).await;
    let scheduler = |name, other, more: &[&str]| {
        let args = ["--live", "--bind", "--server", &server.url, "--scheduler-name", name, "--leave-driver", other];
        Background::start(SCHEDULER, &[&args[..], more].concat())
    };
    let _first = scheduler("first", "nic.example.com", &["--leave-class", "nic"]);
    let _second = scheduler("second", "gpu.example.com", &["--scheduler-name", "third"]);
    for number in 0..24 {
        cluster.pod(&format!("gpu-{number}"), "first", Shape::One("gpu"), true).await;
        let name = ["second", "third"][number % 2];
        cluster.pod(&format!("nic-{number}"), name, Shape::One("nic"), true).await;
    }
    cluster.pod("lost", "first", Shape::One("nic"), true).await;
    // Its class names no driver.
    cluster.pod("any", "second", Shape::One("any"), true).await;
    // In an event: a line has the first reason alone, which is another one if the pod is read before its claim.
    let left = "devices of class nic are left to another scheduler (--leave-class)";
    let is_told = async || cluster.reasons("lost").await.iter().any(|reason| reason.contains(left));
    until("the reason is told", is_told).await;
    until("all others are bound", async || cluster.bound().await.len() == 49).await;
    let holders = cluster.check_devices().await;
    let drivers = |claim: &str| -> BTreeSet<String> {
        holders.iter().filter(|(_, holder)| *holder == claim).map(|((driver, ..), _)| driver.clone()).collect()
    };
    assert!((0..24).all(|number| drivers(&format!("gpu-{number}")) == BTreeSet::from(["gpu.example.com".to_owned()])));
    assert_eq!(drivers("any"), BTreeSet::from(["nic.example.com".to_owned()]));
}

/// Returns a device that no claim has, as a scheduler sees it that looks once in a while.
fn free_device(claims: &[ResourceClaim], nodes: usize) -> Option<(String, String)> {
    let taken: BTreeSet<(String, String)> = claims
        .iter()
        .flat_map(dra_alloc::allocated_devices)
        .map(|device| (device.pool.clone(), device.device.clone()))
        .collect();
    let all = (0..nodes).flat_map(|node| {
        (0..DEVICES).map(move |device| (format!("gpu-{}", shapes::node(node)), format!("gpu-{device}")))
    });
    let mut free = all.filter(|device| !taken.contains(device));
    free.next()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_gives_back_devices_that_another_one_has_given_away() {
    const NODES: usize = 10;
    // Another scheduler looks, and writes, while bindings are on their way.
    let server = StandIn::start(&["--delay-ms", "10", "--chunk", "500"]);
    let cluster = Cluster::fill(&server, NODES).await;
    for number in 0..20 {
        cluster.claim(&format!("rival-{number}"), Shape::One("gpu")).await;
    }
    let args = ["--live", "--bind", "--server", &server.url, "--binds", "8", "-o", "json"];
    let mut scheduler = Background::start(SCHEDULER, &args);
    scheduler.warns("has read");
    let rival = async {
        let claims: Api<ResourceClaim> = Api::default_namespaced(server.client());
        let mut taken = 0;
        while taken < 20 {
            let known = listed(&claims, &ListParams::default()).await.unwrap();
            let Some((pool, device)) = free_device(&known, NODES) else { break };
            let name = format!("rival-{taken}");
            let mut claim = known.into_iter().find(|claim| claim.metadata.name.as_ref() == Some(&name)).unwrap();
            let result = json!({"request": "r0", "driver": "gpu.example.com", "pool": pool, "device": device});
            let consumer = json!({"resource": "pods", "name": name, "uid": name});
            let status = json!({"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]});
            claim.status = from_value(status).unwrap();
            claims.replace_status(&name, &POST, &claim).await.unwrap();
            taken += 1;
        }
    };
    let ours = async {
        for number in 0..40 {
            cluster.pod(&format!("p{number}"), "dra-sdk", Shape::One("gpu"), true).await;
        }
    };
    // A pod that gave up is not tried again for a second.
    let told = until("a condition says why", async || {
        let pods: Api<Pod> = Api::default_namespaced(server.client());
        let pods = listed(&pods, &ListParams::default()).await.unwrap();
        let mut conditions = pods.iter().flat_map(|pod| pod.status.iter().flat_map(|status| status.conditions.iter()));
        conditions.any(|all| all.iter().any(|condition| condition.reason.as_deref() == Some("SchedulerError")))
    });
    tokio::join!(rival, ours, told);
    scheduler.warns("which another scheduler has allocated");
    until("all pods are bound", async || cluster.bound().await.len() == 40).await;
    let mut holders: BTreeMap<(String, String), String> = BTreeMap::new();
    let claims: Api<ResourceClaim> = Api::default_namespaced(server.client());
    for claim in listed(&claims, &ListParams::default()).await.unwrap() {
        let name = claim.metadata.name.clone().unwrap();
        for device in dra_alloc::allocated_devices(&claim).iter().filter(|_| name.starts_with('p')) {
            let before = holders.insert((device.pool.clone(), device.device.clone()), name.clone());
            assert_eq!(before, None, "{} of {} is used by {name} as well", device.device, device.pool);
        }
    }
    assert_eq!(holders.len(), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_are_held_back_wait_and_are_counted() {
    let server = StandIn::start(&[]);
    let cluster = Cluster::fill(&server, 2).await;
    let args = ["--live", "--bind", "--server", &server.url, "--metrics-address", "127.0.0.1:0"];
    let mut scheduler = Background::start(SCHEDULER, &args);
    let vitals = scheduler.vitals();
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    let spec = json!({"schedulerName": "dra-sdk", "containers": [{"name": "c", "image": "none"}],
        "schedulingGates": [{"name": "example.com/later"}]});
    let gated: Pod = from_value(json!({"metadata": {"name": "gated"}, "spec": spec})).unwrap();
    pods.create(&PostParams::default(), &gated).await.unwrap();
    cluster.pod_of_claim("unmade", "unmade").await;
    scheduler.warns("default/unmade: ");
    let shown = ["scheduler_pending_pods{queue=\"gated\"} 2", "scheduler_pending_pods{queue=\"active\"} 0"];
    stand_in::background::until_counted(&vitals, &shown.map(str::to_owned)).await;
    cluster.claim("unmade", Shape::One("gpu")).await;
    scheduler.says("default/unmade: node-");
    let open: Value = json!({"spec": {"schedulingGates": []}});
    let patch = kube::api::Patch::Merge(open);
    pods.patch("gated", &kube::api::PatchParams::default(), &patch).await.unwrap();
    scheduler.says("default/gated: node-");
    let counted = [
        "scheduler_pending_pods{queue=\"gated\"} 0",
        "scheduler_queue_incoming_pods_total{event=\"UnschedulablePodAdd\",queue=\"active\"} 1",
        "scheduler_queue_incoming_pods_total{event=\"resource.k8s.io/ResourceClaimAdd\",queue=\"active\"} 1",
        "scheduler_queue_incoming_pods_total{event=\"UnschedulablePodUpdate\",queue=\"active\"} 1",
        "scheduler_schedule_attempts_total{profile=\"dra-sdk\",result=\"scheduled\"} 2",
    ];
    stand_in::background::until_counted(&vitals, &counted.map(str::to_owned)).await;
}

/// Returns the texts in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_names_all_metrics_and_flags() {
    let page = include_str!("../../docs/live.md");
    let server = StandIn::start(&[]);
    let args = ["--live", "--bind", "--server", &server.url, "--metrics-address", "127.0.0.1:0"];
    let mut scheduler = Background::start(SCHEDULER, &args);
    let vitals = scheduler.vitals();
    let metrics = stand_in::background::get(&vitals, "/metrics");
    let names: BTreeSet<&str> =
        metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let row = page.lines().find_map(|line| line.strip_prefix("| `scheduler --bind` | with the names")).unwrap();
    assert_eq!(quoted(row).collect::<BTreeSet<_>>(), names);

    let help = Command::new(SCHEDULER).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let section = page.split("\n## The scheduler\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `--"));
    let flags: Vec<&str> = rows.map(|row| row.split([' ', '`']).next().unwrap()).collect();
    assert!(flags.len() >= 4 && flags.iter().all(|flag| help.contains(&format!("--{flag} <"))), "{flags:?}: {help}");
    let of_bind = ["scheduler-name", "binds", "leave-driver", "leave-class"];
    assert!(of_bind.iter().all(|flag| flags.contains(flag)), "{flags:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_follows_the_reason_and_keeps_its_time() {
    let server = StandIn::start(&[]);
    let cluster = Cluster::fill(&server, 1).await;
    let args = ["--live", "--bind", "--server", &server.url];
    let mut scheduler = Background::start(SCHEDULER, &args);
    cluster.pod_of_claim("p", "late").await;
    scheduler.warns("default/p: ");
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    let condition = async || {
        let conditions = pods.get("p").await.unwrap().status?.conditions?;
        conditions.into_iter().find(|condition| condition.type_ == "PodScheduled")
    };
    until("the first reason is written", async || condition().await.is_some()).await;
    let first = condition().await.unwrap();
    // Times have whole seconds.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    cluster.claim("late", Shape::One("fpga")).await;
    until("the next reason is written", async || condition().await.unwrap().message != first.message).await;
    let next = condition().await.unwrap();
    assert!(next.message.as_ref().is_some_and(|message| message.contains("fpga")), "{next:?}");
    assert_eq!(next.last_transition_time, first.last_transition_time);
}
