//! The program `apiserver` as its clients see it: kube-rs, and kubectl where there is one.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod stand_in;

use std::fmt::Debug;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::pin::pin;
use std::process::{Command, Stdio};

use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, WatchEvent, WatchParams};
use kube::{Api, Error};
use serde_json::{Value, from_value, json};

use stand_in::StandIn;
use stand_in::background::get;

const NOW: PostParams = PostParams { dry_run: false, field_manager: None };

fn claim(name: &str) -> ResourceClaim {
    let requests = json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]);
    from_value(json!({"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}})).unwrap()
}

fn pod(name: &str) -> Pod {
    let spec = json!({"containers": [{"name": "main", "image": "train:1"}]});
    from_value(json!({"metadata": {"name": name, "labels": {"app": "train"}}, "spec": spec})).unwrap()
}

/// Returns the code and text of a refusal.
fn refusal<T: Debug>(outcome: Result<T, Error>) -> (u16, String) {
    match outcome.unwrap_err() {
        Error::Api(status) => (status.code, status.message.clone()),
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_claim_passes_the_door_and_is_kept_with_its_defaults() {
    let server = StandIn::start(&[]);
    let claims: Api<ResourceClaim> = Api::default_namespaced(server.client());
    let stored = claims.create(&NOW, &claim("one")).await.unwrap();
    let request = &stored.spec.unwrap().devices.unwrap().requests.unwrap()[0];
    assert_eq!(request.exactly.as_ref().unwrap().count, Some(1));
    assert_eq!(
        refusal(claims.create(&NOW, &claim("one")).await),
        (409, "resourceclaims.resource.k8s.io \"one\" already exists".to_owned())
    );
    let mut wrong = claim("two");
    wrong.spec.as_mut().unwrap().devices.as_mut().unwrap().requests.as_mut().unwrap()[0].name = "No Label".to_owned();
    let (code, text) = refusal(claims.create(&NOW, &wrong).await);
    assert_eq!(code, 422);
    assert!(
        text.starts_with(
            "ResourceClaim.resource.k8s.io \"two\" is invalid: spec.devices.requests[0].name: Invalid value"
        ),
        "{text}"
    );
    let elsewhere: Api<ResourceClaim> = Api::namespaced(server.client(), "nowhere");
    assert_eq!(
        refusal(elsewhere.create(&NOW, &claim("one")).await),
        (404, "namespaces \"nowhere\" not found".to_owned())
    );
    let mut generated = claim("");
    generated.metadata.name = None;
    generated.metadata.generate_name = Some("many-".to_owned());
    let names = [claims.create(&NOW, &generated).await.unwrap(), claims.create(&NOW, &generated).await.unwrap()];
    let [one, two] = names.map(|claim| claim.metadata.name.unwrap());
    assert!(one != two && one.starts_with("many-") && one.len() == 10, "{one} {two}");
    let dry = PostParams { dry_run: true, ..NOW };
    claims.create(&dry, &claim("dry")).await.unwrap();
    assert!(claims.get_opt("dry").await.unwrap().is_none());
}

#[tokio::test]
async fn writes_of_old_versions_and_of_other_objects_are_conflicts() {
    let server = StandIn::start(&[]);
    let claims: Api<ResourceClaim> = Api::default_namespaced(server.client());
    let mut first = claims.create(&NOW, &claim("one")).await.unwrap();
    let mut second = first.clone();
    first.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    let changed = claims.replace("one", &NOW, &first).await.unwrap();
    let again = claims.replace("one", &NOW, &changed).await.unwrap();
    assert_eq!(again.metadata.resource_version, changed.metadata.resource_version, "nothing has changed");
    second.metadata.labels = Some([("a".to_owned(), "c".to_owned())].into());
    assert_eq!(refusal(claims.replace("one", &NOW, &second).await).0, 409);
    let other = Preconditions { uid: Some("another".to_owned()), resource_version: None };
    let (code, text) = refusal(claims.delete("one", &DeleteParams::default().preconditions(other)).await);
    assert_eq!(code, 409);
    assert!(text.contains("the UID in the precondition (another) does not match the UID in record"), "{text}");
    // A patch of the status of another claim of the name, as kube-scheduler sends it.
    let patch = json!({"metadata": {"uid": "another"}, "status": {"reservedFor": [{"$patch": "delete", "uid": "p"}]}});
    let patched = claims.patch_status("one", &PatchParams::default(), &Patch::Strategic(patch)).await;
    assert_eq!(refusal(patched).0, 409);
    let slices: Api<ResourceSlice> = Api::all(server.client());
    assert_eq!(refusal(slices.delete("none", &DeleteParams::default()).await).0, 404);
}

#[tokio::test]
async fn finalizers_keep_an_object_until_they_are_gone() {
    let server = StandIn::start(&[]);
    let claims: Api<ResourceClaim> = Api::default_namespaced(server.client());
    let mut one = claim("one");
    one.metadata.finalizers = Some(vec!["example.com/a".to_owned(), "example.com/b".to_owned()]);
    claims.create(&NOW, &one).await.unwrap();
    let kept = claims.delete("one", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(kept.metadata.deletion_timestamp.is_some());
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}});
    let left = claims.patch("one", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    assert_eq!(left.metadata.finalizers, Some(vec!["example.com/b".to_owned()]));
    let patch = json!({"metadata": {"finalizers": null}});
    claims.patch("one", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    assert!(claims.get_opt("one").await.unwrap().is_none());
}

#[tokio::test]
async fn patches_merge_lists_by_their_keys() {
    let server = StandIn::start(&[]);
    let nodes: Api<Node> = Api::all(server.client());
    let taint = |key: &str, value: &str| json!({"key": key, "value": value, "effect": "NoSchedule"});
    let node = json!({"metadata": {"name": "n"}, "spec": {"taints": [taint("a", "1"), taint("b", "1")]}});
    nodes.create(&NOW, &from_value(node).unwrap()).await.unwrap();
    let params = PatchParams::default();
    let patch = json!({"spec": {
        "$setElementOrder/taints": [{"key": "c"}, {"key": "b"}],
        "taints": [taint("b", "2"), {"$patch": "delete", "key": "a"}, taint("c", "1")],
    }});
    let patched = nodes.patch("n", &params, &Patch::Strategic(patch)).await.unwrap();
    let taints = |node: Node| -> Vec<(String, String)> {
        node.spec.unwrap().taints.unwrap().into_iter().map(|taint| (taint.key, taint.value.unwrap())).collect()
    };
    let owned =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
    assert_eq!(taints(patched), owned(&[("c", "1"), ("b", "2")]));
    let patch = json!({"spec": {"taints": [taint("d", "1")]}});
    assert_eq!(taints(nodes.patch("n", &params, &Patch::Merge(patch)).await.unwrap()), owned(&[("d", "1")]));
    let patch = from_value(json!([{"op": "add", "path": "/spec/taints/-", "value": taint("e", "1")}])).unwrap();
    let patched = nodes.patch("n", &params, &Patch::<Value>::Json(patch)).await.unwrap();
    assert_eq!(taints(patched), owned(&[("d", "1"), ("e", "1")]));
    let patch = from_value(json!([{"op": "test", "path": "/metadata/name", "value": "m"}])).unwrap();
    assert_eq!(refusal(nodes.patch("n", &params, &Patch::<Value>::Json(patch)).await).0, 422);
    // Conditions are entries by type, also in a patch of the status.
    for (kind, status) in [("Ready", "True"), ("Full", "False"), ("Ready", "False")] {
        let patch = json!({"status": {"conditions": [{"type": kind, "status": status}]}});
        nodes.patch_status("n", &params, &Patch::Strategic(patch)).await.unwrap();
    }
    let conditions = nodes.get("n").await.unwrap().status.unwrap().conditions.unwrap();
    let conditions: Vec<_> = conditions.into_iter().map(|condition| (condition.type_, condition.status)).collect();
    assert_eq!(conditions, owned(&[("Ready", "False"), ("Full", "False")]));
}

#[tokio::test]
async fn an_apply_takes_back_what_its_manager_no_longer_wants() {
    let server = StandIn::start(&[]);
    let nodes: Api<Node> = Api::all(server.client());
    let labels =
        |labels: Value| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}});
    let apply = async |manager: &str, wanted: Value| {
        nodes.patch("n", &PatchParams::apply(manager), &Patch::Apply(labels(wanted))).await
    };
    apply("one", json!({"a": "1", "b": "1"})).await.unwrap();
    apply("two", json!({"b": "1", "c": "1"})).await.unwrap();
    let found = apply("one", json!({"d": "1"})).await.unwrap().metadata.labels.unwrap();
    assert_eq!(found.into_keys().collect::<String>(), "bcd", "b is wanted by the other one");
    let (code, text) = refusal(apply("one", json!({"b": "2"})).await);
    assert_eq!(code, 409);
    assert_eq!(text, "Apply failed with 1 conflict: conflict with \"two\": .metadata.labels.b");
    let forced = nodes.patch("n", &PatchParams::apply("one").force(), &Patch::Apply(labels(json!({"b": "2"})))).await;
    assert_eq!(forced.unwrap().metadata.labels.unwrap()["b"], "2");
    let found = apply("two", json!({"c": "1"})).await.unwrap().metadata.labels.unwrap();
    assert_eq!(found.into_keys().collect::<String>(), "bc", "b is no longer of the second one");
}

#[tokio::test]
async fn a_pod_is_bound_once_and_stays_until_its_kubelet_has_stopped_it() {
    let server = StandIn::start(&[]);
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    let stored = pods.create(&NOW, &pod("train")).await.unwrap();
    let status = stored.status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Pending"));
    let bind = async |node: &str, uid: &str| {
        let binding = json!({"metadata": {"name": "train", "uid": uid}, "target": {"kind": "Node", "name": node}});
        pods.create_subresource::<Value, Value>("binding", "train", &NOW, &binding).await
    };
    assert_eq!(refusal(bind("n1", "another").await).0, 409);
    bind("n1", "").await.unwrap();
    let (code, text) = refusal(bind("n2", "").await);
    assert_eq!(code, 409);
    assert!(text.ends_with("pod train is already assigned to node \"n1\""), "{text}");
    let mut moved = pods.get("train").await.unwrap();
    moved.spec.as_mut().unwrap().node_name = Some("n2".to_owned());
    assert_eq!(refusal(pods.replace("train", &NOW, &moved).await).0, 422);
    let left = pods.delete("train", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(left.metadata.deletion_grace_period_seconds, Some(30));
    let selected = ListParams::default().labels("app in (train,serve),!gone").fields("spec.nodeName=n1");
    assert_eq!(pods.list(&selected).await.unwrap().items.len(), 1);
    pods.delete("train", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(pods.list(&selected).await.unwrap().items.is_empty());
    assert_eq!(refusal(pods.list(&ListParams::default().fields("spec.hostname=x")).await).0, 400);
}

#[tokio::test]
async fn a_watch_goes_on_where_a_list_ended_and_says_when_it_can_not() {
    let server = StandIn::start(&["--history", "3"]);
    let classes: Api<DeviceClass> = Api::all(server.client());
    let class = |name: &str| -> DeviceClass { from_value(json!({"metadata": {"name": name}, "spec": {}})).unwrap() };
    classes.create(&NOW, &class("a")).await.unwrap();
    let version = classes.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    for name in ["b", "c"] {
        classes.create(&NOW, &class(name)).await.unwrap();
    }
    classes.delete("b", &DeleteParams::default()).await.unwrap();
    let params = WatchParams::default().timeout(1);
    let events: Vec<_> = pin!(classes.watch(&params, &version).await.unwrap()).try_collect().await.unwrap();
    let shown = |event: &WatchEvent<DeviceClass>| match event {
        WatchEvent::Added(class) => format!("+{}", class.metadata.name.as_ref().unwrap()),
        WatchEvent::Deleted(class) => format!("-{}", class.metadata.name.as_ref().unwrap()),
        WatchEvent::Error(status) => format!("{}", status.code),
        event => format!("{event:?}"),
    };
    assert!(
        matches!(events[3..], [WatchEvent::Bookmark(_)]),
        "the last word says up to where the watch has seen everything"
    );
    assert_eq!(events[..3].iter().map(shown).collect::<Vec<_>>(), ["+b", "+c", "-b"]);
    classes.create(&NOW, &class("d")).await.unwrap();
    let mut events = pin!(classes.watch(&params, &version).await.unwrap());
    assert_eq!(shown(&events.next().await.unwrap().unwrap()), "410");
}

#[tokio::test]
async fn too_large_requests_are_refused() {
    let server = StandIn::start(&[]);
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    let mut large = pod("large");
    for (size, code) in [(2 << 20, 413), (4 << 20, 413)] {
        large.spec.as_mut().unwrap().containers[0].args = Some(vec!["x".repeat(size)]);
        assert_eq!(refusal(pods.create(&NOW, &large).await).0, code);
    }
    let claims: Api<ResourceClaim> = Api::default_namespaced(server.client());
    let mut annotated = claim("annotated");
    annotated.metadata.annotations = Some([("a".to_owned(), "x".repeat(256 << 10))].into());
    assert_eq!(refusal(claims.create(&NOW, &annotated).await).0, 422, "annotations have a limit of their own");
}

/// Programs named by the variable `KUBECTL`, with colons between them, or the one that a shell would find.
fn kubectls() -> Vec<String> {
    let named = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
    let is_there = |name: &&str| Command::new(name).arg("version").arg("--client").output().is_ok();
    named.split(':').filter(is_there).map(str::to_owned).collect()
}

#[test]
#[ignore = "needs kubectl, or several in KUBECTL"]
fn kubectl_needs_no_flag_but_the_server() {
    let found = kubectls();
    assert!(!found.is_empty(), "there is no kubectl");
    for kubectl in found {
        kubectl_session(&kubectl);
    }
}

fn kubectl_session(kubectl: &str) {
    let server = StandIn::start(&[]);
    let folder = tempfile::TempDir::new().unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(kubectl);
        command.env("HOME", folder.path()).env_remove("KUBECONFIG").arg(format!("--server={}", server.url)).args(args);
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let good = |args: &[&str]| {
        let (success, stdout, stderr) = run(args);
        assert!(success, "{kubectl} {args:?}: {stdout}{stderr}");
        stdout
    };
    let first = include_str!("data/live/objects.yaml");
    let file = folder.path().join("objects.yaml");
    let path = file.to_str().unwrap();
    fs::write(&file, first).unwrap();
    assert_eq!(good(&["create", "-f", path]).matches(" created").count(), 5);
    let listed = good(&["get", "nodes,pods,resourceclaims,resourceslices,deviceclasses"]);
    for row in [
        "pod/train   0/1     Pending",
        "resourceclaim.resource.k8s.io/one   pending",
        "node-1   pci.example.com   node-1",
    ] {
        assert!(listed.contains(row), "{kubectl}: {listed}");
    }
    assert!(good(&["describe", "pod", "train"]).contains("train:1"));
    assert!(good(&["describe", "resourceclaim", "one"]).contains("ExactCount"));
    assert!(good(&["describe", "node", "node-1"]).contains("node-1"));
    assert_eq!(good(&["delete", "-f", path]).matches(" deleted").count(), 5);
    assert_eq!(good(&["apply", "-f", path]).matches(" created").count(), 5);
    fs::write(&file, first.replace("train:1", "train:2").replace("app: train", "app: other").replace("1Gi", "2Gi"))
        .unwrap();
    let applied = good(&["apply", "-f", path]);
    assert!(applied.contains("pod/train configured") && applied.contains("/s1 configured"), "{kubectl}: {applied}");
    let seen = good(&["get", "pod", "train", "-o", "jsonpath={.spec.containers[0].image} {.metadata.labels.app}"]);
    assert_eq!(seen, "train:2 other");
    fs::write(&file, first.replace("image:", "imag:")).unwrap();
    let (success, _, stderr) = run(&["apply", "-f", path]);
    assert!(!success && stderr.contains("unknown field \"spec.containers[0].imag\""), "{kubectl}: {stderr}");
    good(&["taint", "node", "node-1", "broken=yes:NoExecute"]);
    assert!(good(&["describe", "node", "node-1"]).contains("broken=yes:NoExecute"));
    good(&["delete", "pod", "train", "--wait=true"]);
    assert_eq!(good(&["get", "pods"]), "");
}

/// The stories of KEP-5677, typed as its text has them: `rpsr` is the short name, and the version is the KEP's.
#[test]
#[ignore = "needs kubectl, or several in KUBECTL"]
fn kubectl_runs_the_workflow_of_the_kep() {
    for kubectl in kubectls() {
        let (server, folder) = (StandIn::start(&["--profile", "kep"]), tempfile::TempDir::new().unwrap());
        let pool_status = Command::new(env!("CARGO_BIN_EXE_pool-status"))
            .args(["--live", "--server", &server.url, "--controller", "--profile", "kep", "--lease-seconds", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut controller = pool_status.unwrap();
        let good = |args: &[&str], input: &str| {
            let mut command = Command::new(&kubectl);
            command.env("HOME", folder.path()).env_remove("KUBECONFIG").arg(format!("--server={}", server.url));
            command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut process = command.spawn().unwrap();
            process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            let output = process.wait_with_output().unwrap();
            assert!(output.status.success(), "{kubectl} {args:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        for node in ["node-1", "node-2"] {
            let spec = json!({"driver": "gpu.example.com", "nodeName": node, "devices": [{"name": "a"}, {"name": "b"}],
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}});
            let slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
                "metadata": {"name": node}, "spec": spec});
            good(&["create", "-f", "-"], &slice.to_string());
        }
        let request = "apiVersion: resource.k8s.io/v1alpha1\nkind: ResourcePoolStatusRequest\n\
            metadata:\n  name: my-request\nspec:\n  driver: gpu.example.com\n";
        let created = "resourcepoolstatusrequest.resource.k8s.io/my-request created\n";
        assert_eq!(good(&["create", "-f", "-"], request), created);
        let met = good(&["wait", "--for=condition=Complete", "rpsr/my-request", "--timeout=60s"], "");
        assert_eq!(met, created.replace(" created", " condition met"));
        let available = ["get", "rpsr/my-request", "-o", "jsonpath={.status.pools[*].availableDevices}"];
        assert_eq!(good(&available, ""), "2 2");
        let shown = good(&["get", "rpsr/my-request", "-o", "yaml"], "");
        for line in
            ["apiVersion: resource.k8s.io/v1alpha1", "  totalMatchingPools: 2", "    reason: CalculationComplete"]
        {
            assert!(shown.contains(line), "{kubectl}: {shown}");
        }
        assert!(good(&["get", "rpsr"], "").starts_with("NAME         AGE\nmy-request "));
        assert!(good(&["delete", "rpsr/my-request"], "").contains("\"my-request\" deleted"));
        controller.kill().unwrap();
        controller.wait().unwrap();
    }
}

/// Makes a Deployment, rolls it out, scales it and deletes it.
#[test]
#[ignore = "needs kubectl, or several in KUBECTL"]
fn kubectl_sees_pods_of_workloads() {
    for kubectl in kubectls() {
        let (server, folder) = (StandIn::start(&["--controllers"]), tempfile::TempDir::new().unwrap());
        let run = |args: &[&str]| {
            let mut command = Command::new(&kubectl);
            command.env("HOME", folder.path()).env_remove("KUBECONFIG").arg(format!("--server={}", server.url));
            let output = command.args(args).output().unwrap();
            assert!(output.status.success(), "{kubectl} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let until = |args: &[&str], holds: &dyn Fn(&str) -> bool| {
            let begin = std::time::Instant::now();
            while !holds(&run(args)) {
                assert!(begin.elapsed().as_secs() < 60, "{kubectl} {args:?}: {}", run(args));
            }
        };
        let file = folder.path().join("web.yaml");
        fs::write(&file, include_str!("data/live/workload.yaml")).unwrap();
        let path = file.to_str().unwrap();
        assert_eq!(run(&["apply", "-f", path]), "deployment.apps/web created\n");
        assert_eq!(run(&["apply", "-f", path]), "deployment.apps/web unchanged\n");
        let pods = ["get", "pods", "-o", "name"];
        until(&pods, &|pods| pods.lines().count() == 2);
        for pod in run(&pods).lines() {
            let ready = r#"{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}"#;
            run(&["patch", pod, "--subresource=status", "--type=merge", "-p", ready]);
        }
        assert!(run(&["rollout", "status", "deployment/web", "--timeout=60s"]).contains("successfully rolled out"));
        run(&["wait", "--for=condition=Available", "deploy/web", "--timeout=60s"]);
        assert!(run(&["get", "deploy"]).contains("web    2/2     2            2 "));
        assert!(run(&["describe", "deploy", "web"]).contains("2 desired | 2 updated | 2 total | 2 available"));
        run(&["scale", "deploy/web", "--replicas=1"]);
        until(&pods, &|pods| pods.lines().count() == 1);
        run(&["delete", "deploy", "web", "--wait=false"]);
        until(&pods, &str::is_empty);
    }
}

/// Returns the cells of the row of the only pool in the table that pool-status makes of objects.
fn counted(objects: &str) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pool-status"));
    let mut process = command.arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(objects.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    let table = String::from_utf8(output.stdout).unwrap();
    let row = table.lines().find(|line| line.contains("gpu.example.com")).unwrap();
    row.trim_matches('│').split('┆').map(|cell| cell.trim().to_owned()).collect()
}

#[tokio::test]
async fn pool_status_reads_what_kubectl_prints() {
    let server = StandIn::start(&[]);
    let pool = json!({"name": "pool-1", "generation": 1, "resourceSliceCount": 1});
    let devices = json!([{"name": "gpu-0"}, {"name": "gpu-1"}, {"name": "gpu-2"}]);
    let spec = json!({"driver": "gpu.example.com", "nodeName": "node-1", "pool": pool, "devices": devices});
    let slice = json!({"metadata": {"name": "slice"}, "spec": spec});
    Api::<ResourceSlice>::all(server.client()).create(&NOW, &from_value(slice).unwrap()).await.unwrap();
    let claims: Api<ResourceClaim> = Api::default_namespaced(server.client());
    let mut stored = claims.create(&NOW, &claim("one")).await.unwrap();
    let result = json!({"request": "gpu", "driver": "gpu.example.com", "pool": "pool-1", "device": "gpu-1"});
    stored.status = from_value(json!({"allocation": {"devices": {"results": [result]}}})).unwrap();
    claims.replace_status("one", &NOW, &stored).await.unwrap();

    let row = ["gpu.example.com", "pool-1", "node-1", "3", "1", "2", "0"];
    let lists: Vec<String> = ["resourceslices", "resourceclaims"]
        .map(|plural| get(server.url.trim_start_matches("http://"), &format!("/apis/resource.k8s.io/v1/{plural}")))
        .map(|answer| answer.split_once("\r\n\r\n").unwrap().1.to_owned())
        .into();
    assert_eq!(counted(&lists.join("\n---\n"))[..7], row);
    for kubectl in kubectls() {
        let flag = format!("--server={}", server.url);
        let args = [&flag, "get", "resourceslices,resourceclaims", "-A", "-o", "json"];
        let output = Command::new(&kubectl).args(args).env("HOME", "/nonexistent").env_remove("KUBECONFIG").output();
        let printed = String::from_utf8(output.unwrap().stdout).unwrap();
        assert_eq!(counted(&printed)[..7], row, "{kubectl}");
    }
}

#[test]
fn the_address_is_a_line_or_an_object() {
    for (form, begin) in [("text", "http://127.0.0.1:"), ("json", r#"{"address":"http://127.0.0.1:"#)] {
        let mut server = Command::new(env!("CARGO_BIN_EXE_apiserver"))
            .args(["--port", "0", "-o", form])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(line.starts_with(begin), "{line}");
    }
}
