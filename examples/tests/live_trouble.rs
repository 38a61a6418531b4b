//! Trouble that one object, one write or one server makes: nobody else is stopped by it, and nobody is flooded.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod recorder;
mod stand_in;

use examples::live::cluster::connect;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Parser;
use dra_live::failure::LiveError;
use dra_live::lease::work_alone;
use examples::cluster_args::{ClusterArgs, ClusterPlace, LeaseArgs};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

use recorder::{Mischief, Recorder};
use stand_in::StandIn;
use stand_in::background::{Background, until};

const POST: PostParams = PostParams { dry_run: false, field_manager: None };
const SCHEDULER: &str = env!("CARGO_BIN_EXE_scheduler");

fn read<K: DeserializeOwned>(object: Value) -> K {
    from_value(object).unwrap()
}

fn pod(name: &str, claim: Option<&str>) -> Pod {
    let entries: Vec<Value> = claim.iter().map(|claim| json!({"name": "x", "resourceClaimName": claim})).collect();
    read(json!({"metadata": {"name": name}, "spec": {"schedulerName": "dra-sdk", "resourceClaims": entries,
        "containers": [{"name": "c", "image": "i"}]}}))
}

/// A server with two nodes of one device each, and a class.
async fn server() -> StandIn {
    let server = StandIn::start(&[]);
    for node in ["node-1", "node-2"] {
        Api::<Node>::all(server.client()).create(&POST, &read(json!({"metadata": {"name": node}}))).await.unwrap();
        let taint = json!({"key": "example.com/t", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"});
        let taints = if node == "node-1" { json!([taint]) } else { json!([]) };
        let slice = json!({"metadata": {"name": node}, "spec": {"driver": "gpu.example.com", "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "gpu", "taints": taints}]}});
        Api::<ResourceSlice>::all(server.client()).create(&POST, &read(slice)).await.unwrap();
    }
    let class = json!({"metadata": {"name": "gpu"}, "spec": {}});
    Api::<DeviceClass>::all(server.client()).create(&POST, &read(class)).await.unwrap();
    server
}

async fn claimed_pod(server: &StandIn, name: &str) {
    let claim = json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}});
    Api::<ResourceClaim>::default_namespaced(server.client()).create(&POST, &read(claim)).await.unwrap();
    Api::<Pod>::default_namespaced(server.client()).create(&POST, &pod(name, Some(name))).await.unwrap();
}

async fn is_bound(server: &StandIn, name: &str) -> bool {
    let pod = Api::<Pod>::default_namespaced(server.client()).get(name).await.unwrap();
    pod.spec.unwrap().node_name.is_some()
}

#[tokio::test]
async fn a_late_time_and_an_object_that_cannot_be_read_stop_nobody() {
    for mischief in [Mischief::SaysNever, Mischief::BreaksASlice] {
        let server = server().await;
        let door = Recorder::start(&server.url, None, mischief);
        let mut scheduler = Background::start(SCHEDULER, &["--live", "--bind", "--server", &door.url]);
        if mischief == Mischief::BreaksASlice {
            scheduler.warns("resourceslices node-1: can't be read, and is left out: ");
        }
        claimed_pod(&server, "p").await;
        until("the pod is bound", async || is_bound(&server, "p").await).await;
    }
}

#[tokio::test]
async fn a_write_that_is_refused_is_tried_less_and_less() {
    let server = server().await;
    let door = Recorder::start(&server.url, None, Mischief::RefusesBindings);
    let _scheduler = Background::start(SCHEDULER, &["--live", "--bind", "--server", &door.url]);
    claimed_pod(&server, "p").await;
    until("a binding is tried", async || door.asked("create", "pods/binding") > 0).await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    // After 1, 2 and 4 seconds.
    let tried = door.asked("create", "pods/binding");
    assert!((2..=5).contains(&tried), "{tried} times in eight seconds");
}

#[tokio::test]
async fn lists_that_fail_are_asked_for_with_growing_pauses_and_a_question_ends() {
    let server = server().await;
    let door = Recorder::start(&server.url, None, Mischief::FailsLists);
    let url = door.url.clone();
    let question =
        std::thread::spawn(move || Command::new(SCHEDULER).args(["--live", "--server", &url, "why"]).output());
    tokio::time::sleep(Duration::from_secs(10)).await;
    // After 50, 100, 200 ms and so on: eight in ten seconds.
    let asked = door.asked("list", "pods");
    assert!((3..=10).contains(&asked), "{asked} lists in ten seconds");
    let output = question.join().unwrap().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the lists of the cluster did not come in half a minute: 0 of 6 kinds"), "{stderr}");
    let lines: BTreeSet<&str> = stderr.lines().filter(|line| line.contains("is interrupted")).collect();
    assert_eq!(lines.len(), stderr.lines().filter(|line| line.contains("is interrupted")).count(), "{stderr}");
}

#[tokio::test]
async fn the_end_of_a_lease_says_who_has_it() {
    let server = server().await;
    let args = ["--live", "--bind", "--server", &server.url, "--lease-namespace", "default", "--lease-seconds", "5"];
    let mut scheduler = Background::start(SCHEDULER, &args);
    scheduler.says("binds pods of");
    let leases: Api<Lease> = Api::default_namespaced(server.client());
    let taken = json!({"spec": {"holderIdentity": "somebody"}});
    leases.patch("dra-sdk-scheduler", &PatchParams::default(), &Patch::Merge(taken)).await.unwrap();
    scheduler.warns("somebody holds the lease default/dra-sdk-scheduler now");
}

#[tokio::test]
async fn a_server_that_is_away_is_waited_for() {
    let server = server().await;
    let door = Recorder::start(&server.url, None, Mischief::None);
    let args = ["--live", "--bind", "--server", &door.url, "--lease-namespace", "default", "--lease-seconds", "2"];
    let mut scheduler = Background::start(SCHEDULER, &args);
    scheduler.says("binds pods of");
    door.set_away(true);
    let line = scheduler.warns("was not renewed for 2 s");
    assert!(line.contains("nothing is done until the lease is held again"), "{line}");
    door.set_away(false);
    scheduler.says("binds pods of");
    claimed_pod(&server, "p").await;
    until("the pod is bound", async || is_bound(&server, "p").await).await;
}

#[derive(clap::Parser)]
struct LeaseFlags {
    #[command(flatten)]
    lease: LeaseArgs,
}

/// Counts the renewals of a lease for some seconds, in a runtime of its own.
fn renewals(url: &str, seconds: u64) -> std::thread::JoinHandle<usize> {
    let url = url.to_owned();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = kube::Client::try_from(kube::Config::new(url.parse().unwrap())).unwrap();
            let (leases, begin, mut times) =
                (Api::<Lease>::default_namespaced(client), Instant::now(), BTreeSet::new());
            while begin.elapsed() < Duration::from_secs(seconds) {
                times.insert(leases.get("test").await.unwrap().spec.unwrap().renew_time.map(|time| time.0));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            times.len()
        })
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_lease_is_renewed_while_decisions_take_all_threads() {
    let server = server().await;
    let mut place = ClusterPlace::default();
    place.server = Some(server.url.clone());
    let cluster = connect("test", &ClusterArgs::from(place)).await.unwrap();
    let flags = LeaseFlags::parse_from(["test", "--lease-seconds", "1"]);
    let mut renewed = 0;
    let work = async || {
        let counted = renewals(&server.url, 3);
        tokio::spawn(async { std::thread::sleep(Duration::from_secs(3)) });
        renewed = counted.join().unwrap();
        Ok::<(), LiveError>(())
    };
    work_alone(&cluster, &flags.lease.terms(), "test", work).await.unwrap();
    assert!(renewed >= 4, "{renewed} renewals in three seconds");
}

/// A server that says its version, and answers everything else with a page of a proxy, or with a list that has no end.
/// Returns its address.
fn impostor(has_end: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let head: Vec<String> =
                BufReader::new(&connection).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let body = match head.first() {
                Some(first) if first.contains("/version") => {
                    r#"{"major":"1","minor":"37","gitVersion":"v1.37.0","gitCommit":"","gitTreeState":"","buildDate":"",
                        "goVersion":"","compiler":"","platform":""}"#
                }
                _ if has_end => "<html>Please log in.</html>",
                _ => r#"{"kind":"ResourceSliceList","apiVersion":"resource.k8s.io/v1","metadata":{},"items":["#,
            };
            let is_endless = body.ends_with('[');
            let _ = write!(connection, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}");
            let items = r#"{"metadata":{"name":"x"}},"#.repeat(4_000);
            while is_endless && connection.write_all(items.as_bytes()).is_ok() {}
        }
    });
    url
}

#[test]
fn an_answer_that_is_no_list_or_has_no_end_is_a_sentence() {
    for (has_end, sentence) in [
        (true, "list resourceslices: the answer is no object of the Kubernetes API: expected value at line 1 column 1"),
        (false, "list resourceslices: more than 134217728 bytes in an answer"),
    ] {
        let url = impostor(has_end);
        let output = Command::new(env!("CARGO_BIN_EXE_kubectl-dra")).args(["free", "--server", &url]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.trim()), (Some(1), &*format!("kubectl-dra: {sentence}")));
    }
}
