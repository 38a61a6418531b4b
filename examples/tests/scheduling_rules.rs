//! The page of scheduling rules: each row of its tables is the answer of `dra_alloc::fit`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use dra_alloc::Classes;
use dra_alloc::fit::{Allocatable, PodNeeds};
use dra_attrs::TolerationOperators;
use k8s_openapi::api::core::v1::Pod;
use nnn::memory::PodMemory;
use serde_json::{Map, Value, from_value, json};

const PAGE: &str = include_str!("../../docs/scheduling-rules.md");

/// Returns the rows of all tables of node rules: pod, node, pods in use, answer.
fn rows() -> Vec<[&'static str; 4]> {
    let (_, rules) = PAGE.split_once("\n## Node rules\n").unwrap();
    let rules = rules.split("\n## ").next().unwrap();
    let rows = rules.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')));
    cells.map(|cells| cells.collect::<Vec<_>>().try_into().unwrap()).collect()
}

/// Returns the parts of a pod or a node, each as its kind and the rest.
fn parts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("; ").map(|part| part.split_once(' ').unwrap_or((part, "")))
}

/// Reads amounts such as `cpu=1 memory=1Gi`.
fn amounts(text: &str) -> Value {
    let amounts = text.split(' ').filter_map(|amount| amount.split_once('='));
    amounts.map(|(name, amount)| (name.to_owned(), json!(amount))).collect::<Map<_, _>>().into()
}

fn push(object: &mut Value, list: &str, item: Value) {
    object.as_object_mut().unwrap().entry(list).or_insert_with(|| json!([])).as_array_mut().unwrap().push(item);
}

fn port(text: &str) -> Value {
    let (number, protocol) = text.split_once('/').unwrap_or((text, "TCP"));
    let (address, number) = number.split_once(':').unwrap_or(("", number));
    let number: i32 = number.parse().unwrap();
    json!({"containerPort": number, "hostPort": number, "protocol": protocol, "hostIP": address})
}

fn toleration(text: &str) -> Value {
    let (what, effect) = text.split_once(':').unwrap_or((text, ""));
    let operators = [('>', "Gt"), ('<', "Lt"), ('=', "Equal")];
    let found = operators.into_iter().find_map(|(sign, operator)| Some((what.split_once(sign)?, operator)));
    match found {
        Some(((key, value), operator)) => json!({"key": key, "operator": operator, "value": value, "effect": effect}),
        None if what == "all" => json!({"operator": "Exists"}),
        None => json!({"key": what, "operator": "Exists", "effect": effect}),
    }
}

/// Reads a term such as `zone In a,b and disk Exists`.
fn term(text: &str) -> Value {
    let mut term = json!({});
    for requirement in text.split(" and ") {
        let words: Vec<&str> = requirement.split(' ').collect();
        let values: Vec<&str> = words.get(2).into_iter().flat_map(|values| values.split(',')).collect();
        let (list, key) = match words[0].strip_prefix('@') {
            Some(field) => ("matchFields", format!("metadata.{field}")),
            None => ("matchExpressions", words[0].to_owned()),
        };
        push(&mut term, list, json!({"key": key, "operator": words[1], "values": values}));
    }
    term
}

fn pod(name: &str, node: Option<&str>, text: &str) -> Pod {
    let mut spec = json!({"nodeName": node, "containers": []});
    let mut status = json!({});
    let mut first = json!({"name": "c0", "image": "", "imageID": "", "ready": true, "restartCount": 0});
    let mut terms = Vec::new();
    for (number, (kind, rest)) in parts(text).enumerate() {
        let name = if kind == "c" && spec["containers"] == json!([]) { "c0".to_owned() } else { format!("n{number}") };
        let requests = json!({"requests": amounts(rest)});
        match kind {
            "c" => push(&mut spec, "containers", json!({"name": name, "resources": requests})),
            "init" => push(&mut spec, "initContainers", json!({"name": name, "resources": requests})),
            "sidecar" => push(
                &mut spec,
                "initContainers",
                json!({"name": name, "resources": requests, "restartPolicy": "Always"}),
            ),
            "port" => push(&mut spec, "containers", json!({"name": name, "ports": [port(rest)]})),
            "init-port" => push(&mut spec, "initContainers", json!({"name": name, "ports": [port(rest)]})),
            "sidecar-port" => push(
                &mut spec,
                "initContainers",
                json!({"name": name, "ports": [port(rest)], "restartPolicy": "Always"}),
            ),
            "overhead" => spec["overhead"] = amounts(rest),
            "pod" => spec["resources"] = requests,
            "allotted" => first["allocatedResources"] = amounts(rest),
            "has" => first["resources"] = requests,
            "pod-allotted" => status["allocatedResources"] = amounts(rest),
            "pod-has" => status["resources"] = requests,
            "infeasible" => push(
                &mut status,
                "conditions",
                json!({"type": "PodResizePending", "status": "True", "reason": "Infeasible"}),
            ),
            "ended" => status["phase"] = json!("Succeeded"),
            "going" | "compare" => {}
            "select" => {
                let (key, value) = rest.split_once('=').unwrap();
                spec["nodeSelector"] = json!({key: value});
            }
            "affinity" => terms.push(term(rest)),
            "tolerate" => push(&mut spec, "tolerations", toleration(rest)),
            other => panic!("no part of a pod: {other}"),
        }
    }
    if !terms.is_empty() {
        spec["affinity"] = json!({"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    }
    push(&mut status, "containerStatuses", first);
    let deleted = parts(text).any(|(kind, _)| kind == "going").then_some("2026-01-01T00:00:00Z");
    let metadata = json!({"namespace": "default", "name": name, "uid": name, "deletionTimestamp": deleted});
    from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
}

/// Reads a node and the classes that serve extended resources.
fn node(text: &str) -> (Value, Vec<Value>) {
    let (has, rest) = text.split_once("; ").unwrap_or((text, ""));
    let mut metadata = json!({"name": "node", "labels": {}});
    let (mut spec, mut classes) = (json!({}), Vec::new());
    for (kind, rest) in parts(rest).filter(|(kind, _)| !kind.is_empty()) {
        match kind {
            "name" => metadata["name"] = json!(rest),
            "cordoned" => spec["unschedulable"] = json!(true),
            "class" => classes.push(json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": rest}})),
            "label" => {
                let (key, value) = rest.split_once('=').unwrap();
                metadata["labels"][key] = json!(value);
            }
            "taint" => {
                let (taint, effect) = rest.split_once(':').unwrap();
                let (key, value) = taint.split_once('=').unwrap();
                push(&mut spec, "taints", json!({"key": key, "value": value, "effect": effect}));
            }
            other => panic!("no part of a node: {other}"),
        }
    }
    (json!({"metadata": metadata, "spec": spec, "status": {"allocatable": amounts(has)}}), classes)
}

fn answer(row: &[&str; 4]) -> String {
    let (node, classes) = node(row[1]);
    let node = from_value(node).unwrap();
    let classes = Classes::new(
        classes.into_iter().map(|class| from_value::<k8s_openapi::api::resource::v1::DeviceClass>(class).unwrap()),
    );
    let mut memory = PodMemory::default();
    for (number, text) in row[2].split(" + ").enumerate().filter(|(_, text)| *text != "–") {
        memory.observe(pod(&format!("p{number}"), Some("node"), text)).unwrap();
    }
    let pod = pod("new", None, row[0]);
    let operators =
        if row[0].contains("compare") { TolerationOperators::Comparison } else { TolerationOperators::Equality };
    let needs = PodNeeds::new(&pod).unwrap().with_toleration_operators(operators);
    let misfits = needs.misfits(&node, &Allocatable::new(&node).unwrap(), memory.usage("node"), &classes);
    let reasons =
        misfits.iter().map(|misfit| format!("{misfit}{}", if misfit.is_unresolvable() { " (for good)" } else { "" }));
    if misfits.is_empty() { "fits".to_owned() } else { reasons.collect::<Vec<_>>().join("; ") }
}

#[test]
fn rows_of_node_rules_are_the_answers_of_the_library() {
    let rows = rows();
    assert!(rows.len() >= 60, "{} rows", rows.len());
    let wrong = rows.iter().filter(|row| answer(row) != row[3]);
    let wrong: Vec<String> = wrong.map(|row| format!("{row:?}: {}", answer(row))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
