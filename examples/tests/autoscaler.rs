//! Tests of the program `autoscaler`, on its built-in cluster and on the output of kubectl.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn run(args: &[&str], stdin: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_autoscaler"));
    let mut child =
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn json_of(args: &[&str], stdin: &str) -> Value {
    let output = run(&[args, &["-o", "json"]].concat(), stdin);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn nodes(view: &Value) -> Vec<(&str, &str)> {
    let nodes = view["nodes"].as_array().unwrap();
    nodes.iter().map(|node| (node["name"].as_str().unwrap(), node["is"].as_str().unwrap())).collect()
}

#[test]
fn the_built_in_cluster() {
    let strict = json_of(&[], "");
    let expected = [
        ("busy", "in use"),
        ("gpu", "reserved"),
        ("idle", "removable"),
        ("ordered", "not there"),
        ("promised", "reserved"),
    ];
    assert_eq!(nodes(&strict), expected);
    assert_eq!(strict["needNodes"], json!(["shop/report"]), "the pod of a node that is not there yet is no reason");
    let types = |node: usize| -> Vec<String> {
        let reasons = strict["nodes"][node]["reasons"].as_array().unwrap();
        reasons.iter().map(|reason| reason["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(types(0), ["InUse"]);
    assert_eq!(types(1), ["Nominated", "DraUnknown"]);
    assert_eq!(types(4), ["Nominated"]);

    let lenient = json_of(&["--mode", "lenient"], "");
    assert_eq!(nodes(&lenient)[4], ("promised", "removable"));
    let wary = json_of(&["--mode", "lenient", "--threshold", "25", "--upcoming", "ordered"], "");
    assert_eq!(nodes(&wary)[3..], [("ordered", "being created"), ("promised", "reserved")]);
}

#[test]
fn the_table_says_why() {
    let output = run(&[], "");
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "shop/orders-db is expected here",
        "the devices of ml/train-0 are not known yet",
        "needs a node: shop/report",
        "its nomination to idle means nothing",
        "75% in use, from 50% on it stays",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_list_from_kubectl_on_stdin() {
    let pod = |name: &str, node: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "d", "name": name, "uid": name},
            "spec": {"nodeName": node, "containers": []}, "status": {}})
    };
    let node =
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1"}}});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [node, pod("p", "n")]});
    let view = json_of(&["-"], &list.to_string());
    assert_eq!(view["nodes"][0]["bound"], json!(["d/p"]));
    assert_eq!(view["nodes"][0]["reasons"][0]["why"], "no_controller");

    let output = run(
        &["-"],
        &json!({"apiVersion": "v1", "kind": "List", "items": [node, {"kind": "Pod", "metadata": 1}]}).to_string(),
    );
    assert!(!output.status.success() && !output.stdout.is_empty(), "what can be read is shown");
}

fn answer(args: &[&str]) -> String {
    let output = run(args, "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn one_more_node_takes_what_it_can_and_the_best_group_is_first() {
    let groups = ["--simulate-group", "data/autoscaler/groups/h100.yaml=900", "--simulate-group"];
    let asked = [&["data/autoscaler/scale-up.yaml"], &groups[..], &["data/autoscaler/groups/l4.yaml=250"]].concat();
    let asked = [&asked[..], &["--unknown", "resource.kubernetes.io/pcieRoot"]].concat();
    let expected = "\
one more node of l4, price 250: takes 1 of 5 pods
  ml/infer on l4-new: gpu.example.com/l4-new/gpu-0
  not ml/notebook-1: 0/1 nodes are available: 1 claim allocated for other nodes
  not ml/train: 0/1 nodes are available: 1 no device of class gpu that the selectors admit; pod infer on l4-new, placed before it, holds gpu.example.com/l4-new/gpu-0
  not ml/near: claim ml/near depends on attribute resource.kubernetes.io/pcieRoot, whose value is not known before the node exists
  not ml/by-root: claim ml/by-root depends on attribute resource.kubernetes.io/pcieRoot, whose value is not known before the node exists
one more node of h100, price 900: takes 3 of 5 pods
  ml/infer on h100-new: gpu.example.com/h100-new/gpu-0
  ml/train on h100-new: gpu.example.com/h100-new/gpu-1, gpu.example.com/h100-new/gpu-2
  ml/near on h100-new: gpu.example.com/h100-new/gpu-3, nic.example.com/h100-new/nic-1
  not ml/notebook-1: 0/1 nodes are available: 1 claim allocated for other nodes
  not ml/by-root: claim ml/by-root depends on attribute resource.kubernetes.io/pcieRoot, whose value is not known before the node exists
";
    assert_eq!(answer(&asked), expected);
    let as_json = json_of(&asked, "");
    assert_eq!(as_json[1]["takes"][2]["devices"][1], "nic.example.com/h100-new/nic-1");
    assert_eq!(as_json[0]["not"][0]["name"], "ml/notebook-1");

    for (group, text) in [
        ("data/autoscaler/groups/l4.yaml=1.5", "the price is not a whole number: 1.5"),
        ("data/autoscaler/cluster.yaml", "one Node is needed, 4 are there"),
    ] {
        let output = run(&["--simulate-group", group], "");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(text), "{said}");
    }
}

#[test]
fn nodes_go_together_and_those_that_stay_say_why() {
    let expected = "\
nodes that can go together: a
  ml/left on c: gpu.example.com/c/gpu-1, fabric.example.com/fabric/link-0
b stays: pod ml/middle on node b: 0/1 nodes are available: 1 no free device of class gpu; possible on 1 node once other claims give back what they hold; pod left on c, placed before it, holds gpu.example.com/c/gpu-1
c stays: pod ml/right on node c: 0/1 nodes are available: 1 no free device of class gpu; possible on 1 node once other claims give back what they hold
";
    assert_eq!(answer(&["data/autoscaler/scale-down.yaml", "--scale-down"]), expected);
}

#[test]
fn nodes_are_emptied_by_moves_in_their_order() {
    let text = answer(&["data/autoscaler/scale-down.yaml", "--consolidate"]);
    assert!(text.starts_with("cordon: "), "{text}");
    let asked = json_of(&["data/autoscaler/scale-down.yaml", "--consolidate"], "");
    let removable = asked["removable"].as_array().unwrap();
    let moves: Vec<&Value> =
        asked["waves"].as_array().unwrap().iter().flat_map(|wave| wave.as_array().unwrap()).collect();
    assert!(
        !removable.is_empty()
            && moves.iter().all(|one| removable.contains(&one["from"]) && !removable.contains(&one["to"])),
        "{asked}"
    );
    let pinned =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/data/autoscaler/scale-down.yaml")).unwrap();
    let pinned = pinned
        .replace("    namespace: ml\n", "    namespace: ml\n    annotations: {karpenter.sh/do-not-disrupt: 'true'}\n");
    let asked = json_of(&["-", "--consolidate"], &pinned);
    assert_eq!(asked["waves"], json!([]), "{asked}");
}

#[test]
fn what_a_removed_pod_leaves_behind() {
    let removed = |pods: &[&str]| {
        let flags = pods.iter().flat_map(|pod| ["--remove-pod", pod]);
        answer(&std::iter::once("data/autoscaler/scale-down.yaml").chain(flags).collect::<Vec<_>>())
    };
    let left = "ml/left-gpu: deleted, free: gpu.example.com/a/gpu-0\nml/link: unreserved, free: nothing\n";
    assert_eq!(removed(&["ml/left"]), left);
    let both = removed(&["ml/left", "ml/right"]);
    assert!(both.contains("ml/link: deallocated, free: fabric.example.com/fabric/link-0\n"), "{both}");
    let output = run(&["data/autoscaler/scale-down.yaml", "--remove-pod", "ml/nobody"], "");
    assert!(String::from_utf8(output.stderr).unwrap().contains("--remove-pod ml/nobody: there is no such pod"));
}

/// A daemon set whose running pod holds both devices of its node, a template of one more node, and a pod that wants two.
fn with_daemon_set() -> String {
    let gpus = |node: &str| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}, "spec": {
            "driver": "d.example.com", "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "a"}, {"name": "b"}]}})
    };
    let claim = |count: u32| json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}]}});
    let held = |device: &str| json!({"request": "r", "driver": "d.example.com", "pool": "old", "device": device});
    let entry = json!([{"name": "r", "resourceClaimTemplateName": "one"}]);
    let owner = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds", "uid": "uds", "controller": true}]);
    let items = [
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "old"}, "status": {"allocatable": {"cpu": "8"}}}),
        gpus("old"),
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}),
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"namespace": "ns", "name": "one"},
            "spec": {"spec": claim(1)}}),
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"namespace": "ns", "name": "ds"}, "spec": {
            "selector": {}, "template": {"spec": {"containers": [], "resourceClaims": entry}}}}),
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"namespace": "ns", "name": "held", "uid": "uc",
                "annotations": {"resource.kubernetes.io/pod-claim-name": "r"}, "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "ds-x", "uid": "up", "controller": true}]},
            "spec": claim(2), "status": {"allocation": {"devices": {"results": [held("a"), held("b")]}},
                "reservedFor": [{"resource": "pods", "name": "ds-x", "uid": "up"}]}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "ns", "name": "ds-x", "uid": "up", "ownerReferences": owner},
            "spec": {"nodeName": "old", "containers": [], "resourceClaims": entry},
            "status": {"phase": "Running", "resourceClaimStatuses": [{"name": "r", "resourceClaimName": "held"}]}}),
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"namespace": "ns", "name": "both"},
            "spec": claim(2)}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "ns", "name": "train", "uid": "ut"}, "spec": {
            "containers": [], "resourceClaims": [{"name": "r", "resourceClaimName": "both"}]}}),
    ];
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

#[test]
fn pods_of_daemon_sets_come_first_on_a_new_node() {
    let mut group = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    write!(
        group,
        "{{apiVersion: v1, kind: Node, metadata: {{name: fresh}}}}\n---\n{{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, \
         metadata: {{name: fresh}}, spec: {{driver: d.example.com, nodeName: fresh, pool: {{name: fresh, generation: 1, \
         resourceSliceCount: 1}}, devices: [{{name: a}}, {{name: b}}]}}}}\n"
    )
    .unwrap();
    let answer = json_of(&["-", "--simulate-group", group.path().to_str().unwrap()], &with_daemon_set());
    assert_eq!(answer[0]["takes"], json!([{"pod": "ns/ds-1", "node": "fresh", "devices": ["d.example.com/fresh/a"]}]));
    assert_eq!(answer[0]["not"][0]["name"], "ns/train");
}

#[test]
fn list_and_scale_down_agree_on_pods_of_daemon_sets() {
    assert_eq!(nodes(&json_of(&["-"], &with_daemon_set())), [("old", "removable")]);
    assert_eq!(json_of(&["-", "--scale-down"], &with_daemon_set())["removable"], json!(["old"]));
}

#[test]
fn list_and_scale_down_agree_on_pods_without_a_controller() {
    let alone = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8"}}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "ns", "name": "p"}, "spec": {"nodeName": "n", "containers": []}}]}"#;
    let list = json_of(&["-"], alone);
    assert_eq!(list["nodes"][0]["reasons"][0]["type"], "NotMovable");
    let answer = json_of(&["-", "--scale-down"], alone);
    assert_eq!(
        answer["kept"],
        json!([{"name": "n", "reason": "ns/p can't be moved: no controller would make it anew"}])
    );
}
