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
