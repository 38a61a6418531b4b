//! The program `kubelet` and drivers that fall silent, or answer with too much.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod raw_driver;
mod recorder;
mod stand_in;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dra_live::grpc::api::dra::{NodePrepareResourceResponse, NodePrepareResourcesResponse};
use dra_live::grpc::api::registration::PluginInfo;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use prost::Message;
use serde_json::{Value, from_value, json};
use tempfile::TempDir;

use raw_driver::{Answer, RawDriver};
use recorder::{Mischief, Recorder};
use stand_in::StandIn;
use stand_in::background::{Background, until};
use stand_in::fake_driver::{FakeDriver, Manner};
use stand_in::pods::bound_pod;

const KUBELET: &str = env!("CARGO_BIN_EXE_kubelet");
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/kubelet/pods.yaml");
const LATE: &str = "rpc error: code = DeadlineExceeded desc = context deadline exceeded";
const FAILED: &str = "kubelet: FailedPrepareDynamicResources: prepare dynamic resources: NodePrepareResources";

const MIB: usize = 1024 * 1024;

/// Time after which a program counts as one that never ends.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(folder: &Path, args: &[&str]) -> Child {
    let mut kubelet = Command::new(KUBELET);
    kubelet.args(["--profile", "kep", "--feature-gates", "DRAOptionalNodePreparation=true", "--call-seconds", "1"]);
    kubelet.arg("--state").arg(folder.join("state")).args(args);
    kubelet.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the end of a program, which says little.
fn end(mut child: Child) -> Output {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

fn run(folder: &Path, args: &[&str]) -> (bool, String) {
    let output = end(start(folder, args));
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(text).unwrap())
}

fn plugin(socket: &Path) -> String {
    format!("gpu.example.com={}", socket.display())
}

/// Returns the message of a driver that has prepared the claim of the pod `train`, with no device.
fn prepared() -> Vec<u8> {
    let claims = [("claim-train-gpu".to_owned(), NodePrepareResourceResponse::default())].into();
    NodePrepareResourcesResponse { claims }.encode_to_vec()
}

#[test]
fn a_call_is_over_in_time_wherever_its_driver_falls_silent() {
    let answers = [
        Answer::Nothing,
        Answer::Head,
        Answer::PartOfMessage,
        Answer::NoTrailers(prepared()),
        Answer::Trickle,
        Answer::PingsUnread,
    ];
    let runs = answers.map(|answer| {
        let folder = TempDir::new().unwrap();
        let driver = RawDriver::start(&folder.path().join("s"), std::slice::from_ref(&answer));
        let child = start(folder.path(), &["--plugin", &plugin(&driver.socket), "prepare", "train", MANIFEST]);
        (answer, child, folder, driver)
    });
    for (answer, child, folder, _driver) in runs {
        let output = end(child);
        assert_eq!(output.status.code(), Some(1), "{answer:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("{FAILED}: {LATE}\n"), "{answer:?}");
        let state = run(folder.path(), &["show"]).1;
        let state: Value = serde_json::from_str(&state).unwrap();
        assert_eq!(state["default/train-gpu"]["drivers"]["gpu.example.com"]["devices"], json!([]), "{answer:?}");
    }
}

#[test]
fn an_unprepare_is_over_in_time_too() {
    let folder = TempDir::new().unwrap();
    let driver = RawDriver::start(&folder.path().join("s"), &[Answer::Whole(prepared()), Answer::Head]);
    let plugin = plugin(&driver.socket);
    let (is_prepared, text) = run(folder.path(), &["--plugin", &plugin, "prepare", "train", MANIFEST]);
    assert!(is_prepared, "{text}");
    let unprepare = run(folder.path(), &["--plugin", &plugin, "unprepare", "train", MANIFEST]);
    let text = format!("kubelet: unprepare dynamic resources: NodeUnprepareResources: {LATE}\n");
    assert_eq!(unprepare, (false, text));
    assert!(run(folder.path(), &["show"]).1.contains("default/train-gpu"), "it is asked again");
}

#[test]
fn a_registration_is_over_in_time_and_keeps_no_other_driver_out() {
    let folder = TempDir::new().unwrap();
    let registry = folder.path().join("registry");
    fs::create_dir(&registry).unwrap();
    let driver = RawDriver::start(&folder.path().join("s"), &[Answer::Whole(prepared())]);
    let info = |name: &str| PluginInfo {
        r#type: "DRAPlugin".to_owned(),
        name: name.to_owned(),
        endpoint: driver.socket.display().to_string(),
        supported_versions: vec!["v1.DRAPlugin".to_owned()],
    };
    let (info, other) = (info("gpu.example.com").encode_to_vec(), info("other.example.com").encode_to_vec());
    for (name, answers) in [
        ("a", vec![Answer::Head]),
        ("b", vec![Answer::NoTrailers(other.clone())]),
        ("c", vec![Answer::Whole(other.clone()), Answer::Head]),
        ("d", vec![Answer::Whole(other), Answer::PartOfMessage]),
        ("e", vec![Answer::Whole(info), Answer::Whole(Vec::new())]),
    ] {
        RawDriver::start(&registry.join(format!("{name}.sock")), &answers);
    }
    let output = end(start(folder.path(), &["--registry", registry.to_str().unwrap(), "prepare", "train", MANIFEST]));
    let lines: String =
        ["a", "b", "c", "d"].map(|name| format!("kubelet: {}/{name}.sock: {LATE}\n", registry.display())).concat();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), lines);
    assert!(output.status.success(), "{}", String::from_utf8(output.stdout).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_never_reads_keeps_no_connection() {
    let (server, folder) = (StandIn::start(&[]), TempDir::new().unwrap());
    let driver = RawDriver::start(&folder.path().join("s"), &[Answer::PingsUnread]);
    let (state, plugin) = (folder.path().join("state").display().to_string(), plugin(&driver.socket));
    let args = ["--live", "--server", &server.url, "--state", &state, "--plugin", &plugin, "--call-seconds", "1"];
    let mut kubelet = Background::start(KUBELET, &args);
    kubelet.says("node-1 is a node of ");
    bound_pod(&server, "train", "gpu.example.com").await;
    until("calls end", async || driver.ended.load(Ordering::SeqCst) >= 3).await;
    let (begun, ended) = (driver.begun.load(Ordering::SeqCst), driver.ended.load(Ordering::SeqCst));
    assert!(begun - ended.min(begun) <= 1, "{} of {begun} connections are open", begun - ended);
}

#[test]
fn more_devices_than_a_claim_can_have_are_not_stored() {
    let folder = TempDir::new().unwrap();
    let driver = FakeDriver::start(folder.path(), "gpu.example.com");
    let prepare = || run(folder.path(), &["--plugin", &driver.plugin(), "prepare", "train", MANIFEST]);
    driver.set(Manner::Repeats(65));
    let text = format!(
        "{FAILED} failed for ResourceClaim train-gpu: driver gpu.example.com returned 65 devices for 1 allocated, which is \
         more than 64\n"
    );
    assert_eq!(prepare(), (false, text));
    let devices = || {
        let state: Value = serde_json::from_str(&run(folder.path(), &["show"]).1).unwrap();
        state["default/train-gpu"]["drivers"]["gpu.example.com"]["devices"].as_array().unwrap().len()
    };
    assert_eq!(devices(), 0);
    driver.set(Manner::Repeats(64));
    assert!(prepare().0);
    assert_eq!(devices(), 64);
}

/// Returns a checkpoint with one claim, whose pod has a UID of a number of bytes. Each of them takes seven when the
/// checkpoint is written again.
fn checkpoint(bytes: usize) -> String {
    let data = json!({"kind": "DRACheckpoint", "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1", "ClaimInfoStateList": [
        {"ClaimUID": "u", "ClaimName": "c", "Namespace": "n", "PodUIDs": {"<".repeat(bytes): {}}, "DriverState": {}}]});
    let data = data.to_string();
    json!({"Data": data, "Checksum": crc32fast::hash(data.as_bytes())}).to_string()
}

#[test]
fn a_checkpoint_that_would_not_be_read_is_not_written() {
    let folder = TempDir::new().unwrap();
    let state = folder.path().join("state");
    let full = checkpoint(19 * MIB);
    fs::write(&state, &full).unwrap();
    let (is_done, text) = run(folder.path(), &["prepare", "infer", MANIFEST]);
    assert!(!is_done);
    let (place, size) = text.split_once(": not written: ").unwrap();
    assert_eq!(place, format!("kubelet: {}", state.display()));
    assert!(size.ends_with(" bytes, and at most 134217728 would be read back\n"), "{size}");
    assert!(fs::read_to_string(&state).unwrap() == full, "the old file stays");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "the file and its lock");
}

#[test]
fn an_answer_leaves_room_in_the_checkpoint_for_other_claims() {
    let folder = TempDir::new().unwrap();
    let state = folder.path().join("state");
    fs::write(&state, checkpoint(15 * MIB)).unwrap();
    let driver = FakeDriver::start(folder.path(), "gpu.example.com");
    driver.set(Manner::LongIds(2 * MIB));
    let text = "kubelet: FailedPrepareDynamicResources: the answer of driver gpu.example.com to NodePrepareResources is \
                too big for the checkpoint, and is dropped\n";
    let answer = run(folder.path(), &["--plugin", &driver.plugin(), "prepare", "train", MANIFEST]);
    assert_eq!(answer, (false, text.to_owned()));
    let kept = fs::read_to_string(&state).unwrap();
    assert!(kept.len() < 112 * MIB && kept.contains("claim-train-gpu"), "the claim without devices");
}

async fn declared(nodes: &Api<Node>) -> Vec<String> {
    nodes.get("node-1").await.unwrap().status.unwrap_or_default().declared_features.unwrap_or_default()
}

async fn declare(nodes: &Api<Node>, features: Value) {
    let patch = Patch::Merge(json!({"status": {"declaredFeatures": features}}));
    nodes.patch_status("node-1", &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test]
async fn the_node_declares_the_kubelets_feature_and_keeps_those_of_others() {
    let (server, folder) = (StandIn::start(&[]), TempDir::new().unwrap());
    let nodes: Api<Node> = Api::all(server.client());
    let state = folder.path().join("state").display().to_string();
    let start = |more: &[&str]| {
        let args = [&["--live", "--server", &server.url, "--state", &state][..], more].concat();
        let mut kubelet = Background::start(KUBELET, &args);
        kubelet.says("node-1 is a node of ");
        kubelet
    };
    let on = ["--feature-gates", "DRAOptionalNodeOperations=true"];
    drop(start(&[]));
    assert!(declared(&nodes).await.is_empty(), "the gate is off by default");

    // Features of others stay, in the order of the API.
    declare(&nodes, json!(["Aa", "UserNamespacesHostNetworkSupport"])).await;
    drop(start(&on));
    let all = ["Aa", "DRAOptionalNodeOperations", "UserNamespacesHostNetworkSupport"];
    assert_eq!(declared(&nodes).await, all);
    drop(start(&[]));
    assert_eq!(declared(&nodes).await, ["Aa", "UserNamespacesHostNetworkSupport"]);
    let kep = ["--profile", "kep", "--feature-gates", "DRAOptionalNodePreparation=true"];
    drop(start(&kep));
    assert_eq!(declared(&nodes).await, ["Aa", "DraOptionalNodePreparation", "UserNamespacesHostNetworkSupport"]);

    // A list that is right is not written.
    declare(&nodes, json!(["Zz", "DRAOptionalNodeOperations"])).await;
    let door = Recorder::start(&server.url, None, Mischief::None);
    let args = [&["--live", "--server", &door.url, "--state", &state][..], &on].concat();
    let mut kubelet = Background::start(KUBELET, &args);
    kubelet.says("node-1 is a node of ");
    assert_eq!(declared(&nodes).await, ["Zz", "DRAOptionalNodeOperations"]);
    until("it looks again", async || door.asked("get", "nodes") >= 3).await;
    assert_eq!(door.asked("patch", "nodes/status"), 1, "that the node is ready");

    // Another object takes the node's place.
    let labels = nodes.get("node-1").await.unwrap().metadata.labels;
    nodes.delete("node-1", &DeleteParams::default()).await.unwrap();
    let node = json!({"metadata": {"name": "node-1", "labels": labels}});
    nodes.create(&PostParams::default(), &from_value(node).unwrap()).await.unwrap();
    until("the new node declares the feature", async || declared(&nodes).await == ["DRAOptionalNodeOperations"]).await;
    let status = nodes.get("node-1").await.unwrap().status.unwrap();
    assert_eq!(status.conditions.unwrap()[0].type_, "Ready");
}

#[tokio::test]
async fn a_pod_with_devices_that_skip_waits_for_the_feature_and_runs_with_it() {
    let on = ["--feature-gates", "DRAOptionalNodeOperations=true"];
    let (server, folder) = (StandIn::start(&on), TempDir::new().unwrap());
    let client = server.client();
    let state = folder.path().join("state").display().to_string();
    let args = ["--live", "--server", &server.url];
    let kubelet = |more: &[&str]| {
        let mut kubelet = Background::start(KUBELET, &[&args, &["--state", &state][..], more].concat());
        kubelet.says("node-1 is a node of ");
        kubelet
    };
    let without = kubelet(&[]);
    let post = PostParams::default();
    let class = json!({"metadata": {"name": "nic"}, "spec": {}});
    Api::<DeviceClass>::all(client.clone()).create(&post, &from_value(class).unwrap()).await.unwrap();
    let slice = json!({"metadata": {"name": "nics"}, "spec": {"driver": "nic.example.com", "nodeName": "node-1",
        "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "nic-0"}],
        "skipNodeOperations": ["*"]}});
    Api::<ResourceSlice>::all(client.clone()).create(&post, &from_value(slice).unwrap()).await.unwrap();
    let requests = json!([{"name": "r", "exactly": {"deviceClassName": "nic"}}]);
    let claim = json!({"metadata": {"name": "app"}, "spec": {"devices": {"requests": requests}}});
    let claims: Api<ResourceClaim> = Api::default_namespaced(client.clone());
    claims.create(&post, &from_value(claim).unwrap()).await.unwrap();
    let pod = json!({"metadata": {"name": "app"}, "spec": {"schedulerName": "dra-sdk", "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "i"}], "resourceClaims": [{"name": "r", "resourceClaimName": "app"}]}});
    let pods: Api<Pod> = Api::default_namespaced(client);
    pods.create(&post, &from_value(pod).unwrap()).await.unwrap();

    let _scheduler = Background::start(env!("CARGO_BIN_EXE_scheduler"), &[&args[..], &["--bind"], &on].concat());
    let reason = "0/1 nodes are available: 1 feature DRAOptionalNodeOperations not declared by the node";
    until("the missing feature is named", async || {
        let conditions = pods.get("app").await.unwrap().status.and_then(|status| status.conditions);
        conditions.into_iter().flatten().any(|condition| condition.message.is_some_and(|text| text.contains(reason)))
    })
    .await;
    drop(without);
    let mut with = kubelet(&on);
    with.says("skipped NodePrepareResources of nic.example.com");
    with.says("default/app: runs with no device");
}
