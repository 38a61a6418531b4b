//! Hostile input to every program, with limits of memory and time: recipes that once broke a program, and documents that
//! are drawn. `HOSTILE_SECONDS` sets for how long documents are drawn, `HOSTILE_SEED` where that begins.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

#[path = "hostile/draw.rs"]
mod draw;
#[path = "hostile/limits.rs"]
mod limits;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use draw::Draw;
use limits::{Ended, Limits, USUAL, run};

const REPLAY: &str = env!("CARGO_BIN_EXE_replay");

/// Programs that read manifests, with their arguments for the file `m.yaml`.
const READERS: [(&str, &[&str]); 8] = [
    (env!("CARGO_BIN_EXE_autoscaler"), &["m.yaml"]),
    (env!("CARGO_BIN_EXE_driver"), &["--migrate", "m.yaml"]),
    (env!("CARGO_BIN_EXE_kubelet"), &["reconcile", "m.yaml"]),
    (env!("CARGO_BIN_EXE_kubelet"), &["prepare", "train", "m.yaml"]),
    (env!("CARGO_BIN_EXE_node-agent"), &["m.yaml", "--until", "1000"]),
    (env!("CARGO_BIN_EXE_nominate"), &["m.yaml", "--timeline", "timeline.yaml"]),
    (env!("CARGO_BIN_EXE_pool-status"), &["m.yaml"]),
    (env!("CARGO_BIN_EXE_scheduler"), &["m.yaml"]),
];

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("timeline.yaml"), "[]").unwrap();
    folder
}

/// Gives a manifest to every program that reads some.
fn read_by_all(manifest: &str, limits: Limits) -> Vec<Ended> {
    let folder = folder();
    fs::write(folder.path().join("m.yaml"), manifest).unwrap();
    let ended = READERS.map(|(program, args)| {
        let ended = run(folder.path(), program, args, None, limits);
        ended.unwrap_or_else(|how| panic!("{program} {args:?}: {how}"))
    });
    ended.into()
}

/// Asks `replay` one line, and returns its answer.
fn replayed(line: &Value, limits: Limits) -> Result<String, String> {
    let folder = folder();
    fs::write(folder.path().join("in.jsonl"), format!("{line}\n")).unwrap();
    run(folder.path(), REPLAY, &[], Some("in.jsonl"), limits).map(|ended| ended.stdout)
}

#[test]
fn aliases_do_not_make_a_document_larger_than_it_is() {
    let mut bomb = format!("kind: Node\nmetadata: {{name: a}}\nx: &a0 \"{}\"\n", "x".repeat(45_000));
    for level in 1..=5 {
        let below = vec![format!("*a{}", level - 1); 9].join(",");
        writeln!(bomb, "y{level}: &a{level} [{below}]").unwrap();
    }
    for ended in read_by_all(&bomb, Limits { memory: 512, seconds: 5 }) {
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        assert!(ended.stderr.contains("anchors and aliases repeat more than the document has"), "{}", ended.stderr);
    }
    let modest = "kind: Node\nmetadata: &m {name: a, labels: {app: x}}\nspec: {}\nstatus: {capacity: &c {cpu: '4'}, allocatable: *c}\n";
    let folder = folder();
    fs::write(folder.path().join("m.yaml"), modest).unwrap();
    let read = run(folder.path(), env!("CARGO_BIN_EXE_autoscaler"), &["m.yaml"], None, USUAL).unwrap();
    assert_eq!((read.code, read.stderr.as_str()), (0, ""), "aliases as people use them");
}

#[test]
fn deep_documents_and_large_files_are_refused_in_words() {
    let deep = format!("kind: Node\nmetadata: {{name: a}}\nspec: {}{}\n", "[".repeat(1000), "]".repeat(1000));
    for ended in read_by_all(&deep, USUAL) {
        assert!(ended.code == 1 && ended.stderr.contains("nested deeper than 64"), "{}", ended.stderr);
    }
    let name = format!("kind: Node\nmetadata: {{name: {}}}\n", "x".repeat(100_000));
    for ended in read_by_all(&name, USUAL) {
        assert!(ended.code == 1 && ended.stderr.contains("metadata.name: more than 253 bytes"), "{}", ended.stderr);
    }
    let folder = folder();
    let endless = run(folder.path(), env!("CARGO_BIN_EXE_scheduler"), &["/dev/zero"], None, USUAL).unwrap();
    assert!(endless.code == 1 && endless.stderr.contains("/dev/zero: more than 67108864 bytes"), "{}", endless.stderr);
}

#[test]
fn pipes_in_a_folder_are_not_waited_for() {
    let folder = folder();
    let made = Command::new("mkfifo").arg(folder.path().join("x.yaml")).status().unwrap();
    assert!(made.success());
    fs::write(folder.path().join("m.yaml"), "kind: Node\nmetadata: {name: n}\n").unwrap();
    let read = run(folder.path(), env!("CARGO_BIN_EXE_autoscaler"), &["."], None, USUAL).unwrap();
    assert!(read.stdout.contains('n'), "{}", read.stderr);
}

#[test]
fn unknown_fields_are_named_up_to_ten() {
    let fields = (0..30_000).map(|index| format!("field{index}: {index}")).collect::<Vec<_>>().join("\n");
    for ended in read_by_all(&format!("kind: Node\nmetadata: {{name: n}}\n{fields}\n"), USUAL).into_iter().take(1) {
        assert_eq!(ended.stderr.lines().count(), 11, "{}", ended.stderr);
        assert!(ended.stderr.ends_with("m.yaml:1: Node n: and 29990 more unknown fields\n"), "{}", ended.stderr);
    }
}

#[test]
fn sentences_quote_little_of_a_document() {
    let long = "x".repeat(1_000_000);
    for document in [
        format!("kind: Node\nmetadata: {{name: {long}}}\n"),
        format!("kind: Node\nmetadata: {{name: n, labels: {{\"{long}\": [1]}}}}\n"),
        format!("kind: Node\nmetadata: {{name: n, labels: \"{long}\"}}\n"),
        format!("kind: {long}\nmetadata: {{name: n}}\n"),
        format!("kind: List\nitems: [\"{long}\"]\n"),
    ] {
        for ended in read_by_all(&document, USUAL) {
            assert!(ended.stderr.len() < 4_096, "{}: {} bytes", &document[..60], ended.stderr.len());
        }
    }
    let empty = read_by_all(&"{}\n---\n".repeat(14_000), USUAL);
    assert!(empty.iter().all(|ended| ended.stderr.lines().count() <= 12));
    let counted = "m.yaml: kind: must be set in 13990 more objects";
    assert!(empty.iter().any(|ended| ended.stderr.contains(counted)), "{}", empty[0].stderr);
}

#[test]
fn amounts_that_no_server_stores_are_named_and_the_others_count() {
    let pod = |name: &str, cpu: &str| {
        format!(
            "---\nkind: Pod\nmetadata: {{name: {name}, namespace: d, uid: {name}}}\nspec: {{nodeName: n, containers: [{{name: c, \
             resources: {{requests: {{cpu: {cpu}}}}}}}]}}\n"
        )
    };
    let node = "kind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: '4'}}\n";
    let folder = folder();
    fs::write(
        folder.path().join("m.yaml"),
        node.to_owned() + &pod("a", "'3'") + &pod("b", "4 cores") + &pod("c", "'-4'"),
    )
    .unwrap();
    let read = run(folder.path(), env!("CARGO_BIN_EXE_autoscaler"), &["m.yaml"], None, USUAL).unwrap();
    assert!(read.code == 1 && read.stdout.contains("3 of 4"), "{}", read.stdout);
    assert!(read.stderr.contains("m.yaml:11: Pod d/b: spec.containers[0].resources.requests.cpu: "), "{}", read.stderr);
    assert!(
        read.stderr.contains("Pod d/c: spec.containers[0].resources.requests.cpu: -4: must not be negative"),
        "{}",
        read.stderr
    );
}

#[test]
fn states_of_a_run_are_not_kept() {
    let pod = |index: usize| {
        json!({"pod": {"metadata": {"namespace": "d", "name": format!("p{index}"), "uid": format!("u{index}")},
            "spec": {"priority": 0}, "status": {"nominatedNodeName": "n1"}}})
    };
    let steps: Vec<Value> = (0..800).map(pod).collect();
    let line = json!({"op": "nnn.run", "input": {"steps": steps}});
    assert!(replayed(&line, Limits { memory: 384, seconds: 60 }).unwrap().ends_with("]}}\n"));
    let last = json!({"op": "nnn.run", "input": {"steps": steps, "state": "last"}});
    assert!(replayed(&last, Limits { memory: 640, seconds: 5 }).unwrap().len() < 400_000);
}

#[test]
fn long_links_are_refused() {
    let links = json!({"bus": "a/".repeat(100_000)});
    let line =
        json!({"op": "attrs.numa_node_sysfs", "input": {"files": {}, "links": links, "pci_bus_id": "0000:c1:00.0"}});
    assert!(replayed(&line, Limits { seconds: 5, ..USUAL }).unwrap().contains("link too long"));
}

#[test]
fn orphans_take_linear_time() {
    let claim = |index: usize| {
        json!({"ClaimUID": format!("u{index}"), "ClaimName": format!("c{index}"), "Namespace": "d",
            "PodUIDs": {format!("p{index}"): {}}, "DriverState": {}})
    };
    let claims: Vec<Value> = (0..20_000).map(claim).collect();
    let data = json!({"kind": "DRACheckpoint", "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1", "ClaimInfoStateList": claims});
    let data = data.to_string();
    let file = json!({"Data": data, "Checksum": crc32fast::hash(data.as_bytes())}).to_string();
    let steps =
        json!([{"restart": {"checkpoint": file}}, {"reconcile": {"active_pods": []}}, {"finish_unprepare": {}}]);
    let line = json!({"op": "alloc.kubelet", "input": {"steps": steps}});
    let answer = replayed(&line, Limits { memory: 1280, seconds: 10 }).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let written: Value = serde_json::from_str(answer["ok"]["steps"][2]["checkpoint"].as_str().unwrap()).unwrap();
    assert!(written["Data"].as_str().unwrap().ends_with(r#""ClaimInfoStateList":[]}"#), "{written}");
}

/// Asks for an allocation on nodes with one pool that all see.
fn allocation(nodes: usize, devices: &[Value], claims: &[Value], explain: &str) -> Value {
    let slice = |name: &str, field: &str, content: &Value| {
        let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 2});
        json!({"metadata": {"name": name},
            "spec": {"driver": "gpu.example.com", "allNodes": true, "pool": pool, field: content}})
    };
    let counter = json!({"value": "1000003"});
    let sets = json!([{"name": "s", "counters": {"a": counter, "b": counter, "c": counter, "d": counter}}]);
    let nodes: Vec<Value> = (0..nodes).map(|index| json!({"metadata": {"name": format!("n{index}")}})).collect();
    let features = json!({"DRAPartitionableDevices": true, "DRAPrioritizedList": true});
    json!({"op": "alloc.allocate", "input": {"nodes": nodes, "claims": claims, "features": features, "explain": explain,
        "slices": [slice("counters", "sharedCounters", &sets), slice("devices", "devices", &json!(devices))],
        "classes": [{"metadata": {"name": "gpu"}, "spec": {}}]}})
}

fn claim_of(name: &str, requests: &Value) -> Value {
    json!({"metadata": {"namespace": "d", "name": name, "uid": name}, "spec": {"devices": {"requests": requests}}})
}

fn devices(count: usize) -> Vec<Value> {
    (0..count).map(|index| json!({"name": format!("d{index}")})).collect()
}

#[test]
fn many_claims_in_one_call_take_linear_memory() {
    let request = json!([{"name": "r", "exactly": {"deviceClassName": "gpu"}}]);
    let claims: Vec<Value> = (0..5_000).map(|index| claim_of(&format!("c{index}"), &request)).collect();
    let answer = replayed(&allocation(1, &devices(100), &claims, "off"), Limits { memory: 640, seconds: 10 }).unwrap();
    assert!(answer.contains("unsatisfied"), "{answer}");
}

#[test]
fn a_long_list_of_alternatives_is_explained_in_time() {
    // Each alternative is a question, of which each would copy all of them.
    let tolerations = vec![json!({"key": "example.com/key", "operator": "Exists", "effect": "NoSchedule"}); 10];
    let alternative = |index: usize| json!({"name": format!("a{index}"), "deviceClassName": "gpu", "count": 9, "tolerations": tolerations});
    let alternatives: Vec<Value> = (0..3_000).map(alternative).collect();
    let claim = claim_of("c", &json!([{"name": "r", "firstAvailable": alternatives}]));
    let answer = replayed(&allocation(1, &devices(8), &[claim], "full"), Limits { memory: 1280, seconds: 10 }).unwrap();
    assert!(answer.contains("no alternative is possible"), "{}", &answer[..1000]);
}

/// The work that a program does without being told a limit is some seconds of optimized code.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes a minute without optimization")]
fn a_hard_call_ends_by_its_default_budget() {
    let mut draw = Draw(1);
    let consumption = |draw: &mut Draw| {
        let mut amount = || json!({"value": (20_000 + draw.below(40_000)).to_string()});
        json!([{"counterSet": "s", "counters": {"a": amount(), "b": amount(), "c": amount(), "d": amount()}}])
    };
    let device = |index: usize| json!({"name": format!("d{index}"), "consumesCounters": consumption(&mut draw)});
    let devices: Vec<Value> = (0..64).map(device).collect();
    let request =
        |index: usize| json!({"name": format!("r{index}"), "exactly": {"deviceClassName": "gpu", "count": 8}});
    let claim = claim_of("c", &(0..4).map(request).collect());
    let answer = replayed(&allocation(500, &devices, &[claim], "off"), Limits { memory: 1280, seconds: 10 }).unwrap();
    assert!(answer.contains(r#""limit":"call""#), "{}", &answer[..1000]);
}

#[test]
fn many_taints_are_recorded_in_time() {
    let taints: Vec<Value> =
        (0..4_000).map(|index| json!({"key": format!("k{index}"), "effect": "NoSchedule"})).collect();
    let node = json!({"metadata": {"uid": "u"}, "spec": {"taints": taints}});
    let steps = json!([{"now": "2026-01-01T00:00:00Z", "node": node}]);
    let line = json!({"op": "readiness.step", "input": {"steps": steps}});
    assert!(replayed(&line, Limits { seconds: 10, ..USUAL }).unwrap().contains("k3999"));
}

/// Documents of the examples.
fn documents() -> Vec<Value> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let mut documents = Vec::new();
    for file in [
        "clusters/rack.yaml",
        "clusters/stories.yaml",
        "kubelet/pods.yaml",
        "pools/cluster.yaml",
        "autoscaler/cluster.yaml",
        "readiness/nodes.yaml",
        "stories/5233/pods.yaml",
        "stories/5233/rule.yaml",
        "stories/5233/kubelet-configuration.yaml",
    ] {
        let text = fs::read_to_string(data.join(file)).unwrap();
        let options = serde_saphyr::options! { strict_booleans: true };
        for mut document in serde_saphyr::from_multiple_with_options::<Value>(&text, options).unwrap() {
            let items = document.get_mut("items").map(Value::take);
            documents.extend(items.and_then(|items| items.as_array().cloned()).unwrap_or_else(|| vec![document]));
        }
    }
    documents
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| document["kind"] == kind).collect()
}

/// Returns a line for `replay` with objects of the examples.
fn line(draw: &mut Draw, documents: &[Value]) -> Value {
    let of_kind = |kind: &str| of_kind(documents, kind);
    let one = |draw: &mut Draw, kind: &str| (*draw.pick(&of_kind(kind))).clone();
    let now = "2026-01-01T00:00:00Z";
    let (op, input) = match draw.below(12) {
        0 | 1 => {
            let claims: Vec<_> = (0..=draw.below(2)).map(|_| one(draw, "ResourceClaim")).collect();
            let input = json!({"node": one(draw, "Node"), "claims": claims, "classes": of_kind("DeviceClass"),
                "slices": of_kind("ResourceSlice"), "explain": "full", "steps": 100_000});
            ("alloc.allocate", input)
        }
        2 => ("alloc.validate_slice", json!({"new": one(draw, "ResourceSlice")})),
        3 => ("alloc.validate_claim", json!({"new": one(draw, "ResourceClaim")})),
        4 => ("alloc.validate_class", json!({"new": one(draw, "DeviceClass")})),
        5 => {
            let old = one(draw, "ResourceClaim");
            ("alloc.validate_claim_status", json!({"old": old, "new": old}))
        }
        6 => {
            let request = json!({"spec": {"driver": "gpu.example.com"}});
            let input = json!({"request": request, "slices": of_kind("ResourceSlice"), "claims": of_kind("ResourceClaim"), "now": now});
            ("poolstatus.compute", input)
        }
        7 => {
            let node = one(draw, "Node");
            let later = json!({"now": "2026-01-01T00:10:00Z", "node": node});
            ("readiness.step", json!({"steps": [{"now": now, "node": node}, later], "state": "last"}))
        }
        8 => ("readiness.filter", json!({"node": one(draw, "Node"), "pod": one(draw, "Pod")})),
        9 => {
            let pods: Vec<Value> = of_kind("Pod").into_iter().map(|pod| json!({"pod": pod})).collect();
            ("nnn.run", json!({"steps": pods, "state": "last"}))
        }
        10 => {
            let prepare =
                json!({"pod": one(draw, "Pod"), "claims": of_kind("ResourceClaim"), "registered": ["gpu.example.com"]});
            ("alloc.kubelet", json!({"steps": [{"prepare": prepare}, {"finish_prepare": {}}, {"restart": {}}]}))
        }
        _ => {
            let files = json!({"devices/system/node/online": "0-1", "devices/system/node/node0/distance": "10 20",
                "bus/pci/devices/0000:c1:00.0/numa_node": "0"});
            let links =
                json!({"bus/pci/devices/0000:c1:00.0": "../../../devices/pci0000:c0/0000:c1:00.0", "bus/pci": "x"});
            (
                "attrs.numa_node_sysfs",
                json!({"files": files, "links": links, "pci_bus_id": "0000:c1:00.0", "list": true}),
            )
        }
    };
    json!({"op": op, "input": input})
}

#[test]
fn drawn_documents_end_every_program_in_time() {
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (length, first) = (Duration::from_secs(number("HOSTILE_SECONDS", 5)), number("HOSTILE_SEED", 1));
    let (begin, documents) = (Instant::now(), documents());
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let (mut seed, mut failures) = (first, Vec::new());
    while begin.elapsed() < length {
        let mut draw = Draw(seed.wrapping_mul(0x1000));
        let (program, args, stdin): (&str, &[&str], _) = if draw.below(2) == 0 {
            let mut line = line(&mut draw, &documents);
            draw.spoil(&mut line["input"]);
            write("in.jsonl", &format!("{line}\n"));
            (REPLAY, &[], Some("in.jsonl"))
        } else {
            let manifest = if draw.below(5) == 0 {
                draw.aliased()
            } else {
                // The timeline of a simulation is not what is tried here: few objects are enough.
                let count = 1 + draw.below(8);
                let mut objects: Vec<Value> = (0..count).map(|_| draw.pick(&documents).clone()).collect();
                let index = draw.below(count);
                draw.spoil(&mut objects[index]);
                objects.iter().map(|object| format!("---\n{object}\n")).collect::<Vec<_>>().concat()
            };
            write("m.yaml", &manifest);
            let (program, args) = *draw.pick(&READERS);
            (program, args, None)
        };
        if let Err(how) = run(folder.path(), program, args, stdin, USUAL) {
            failures.push(format!("HOSTILE_SEED={seed}: {program} {args:?}: {how}"));
        }
        seed += 1;
    }
    println!("{} documents", seed - first);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
