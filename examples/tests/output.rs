//! Output that all programs have in common: version, exit status, and output that can't be written or must be escaped.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Programs, each with arguments for an answer.
const PROGRAMS: [(&str, &[&str]); 9] = [
    (env!("CARGO_BIN_EXE_autoscaler"), &[]),
    (env!("CARGO_BIN_EXE_driver"), &["--capture", "xeon-cxl"]),
    (env!("CARGO_BIN_EXE_kubelet"), &["diagnose", "c", "claim.yaml"]),
    (env!("CARGO_BIN_EXE_node-agent"), &["--schema"]),
    (env!("CARGO_BIN_EXE_nominate"), &["node.yaml", "--timeline", "timeline.yaml"]),
    (env!("CARGO_BIN_EXE_pool-status"), &[]),
    (env!("CARGO_BIN_EXE_replay"), &[]),
    (env!("CARGO_BIN_EXE_scheduler"), &[]),
    (env!("CARGO_BIN_EXE_tour"), &[]),
];

/// Folder with the files that the programs read.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    file("claim.yaml", "kind: ResourceClaim\nmetadata: {name: c, namespace: default, uid: u}\nspec: {}\n");
    file("node.yaml", "kind: Node\nmetadata: {name: n}\n");
    file("timeline.yaml", "- {at: 1, do: {addNode: n}}\n");
    file("line.jsonl", "{\"op\":\"attrs.quantity\",\"input\":{\"text\":\"1\"}}\n");
    folder
}

fn run(folder: &TempDir, program: &str, args: &[&str], stdout: Stdio) -> Output {
    let stdin = File::open(folder.path().join("line.jsonl")).unwrap();
    let mut command = Command::new(program);
    command.current_dir(folder).args(args).stdin(stdin).stdout(stdout).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

#[test]
fn every_program_tells_its_version() {
    let folder = folder();
    for (program, args) in PROGRAMS {
        let name = program.rsplit('/').next().unwrap();
        let version = run(&folder, program, &["--version"], Stdio::piped());
        assert_eq!(text(&version.stdout), format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
        let help = run(&folder, program, &["--help"], Stdio::piped());
        assert!(help.status.success() && text(&help.stdout).contains("Usage: "), "{name}");
        let answer = run(&folder, program, args, Stdio::piped());
        assert_eq!(answer.status.code(), Some(0), "{name}: {}", text(&answer.stderr));
        let usage = run(&folder, program, &["--no-such-flag"], Stdio::piped());
        assert_eq!(usage.status.code(), Some(2), "{name}");
        assert!(text(&usage.stderr).contains("unexpected argument '--no-such-flag'"), "{name}");
    }
}

#[test]
fn an_answer_that_can_not_be_written_is_trouble() {
    let folder = folder();
    for (program, args) in PROGRAMS {
        let name = program.rsplit('/').next().unwrap();
        for args in [args, &["--help"], &["--version"]] {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let full = run(&folder, program, args, full.into());
            assert_eq!(full.status.code(), Some(1), "{name} {args:?}");
            let said = format!("{name}: stdout: No space left on device (os error 28)\n");
            assert!(text(&full.stderr).ends_with(&said), "{}", text(&full.stderr));
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let closed = run(&folder, program, args, writer.into());
            assert_eq!(closed.status.code(), Some(1), "{name} {args:?}");
            let said = format!("{name}: stdout: Broken pipe (os error 32)\n");
            assert!(text(&closed.stderr).ends_with(&said), "{}", text(&closed.stderr));
        }
    }
}

#[test]
fn control_characters_of_objects_are_escaped() {
    let folder = folder();
    let hostile = "\u{1b}[31mRED\u{7}\u{202e}";
    let objects = json!({"kind": "List", "items": [
        {"kind": "Node", "metadata": {"name": format!("n{hostile}")}},
        {"kind": "Pod", "metadata": {"name": format!("p{hostile}"), "namespace": "ns", "uid": "p"}, "spec": {"containers": []}},
        {"kind": "ResourceClaim", "metadata": {"name": format!("c{hostile}"), "namespace": "ns", "uid": "u"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": format!("x{hostile}")}}]}}},
        {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {"driver": format!("d{hostile}"), "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": []}},
        {"kind": format!("Kind{hostile}"), "metadata": {"name": "x"}, format!("field{hostile}"): 1},
    ]});
    fs::write(folder.path().join("objects.json"), objects.to_string()).unwrap();
    let pod = format!("ns/p{hostile}");
    for (program, args) in [
        (env!("CARGO_BIN_EXE_autoscaler"), &["objects.json"][..]),
        (env!("CARGO_BIN_EXE_autoscaler"), &["objects.json", "-o", "json"]),
        (env!("CARGO_BIN_EXE_driver"), &["--migrate", "objects.json"]),
        (env!("CARGO_BIN_EXE_kubelet"), &["prepare", &pod, "objects.json"]),
        (env!("CARGO_BIN_EXE_node-agent"), &["objects.json", "--autoscaler"]),
        (env!("CARGO_BIN_EXE_pool-status"), &["objects.json"]),
        (env!("CARGO_BIN_EXE_scheduler"), &["objects.json"]),
        (env!("CARGO_BIN_EXE_scheduler"), &["objects.json", "-o", "json"]),
        (env!("CARGO_BIN_EXE_scheduler"), &["objects.json", "-o", "yaml"]),
    ] {
        let output = run(&folder, program, args, Stdio::piped());
        let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(shown.contains("RED"), "{program} {args:?}: {shown}");
        let obeyed = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!shown.contains(obeyed), "{program} {args:?}: {shown:?}");
    }
}

/// Returns a process of `replay`, its input and its lines.
fn replay() -> (std::process::Child, std::process::ChildStdin, impl Iterator<Item = String>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_replay"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, stdin, BufReader::new(stdout).lines().map(Result::unwrap))
}

#[test]
fn replay_answers_who_waits() {
    let (mut child, mut stdin, mut lines) = replay();
    for _ in 0..3 {
        stdin.write_all(b"{\"id\":1,\"op\":\"attrs.quantity\",\"input\":{\"text\":\"1\"}}\n").unwrap();
        assert!(lines.next().unwrap().starts_with("{\"id\":1,\"ok\""));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

fn pod_step(index: usize) -> Value {
    let uid = format!("u{index}");
    json!({"pod": {"metadata": {"namespace": "d", "name": format!("p{index}"), "uid": uid}, "spec": {"priority": 0},
        "status": {"nominatedNodeName": "n1"}}})
}

#[test]
fn steps_are_written_one_by_one_and_their_states_can_be_left_out() {
    let steps: Vec<Value> = (0..50).map(pod_step).collect();
    let lines = [
        json!({"id": 1, "op": "nnn.run", "input": {"steps": steps}}),
        json!({"id": 2, "op": "nnn.run", "input": {"steps": steps, "state": "last"}, "repeat": 3}),
        json!({"id": 3, "op": "nnn.run", "input": {"steps": [{"bound": {"pod": "nobody"}}]}}),
        json!({"id": 4, "op": "nnn.run", "input": {"steps": []}}),
    ];
    let (mut child, mut stdin, mut answers) = replay();
    stdin.write_all("\u{feff}".as_bytes()).unwrap();
    for line in lines {
        writeln!(stdin, "{line}").unwrap();
    }
    stdin.write_all(b"\xff\xfe{\0}\0\n").unwrap();
    drop(stdin);
    let mut next = || -> Value { serde_json::from_str(&answers.next().unwrap()).unwrap() };
    let (each, last) = (next(), next());
    assert!(each["ok"]["steps"].as_array().unwrap().iter().all(|step| step["state"].is_object()));
    let states = last["ok"]["steps"].as_array().unwrap().iter().map(|step| step["state"].clone());
    let states: Vec<Value> = states.collect();
    assert!(states.split_last().unwrap().1.iter().all(Value::is_null));
    assert_eq!(states.last(), Some(&each["ok"]["steps"][49]["state"]));
    assert!(last["timing"]["run_ns"].is_u64());
    assert_eq!(next()["error"]["field"], "steps[0].bound.pod", "all steps are read before the first is written");
    assert_eq!(next()["ok"], json!({"steps": []}));
    assert_eq!(next()["error"]["message"], "not UTF-8");
    assert!(child.wait().unwrap().success());
}
