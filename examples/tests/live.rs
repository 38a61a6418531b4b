//! Programs with `--live` as a user meets them: answers, and sentences about what is wrong.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod stand_in;

use std::fs;
use std::path::Path;
use std::process::Command;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, from_value, json};
use tempfile::TempDir;

use stand_in::StandIn;
use stand_in::background::{Background, get, until, until_counted};
use stand_in::fake_driver::{FakeDriver, Manner};
use stand_in::pods::bound_pod;

const AUTOSCALER: &str = env!("CARGO_BIN_EXE_autoscaler");
const SCHEDULER: &str = env!("CARGO_BIN_EXE_scheduler");
const DRIVER: &str = env!("CARGO_BIN_EXE_driver");
const KUBELET: &str = env!("CARGO_BIN_EXE_kubelet");
const POST: PostParams = PostParams { dry_run: false, field_manager: None };

/// Runs a program to its end, without the environment of a cluster.
fn run(program: &str, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(program);
    command.args(args).env("KUBECONFIG", "/no/such/file").env_remove("KUBERNETES_SERVICE_HOST");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Creates a node, a device, a class, and a pod with a claim for each name.
async fn cluster(server: &StandIn, pods: &[&str]) {
    let client = server.client();
    let node = json!({"metadata": {"name": "node-1"}});
    // A kubelet may have registered it.
    let _ = Api::<Node>::all(client.clone()).create(&POST, &from_value(node).unwrap()).await;
    let class = json!({"metadata": {"name": "gpu"}, "spec": {}});
    Api::all(client.clone())
        .create(&POST, &from_value::<k8s_openapi::api::resource::v1::DeviceClass>(class).unwrap())
        .await
        .unwrap();
    let pool = json!({"name": "node-1", "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": "gpu.example.com", "nodeName": "node-1", "pool": pool, "devices": [{"name": "gpu-0"}]});
    let slice = json!({"metadata": {"name": "slice"}, "spec": spec});
    Api::<ResourceSlice>::all(client.clone()).create(&POST, &from_value(slice).unwrap()).await.unwrap();
    for name in pods {
        pod_with_claim(server, name).await;
    }
}

async fn pod_with_claim(server: &StandIn, name: &str) {
    let client = server.client();
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
    let claim = json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}});
    Api::<ResourceClaim>::default_namespaced(client.clone()).create(&POST, &from_value(claim).unwrap()).await.unwrap();
    let spec = json!({"schedulerName": "dra-sdk", "tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": "none"}],
            "resourceClaims": [{"name": "r", "resourceClaimName": name}]});
    let pod = json!({"metadata": {"name": name}, "spec": spec});
    Api::<Pod>::default_namespaced(client.clone()).create(&POST, &from_value(pod).unwrap()).await.unwrap();
}

#[test]
fn without_a_cluster_the_sentence_says_what_to_do() {
    let (code, _, stderr) = run(SCHEDULER, &["--live", "why"]);
    assert_eq!(code, 1);
    assert!(stderr.starts_with("scheduler: no cluster to work on: ") && stderr.contains("--bin apiserver"), "{stderr}");
    let (code, _, stderr) = run(SCHEDULER, &["--live", "--server", "http://127.0.0.1:1", "why"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("http://127.0.0.1:1/: no answer: "), "{stderr}");
    let (code, _, stderr) = run(AUTOSCALER, &["--live"]);
    assert_eq!(code, 1);
    assert!(stderr.starts_with("autoscaler: no cluster to work on: "), "{stderr}");
    let (code, _, stderr) = run(SCHEDULER, &["why"]);
    assert_eq!(
        (code, stderr.as_str()),
        (2, "scheduler: why: says why pods of a cluster are pending, and needs --live before it\n")
    );
}

#[tokio::test]
async fn why_explains_each_pending_pod() {
    let server = StandIn::start(&[]);
    let (code, stdout, stderr) = run(SCHEDULER, &["--live", "--server", &server.url, "why"]);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "nothing is pending\n", ""));
    cluster(&server, &["one", "two"]).await;
    let why = |rest: &[&str]| run(SCHEDULER, &[&["--live", "--server", &server.url, "why"], rest].concat());
    let fits = "default/one (claims default/one): fits node-1 with gpu.example.com/node-1/gpu-0\n";
    assert_eq!(why(&["one"]).1, fits);
    let (_, stdout, _) = why(&["-o", "json"]);
    let answers: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(answers[1]["pod"], "default/two");
    assert_eq!(answers[1]["devices"], json!(["gpu.example.com/node-1/gpu-0"]));
    let (code, _, stderr) = why(&["three"]);
    assert_eq!(code, 1);
    assert!(
        stderr.contains("no pending pod is \"default/three\"") && stderr.contains("pending: default/one, default/two"),
        "{stderr}"
    );
}

#[tokio::test]
async fn the_autoscaler_keeps_its_list_and_its_answer() {
    let server = StandIn::start(&[]);
    cluster(&server, &["one", "two"]).await;
    let args = ["--live", "--server", &server.url];
    let group = format!("{}/data/autoscaler/groups/l4.yaml=250", env!("CARGO_MANIFEST_DIR"));
    let mut list = Background::start(AUTOSCALER, &[&args[..], &["--watch"]].concat());
    let mut answer = Background::start(AUTOSCALER, &[&args[..], &["--watch", "--simulate-group", &group]].concat());
    list.says("removable");
    answer.says("one more node of l4, price 250: takes 1 of 2 pods");
    answer.says("  default/one on l4-new: gpu.example.com/l4-new/gpu-0");

    let _scheduler = Background::start(SCHEDULER, &[&args[..], &["--bind"]].concat());
    // For the second pod its scheduler has found no node.
    list.says_all(&["in use", "needs a node: default/two"]);
    answer.says("one more node of l4, price 250: takes 1 of 1 pods");
    answer.says("  default/two on l4-new: gpu.example.com/l4-new/gpu-0");
    let once = |rest: &[&str]| run(AUTOSCALER, &[&args[..], rest].concat());
    let (code, stdout, stderr) = once(&["-o", "json"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let listed: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&listed["nodes"][0]["is"], &listed["needNodes"]), (&json!("in use"), &json!(["default/two"])));
    let (_, stdout, _) = once(&["--remove-pod", "default/one"]);
    assert_eq!(stdout, "default/one: deallocated, free: gpu.example.com/node-1/gpu-0\n");
    for mut program in [list, answer] {
        assert_eq!(program.terminate(), Some(0));
    }
    let (code, _, stderr) = once(&["--remove-pod", "default/nobody"]);
    assert_eq!((code, stderr.as_str()), (1, "autoscaler: --remove-pod default/nobody: there is no such pod\n"));
}

#[tokio::test]
async fn one_of_two_schedulers_binds_and_the_other_one_follows() {
    let server = StandIn::start(&[]);
    cluster(&server, &["one"]).await;
    let args = ["--live", "--server", &server.url, "--bind", "--lease-seconds", "2"];
    let told = ["-o", "json", "--metrics-address", "127.0.0.1:0"];
    let mut first = Background::start(SCHEDULER, &[&args[..], &told].concat());
    let vitals = first.vitals();
    let bound: Value = serde_json::from_str(&first.says("\"bound\"")).unwrap();
    assert_eq!(bound, json!({"event": "bound", "pod": "default/one", "node": "node-1"}));
    let counted = [
        "scheduler_schedule_attempts_total{profile=\"dra-sdk\",result=\"scheduled\"} 1",
        "scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"1\"} 1",
    ];
    until_counted(&vitals, &counted.map(str::to_owned)).await;
    let mut second = Background::start(SCHEDULER, &args);
    second.warns("waiting for the lease default/dra-sdk-scheduler, which ");
    assert_eq!(first.terminate(), Some(0));
    second.says("dra-sdk binds pods of ");
}

#[tokio::test]
async fn a_pod_that_fits_nowhere_has_an_event_and_a_condition() {
    let server = StandIn::start(&[]);
    cluster(&server, &["one", "two"]).await;
    let _scheduler = Background::start(SCHEDULER, &["--live", "--server", &server.url, "--bind"]);
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::default_namespaced(server.client());
    let about_two = ListParams::default().fields("involvedObject.name=two");
    until("an event", async || !events.list(&about_two).await.unwrap().items.is_empty()).await;
    let event = events.list(&about_two).await.unwrap().items.remove(0);
    assert_eq!(event.reason.as_deref(), Some("FailedScheduling"));
    let message = event.message.unwrap();
    assert!(message.starts_with("0/1 nodes are available: 1 no free device of class gpu"), "{message}");
    let pod = Api::<Pod>::default_namespaced(server.client()).get("two").await.unwrap();
    let condition = pod.status.unwrap().conditions.unwrap().remove(0);
    assert_eq!((condition.reason.as_deref(), condition.message), (Some("Unschedulable"), Some(message)));
}

#[tokio::test]
async fn a_pod_waits_for_a_driver_that_has_no_room_on_its_disk() {
    let server = StandIn::start(&[]);
    let folder = TempDir::new().unwrap();
    for name in ["state", "registry"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (registry, checkpoint) = (at("registry"), at("checkpoint"));
    let kubelet_args = ["--live", "--server", &server.url, "--registry", &registry, "--state", &checkpoint];
    let mut kubelet = Background::start(KUBELET, &kubelet_args);
    kubelet.says("node-1 is a node of ");
    cluster(&server, &[]).await;
    let slices: Api<ResourceSlice> = Api::all(server.client());
    slices.delete("slice", &DeleteParams::default()).await.unwrap();
    let args = driver_args(&server, folder.path());
    let script = format!("trap '' XFSZ; ulimit -f 0; exec {DRIVER} {}", args.join(" "));
    let mut full = Background::start("sh", &["-c", &script]);
    // Its ledger is written at the start already.
    full.warns("File too large");
    assert_eq!(full.process.wait().unwrap().code(), Some(1));

    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let _driver = Background::start(DRIVER, &args);
    pod_with_claim(&server, "one").await;
    let _scheduler = Background::start(SCHEDULER, &["--live", "--server", &server.url, "--bind"]);
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    until("the pod runs", async || pods.get("one").await.unwrap().status.unwrap().phase.as_deref() == Some("Running"))
        .await;
}

fn driver_args<'a>(server: &'a StandIn, folder: &'a Path) -> Vec<String> {
    let at = |name: &str| folder.join(name).display().to_string();
    let args =
        ["serve", "--live", "--server", &server.url, "--capture", "xeon-cxl", "--boot-id", "boot"].map(str::to_owned);
    let folders = [("--state", "state"), ("--cdi", "cdi"), ("--plugin-dir", "plugin"), ("--registry", "registry")];
    args.into_iter().chain(folders.into_iter().flat_map(|(flag, name)| [flag.to_owned(), at(name)])).collect()
}

#[tokio::test]
async fn a_driver_keeps_its_slices_and_ends_in_order() {
    let server = StandIn::start(&[]);
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("state")).unwrap();
    let args = driver_args(&server, folder.path());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut early = Background::start(DRIVER, &args);
    early.warns("waits for node node-1, which will own the slices: nodes \"node-1\" not found");
    assert_eq!(early.terminate(), Some(0));
    let node = json!({"metadata": {"name": "node-1"}});
    Api::<Node>::all(server.client()).create(&POST, &from_value(node).unwrap()).await.unwrap();

    let slices: Api<ResourceSlice> = Api::all(server.client());
    let published = async || !slices.list(&ListParams::default()).await.unwrap().items.is_empty();
    let told = ["-o", "json", "--metrics-address", "127.0.0.1:0"];
    let mut driver = Background::start(DRIVER, &[&args[..], &told].concat());
    let vitals = driver.vitals();
    let line: Value = serde_json::from_str(&driver.says("serves")).unwrap();
    assert_eq!(line["driver"], "pci.example.com");
    until("slices", published).await;
    until_counted(&vitals, &["dra_driver_slice_writes_total{is_error=\"false\"} 1".to_owned()]).await;
    let slice = slices.list(&ListParams::default()).await.unwrap().items.remove(0);
    assert_eq!(slice.metadata.owner_references.unwrap()[0].name, "node-1");
    slices.delete(slice.metadata.name.as_ref().unwrap(), &DeleteParams::default()).await.unwrap();
    until("the slice again", published).await;
    let again = slices.list(&ListParams::default()).await.unwrap().items.remove(0);
    assert!(again.spec.pool.generation > 1, "generations go on rising");

    let socket = folder.path().join("registry/pci.example.com-reg.sock");
    assert!(socket.exists());
    assert_eq!(driver.terminate(), Some(0));
    assert!(!socket.exists() && !folder.path().join("plugin/dra.sock").exists());
    assert!(published().await, "slices stay for the next run");
    let withdraw = [args.as_slice(), &["--withdraw"]].concat();
    let (code, _, stderr) = run(DRIVER, &withdraw);
    assert_eq!(code, 0, "{stderr}");
    assert!(!published().await);
}

#[tokio::test]
async fn a_driver_publishes_nothing_that_would_be_misused() {
    let server = StandIn::start(&["--feature-gates", "DRAPartitionableDevices=false"]);
    let folder = TempDir::new().unwrap();
    let node = json!({"metadata": {"name": "node-1"}});
    Api::<Node>::all(server.client()).create(&POST, &from_value(node).unwrap()).await.unwrap();
    let slices: Api<ResourceSlice> = Api::all(server.client());
    let mut events = slices.watch(&WatchParams::default(), "0").await.unwrap().boxed();

    fs::create_dir(folder.path().join("state")).unwrap();
    let args = driver_args(&server, folder.path()).join(" ");
    let boards = format!("--devices {}/data/live/boards.yaml --driver gpu.example.com", env!("CARGO_MANIFEST_DIR"));
    let args = args.replace("--capture xeon-cxl", &boards);
    let mut driver = Background::start(DRIVER, &args.split(' ').collect::<Vec<_>>());
    driver.warns("DRAPartitionableDevices is off: ");
    let published = async || !slices.list(&ListParams::default()).await.unwrap().items.is_empty();
    until("slices", published).await;
    let pool = json!({"name": "end", "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": "end.example.com", "nodeName": "node-1", "pool": pool});
    let end = json!({"metadata": {"name": "end"}, "spec": spec});
    slices.create(&POST, &from_value(end).unwrap()).await.unwrap();
    let mut seen = 0;
    while let Some(event) = events.next().await {
        let (WatchEvent::Added(slice) | WatchEvent::Modified(slice)) = event.unwrap() else { continue };
        if slice.metadata.name.as_deref() == Some("end") {
            break;
        }
        seen += 1;
        // Of parts that share a board, one is safe without its counters.
        for board in ["board-0", "board-1"] {
            let parts = slice.spec.devices.iter().flatten().filter(|device| device.name.starts_with(board)).count();
            assert!(parts <= 1, "{parts} parts of {board} were there");
        }
    }
    assert!(seen > 0);
}

#[tokio::test]
async fn a_checkpoint_has_one_kubelet_and_must_be_writable() {
    let server = StandIn::start(&[]);
    let folder = TempDir::new().unwrap();
    let state = folder.path().join("checkpoint").display().to_string();
    let args = ["--live", "--server", &server.url, "--state", &state];
    let mut first = Background::start(KUBELET, &args);
    first.says("node-1 is a node of ");
    let (code, _, stderr) = run(KUBELET, &args);
    assert_eq!(code, 1);
    assert!(stderr.ends_with("is working on this file; try again when it has ended\n"), "{stderr}");
    assert_eq!(first.terminate(), Some(0));
    let real = json!({"metadata": {"name": "real"}});
    Api::<Node>::all(server.client()).create(&POST, &from_value(real).unwrap()).await.unwrap();
    let (code, _, stderr) = run(KUBELET, &[&args[..], &["--node-name", "real"]].concat());
    assert_eq!(code, 1);
    assert!(stderr.starts_with("kubelet: node real is there, and no virtual one"), "{stderr}");
    // No file can grow: as on a full disk.
    fs::remove_file(&state).unwrap();
    let script = format!("trap '' XFSZ; ulimit -f 0; exec {KUBELET} --live --server {} --state {state}", server.url);
    let (code, _, stderr) = run("sh", &["-c", &script]);
    assert_eq!(code, 1);
    assert!(stderr.starts_with(&format!("kubelet: {state}: ")) && stderr.contains("File too large"), "{stderr}");
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref().and_then(|status| status.phase.as_deref())
}

#[tokio::test]
async fn a_driver_that_hangs_keeps_no_other_pod_waiting() {
    let server = StandIn::start(&[]);
    let folder = TempDir::new().unwrap();
    let (bad, good) = (FakeDriver::start(folder.path(), "bad"), FakeDriver::start(folder.path(), "good"));
    bad.set(Manner::Hangs);
    let (state, bad, good) = (folder.path().join("checkpoint").display().to_string(), bad.plugin(), good.plugin());
    let args = ["--live", "--server", &server.url, "--state", &state, "--plugin", &bad, "--plugin", &good];
    let mut kubelet = Background::start(
        KUBELET,
        &[&args[..], &["--call-seconds", "3600", "--metrics-address", "127.0.0.1:0"]].concat(),
    );
    let vitals = kubelet.vitals();
    // The one that hangs comes first.
    bound_pod(&server, "hung", "bad").await;
    bound_pod(&server, "well", "good").await;
    kubelet.says("called good for default/well");
    kubelet.says("default/well: runs with good/device=well");
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    assert_eq!(phase(&pods.get("hung").await.unwrap()), Some("Pending"));
    pods.delete("well", &DeleteParams::default()).await.unwrap();
    kubelet.says("default/well: gone");
    assert!(get(&vitals, "/healthz").ends_with("\r\n\r\nok"));
    let count = |operation| {
        format!("dra_operations_duration_seconds_count{{operation_name=\"{operation}\",is_error=\"false\"}} 1")
    };
    let in_use = "dra_resource_claims_in_use{driver_name=\"<any>\"} 0".to_owned();
    until_counted(&vitals, &[count("PrepareResources"), count("UnprepareResources"), in_use]).await;
    assert!(get(&vitals, "/").starts_with("HTTP/1.1 404 "));
}

#[tokio::test]
async fn a_driver_that_does_not_answer_is_asked_again() {
    let server = StandIn::start(&[]);
    let folder = TempDir::new().unwrap();
    let driver = FakeDriver::start(folder.path(), "gpu.example.com");
    let (state, plugin) = (folder.path().join("checkpoint").display().to_string(), driver.plugin());
    let args = ["--live", "--server", &server.url, "--state", &state, "--plugin", &plugin];
    let mut kubelet = Background::start(KUBELET, &[&args[..], &["--call-seconds", "1", "-o", "json"]].concat());
    let registered: Value = serde_json::from_str(&kubelet.says("registered")).unwrap();
    assert_eq!(registered["node"], "node-1");
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::default_namespaced(server.client());
    for (name, manner, reason) in [
        ("hung", Manner::Hangs, "code = DeadlineExceeded desc = context deadline exceeded"),
        ("other", Manner::AnswersForOthers, "NodePrepareResources returned result for unknown claim UID another-uid"),
        ("empty", Manner::AnswersNothing, "NodePrepareResources skipped 1 ResourceClaims"),
    ] {
        driver.set(manner);
        bound_pod(&server, name, "gpu.example.com").await;
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        // One before may say that the claim was not allocated yet.
        until(reason, async || {
            let messages = events.list(&about).await.unwrap().items.into_iter().filter_map(|event| event.message);
            messages.into_iter().any(|message| message.contains(reason))
        })
        .await;
        driver.set(Manner::Works);
        let runs: Value = serde_json::from_str(&kubelet.says("\"runs\"")).unwrap();
        let device = format!("gpu.example.com/device={name}");
        assert_eq!(runs, json!({"event": "runs", "pod": format!("default/{name}"), "devices": [device]}));
    }
    // Nor does it unprepare what it could not be asked about.
    driver.set(Manner::Hangs);
    Api::<Pod>::default_namespaced(server.client()).delete("hung", &DeleteParams::default()).await.unwrap();
    kubelet.warns("NodeUnprepareResources: rpc error: code = DeadlineExceeded");
    driver.set(Manner::Works);
    let gone: Value = serde_json::from_str(&kubelet.says("\"gone\"")).unwrap();
    assert_eq!(gone["pod"], "default/hung");
}
