//! Tests of the program `node-agent`: its walkthrough, other timelines, a watched file, the schema.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread::spawn;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_node-agent"));
    program.env_remove("CLICOLOR_FORCE").env("NO_COLOR", "1");
    program
}

fn succeeds(program: &mut Command) -> String {
    let Output { status, stdout, stderr } = program.output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

fn fails(program: &mut Command) -> String {
    let Output { status, stderr, .. } = program.output().unwrap();
    assert!(!status.success());
    String::from_utf8(stderr).unwrap()
}

/// Returns the lines of an instant, without the first.
fn scene<'a>(text: &'a str, begin: &str) -> Vec<&'a str> {
    let mut lines = text.lines().skip_while(|line| !line.trim_start().starts_with(begin)).skip(1);
    lines.by_ref().take_while(|line| line.starts_with("         ")).map(str::trim).collect()
}

#[test]
fn the_walkthrough() {
    let text = succeeds(&mut program());
    assert_eq!(scene(&text, "70 s  node-123").last(), Some(&"open"));
    let timed_out = scene(&text, "320 s  node-124");
    assert_eq!(timed_out[0], "nlc     add taint ai-corp.com/runtime-patch-not-installed=true:NoSchedule");
    assert!(timed_out.contains(&"taints: ai-corp.com/runtime-patch-not-installed:NoSchedule"));
    let booted = scene(&text, "500 s  node-123");
    assert_eq!(booted.iter().filter(|line| line.contains("(NodeRestarted)")).count(), 3);
    assert_eq!(scene(&text, "600 s  node-124").last(), Some(&"open"));
    // The same every time, and with the other settings up to what they are about.
    assert_eq!(text, succeeds(&mut program()));
    let hardened = succeeds(program().args(["--policy", "hardened"]));
    assert!(scene(&hardened, "320 s  node-124").last().unwrap().starts_with("taints"));
}

#[test]
fn colours_are_for_terminals() {
    assert!(!succeeds(&mut program()).contains('\u{1b}'));
    let coloured = succeeds(program().env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1"));
    assert!(coloured.contains("\u{1b}[31m") && coloured.contains("\u{1b}[32m"));
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

const NODE: &str = "kind: Node\nmetadata: {name: n}\nspec:\n  readinessGates:\n  - conditionType: a.example/Ready\n    \
                    timeoutSeconds: 30\n    failureAction: BypassWithWarning\n";

#[test]
fn a_timeline_of_ones_own() {
    let folder = TempDir::new().unwrap();
    let nodes = write(folder.path(), "nodes.yaml", NODE);
    let timeline = "- {at: 0, ready: {status: 'True'}}\n- {at: 10, clock: -20}\n- {at: 60, delete: a.example/Ready}\n";
    let timeline = write(folder.path(), "timeline.yaml", timeline);
    let text = succeeds(program().args([&nodes, "--timeline", &timeline]));
    assert!(scene(&text, "0 s  n")[1].ends_with("looks again at 30 s"), "{text}");
    assert!(scene(&text, "10 s  n")[0].ends_with("looks again at 40 s"), "{text}");
    assert!(scene(&text, "40 s  n")[0].contains("TimeoutExceeded"), "{text}");
    assert!(scene(&text, "60 s  n")[0].contains("TimeoutExceeded"), "deleted and written again: {text}");
    // A clock that jumps ahead ends timers at once, unless the evaluator knows of it.
    let ahead = write(folder.path(), "ahead.yaml", "- {at: 0, ready: {status: 'True'}}\n- {at: 10, clock: 500}\n");
    let text = succeeds(program().args([&nodes, "--timeline", &ahead]));
    assert!(scene(&text, "10 s  n")[0].contains("TimeoutExceeded"), "{text}");
    let known = "- {at: 0, ready: {status: 'True'}}\n- {at: 10, clock: 500, known: true}\n";
    let known = write(folder.path(), "known.yaml", known);
    let text = succeeds(program().args([&nodes, "--timeline", &known]));
    assert!(scene(&text, "10 s  n")[0].ends_with("looks again at 30 s"), "{text}");
    assert!(scene(&text, "30 s  n")[0].contains("TimeoutExceeded"), "{text}");
    // Settings from a file, roles, and nodes without a timeline.
    let policy = write(folder.path(), "policy.yaml", "releaseWhen: taintPresent\n");
    let text = succeeds(program().args([&nodes, "--policy", &policy, "--role", "nlc"]));
    assert!(scene(&text, "0 s  n").last().unwrap().starts_with("blocked: a.example/Ready Missing"), "{text}");
    // A directory, and stdin.
    let inner = folder.path().join("cluster");
    fs::create_dir(&inner).unwrap();
    write(&inner, "a.yaml", NODE);
    write(&inner, "b.yml", &NODE.replace("name: n", "name: m"));
    let text = succeeds(program().arg(&inner));
    assert!(!scene(&text, "0 s  n").is_empty() && !scene(&text, "0 s  m").is_empty(), "{text}");
    assert!(succeeds(program().arg("-").stdin(fs::File::open(&nodes).unwrap())).contains("0 s  n"));
    assert!(!text.contains("the clock is set"), "{text}");
    // What the API server would say comes first.
    let short = write(folder.path(), "short.yaml", &NODE.replace("30", "3").replace("a.example/", ""));
    let text = succeeds(program().arg(&short));
    assert!(text.starts_with("n: error: spec.readinessGates[0].conditionType: Invalid value: \"Ready\""), "{text}");
    assert!(text.lines().nth(1).unwrap().contains("n: warning: spec.readinessGates[0].timeoutSeconds"), "{text}");
}

#[test]
fn what_can_not_be_read_is_named() {
    let folder = TempDir::new().unwrap();
    let nodes = write(folder.path(), "nodes.yaml", NODE);
    let odd = write(folder.path(), "odd.yaml", "- {at: 0, rebot: true}\n");
    assert!(fails(program().args([&nodes, "--timeline", &odd])).contains("rebot"));
    let both = write(
        folder.path(),
        "both.yaml",
        "kind: Node\nmetadata: {name: n}\nspec: {readinessGates: [], nodeReadinessGates: []}\n",
    );
    assert!(fails(program().arg(&both)).contains("both.yaml:3: Node n: spec: duplicate field `readinessGates`"));
    assert!(fails(program().arg(folder.path().join("none.yaml"))).contains("none.yaml"));
    assert!(fails(program().args(["--begin", "soon"])).contains("invalid value 'soon' for '--begin <TIME>'"));
}

#[test]
fn nothing_is_passed_over_in_silence() {
    let folder = TempDir::new().unwrap();
    let nodes = write(folder.path(), "nodes.yaml", NODE);
    let file = |text: &str| write(folder.path(), "given.yaml", text);
    for (text, said) in [
        ("", "no Node in the manifests"),
        ("kind: Deployment\nmetadata: {name: web}\n", "no Node in the manifests"),
        ("kind: node\nmetadata: {name: n}\n", "given.yaml:1: node n: kind: no such kind; write Node"),
        ("items: []\n", "given.yaml:1: kind: must be set"),
        ("[{kind: Node}]\n", "given.yaml:1: a list; put it into {kind: List, items: [...]}"),
        ("kind: Node\nmetadata: {name: n}\nmetadata: {name: m}\n", "given.yaml:3: duplicate mapping key: metadata\n"),
    ] {
        let error = fails(program().arg(file(text)));
        assert!(error.contains(said), "{text}: {error}");
    }
    for (timeline, said) in [
        ("- {at: 5, node: other, reboot: true}\n", "at 5 s: no node \"other\""),
        ("- {at: 9223372036854775807, reboot: true}\n", "beyond the range of times"),
        ("- {at: 1, clock: 9223372036854775807}\n", "at 1 s: beyond the range of times"),
    ] {
        let timeline = write(folder.path(), "timeline.yaml", timeline);
        assert!(fails(program().args([&nodes, "--timeline", &timeline])).contains(said), "{timeline}");
    }
    let policy = write(folder.path(), "policy.yaml", "handof: taintPresent\n");
    assert!(fails(program().args([&nodes, "--policy", &policy])).contains("handof"));
    let many: String = (0..1100).map(|index| NODE.replace("name: n", &format!("name: n{index}")) + "---\n").collect();
    assert!(succeeds(program().arg(file(&many)).args(["--until", "0"])).contains("n1099"), "more than 1,024 documents");
}

#[test]
fn the_schema_of_a_gate() {
    // req: 5233-1
    let schema: Value = serde_json::from_str(&succeeds(program().arg("--schema"))).unwrap();
    let properties = schema["properties"].as_object().unwrap();
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    assert_eq!(names, ["conditionType", "failureAction", "readinessTaint", "timeoutSeconds"]);
    assert_eq!(schema["required"], serde_json::json!(["conditionType", "timeoutSeconds"]));
    assert_eq!(properties["timeoutSeconds"]["minimum"], 1);
    let text = schema.to_string();
    for word in ["Taint", "BypassWithWarning", "NoSchedule", "PreferNoSchedule", "NoExecute"] {
        assert!(text.contains(&format!("\"{word}\"")), "{word}: {text}");
    }
}

#[test]
fn a_watched_file() {
    let folder = TempDir::new().unwrap();
    let unready = format!("{NODE}status: {{conditions: [{{type: Ready, status: 'False'}}]}}\n");
    let file = write(folder.path(), "nodes.yaml", &unready);
    let mut process = program().args(["--watch-file", &file]).stdout(Stdio::piped()).spawn().unwrap();
    let stdout = BufReader::new(process.stdout.take().unwrap());
    let (sender, lines) = channel();
    let reader = spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let next = |what: &str| {
        let mut lines = std::iter::from_fn(|| lines.recv_timeout(Duration::from_secs(60)).ok());
        lines.find(|line| line.contains(what))
    };
    let blocked = next("n: blocked");
    let met = "{type: Ready, status: 'True'}, {type: a.example/Ready, status: 'True'}";
    fs::write(&file, format!("{NODE}status: {{conditions: [{met}]}}\n")).unwrap();
    let open = next("n: open");
    process.kill().unwrap();
    process.wait().unwrap();
    // It may have been told to stop while it had more to say.
    let _ = reader.join();
    assert_eq!(blocked.as_deref(), Some("  n: blocked: a.example/Ready Missing"));
    assert_eq!(open.as_deref(), Some("  n: open"));
}

const FRONT: &str = "
{apiVersion: v1, kind: Node, metadata: {name: w, labels: {tier: front}}, status: {conditions: [
  {type: Ready, status: 'True'}, {type: net.example.com/Up, status: 'False'}]}}
";

fn rule(name: &str, more: &str, tier: &str) -> String {
    format!(
        "---\n{{apiVersion: readiness.node.x-k8s.io/v1alpha1, kind: NodeReadinessRule, metadata: {{name: {name}}}, spec: {{\
         conditions: [{{type: net.example.com/Up, requiredStatus: 'True'}}], taint: {{key: readiness.k8s.io/{name}, effect: \
         NoSchedule}}, enforcementMode: continuous, {more} nodeSelector: {{matchLabels: {{tier: {tier}}}}}}}}}\n"
    )
}

#[test]
fn rules_that_do_nothing_say_so() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("all.yaml");
    fs::write(&file, [FRONT, &rule("trial", "dryRun: true,", "front"), &rule("far", "", "back")].concat()).unwrap();
    let text = succeeds(program().arg(&file));
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("rule")).collect();
    let expected = [
        "rule trial: dry run: it would hold w by the taint readiness.k8s.io/trial:NoSchedule",
        "rule far: selects no node of 1",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn labels_change_and_rules_go() {
    let folder = TempDir::new().unwrap();
    let (file, timeline) = (folder.path().join("all.yaml"), folder.path().join("timeline.yaml"));
    fs::write(&file, [FRONT, &rule("net", "", "front")].concat()).unwrap();
    let events = "
- {at: 0, node: w}
- {at: 10, labels: {tier: back}}
- {at: 20, labels: {tier: front}}
- {at: 30, report: {type: net.example.com/Up, status: 'True', reason: Up}}
- {at: 40, report: {type: net.example.com/Up, status: 'False', reason: Down}}
- {at: 50, withoutRule: net}
";
    fs::write(&timeline, events).unwrap();
    let text = succeeds(program().arg(&file).arg("--timeline").arg(&timeline));
    let state = |at: &str| {
        let scene = scene(&text, &format!("{at} s  w"));
        scene.into_iter().find(|line| line.starts_with("open") || line.starts_with("blocked")).map(str::to_owned)
    };
    let states: Vec<Option<String>> = ["0", "10", "20", "30", "40", "50"].into_iter().map(state).collect();
    let words: Vec<&str> = states.iter().flatten().map(|state| state.split([':', ' ']).next().unwrap()).collect();
    assert_eq!(words, ["blocked", "open", "blocked", "open", "blocked", "open"], "{text}");
    assert!(
        text.contains("the rule net is deleted; no rule asks for the gate readiness.k8s.io/net any more"),
        "{text}"
    );
    // Beside the gate, the controller taints at once, and forgets the taint of a node that the rule lets go.
    let controller = |line: &str| {
        let does = line.split("node-readiness-controller ").nth(1)?.split(" the taint").next()?;
        Some((line.trim().split(' ').next()?.to_owned(), does.to_owned()))
    };
    let found: Vec<(String, String)> =
        text.lines().filter(|line| line.contains("w: ")).filter_map(controller).collect();
    let does = [("w:", "adds"), ("10", "leaves"), ("30", "removes"), ("40", "adds"), ("50", "removes")];
    assert_eq!(found, does.map(|(at, does)| (at.to_owned(), does.to_owned())), "{text}");
    let taints: Vec<&str> =
        text.lines().filter(|line| line.contains("taints: readiness.k8s.io/net:NoSchedule")).collect();
    assert_eq!(taints.len(), 4, "at 0, 10, 20 and 40 s: {text}");
}
