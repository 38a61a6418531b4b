//! `kubectl dra`, as kubectl runs it: on a cluster with two boards, of which one is in use.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod program;
mod stand_in;

use std::fmt::Debug;
use std::fs;

use examples::manifest::Manifests;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use kube::api::{DeleteParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{from_value, json};
use tempfile::TempDir;

use program::Run;
use stand_in::StandIn;

const POST: PostParams = PostParams { dry_run: false, field_manager: None };
const LIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/live");

async fn create<K>(api: Api<K>, objects: &[K])
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    for object in objects {
        api.create(&POST, object).await.unwrap();
    }
}

fn namespaced<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(client: &Client) -> Api<K> {
    Api::namespaced(client.clone(), "default")
}

/// Creates what docs/live.md does: `serve` has a board, and `train` waits for two.
async fn cluster(server: &StandIn) {
    let client = server.client();
    let mut objects = Manifests::default();
    for file in ["boards.yaml", "train.yaml"] {
        objects.read_argument(&format!("{LIVE}/{file}"));
    }
    for slice in &mut objects.slices {
        if let Some(first) = slice.spec.devices.as_mut().and_then(|devices| devices.first_mut()) {
            let numa = from_value(json!({"int": 1})).unwrap();
            first.attributes.get_or_insert_default().insert("resource.kubernetes.io/numaNode".to_owned(), numa);
        }
    }
    let node: Node = from_value(json!({"metadata": {"name": "node-1"}})).unwrap();
    create(Api::all(client.clone()), &[node]).await;
    create(Api::all(client.clone()), &objects.slices).await;
    create(Api::all(client.clone()), &objects.classes).await;
    create(namespaced(&client), &objects.claims).await;
    create(namespaced(&client), &objects.pods).await;
    let (claims, pods): (Api<ResourceClaim>, Api<Pod>) = (namespaced(&client), namespaced(&client));
    let (mut claim, pod) = (claims.get("serve").await.unwrap(), pods.get("serve").await.unwrap());
    let result = json!({"request": "board", "driver": "gpu.example.com", "pool": "node-1", "device": "board-0-whole"});
    let user = json!({"resource": "pods", "name": "serve", "uid": pod.metadata.uid});
    let status = json!({"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]});
    claim.status = Some(from_value(status).unwrap());
    claims.replace_status("serve", &POST, &claim).await.unwrap();
    let target = json!({"apiVersion": "v1", "kind": "Node", "name": "node-1"});
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "serve"}, "target": target});
    let _: serde_json::Value = pods.create_subresource("binding", "serve", &POST, &binding).await.unwrap();
}

fn dra(server: &StandIn, args: &[&str]) -> Run {
    Run::of(env!("CARGO_BIN_EXE_kubectl-dra"), &[args, &["--server", &server.url]].concat(), "")
}

#[tokio::test]
async fn why_says_what_the_readme_shows() {
    let server = StandIn::start(&[]);
    cluster(&server).await;
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let transcript = readme.split("$ kubectl dra why train\n").nth(1).unwrap();
    let shown = transcript.split("```").next().unwrap();
    for name in ["train", "default/train"] {
        assert_eq!(dra(&server, &["why", name]).clean().stdout, shown);
    }
    let elsewhere = dra(&server, &["why", "train", "-n", "other"]);
    assert!(
        elsewhere.code == 1 && elsewhere.stderr.contains("no pending pod is \"other/train\""),
        "{}",
        elsewhere.stderr
    );
    let json = dra(&server, &["why", "-o", "json"]).clean().json();
    assert_eq!(json[0]["pod"], "default/train");
}

/// A term is told with the number of devices on which it is true, and with the values that there are.
#[tokio::test]
async fn why_asks_the_selectors() {
    let server = StandIn::start(&[]);
    cluster(&server).await;
    let client = server.client();
    let selector = json!({"cel": {"expression": "device.driver == \"gpu.example.com\" && device.attributes[\"gpu.example.com\"].size == \"half\""}});
    let request = json!({"name": "r", "exactly": {"deviceClassName": "whole", "selectors": [selector]}});
    let claim = json!({"metadata": {"name": "half"}, "spec": {"devices": {"requests": [request]}}});
    create(namespaced::<ResourceClaim>(&client), &[from_value(claim).unwrap()]).await;
    let entry = json!({"name": "gpu", "resourceClaimName": "half"});
    let pod = json!({"metadata": {"name": "picky"}, "spec": {
        "containers": [{"name": "main", "image": "app"}], "resourceClaims": [entry]}});
    create(namespaced::<Pod>(&client), &[from_value(pod).unwrap()]).await;
    let told = dra(&server, &["why", "picky"]).clean().stdout;
    let term = "  device.attributes[\"gpu.example.com\"].size == \"half\": true on 0 of 2 devices of class whole; ";
    assert!(told.contains(term), "{told}");
    let json = dra(&server, &["why", "picky", "-o", "json"]).clean().json();
    assert_eq!(json[0]["selectors"][0]["holds"], 0);
}

#[tokio::test]
async fn manifests_are_checked_for_the_server_of_a_cluster() {
    let tainted = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    let device = json!({"name": "gpu-0", "taints": [{"key": "k", "effect": "NoSchedule"}]});
    let slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {
        "driver": "gpu.example.com", "nodeName": "n", "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [device]}});
    fs::write(tainted.path(), slice.to_string()).unwrap();
    let file = tainted.path().to_str().unwrap();
    let rows = [
        (&["--release", "1.35"][..], true),
        (&["--release", "1.35", "--feature-gates", "DRADeviceTaints=true"], false),
    ];
    for (flags, is_dropped) in rows {
        let server = StandIn::start(flags);
        let checked = dra(&server, &["check", file]);
        let asked = format!("kubectl dra: checked for the API server at {}/, v1.35; its gates are read\n", server.url);
        assert_eq!((checked.code, &*checked.stderr), (0, &*asked));
        assert_eq!(checked.stdout.contains("DRADeviceTaints"), is_dropped, "{}", checked.stdout);
        let free = dra(&server, &["free"]);
        assert!(free.stderr.contains("the API server is of v1.35"), "{}", free.stderr);
    }
}

#[tokio::test]
async fn free_and_numa_count_devices() {
    let server = StandIn::start(&[]);
    cluster(&server).await;
    let free = dra(&server, &["free"]).clean().stdout;
    let program = env!("CARGO_BIN_EXE_pool-status");
    assert_eq!(free, Run::of(program, &["--live", "--server", &server.url], "").clean().stdout, "it is the same table");
    assert!(free.contains("│ all             ┆        ┆        ┆    16 ┆         1 ┆        15 ┆"), "{free}");
    let numa = dra(&server, &["numa"]).clean().stdout;
    let rows: Vec<&str> = numa.lines().filter(|line| line.contains("gpu.example.com")).collect();
    let last = "board-0-part-1 board-0-part-2 board-0-part-3 board-0-part-4 and 11 more";
    assert_eq!(rows[0].split('┆').map(str::trim).collect::<Vec<_>>()[1..5], ["-", "gpu.example.com", "15", "1"]);
    assert!(rows[0].contains(last), "{numa}");
    assert_eq!(rows[1].split('┆').map(str::trim).collect::<Vec<_>>()[1..5], ["1", "gpu.example.com", "1", "0"]);
}

#[tokio::test]
async fn a_device_that_two_claims_hold_is_told() {
    let server = StandIn::start(&[]);
    cluster(&server).await;
    // Another scheduler gives the board to another claim: the API server does not compare claims.
    let claims: Api<ResourceClaim> = namespaced(&server.client());
    let serve = claims.get("serve").await.unwrap();
    let mut rival = ResourceClaim { spec: serve.spec.clone(), ..ResourceClaim::default() };
    rival.metadata.name = Some("rival".to_owned());
    let mut rival = claims.create(&POST, &rival).await.unwrap();
    let mut status = serve.status.unwrap();
    status.reserved_for = None;
    rival.status = Some(status);
    claims.replace_status("rival", &POST, &rival).await.unwrap();

    let line = "gpu.example.com: pool node-1: device board-0-whole is held by 2 claims: default/rival, default/serve";
    let free = dra(&server, &["free"]).clean().stdout;
    assert_eq!(free.lines().last(), Some(line), "{free}");
    let program = env!("CARGO_BIN_EXE_pool-status");
    let args = ["--live", "--server", &server.url];
    assert_eq!(Run::of(program, &args, "").clean().stdout, free);
    let json = Run::of(program, &[&args[..], &["-o", "json"]].concat(), "");
    assert_eq!(json.stderr, format!("pool-status: {line}\n"), "a request has no field for it");
    let why = dra(&server, &["why", "train"]).clean().stdout;
    assert!(why.contains("too few: 1 of 2 free, 2 wanted of class whole, some held by 2 claims or more"), "{why}");
    let why = dra(&server, &["why", "train", "-o", "json"]).clean().stdout;
    assert!(why.contains("some held by 2 claims or more"), "{why}");
}

#[tokio::test]
async fn evict_tells_before_a_rule_is_written() {
    let (server, folder) = (StandIn::start(&[]), TempDir::new().unwrap());
    cluster(&server).await;
    let file = folder.path().join("rule.yaml");
    let rule = "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: broken}\nspec:\n  \
                deviceSelector: {pool: node-1}\n  taint: {key: example.com/broken, effect: NoExecute}\n";
    fs::write(&file, rule).unwrap();
    let preview = dra(&server, &["evict", &file.display().to_string()]).clean().stdout;
    assert!(preview.contains("devices: 16 published, 1 allocated\n  evicts pods: 1\n"), "{preview}");
    assert!(preview.contains(" default/serve\n"), "{preview}");
    fs::write(&file, "kind: Pod\n").unwrap();
    assert_eq!(dra(&server, &["evict", &file.display().to_string()]).code, 1);
}

#[test]
fn check_needs_no_cluster() {
    let check = |args: &[&str], stdin: &str| {
        Run::of(env!("CARGO_BIN_EXE_kubectl-dra"), &[&["check", "-"], args].concat(), stdin)
    };
    let train = fs::read_to_string(format!("{LIVE}/train.yaml")).unwrap();
    assert_eq!(check(&[], &train).stdout, "objects: 3; refused: 0\n");
    let template = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: t}\nspec:\n  spec:\n    \
                    devices:\n      requests: [{name: UPPER, exactly: {deviceClassName: gpu}}]\n";
    let refused = check(&[], template);
    let path = "ResourceClaimTemplate t: spec.spec.devices.requests[0].name: Invalid value: \"UPPER\"";
    assert!(refused.code == 1 && refused.stdout.starts_with(path), "{}", refused.stdout);
    let slice = "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec:\n  driver: dra.cpu\n  \
                 nodeName: n\n  pool: {name: n, generation: 1, resourceSliceCount: 1}\n  skipNodeOperations: ['*']\n";
    let dropped = check(&[], slice);
    let line = "ResourceSlice s: spec.skipNodeOperations would be dropped: feature gate DRAOptionalNodeOperations is off\n\
                objects: 1; refused: 0\n";
    assert_eq!((dropped.code, dropped.stdout.as_str()), (0, line), "{}", dropped.stderr);
    assert_eq!(check(&["--feature-gates", "DRAOptionalNodeOperations=true"], slice).stdout, "objects: 1; refused: 0\n");
    // A refusal names the gate where one is the reason, and only there.
    let lists = slice.replace(
        "  skipNodeOperations: ['*']\n",
        "  devices: [{name: a, attributes: {numa: {ints: [1, 2]}}}, {name: B}]\n",
    );
    let refused = check(&[], &lists).stdout;
    let line = |start: &str| refused.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    let named = line("ResourceSlice s: spec.devices[0].attributes[numa]: ");
    assert!(named.ends_with(" (feature gate DRAListTypeAttributes is off)"), "{refused}");
    assert!(line("ResourceSlice s: spec.devices[1].name: ").contains("Invalid value"), "{refused}");
    assert_eq!(refused.matches("feature gate").count(), 1, "{refused}");
}

#[tokio::test]
async fn gates_that_nobody_has_named_are_assumed() {
    let server = StandIn::start(&["--feature-gates", "DRAOptionalNodeOperations=true"]);
    let client = server.client();
    let read = |object| from_value(object).unwrap();
    create(Api::<Node>::all(client.clone()), &[read(json!({"metadata": {"name": "node-1"}}))]).await;
    let class = json!({"metadata": {"name": "nic"}, "spec": {}});
    create(Api::<DeviceClass>::all(client.clone()), &[from_value(class).unwrap()]).await;
    let slice = json!({"metadata": {"name": "nics"}, "spec": {"driver": "nic.example.com", "nodeName": "node-1",
        "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "nic-0"}],
        "skipNodeOperations": ["*"]}});
    create(Api::<ResourceSlice>::all(client.clone()), &[from_value(slice).unwrap()]).await;
    let requests = json!([{"name": "r", "exactly": {"deviceClassName": "nic"}}]);
    let claim = json!({"metadata": {"name": "app"}, "spec": {"devices": {"requests": requests}}});
    create(namespaced::<ResourceClaim>(&client), &[from_value(claim).unwrap()]).await;
    let entries = json!([{"name": "r", "resourceClaimName": "app"}]);
    let pod = json!({"metadata": {"name": "app"}, "spec": {"containers": [{"name": "c", "image": "i"}], "resourceClaims": entries}});
    create(namespaced::<Pod>(&client), &[from_value(pod).unwrap()]).await;

    let why = |more: &[&str]| dra(&server, &[&["why", "app"], more].concat()).clean();
    let assumption = "assumed off, as by default in v1.37: DRAOptionalNodeOperations; --feature-gates names the gates of \
                      the cluster";
    let begin = "default/app (claims default/app): 0/1 nodes are available: 1 ";
    assert_eq!(why(&[]).stdout, format!("{begin}feature gate DRAOptionalNodeOperations off ({assumption})\n"));
    let json = why(&["-o", "json"]).json();
    assert_eq!(json[0]["assumption"], assumption);
    assert_eq!(json[0]["explanation"]["gatesOff"], json!({"DRAOptionalNodeOperations": 1}));
    let told = why(&["--feature-gates", "DRAOptionalNodeOperations=false"]).stdout;
    assert_eq!(told, format!("{begin}feature gate DRAOptionalNodeOperations off\n"));
    let on = why(&["--feature-gates", "DRAOptionalNodeOperations=true"]).stdout;
    assert_eq!(
        on,
        format!("{begin}feature DRAOptionalNodeOperations not declared by the node for devices of class nic\n")
    );
    // Another reason depends on no gate.
    let slices = Api::<ResourceSlice>::all(client);
    slices.delete("nics", &DeleteParams::default()).await.unwrap();
    assert_eq!(why(&[]).stdout, format!("{begin}no devices\n"));
}

fn on_files(args: &[&str], text: &str) -> Run {
    Run::of(env!("CARGO_BIN_EXE_kubectl-dra"), args, text)
}

const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/plans");

#[test]
fn a_plan_has_the_status_of_its_answer() {
    let (cluster, file) = (format!("{PLANS}/cluster.yaml"), |name: &str| format!("{PLANS}/{name}.yaml"));
    let whole = on_files(&["plan", &file("job"), &cluster], "");
    assert_eq!((whole.code, whole.stdout.lines().count()), (0, 7), "{}", whole.stdout);
    assert_eq!(on_files(&["plan", &file("deployment"), &cluster], "").code, 1);
    assert_eq!(on_files(&["plan"], "").code, 2);
    let refused = on_files(&["plan", &file("template-refused"), &cluster], "");
    assert_eq!(refused.code, 1);
    let json = on_files(&["plan", "-o", "json", &file("deployment"), &cluster], "").json();
    assert_eq!((json["placed"].as_u64(), json["pods"].as_u64()), (Some(4), Some(5)));
    assert_eq!(json["workloads"][0]["placed"][0]["devices"][0], "gpu.example.com/node-a/gpu-0");
}

#[test]
fn why_asks_about_files_as_well() {
    let (cluster, chat) = (format!("{PLANS}/cluster.yaml"), format!("{PLANS}/deployment.yaml"));
    let told = on_files(&["why", "chat", "-f", &chat, "-f", &cluster], "");
    assert!(told.stdout.contains("  chat-5 waits: 0/4 nodes are available"), "{}", told.stdout);
    assert!(!told.stdout.contains("chat-1"), "{}", told.stdout);
}

#[test]
fn check_refuses_what_kubectl_apply_refuses() {
    let text = "apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selektors: [{cel: {expression: device.driver}}]}
---
kind: DeviceClass
metadata: {name: nic}
spec: {}
";
    let strict = on_files(&["check", "-"], text);
    let unknown = "DeviceClass gpu: strict decoding error: unknown field spec.selektors: kubectl apply refuses it";
    assert!(strict.stdout.contains(unknown), "{}", strict.stdout);
    assert!(strict.stdout.contains("DeviceClass nic: apiVersion: must be set: kubectl apply refuses it"));
    assert_eq!((strict.code, strict.stdout.lines().last()), (1, Some("objects: 2; refused: 2")));
    let lenient = on_files(&["check", "--validate", "ignore", "-"], text);
    assert_eq!((lenient.code, lenient.stdout.as_str()), (0, "objects: 2; refused: 0\n"));
    assert!(lenient.stderr.contains("unknown field, ignored"), "{}", lenient.stderr);
}

#[test]
fn empty_fields_that_are_unknown_are_refused_as_well() {
    let text = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, creationTimestamp: null}
spec:
  selector: {}
  strategy: {}
  template:
    metadata: {creationTimestamp: null, annotations: null}
    spec:
      nodeSelecter: {}
      nodeSelector:
      terminationGracePeriodSeconds: null
      containers: [{name: a, env: [], resources: {}, envv: []}, {name: b, envv: null, ports: null}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, labels: }
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, selector: [], selectors: [], capacity: null}}]}}
";
    let run = on_files(&["check", "-"], text);
    let fields = run.stdout.lines().filter_map(|line| line.split("unknown field ").nth(1)?.split(": ").next());
    let expected = [
        "spec.template.spec.containers[0].envv",
        "spec.template.spec.containers[1].envv",
        "spec.template.spec.nodeSelecter",
        "spec.devices.requests[0].exactly.selector",
    ];
    assert_eq!(fields.collect::<Vec<_>>(), expected, "{}", run.stdout);
    assert_eq!((run.code, run.stdout.lines().last()), (1, Some("objects: 2; refused: 2")));
}

#[test]
fn lint_warns_and_refuses_nothing() {
    let text = "{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: d.example.com,
  nodeName: n, pool: {name: n, generation: 1, resourceSliceCount: 1}, devices: [
    {name: a, attributes: {type: {string: gpu}, numa: {int: 0}}, taints: [{key: example.com/k, effect: None}]},
    {name: b, attributes: {numa: {int: 1}}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: bare}, spec: {selectors: [
  {cel: {expression: 'device.attributes[\"d.example.com\"].type == \"gpu\"'}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: all}, spec: {selectors: [{cel: {expression: 1 == 1}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: none}, spec: {selectors: [
  {cel: {expression: device.driver == \"other.example.com\"}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: {devices: {
  requests: [{name: r, exactly: {deviceClassName: all, count: 2}}],
  constraints: [{matchAttribute: d.example.com/numa}]}}}
---
{apiVersion: resource.k8s.io/v1beta2, kind: DeviceTaintRule, metadata: {name: typo}, spec: {
  deviceSelector: {driver: d.exmaple.com}, taint: {key: example.com/k, effect: NoExecute}}}
---
{apiVersion: resource.k8s.io/v1beta2, kind: DeviceTaintRule, metadata: {name: broad}, spec: {
  deviceSelector: {driver: d.example.com}, taint: {key: example.com/k, effect: NoExecute}}}
";
    let run = on_files(&["check", "--lint", "-"], text);
    let lints: Vec<&str> = run.stdout.lines().filter(|line| line.contains(": lint: ")).collect();
    let expected = [
        "DeviceClass bare: lint: selectors[0] fails on 1 of 2 devices (no such key: type): n/b; a scheduler",
        "DeviceClass all: lint: selectors[0] is constant",
        "DeviceClass none: lint: no device of 2 is of the class",
        "ResourceClaim c: lint: constraints[0].matchAttribute d.example.com/numa can't be met: no two of the devices share",
        "DeviceTaintRule typo: lint: it selects none of 2 devices",
        "DeviceTaintRule broad: lint: it selects all 2 devices",
        "ResourceSlice s: lint: the taint example.com/k of device a has the effect None",
    ];
    assert_eq!(lints.len(), expected.len(), "{}", run.stdout);
    for (line, begin) in lints.iter().zip(expected) {
        assert!(line.starts_with(begin) && line.contains("; "), "{line}");
    }
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
}

#[test]
fn attributes_are_listed_with_their_values() {
    let cluster = format!("{PLANS}/cluster.yaml");
    let told = on_files(&["attributes", "gpu", "-f", &cluster], "");
    assert!(told.stdout.contains("│ gpu.example.com/model    ┆ A100 (4), H100 (4) ┆    0 │"), "{}", told.stdout);
    assert!(told.stdout.ends_with("devices: 8\n") && !told.stdout.contains("nic.example.com"), "{}", told.stdout);
    let unknown = on_files(&["attributes", "gpus", "-f", &cluster], "");
    let said = "kubectl dra attributes: ignored: Node (4); scheduler reads it\nkubectl-dra: no class \"gpus\"; known: gpu, nic\n";
    assert_eq!((unknown.code, unknown.stderr.as_str()), (1, said));
}

#[tokio::test]
async fn a_plan_counts_what_a_cluster_has_given_away() {
    let server = StandIn::start(&[]);
    cluster(&server).await;
    let entry = json!({"name": "board", "resourceClaimTemplateName": "one"});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "app"}, "spec": {"replicas": 2,
        "selector": {}, "template": {"spec": {"containers": [{"name": "c"}], "resourceClaims": [entry]}}}});
    let template = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one"},
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "whole"}}]}}}});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [deployment, template]}).to_string();
    let run = Run::of(env!("CARGO_BIN_EXE_kubectl-dra"), &["plan", "-", "--server", &server.url], &list);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    let placed = "Deployment app: claims accepted by Kubernetes 1.34 to 1.37; 1 of 2 pods placed\n  app-1  node-1  gpu.example.com: board-1-whole\n";
    assert!(run.stdout.starts_with(placed), "{}", run.stdout);
    assert!(run.stderr.contains("1 pods of the cluster wait already"), "{}", run.stderr);
}
