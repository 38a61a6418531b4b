//! `pool-status --live`: the table of a cluster, and the controller that answers requests.
//!
//! `POOL_REQUESTS=400 cargo test -p examples --all-features --test pool_status_live` asks 400 requests.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod stand_in;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dra_attrs::Profile;
use futures_util::StreamExt;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::{ResourcePoolStatusRequest, ResourcePoolStatusRequestStatus};
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Resource};
use poolstatus::{Cluster, Query, RequestOutcome, kep};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};
use tempfile::TempDir;

use stand_in::{StandIn, listed};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pool-status");
const DRIVER: &str = "gpu.example.com";
const POST: PostParams = PostParams { dry_run: false, field_manager: None };
const PATIENCE: Duration = Duration::from_secs(120);
const POOLS: usize = 5;

type Requests = Api<ResourcePoolStatusRequest>;

/// Copy of the controller, with its output in a file.
struct Controller {
    process: Child,
    log: PathBuf,
}

impl Controller {
    fn start(server: &StandIn, folder: &Path, name: &str) -> Self {
        Self::start_with(server, folder, name, &[])
    }

    fn start_with(server: &StandIn, folder: &Path, name: &str, more: &[&str]) -> Self {
        let log = folder.join(name);
        let output = File::options().create(true).append(true).open(&log).unwrap();
        let args = ["--live", "--server", &server.url, "--controller", "--lease-seconds", "1"];
        let mut command = Command::new(PROGRAM);
        command
            .args(args)
            .args(more)
            .args(["--answers-per-second", "1000", "--metrics-address", "127.0.0.1:0"])
            .stdin(Stdio::null());
        let process = command.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap();
        Self { process, log }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Returns the metrics as they are served.
    fn metrics(&self) -> String {
        let log = self.log();
        let address = log.split("metrics at http://").nth(1).unwrap().split('/').next().unwrap();
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        connection.read_to_string(&mut text).unwrap();
        text
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.kill();
    }
}

/// State of the objects of a kind after each resource version, by name and version; `None` after a deletion.
type History<K> = Arc<Mutex<BTreeMap<(String, u64), Option<K>>>>;

/// Writes down what a watch shows from the beginning.
fn record<K>(api: Api<K>) -> History<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let history = History::<K>::default();
    let written = Arc::clone(&history);
    tokio::spawn(async move {
        let mut events = std::pin::pin!(api.watch(&WatchParams::default(), "0").await.unwrap());
        while let Some(event) = events.next().await {
            let (object, is_there) = match event.unwrap() {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
                WatchEvent::Deleted(object) => (object, false),
                _ => continue,
            };
            let version = object.meta().resource_version.as_ref().unwrap().parse().unwrap();
            let key = (object.meta().name.clone().unwrap(), version);
            written.lock().unwrap().insert(key, is_there.then_some(object));
        }
    });
    history
}

/// Returns the objects as they were at a version.
fn at<K: Clone>(history: &History<K>, version: u64) -> Vec<K> {
    let mut objects: BTreeMap<String, Option<K>> = BTreeMap::new();
    for ((name, _), object) in history.lock().unwrap().iter().filter(|((_, at), _)| *at <= version) {
        objects.insert(name.clone(), object.clone());
    }
    objects.into_values().flatten().collect()
}

fn newest<K>(history: &History<K>) -> u64 {
    history.lock().unwrap().keys().map(|(_, version)| *version).max().unwrap_or_default()
}

fn slice(pool: usize, devices: usize) -> ResourceSlice {
    let devices: Vec<Value> = (0..devices).map(|device| json!({"name": format!("gpu-{device}")})).collect();
    let place = json!({"name": format!("node-{pool}"), "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": DRIVER, "nodeName": format!("node-{pool}"), "pool": place, "devices": devices});
    from_value(json!({"metadata": {"name": format!("slice-{pool}")}, "spec": spec})).unwrap()
}

fn claim(name: &str) -> ResourceClaim {
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
    from_value(json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})).unwrap()
}

fn allocated(mut claim: ResourceClaim, pool: usize, device: usize) -> ResourceClaim {
    let result = json!({"request": "r", "driver": DRIVER, "pool": format!("node-{pool}"),
        "device": format!("gpu-{device}")});
    claim.status = Some(from_value(json!({"allocation": {"devices": {"results": [result]}}})).unwrap());
    claim
}

fn request(name: &str) -> ResourcePoolStatusRequest {
    from_value(json!({"metadata": {"name": name}, "spec": {"driver": DRIVER}})).unwrap()
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn answered(requests: &Requests) -> usize {
    let list = listed(requests, &ListParams::default()).await.unwrap_or_else(|error| panic!("{error}"));
    list.iter().filter(|request| request.status.is_some()).count()
}

/// Reads `NAME: answered, ..., at KIND VERSION, KIND VERSION, KIND VERSION`.
fn versions(log: &str) -> BTreeMap<String, [u64; 2]> {
    let mut found = BTreeMap::new();
    // The last line may still be written.
    let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    for line in whole.lines().filter(|line| line.contains(": answered, ")) {
        let (name, rest) = line.split_once(": answered, ").unwrap();
        let kinds = rest.split_once(" at ").unwrap().1.split(", ");
        let version = |text: &str| text.rsplit_once(' ').unwrap().1.parse().unwrap();
        let numbers: Vec<u64> = kinds.map(version).collect();
        let before = found.insert(name.to_owned(), [numbers[0], numbers[1]]);
        assert_eq!(before, None, "{name} is answered twice");
    }
    found
}

#[tokio::test]
async fn each_answer_is_that_of_poolstatus_at_its_resource_versions() {
    let number: usize = std::env::var("POOL_REQUESTS").map_or(60, |text| text.parse().unwrap());
    let (server, folder) = (StandIn::start(&[]), TempDir::new().unwrap());
    let client = server.client();
    let (slices, claims, requests): (Api<ResourceSlice>, Api<ResourceClaim>, Requests) =
        (Api::all(client.clone()), Api::default_namespaced(client.clone()), Api::all(client.clone()));
    let (slice_history, claim_history) = (record(slices.clone()), record(claims.clone()));
    for pool in 0..POOLS {
        slices.create(&POST, &slice(pool, 4)).await.unwrap();
    }
    let controller = Controller::start(&server, folder.path(), "log");
    until("the controller works", async || controller.log().contains("answers requests of ")).await;
    for step in 0..number {
        requests.create(&POST, &request(&format!("ask-{step}"))).await.unwrap();
        let (pool, name) = (step % POOLS, format!("claim-{step}"));
        let created = claims.create(&POST, &claim(&name)).await.unwrap();
        claims.replace_status(&name, &POST, &allocated(created, pool, step % 4)).await.unwrap();
        if step % 3 == 2 {
            let name = format!("slice-{pool}");
            let mut changed = slices.get(&name).await.unwrap();
            changed.spec.devices = slice(pool, 4 + step % 7).spec.devices;
            slices.replace(&name, &POST, &changed).await.unwrap();
        }
        if step % 4 == 3 {
            claims.delete(&format!("claim-{}", step - 2), &DeleteParams::default()).await.unwrap();
        }
    }
    until("all are answered", async || answered(&requests).await == number).await;
    // It says so after the answer to its write.
    until("all answers are said", async || versions(&controller.log()).len() == number).await;

    let versions = versions(&controller.log());
    let mut seen = BTreeSet::new();
    for (name, [slice_version, claim_version]) in versions {
        until("the watches have shown it", async || {
            newest(&slice_history) >= slice_version && newest(&claim_history) >= claim_version
        })
        .await;
        let status = requests.get(&name).await.unwrap().status.unwrap();
        let (slices, claims) = (at(&slice_history, slice_version), at(&claim_history, claim_version));
        assert_eq!(status, asked_once(&slices, &claims, &status), "{name}");
        seen.insert((slice_version, claim_version));
    }
    assert!(seen.len() > number / 10, "the answers are of few states: {seen:?}");
}

/// Returns the status of `poolstatus` over some objects, at the time of another one.
fn asked_once(
    slices: &[ResourceSlice],
    claims: &[ResourceClaim],
    at: &ResourcePoolStatusRequestStatus,
) -> ResourcePoolStatusRequestStatus {
    let time = at.conditions.as_ref().unwrap()[0].last_transition_time.0;
    let report = Cluster::new(Profile::V1_37, slices, claims).report(&Query::new(DRIVER), time);
    let RequestOutcome::Ready(status) = report.to_v1alpha3() else { panic!("slices are missing") };
    status
}

#[tokio::test]
async fn two_copies_that_are_killed_write_each_status_once() {
    let server = StandIn::start(&[]);
    let history = record::<ResourcePoolStatusRequest>(Api::all(server.client()));
    let names = two_copies(&server).await;
    for name in &names {
        let history = history.lock().unwrap();
        let writes = history.keys().filter(|(of, _)| of == name).count();
        assert_eq!(writes, 2, "{name}: it is created, and answered once");
    }
}

#[tokio::test]
async fn two_copies_answer_on_a_bad_day() {
    let server = StandIn::start(&["--misbehave", "all", "--misbehave-percent", "10", "--seed", "5"]);
    assert_eq!(two_copies(&server).await.len(), 20);
}

/// Kills copies of the controller while they answer, and returns the names of the requests.
async fn two_copies(server: &StandIn) -> Vec<String> {
    let (client, folder) = (server.client(), TempDir::new().unwrap());
    let (slices, requests): (Api<ResourceSlice>, Requests) = (Api::all(client.clone()), Api::all(client));
    surely(async || slices.create(&POST, &slice(0, 2)).await).await;
    let mut copies = ["one", "two"].map(|name| Controller::start(server, folder.path(), name));
    for step in 0..20 {
        surely(async || requests.create(&POST, &request(&format!("ask-{step}"))).await).await;
        if step % 5 == 4 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            copies[step % 2].kill();
            copies[step % 2] = Controller::start(server, folder.path(), ["one", "two"][step % 2]);
        }
        for (copy, name) in copies.iter_mut().zip(["one", "two"]) {
            if copy.process.try_wait().unwrap().is_some() {
                *copy = Controller::start(server, folder.path(), name);
            }
        }
    }
    let all = async || loop {
        if let Ok(list) = listed(&requests, &ListParams::default()).await {
            return list;
        }
    };
    until("all are answered", async || all().await.iter().all(|request| request.status.is_some())).await;
    let log = copies.each_ref().map(Controller::log).concat();
    // A copy that is killed between the write and its line says nothing; none says it twice.
    assert!(versions(&log).len() <= 20);
    for request in all().await {
        assert_eq!(request.status.unwrap().pools.unwrap()[0].total_devices, Some(2));
    }
    all().await.into_iter().filter_map(|request| request.metadata.name).collect()
}

/// Repeats a call until the server carries it out.
async fn surely<T>(call: impl AsyncFn() -> Result<T, kube::Error>) {
    let begin = Instant::now();
    loop {
        match call().await {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => return,
            Err(error) => assert!(begin.elapsed() < PATIENCE, "{error}"),
        }
    }
}

#[tokio::test]
async fn a_request_waits_for_slices_and_is_deleted_an_hour_after_its_answer() {
    let (server, folder) = (StandIn::start(&[]), TempDir::new().unwrap());
    let (slices, requests): (Api<ResourceSlice>, Requests) = (Api::all(server.client()), Api::all(server.client()));
    let mut half = slice(0, 1);
    half.spec.pool.resource_slice_count = 2;
    slices.create(&POST, &half).await.unwrap();
    requests.create(&POST, &request("waits")).await.unwrap();
    let mut old = requests.create(&POST, &request("old")).await.unwrap();
    let condition = json!({"type": "Complete", "status": "True", "reason": "CalculationComplete", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    old.status = Some(from_value(json!({"poolCount": 0, "conditions": [condition]})).unwrap());
    requests.replace_status("old", &POST, &old).await.unwrap();

    let controller = Controller::start(&server, folder.path(), "log");
    until("it is put off", async || controller.log().contains("waits: no status while pools are incomplete: node-0"))
        .await;
    until("the old one is gone", async || requests.get_opt("old").await.unwrap().is_none()).await;
    assert_eq!(answered(&requests).await, 0);
    let mut other = half.clone();
    other.metadata.name = Some("other".to_owned());
    other.spec.devices = from_value(json!([{"name": "gpu-1"}])).unwrap();
    slices.create(&POST, &other).await.unwrap();
    until("it is answered", async || answered(&requests).await == 1).await;
    assert_eq!(controller.log().matches("waits: no status").count(), 1, "a reason is said once");
    for name in ["requests_processed_total", "request_processing_duration_seconds_count"] {
        let line = format!("resourcepoolstatusrequest_controller_{name}{{driver_name=\"{DRIVER}\"}} 1\n");
        until(&line, async || controller.metrics().contains(&line)).await;
    }
}

/// The stories of KEP-5677, in the version of its text: a request is made, waited for, read and deleted, and never answered twice.
#[tokio::test]
async fn the_workflow_of_the_kep_runs_as_its_text_has_it() {
    let (server, folder) = (StandIn::start(&["--profile", "kep"]), TempDir::new().unwrap());
    let slices: Api<ResourceSlice> = Api::all(server.client());
    let requests: Api<kep::ResourcePoolStatusRequest> = Api::all(server.client());
    for pool in 1..=2 {
        slices.create(&POST, &slice(pool, 4)).await.unwrap();
    }
    let controller = Controller::start_with(&server, folder.path(), "log", &["--profile", "kep"]);
    let asked = |name: &str, spec: Value| -> kep::ResourcePoolStatusRequest {
        from_value(json!({"apiVersion": "resource.k8s.io/v1alpha1", "kind": "ResourcePoolStatusRequest",
            "metadata": {"name": name}, "spec": spec}))
        .unwrap()
    };
    let complete = async |name: &str| {
        until("Complete", async || {
            let conditions = requests.get(name).await.unwrap().status.conditions;
            conditions.iter().any(|it| (&*it.type_, &*it.status) == ("Complete", "True"))
        })
        .await;
        requests.get(name).await.unwrap()
    };
    requests.create(&POST, &asked("check-gpus", json!({"driver": DRIVER}))).await.unwrap();
    let answer = complete("check-gpus").await;
    let counts: Vec<(&str, i32, i32)> =
        answer.status.pools.iter().map(|pool| (&*pool.pool_name, pool.total_devices, pool.available_devices)).collect();
    assert_eq!(counts, [("node-1", 4, 4), ("node-2", 4, 4)]);
    assert_eq!((answer.status.total_matching_pools, answer.status.truncated), (2, false));
    assert_eq!(answer.status.conditions[0].reason, "CalculationComplete");

    let other = asked("check-gpus", json!({"driver": DRIVER, "poolName": "node-1"}));
    let changed = kep::ResourcePoolStatusRequest { metadata: answer.metadata.clone(), ..other };
    let refused = requests.replace("check-gpus", &POST, &changed).await.unwrap_err();
    assert!(refused.to_string().contains("spec: Invalid value"), "the spec is immutable: {refused}");
    slices.create(&POST, &slice(3, 4)).await.unwrap();
    // A new request has the new pool; the old one keeps its answer.
    requests.create(&POST, &asked("limited", json!({"driver": DRIVER, "limit": 1}))).await.unwrap();
    let limited = complete("limited").await.status;
    assert_eq!((limited.pools.len(), limited.truncated, limited.total_matching_pools), (1, true, 3));
    assert_eq!(requests.get("check-gpus").await.unwrap().status, answer.status);
    requests.delete("check-gpus", &DeleteParams::default()).await.unwrap();
    assert!(requests.get_opt("check-gpus").await.unwrap().is_none());
    assert_eq!(controller.log().matches("answered, ").count(), 2, "{}", controller.log());
    let short = asked("short", json!({"driver": DRIVER, "ttlSecondsAfterComplete": -1}));
    assert!(requests.create(&POST, &short).await.unwrap_err().to_string().contains("ttlSecondsAfterComplete"));
}

#[tokio::test]
async fn the_table_of_a_cluster_follows_it() {
    use std::io::{BufRead, BufReader};
    let server = StandIn::start(&[]);
    let slices: Api<ResourceSlice> = Api::all(server.client());
    slices.create(&POST, &slice(0, 2)).await.unwrap();
    let once = Command::new(PROGRAM).args(["--live", "--server", &server.url]).output().unwrap();
    let once = String::from_utf8(once.stdout).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["--live", "--server", &server.url, "--watch"]).stdout(Stdio::piped());
    let mut watch = command.spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let table: Vec<String> = lines.by_ref().take(once.lines().count()).collect();
    assert_eq!(table.join("\n") + "\n", once);
    slices.create(&POST, &slice(1, 3)).await.unwrap();
    assert!(lines.any(|line| line.contains("all") && line.contains(" 5 ")));
    watch.kill().unwrap();
    watch.wait().unwrap();
}
