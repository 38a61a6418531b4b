//! Replay door: framing, errors, and the operations on the project's own cases and the shared machines.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod replies;
mod shared_corpus;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use replies::replies;
use shared_corpus::shared_corpus;

fn answer(request: &Value) -> Value {
    serde_json::from_str(&replies(&[request.to_string()])[0]).unwrap()
}

fn ok(op: &str, input: &Value) -> Value {
    let answer = answer(&json!({"id": 1, "op": op, "input": input}));
    assert_eq!(answer["error"], Value::Null, "{op} {input}");
    answer["ok"].clone()
}

fn error(op: &str, input: &Value) -> (String, Option<String>) {
    let error = answer(&json!({"id": 1, "op": op, "input": input}))["error"].clone();
    assert!(!error["message"].as_str().unwrap().is_empty());
    (error["kind"].as_str().unwrap().to_owned(), error["field"].as_str().map(str::to_owned))
}

fn refused(op: &str, input: &Value, kind: &str, field: Option<&str>) {
    assert_eq!(error(op, input), (kind.to_owned(), field.map(str::to_owned)), "{op} {input}");
}

fn two_nodes() -> Value {
    json!({"nodes": [
        {"id": 0, "socket": 0, "distances": [10, 12], "cpus": "0-3"},
        {"id": 8, "socket": 0, "distances": [12, 10], "cpus": "4-7"},
    ]})
}

#[test]
fn numa_node() {
    let local = ok("attrs.numa_node", &json!({"topology": two_nodes(), "node": 8, "list": true}));
    assert_eq!(local, json!({"attribute": {"ints": [8, 0]}, "diagnostics": []}));
    let by_cpu = ok("attrs.numa_node", &json!({"topology": two_nodes(), "cpu": 5, "node": null}));
    assert_eq!(by_cpu["attribute"], json!({"int": 8}));

    let ragged = json!({"nodes": [{"id": 0, "distances": [10]}, {"id": 1, "distances": [20, 10]}]});
    let alone = ok("attrs.numa_node", &json!({"topology": ragged, "node": 0, "list": true}));
    assert_eq!(alone["attribute"], json!({"ints": [0]}));
    assert_eq!(alone["diagnostics"].as_array().unwrap().len(), 1);
}

#[test]
fn numa_node_refusals() {
    let input = |node: Value, cpu: Value| json!({"topology": two_nodes(), "node": node, "cpu": cpu});
    let op = "attrs.numa_node";
    refused(op, &input(json!(-1), Value::Null), "NoAffinity", None);
    refused(op, &input(json!(1024), Value::Null), "OutOfRange", None);
    refused(op, &input(Value::Null, json!(8)), "UnknownCpu", None);
    refused(op, &input(Value::Null, json!(-3)), "UnknownCpu", None);
    refused(op, &input(json!(0), json!(0)), "InvalidInput", Some("node"));
    refused(op, &input(Value::Null, Value::Null), "InvalidInput", Some("node"));
    refused(op, &input(json!("0"), Value::Null), "InvalidInput", Some("node"));
    refused(op, &json!({"node": 0}), "InvalidInput", Some("topology"));
    let with = |node: Value| json!({"node": 0, "topology": {"nodes": [node]}});
    refused(
        op,
        &with(json!({"id": 0, "distances": [10, "x"]})),
        "InvalidInput",
        Some("topology.nodes[0].distances[1]"),
    );
    refused(op, &with(json!({"id": 0, "cpus": "3-1"})), "InvalidInput", Some("topology.nodes[0].cpus"));
    refused(op, &with(json!({"socket": 0})), "InvalidInput", Some("topology.nodes[0].id"));
    refused(op, &with(json!({"id": 4096})), "NodeOutOfRange", Some("topology.nodes"));
    let twice = json!({"node": 0, "topology": {"nodes": [{"id": 0}, {"id": 0}]}});
    refused(op, &twice, "DuplicateNode", Some("topology.nodes"));
}

#[test]
fn sysfs_and_roots() {
    let files = json!({
        "devices/system/node/online": "0-1",
        "devices/system/node/node0/distance": "10 11",
        "devices/system/node/node1/distance": "11 10",
        "bus/pci/devices/0000:41:00.0/numa_node": "1\n",
    });
    let input = json!({"files": files, "pci_bus_id": "0000:41:00.0", "list": true});
    assert_eq!(ok("attrs.numa_node_sysfs", &input)["attribute"], json!({"ints": [1, 0]}));
    refused("attrs.numa_node_sysfs", &json!({"files": {}, "pci_bus_id": "0000:41:00.0"}), "Sysfs", None);
    refused(
        "attrs.numa_node_sysfs",
        &json!({"files": {}, "pci_bus_id": "41:00.0"}),
        "InvalidBusId",
        Some("pci_bus_id"),
    );

    let odd = |files: Value, links: Value| json!({"files": files, "links": links, "pci_bus_id": "0000:41:00.0"});
    refused("attrs.numa_node_sysfs", &odd(json!({"a": 5}), json!({})), "InvalidInput", Some("files.a"));
    refused("attrs.pcie_root", &odd(json!({}), json!(5)), "InvalidInput", Some("links"));

    let root = |target: &str| json!({"links": {"bus/pci/devices/0000:41:00.0": target}, "pci_bus_id": "0000:41:00.0"});
    let good = root("../../../devices/pci0000:40/0000:40:01.1/0000:41:00.0");
    assert_eq!(ok("attrs.pcie_root", &good), json!({"attribute": {"string": "pci0000:40"}}));
    refused("attrs.pcie_root", &root("/sys/devices/pci0000:40/0000:41:00.0"), "InvalidLink", Some("links"));
    refused("attrs.pcie_root", &json!({"links": {}, "pci_bus_id": ""}), "InvalidBusId", Some("pci_bus_id"));
}

#[test]
fn matching() {
    let name = "resource.kubernetes.io/numaNode";
    let device = |attribute: Value| json!({"driver": "a.example", "attributes": {name: attribute}});
    let input = |kind: &str, lists: bool, devices: Vec<Value>| json!({"attribute": name, "kind": kind, "list_types": lists, "devices": devices});
    let (four, list) = (device(json!({"int": 4})), device(json!({"ints": [6, 5, 4]})));
    let yes = ok("attrs.match", &input("match", true, vec![four.clone(), list.clone()]));
    assert_eq!(yes, json!({"satisfied": true, "failed_at": null, "common": [{"int": 4}]}));
    let no = ok("attrs.match", &input("match", false, vec![four.clone(), list.clone()]));
    assert_eq!(no, json!({"satisfied": false, "failed_at": 1, "common": []}));
    let distinct = ok("attrs.match", &input("distinct", true, vec![four.clone(), list]));
    assert_eq!(distinct["failed_at"], json!(1));
    let absent = ok("attrs.match", &input("match", true, vec![four, json!({"driver": "b.example", "attributes": {}})]));
    assert_eq!(absent["failed_at"], json!(1));
    refused(
        "attrs.match",
        &json!({"attribute": "numa", "kind": "match", "devices": []}),
        "InvalidName",
        Some("attribute"),
    );
    refused("attrs.match", &json!({"attribute": name, "kind": "same", "devices": []}), "InvalidInput", Some("kind"));
}

#[test]
fn quantity() {
    assert_eq!(ok("attrs.quantity", &json!({"text": "1.5Gi"})), json!({"canonical": "1536Mi", "format": "BinarySI"}));
    refused("attrs.quantity", &json!({"text": "1i"}), "InvalidQuantity", Some("text"));
    refused("attrs.quantity", &json!({"text": "1e40"}), "OutOfRange", Some("text"));
    refused("attrs.quantity", &json!({"text": 5}), "InvalidInput", Some("text"));
    refused("attrs.quantity", &json!(7), "InvalidInput", Some("input"));
    refused("attrs.quantity", &json!(["5"]), "InvalidInput", Some("input"));
}

#[test]
fn errors_below_objects_and_policies_keep_their_place() {
    let node = |spec: Value| json!({"steps": [{"now": "2026-01-01T00:00:00Z", "node": {"spec": spec}}]});
    let gates = json!({"readinessGates": [{"conditionType": "a.io/b", "timeoutSeconds": "5"}]});
    let field = "steps[0].node.spec.readinessGates[0].timeoutSeconds";
    refused("readiness.step", &node(gates), "InvalidInput", Some(field));
    let field = "steps[0].node.spec.nodeReadinessGates[0].conditionType";
    let gates = json!({"nodeReadinessGates": [{"conditionType": 5}]});
    refused("readiness.step", &node(gates), "InvalidInput", Some(field));
    let pod = |spec: Value| json!({"node": {}, "pod": {"spec": spec}});
    refused("readiness.filter", &pod(json!({"priority": "x"})), "InvalidInput", Some("pod.spec.priority"));
    let requirements = json!({"nodeReadinessRequirements": [{"conditionType": "a/b", "status": true}]});
    let field = "pod.spec.nodeReadinessRequirements[0].status";
    refused("readiness.filter", &pod(requirements), "InvalidInput", Some(field));
    refused("readiness.filter", &pod(json!(5)), "InvalidInput", Some("pod.spec"));
    refused("readiness.filter", &json!({"node": {}, "pod": 5}), "InvalidInput", Some("pod"));
    refused("readiness.step", &node(json!({"podCIDRs": [1]})), "InvalidInput", Some("steps[0].node.spec.podCIDRs[0]"));
    refused("readiness.step", &json!({"policy": {"holdDown": 1.5}}), "InvalidInput", Some("policy.holdDown"));
    refused("readiness.step", &json!({"policy": "strict"}), "InvalidInput", Some("policy"));
    refused("readiness.step", &json!({"policy": []}), "InvalidInput", Some("policy"));
}

#[test]
fn an_orphan_that_fails_holds_up_no_other() {
    let pod = |name: &str| {
        json!({
            "metadata": {"name": name, "namespace": "ns", "uid": name},
            "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": name}],
                "containers": [{"name": "m", "resources": {"claims": [{"name": "c"}]}}]},
        })
    };
    let claim = |name: &str| {
        json!({
            "metadata": {"name": name, "namespace": "ns", "uid": format!("u-{name}")},
            "status": {"reservedFor": [{"resource": "pods", "name": name, "uid": name}],
                "allocation": {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": name}]}}},
        })
    };
    let start = |name: &str| {
        let device = json!({"pool": "p", "device": name, "requests": ["r"], "cdi_ids": [name]});
        let answer = json!({"driver": "d", "claims": {format!("u-{name}"): {"devices": [device]}}});
        [
            json!({"prepare": {"pod": pod(name), "claims": [claim(name)], "registered": ["d"]}}),
            json!({"prepare_response": answer}),
            json!({"finish_prepare": {}}),
        ]
    };
    let run = |responses: Vec<Value>| {
        let end = std::iter::once(json!({"reconcile": {"active_pods": []}}))
            .chain(responses)
            .chain([json!({"finish_unprepare": {}})]);
        let steps: Vec<Value> = start("a").into_iter().chain(start("b")).chain(end).collect();
        let steps = ok("alloc.kubelet", &json!({"steps": steps}))["steps"].clone();
        let written = steps.as_array().unwrap().last().unwrap()["checkpoint"].as_str().unwrap_or_default().to_owned();
        ["u-a", "u-b"].map(|uid| written.contains(uid))
    };
    let response = |claims: Value| json!({"unprepare_response": {"driver": "d", "claims": claims}});
    let failure = json!({"error": "boom"});
    assert_eq!(run(vec![response(json!({"u-a": failure, "u-b": {}}))]), [true, false]);
    assert_eq!(run(vec![response(json!({"u-a": {}, "u-b": failure}))]), [false, true]);
    assert_eq!(run(vec![response(json!({"u-a": {}})), response(json!({"u-b": {}}))]), [false, false]);
    assert_eq!(run(vec![response(json!({"u-a": failure})), response(json!({"u-b": {}}))]), [true, false]);
}

#[test]
fn a_kubelets_plan_file_and_gates_from_step_to_step() {
    let pod = |claims: Value| json!({"metadata": {"uid": "A"}, "spec": claims});
    let named = pod(json!({"resourceClaims": [{"name": "e", "resourceClaimName": "c"}]}));
    let claim = json!({
        "metadata": {"name": "c", "uid": "u"},
        "status": {"reservedFor": [{"uid": "A"}], "allocation": {"devices": {"results": [{"driver": "d"}]}}},
    });
    let errors = |steps: Value| -> Vec<Value> {
        let steps = ok("alloc.kubelet", &json!({"steps": steps}))["steps"].clone();
        steps.as_array().unwrap().iter().map(|step| step["error"].clone()).collect()
    };
    let prepare = json!({"prepare": {"pod": named, "claims": [claim], "registered": ["d"]}});
    let (good, bad) = (json!({"driver": "d", "claims": {"u": {}}}), json!({"driver": "d", "error": "boom"}));
    let finish = json!({"finish_prepare": {}});
    // The last answer counts, and a plan that can't be finished yet is kept.
    let told = errors(json!([prepare, {"prepare_response": good}, {"prepare_response": bad}, finish,
        {"prepare_response": good}, finish, finish]));
    assert!(told[3].as_str().unwrap().ends_with("has not been answered"), "{told:?}");
    assert_eq!((&told[4], &told[5]), (&Value::Null, &Value::Null));
    assert_eq!(told[6], json!("no prepare is under way"));

    // A file that was put in place is the file.
    let first = ok("alloc.kubelet", &json!({"steps": [prepare]}));
    let file = first["steps"][0]["checkpoint"].clone();
    let restarts =
        json!([{"restart": {"checkpoint": file}}, {"restart": {}}, {"unprepare": {"pod": named, "registered": ["d"]}}]);
    let again = ok("alloc.kubelet", &json!({"steps": restarts}));
    assert_eq!(again["steps"][2]["calls"], json!({"d": ["u"]}));

    // Gates that are not named are off.
    let extended = json!({
        "metadata": {"uid": "A"}, "spec": {"containers": []},
        "status": {"extendedResourceClaimStatus": {"resourceClaimName": "gone", "requestMappings": []}},
    });
    let asked = |gates: Value| errors(json!([{"prepare": {"pod": extended, "gates": gates}}]))[0].is_null();
    assert!(asked(json!({})) && !asked(json!({"DRAExtendedResource": true})));
}

#[test]
fn places_of_what_is_wrong() {
    let now = "2026-01-01T00:00:00Z";
    let request = json!({"now": now, "request": {"kind": "Pod", "spec": {"driver": "d.io"}}});
    refused("poolstatus.compute", &request, "InvalidInput", Some("request.kind"));
    let shared = json!({"node": {}, "allocated": {"shared": ["d/p/a/s", "a/b"]}});
    refused("alloc.allocate", &shared, "InvalidInput", Some("allocated.shared[1]"));
    let term = json!({"node": {}, "objective": [[{"term": "waste"}]]});
    refused("alloc.allocate", &term, "Missing", Some("objective[0][0].capacity"));
}

#[test]
fn the_best_devices() {
    let gpu = |name: &str, memory: &str| json!({"name": name, "capacity": {"memory": {"value": memory}}});
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    let devices = [gpu("big", "80Gi"), gpu("small", "4Gi")];
    let spec = json!({"driver": "d.io", "nodeName": "n", "pool": pool, "devices": devices});
    let request = json!([{"name": "r", "exactly": {"deviceClassName": "gpu"}}]);
    let mut input = json!({
        "profile": "v1.37",
        "node": {"metadata": {"name": "n"}},
        "classes": [{"metadata": {"name": "gpu"}, "spec": {}}],
        "slices": [{"metadata": {"name": "s"}, "spec": spec}],
        "claims": [{"metadata": {"name": "c"}, "spec": {"devices": {"requests": request}}}],
    });
    let device = |answer: &Value| answer["results"][0]["devices"]["results"][0]["device"].clone();
    let first = ok("alloc.allocate", &input);
    assert_eq!((device(&first), first.get("value")), (json!("big"), None));
    input["objective"] = json!([]);
    let empty = ok("alloc.allocate", &input);
    assert_eq!((device(&empty), &empty["value"], &empty["proof"]), (json!("big"), &json!([]), &json!("first_fit")));
    input["objective"] = json!([[{"term": "waste", "capacity": "d.io/memory", "weight": 2}]]);
    let best = ok("alloc.allocate", &input);
    assert_eq!((device(&best), &best["value"], &best["proof"]), (json!("small"), &json!([100]), &json!("least")));
    let reason = "p/small rather than p/big: less of d.io/memory is wasted (waste of d.io/memory 50 instead of 1000)";
    assert_eq!(best["reason_of_choice"], reason);
    input["objective_steps"] = json!(0);
    let stopped = ok("alloc.allocate", &input);
    assert_eq!((device(&stopped), &stopped["value"]), (json!("big"), &json!([2000])));
    assert_eq!(stopped["proof"], json!({"best": {"bound": [100]}}));

    let scores =
        |scale: &str| ok("alloc.node_scores", &json!({"values": [[4], [1], [2]], "scale": scale}))["scores"].clone();
    assert_eq!((scores("rank"), scores("linear")), (json!([0, 100, 50]), json!([0, 100, 66])));
    refused("alloc.node_scores", &json!({"values": [[1, 2]], "scale": "linear"}), "InvalidInput", Some("values"));
}

#[test]
fn frames() {
    let timed = answer(&json!({"id": "a", "op": "attrs.quantity", "input": {"text": "1"}, "repeat": 3}));
    assert!(timed["timing"]["index_ns"].is_u64() && timed["timing"]["run_ns"].is_u64());
    assert_eq!(timed["id"], json!("a"));
    let unknown = answer(&json!({"id": {"n": 1}, "op": "attrs.nothing", "input": {}}));
    assert_eq!((&unknown["id"], &unknown["error"]["kind"]), (&json!({"n": 1}), &json!("UnknownOp")));
    let no_op = answer(&json!({"id": 2}));
    assert_eq!((&no_op["error"]["kind"], &no_op["error"]["field"]), (&json!("InvalidInput"), &json!("op")));
    for bad in replies(&[b"{".as_slice(), b"\xff", b"nonsense"]) {
        let bad: Value = serde_json::from_str(&bad).unwrap();
        assert_eq!(bad["error"]["kind"], json!("BadJson"));
    }
    assert_eq!(answer(&json!([]))["error"]["kind"], json!("InvalidInput"));
}

#[test]
fn the_program_answers_line_by_line() {
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_replay")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = "{\"id\":1,\"op\":\"attrs.quantity\",\"input\":{\"text\":\"1k\"}}\n\noops\n{\"id\":3,\"op\":\"x.y\"}";
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let answers: Vec<Value> = output
        .stdout
        .split(|c| *c == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0], json!({"id": 1, "ok": {"canonical": "1k", "format": "DecimalSI"}}));
    assert_eq!((&answers[1]["error"]["kind"], &answers[2]["error"]["kind"]), (&json!("BadJson"), &json!("UnknownOp")));
}

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_machines() {
    for entry in fs::read_dir(shared_corpus("topologies")).unwrap() {
        let machine: Value = serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        for (node, expected) in machine["expected"].as_object().unwrap() {
            let node: i64 = node.parse().unwrap();
            let input = json!({"topology": {"nodes": machine["nodes"]}, "node": node, "list": true});
            let answer = ok("attrs.numa_node", &input);
            assert_eq!(answer["attribute"]["ints"], expected["numaNode"], "{} node {node}", machine["name"]);
        }
    }
}

fn slice_with(skip: &Value) -> Value {
    json!({
        "metadata": {"name": "s"},
        "spec": {"driver": "d.example.com", "nodeName": "n", "skipNodeOperations": skip,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}
    })
}

#[test]
fn validation_answers_with_problems_or_with_what_is_stored() {
    let op = "alloc.validate_slice";
    // The KEP rejects, Kubernetes 1.37 drops.
    let rejected = ok(op, &json!({"new": slice_with(&json!(true))}));
    let gate = "DRAOptionalNodePreparation";
    let detail = format!("must not be set while the feature gate {gate} is disabled");
    let field = "spec.skipNodeOperations";
    let errors = json!([{"field": field, "type": "FieldValueForbidden", "detail": detail}]);
    assert_eq!(rejected, json!({"errors": errors, "object": null}));
    let dropped = ok(op, &json!({"profile": "v1.37", "new": slice_with(&json!(true))}));
    assert_eq!((&dropped["errors"], dropped["object"]["spec"].get("skipNodeOperations")), (&json!([]), None));
    // With the gate on, each profile writes its own form.
    let on = ok(op, &json!({"features": {gate: true}, "new": slice_with(&json!(["*"]))}));
    assert_eq!(on["object"]["spec"]["skipNodeOperations"], true);
    let on = json!({"profile": "v1.37", "gates": {"DRAOptionalNodeOperations": true}, "new": slice_with(&json!(true))});
    assert_eq!(ok(op, &on)["object"]["spec"]["skipNodeOperations"], json!(["*"]));
    // Stored declarations are kept.
    let kept = ok(op, &json!({"old": slice_with(&json!(true)), "new": slice_with(&json!(true))}));
    assert_eq!(kept["object"]["spec"]["skipNodeOperations"], true);
    let only_unprepare = slice_with(&json!(["NodeUnprepareResources"]));
    refused(op, &json!({"features": {gate: true}, "new": only_unprepare}), "NotExpressible", None);
    refused(op, &json!({}), "InvalidInput", Some("new"));
    refused(op, &json!({"new": {"spec": {"devices": 3}}}), "InvalidInput", Some("new.spec.devices"));
    refused(op, &json!({"new": slice_with(&json!(3))}), "InvalidInput", Some("new.spec.skipNodeOperations"));
}

#[test]
fn a_server_has_a_clock_and_reads_strictly() {
    let op = "alloc.validate_taint_rule";
    let rule = |time: Option<&str>| {
        let mut taint = json!({"key": "k", "effect": "None"});
        if let Some(time) = time {
            taint["timeAdded"] = json!(time);
        }
        json!({"metadata": {"name": "r"}, "spec": {"taint": taint}})
    };
    let stored = |input: &Value| ok(op, input)["object"]["spec"]["taint"].get("timeAdded").cloned();
    let now = "2026-11-22T10:00:00Z";
    assert_eq!(stored(&json!({"new": rule(None)})), None);
    assert_eq!(stored(&json!({"now": now, "new": rule(None)})), Some(json!(now)));
    let spaced = json!({"new": rule(Some("2026-01-01 00:00:00Z"))});
    refused(op, &spaced, "InvalidInput", Some("new.spec.taint.timeAdded"));
    // Times after the last of the types, which a server stores.
    for late in ["9999-12-30T22:00:01Z", "9999-12-31T23:59:59.5-12:00"] {
        let read = if late.contains('.') { "9999-12-30T22:00:00.000000Z" } else { "9999-12-30T22:00:00Z" };
        let time: Value = stored(&json!({"new": rule(Some(late))})).unwrap();
        assert!(read.starts_with(&time.as_str().unwrap()[..19]), "{time}");
    }
    let beyond_the_calendar = json!({"new": rule(Some("9999-12-32T00:00:00Z"))});
    refused(op, &beyond_the_calendar, "InvalidInput", Some("new.spec.taint.timeAdded"));
    let mut empty = slice_with(&json!([]));
    empty["spec"]["devices"] = json!([{"name": "a", "capacity": {"m": {"value": ""}}}]);
    let field = "new.spec.devices[0].capacity[m].value";
    refused("alloc.validate_slice", &json!({"new": empty}), "InvalidInput", Some(field));
    // A server takes the zero value for a null in a list; the types have no place for it.
    let mut null = slice_with(&json!([]));
    null["spec"]["devices"] = json!([{"name": "a", "attributes": {"i": {"ints": [1, null]}}}]);
    refused("alloc.validate_slice", &json!({"new": null}), "InvalidInput", Some("new"));
}

#[test]
fn gates_that_nobody_has_are_refused() {
    let with = |gate: &str| json!({"new": {"metadata": {"name": "c"}}, "features": {gate: true}});
    let both = "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus";
    for gate in [both, "DRAExtendedResource", "DRAOptionalNodePreparation", "DRAOptionalNodeOperations"] {
        ok("alloc.validate_class", &with(gate));
    }
    refused("alloc.validate_class", &with("DRADeviceTaint"), "InvalidInput", Some("features"));
    refused("nnn.run", &json!({"gates": {"NominatedNodeName": true}, "steps": []}), "InvalidInput", Some("gates"));
    refused(
        "poolstatus.compute",
        &json!({"features": {"DRAPool": true}, "request": {}}),
        "InvalidInput",
        Some("features"),
    );
}

#[test]
fn every_kind_of_object_is_validated() {
    let fields = |op: &str, input: &Value| -> Vec<String> {
        let answer = ok(op, input);
        assert_eq!(answer["object"].is_null(), answer["errors"] != json!([]), "{op}");
        let errors = answer["errors"].as_array().unwrap();
        errors.iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect()
    };
    let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": true}}],
        "config": [{"opaque": {"driver": "d", "parameters": null}}]}}});
    let parameters = "spec.devices.config[0].opaque.parameters";
    assert_eq!(fields("alloc.validate_claim", &json!({"new": claim})), [parameters]);
    let template = json!({"metadata": {"name": "t"}, "spec": {"spec": claim["spec"]}});
    assert_eq!(fields("alloc.validate_claim_template", &json!({"new": template})), [format!("spec.{parameters}")]);
    let admin = json!({"new": {"spec": {"devices": {"requests": claim["spec"]["devices"]["requests"]}}},
        "features": {"DRAAdminAccess": true}, "namespace": {"metadata": {"name": "n"}}});
    assert_eq!(fields("alloc.validate_claim", &admin), ["spec.devices.requests[0].adminAccess"]);
    let mut status = claim.clone();
    status["status"] = json!({"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]});
    let update = json!({"old": claim, "new": status});
    assert_eq!(fields("alloc.validate_claim_status", &update), ["status.reservedFor"]);
    let class = json!({"new": {"metadata": {"name": "C"}}});
    assert_eq!(fields("alloc.validate_class", &class), ["metadata.name"]);
    let rule = json!({"new": {"spec": {"taint": {"key": "k", "effect": "E"}}}});
    assert_eq!(fields("alloc.validate_taint_rule", &rule), ["spec.taint.effect"]);
    let fine = json!({"new": {"spec": {"taint": {"key": "k", "effect": "None"}}}});
    assert_eq!(fields("alloc.validate_taint_rule", &fine), [""; 0]);
    let condition =
        json!({"type": "T", "status": "?", "reason": "R", "message": "", "lastTransitionTime": "2026-11-01T00:00:00Z"});
    let status =
        json!({"new": {"spec": {"taint": {"key": "k", "effect": "E"}}, "status": {"conditions": [condition]}}});
    assert_eq!(fields("alloc.validate_taint_rule", &status), ["spec.taint.effect", "status.conditions[0].status"]);
}

fn gated(conditions: &Value) -> Value {
    let taint = json!({"key": "a.example/not-ready", "effect": "NoSchedule"});
    let gate = json!({"conditionType": "a.example/Ready", "timeoutSeconds": 60, "failureAction": "Taint", "readinessTaint": taint});
    json!({"metadata": {"name": "n"}, "spec": {"readinessGates": [gate]}, "status": {"conditions": conditions}})
}

#[test]
fn readiness_filters_and_takes_steps() {
    let waiting = gated(&json!([{"type": "Ready", "status": "True"}]));
    let filtered = ok("readiness.filter", &json!({"policy": "kep", "node": waiting, "pod": {}}));
    assert_eq!(filtered["allow"], json!(false));
    assert_eq!(filtered["reasons"][0]["conditionType"], json!("a.example/Ready"));

    let step = |now: &str| json!({"now": now, "node": waiting, "kubeletInstance": "k"});
    let steps = [step("2026-01-01T00:00:00Z"), step("2026-01-01T00:01:00Z")];
    let played = ok("readiness.step", &json!({"policy": "kep", "steps": steps}));
    let (first, second) = (&played["steps"][0], &played["steps"][1]);
    assert_eq!((&first["wake_up"], &first["verdict"]["schedulable"]), (&json!("2026-01-01T00:01:00Z"), &json!(false)));
    let types: Vec<&str> =
        second["outputs"].as_array().unwrap().iter().map(|output| output["type"].as_str().unwrap()).collect();
    assert_eq!(types[..2], ["AddTaint", "PatchCondition"]);
    assert_eq!(second["verdict"]["gates"][0]["state"], json!("TaintHandoff"));
}

#[test]
fn readiness_gates_are_validated() {
    let gate = json!({"conditionType": "bad", "timeoutSeconds": 0, "failureAction": "BypassWithWarning"});
    let answer = ok("readiness.validate", &json!({"gates": [gate], "lengths": "strict"}));
    let fields: Vec<&str> =
        answer["errors"].as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["spec.readinessGates[0].conditionType", "spec.readinessGates[0].timeoutSeconds"]);
}

#[test]
fn a_list_is_no_object_below_steps_and_specs() {
    let steps = |step: Value| json!({"steps": [step]});
    refused("nnn.run", &steps(json!({"pod_deleted": ["u"]})), "InvalidInput", Some("steps[0].pod_deleted"));
    refused("nnn.run", &steps(json!({"restart": [{}, "upstream"]})), "InvalidInput", Some("steps[0].restart"));
    refused("alloc.kubelet", &steps(json!({"finish_prepare": []})), "InvalidInput", Some("steps[0].finish_prepare"));
    let node = json!({"node": {"spec": {"readinessGates": [["a.io/b", 5]]}}});
    refused("readiness.filter", &node, "InvalidInput", Some("node.spec.readinessGates[0]"));
    let both = json!({"node": {"spec": {"readinessGates": [], "nodeReadinessGates": []}}});
    refused("readiness.filter", &both, "InvalidInput", Some("node.spec"));
    let pod = json!({"node": {}, "pod": {"spec": {"nodeReadinessRequirements": [["a.io/b", "True"]]}}});
    refused("readiness.filter", &pod, "InvalidInput", Some("pod.spec.nodeReadinessRequirements[0]"));
}

#[test]
fn readiness_settings_count() {
    let mut node = gated(&json!([{"type": "Ready", "status": "True"},
        {"type": "a.example/Ready", "status": "Unknown", "reason": "TimeoutExceeded"}]));
    let allows = |policy: Value, node: &Value, pod: Value| {
        ok("readiness.filter", &json!({"policy": policy, "node": node, "pod": pod}))["allow"].clone()
    };
    assert_eq!(allows(json!("kep"), &node, json!({})), true);
    assert_eq!(allows(json!("hardened"), &node, json!({})), false);
    assert_eq!(allows(json!({"awaitTaint": true}), &node, json!({})), false);
    node["status"]["conditions"][1]["status"] = json!("False");
    let scoped = json!({"spec": {"nodeReadinessRequirements": [{"conditionType": "Ready", "status": "True"}]}});
    assert_eq!(allows(json!("kep"), &node, scoped.clone()), true);
    assert_eq!(allows(json!({"additive": true}), &node, scoped), false);

    node["status"]["conditions"][1]["status"] = json!("True");
    let labels = json!({"readiness-gate.a.example/Ready": "true"});
    let labelled = json!({"metadata": {"labels": labels}, "status": node["status"]});
    let outputs = |settings: Value, synced: bool| {
        let first = json!({"now": "2026-01-01T00:00:00Z", "node": node});
        let second = json!({"now": "2026-01-01T00:00:01Z", "node": labelled, "synced": synced});
        let mut input = json!({"steps": [first, second]});
        input.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let steps = ok("readiness.step", &input)["steps"].clone();
        let types = |step: usize| steps[step]["outputs"].as_array().unwrap().iter().map(|one| one["type"].clone());
        [0, 1].map(|step| types(step).collect::<Vec<_>>())
    };
    let (set, remove, event) = (json!("SetLabel"), json!("RemoveLabel"), json!("Event"));
    assert_eq!(outputs(json!({"role": "combined"}), false), [vec![set.clone(), event.clone()], vec![]]);
    assert_eq!(outputs(json!({"role": "kubelet"}), true), [vec![set.clone()], vec![remove]]);
    assert_eq!(outputs(json!({"role": "nlc"}), true), [vec![event.clone()], vec![]]);
    for policy in [json!({"enabled": false}), json!({"suspend": true}), json!({"mode": "suspended"})] {
        assert_eq!(outputs(json!({"policy": policy}), false), [Vec::<Value>::new(), Vec::new()], "{policy}");
    }
    assert_eq!(outputs(json!({"policy": {"enabled": true, "suspend": false}}), false)[0], [set, event]);
    let wrong = json!({"policy": {"enabled": "no"}, "steps": []});
    refused("readiness.step", &wrong, "InvalidInput", Some("policy.enabled"));

    let validated = |input: Value| ok("readiness.validate", &input)["errors"].as_array().unwrap().len();
    let domain = ["a", "b", "c"].map(|part| part.repeat(63)).join(".");
    let long = json!([{"conditionType": format!("{domain}/{}", "n".repeat(63)), "timeoutSeconds": 60,
        "failureAction": "BypassWithWarning"}]);
    assert_eq!(validated(json!({"gates": long})), 1);
    assert_eq!(validated(json!({"gates": long, "lengths": "prefix-only"})), 0);
    for (actor, errors) in [("node", 1), ("kubelet", 1), ("system:node:n", 1), ("admin", 0)] {
        assert_eq!(validated(json!({"old": long, "new": [], "actor": actor})), errors, "{actor}");
    }
}

#[test]
fn an_answer_does_not_wait_for_the_next_line() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_replay"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    for text in ["1", "2"] {
        writeln!(stdin, "{}", json!({"op": "attrs.quantity", "input": {"text": text}})).unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["ok"]["canonical"], text);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
