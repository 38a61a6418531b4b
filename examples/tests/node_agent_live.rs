//! `node-agent --live` on the stand-in for a cluster: gates, roles, clocks that are set, killed runs (`AGENT_KILLS=200` kills so
//! often).
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod stand_in;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, from_value, json};
use tempfile::TempDir;

use stand_in::StandIn;
use stand_in::background::{Background, until, until_counted};

const PROGRAM: &str = env!("CARGO_BIN_EXE_node-agent");
const GATE: &str = "a.example/Ready";
const ANNOTATION: &str = "dra-sdk.example.com/readiness-gates";

/// Node of a stand-in, with the gate.
struct Gated {
    server: StandIn,
    nodes: Api<Node>,
    folder: TempDir,
}

impl Gated {
    async fn start(misbehaviour: &[&str], gate: Value) -> Self {
        let server = StandIn::start(misbehaviour);
        let nodes = Api::all(server.client());
        let gated = Self { server, nodes, folder: TempDir::new().unwrap() };
        let annotations = json!({ANNOTATION: json!([gate]).to_string()});
        let node: Node = from_value(json!({"metadata": {"name": "node-1", "annotations": annotations}})).unwrap();
        until("the node", async || {
            let made = gated.nodes.create(&PostParams::default(), &node).await;
            made.is_ok() || gated.nodes.get("node-1").await.is_ok()
        })
        .await;
        gated.report("Ready").await;
        gated
    }

    /// Reports that a condition is True.
    async fn report(&self, condition: &str) {
        self.set(condition, "True").await;
    }

    async fn set(&self, condition: &str, status: &str) {
        let now = Timestamp::now().to_string();
        let condition = json!({"type": condition, "status": status, "lastTransitionTime": now});
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        until("a report", async || self.nodes.patch_status("node-1", &PatchParams::default(), &patch).await.is_ok())
            .await;
    }

    /// Boots the node.
    async fn boot(&self, id: &str) {
        let mut info = json!({"bootID": id});
        for field in [
            "architecture",
            "containerRuntimeVersion",
            "kernelVersion",
            "kubeProxyVersion",
            "kubeletVersion",
            "machineID",
            "operatingSystem",
            "osImage",
            "systemUUID",
        ] {
            info[field] = json!("");
        }
        let patch = Patch::Strategic(json!({"status": {"nodeInfo": info}}));
        until("a boot", async || self.nodes.patch_status("node-1", &PatchParams::default(), &patch).await.is_ok())
            .await;
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn run(&self, args: &[&str]) -> Background {
        self.run_with(&self.state(), args)
    }

    fn run_with(&self, state: &Path, args: &[&str]) -> Background {
        let state = state.display().to_string();
        let first = ["--live", "--server", &self.server.url, "--state", &state, "--lease-seconds", "1"];
        Background::start(PROGRAM, &[&first[..], args].concat())
    }

    async fn node(&self) -> Option<Node> {
        self.nodes.get("node-1").await.ok()
    }

    /// Returns the condition of the gate.
    async fn condition(&self) -> Option<NodeCondition> {
        let conditions = self.node().await?.status?.conditions?;
        conditions.into_iter().find(|condition| condition.type_ == GATE)
    }

    async fn is_timed_out(&self) -> bool {
        self.condition().await.is_some_and(|condition| condition.reason.as_deref() == Some("TimeoutExceeded"))
    }

    /// Moves all times of the stored states, with those of their clock unless the boot is to be another one.
    fn move_times(&self, shift: SignedDuration, is_same_boot: bool) {
        let text = fs::read_to_string(self.state()).unwrap();
        let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        if !is_same_boot {
            lines[0]["bootId"] = "another boot".into();
        }
        for line in &mut lines {
            moved(line, shift);
        }
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        fs::write(self.state(), lines.join("\n") + "\n").unwrap();
    }
}

fn moved(value: &mut Value, shift: SignedDuration) {
    match value {
        Value::String(text) => {
            if let Ok(time) = text.parse::<Timestamp>() {
                *text = (time + shift).to_string();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| moved(value, shift)),
        Value::Object(fields) => fields.values_mut().for_each(|value| moved(value, shift)),
        _ => {}
    }
}

fn gate(seconds: i32, action: &str) -> Value {
    json!({"conditionType": GATE, "timeoutSeconds": seconds, "failureAction": action})
}

#[tokio::test]
async fn a_gate_holds_its_node_until_the_condition_is_true() {
    let gated = Gated::start(&[], gate(3600, "BypassWithWarning")).await;
    let mut agent = gated.run(&["-o", "json", "--metrics-address", "127.0.0.1:0"]);
    let vitals = agent.vitals();
    let verdict: Value = serde_json::from_str(&agent.says("verdict")).unwrap();
    let held = json!([{"conditionType": GATE, "decision": "Blocked", "reason": "Missing"}]);
    assert_eq!(verdict, json!({"event": "verdict", "node": "node-1", "schedulable": false, "gates": held}));
    let key = format!("readiness-gate.{GATE}");
    let is_labelled =
        async || gated.node().await.unwrap().metadata.labels.is_some_and(|labels| labels.contains_key(&key));
    until("the label", is_labelled).await;
    gated.report(GATE).await;
    let verdict: Value = serde_json::from_str(&agent.says("\"schedulable\":true")).unwrap();
    assert_eq!(verdict["gates"], json!([]));
    until_counted(&vitals, &["\nnode_readiness_released_total 1".to_owned()]).await;
    let mut same = gated.run(&[]);
    same.warns("is working on this file; try again when it has ended; --state names another file");
    let mut second = gated.run_with(&gated.folder.path().join("second"), &[]);
    second.warns("waiting for the lease default/dra-sdk-node-agent-combined");
    assert_eq!(agent.terminate(), Some(0));
    second.says("combined evaluates the gates of ");

    // Gates that can't be read are not gone.
    let annotations = json!({"metadata": {"annotations": {ANNOTATION: "[{}]"}}});
    gated.nodes.patch("node-1", &PatchParams::default(), &Patch::Merge(annotations)).await.unwrap();
    second.warns("node-agent: node-1: annotation dra-sdk.example.com/readiness-gates: ");
    assert!(is_labelled().await);
}

#[tokio::test]
async fn each_role_makes_its_own_writes() {
    let taint = json!({"conditionType": GATE, "timeoutSeconds": 1, "failureAction": "Taint",
        "readinessTaint": {"key": "a.example/late", "effect": "NoSchedule"}});
    let gated = Gated::start(&[], taint).await;
    let mut kubelet = gated.run(&["--role", "kubelet", "--node", "node-1"]);
    let mut nlc = gated.run_with(&gated.folder.path().join("nlc"), &["--role", "nlc"]);
    kubelet.says("node-1: set a.example/Ready to Unknown (TimeoutExceeded)");
    nlc.says("node-1: add taint a.example/late:NoSchedule");
    let taints = async || gated.node().await.unwrap().spec.and_then(|spec| spec.taints).unwrap_or_default();
    until("the taint", async || !taints().await.is_empty()).await;
    gated.report(GATE).await;
    nlc.says("node-1: remove taint a.example/late:NoSchedule");
    until("no taint", async || taints().await.is_empty()).await;
    for (role, mut agent, others) in [("kubelet", kubelet, "taint"), ("nlc", nlc, "set a.example/Ready to")] {
        assert_eq!(agent.terminate(), Some(0));
        let rest = agent.rest();
        assert!(!rest.contains(others), "{role}: {rest}");
    }
}

#[tokio::test]
async fn a_clock_that_is_set_forward_opens_no_gate_early() {
    let gated = Gated::start(&[], gate(1800, "BypassWithWarning")).await;
    let mut agent = gated.run(&[]);
    agent.says("node-1: blocked: a.example/Ready Blocked (Missing)");
    agent.terminate();
    // What was an hour ago for the file was just now: the clock was set forward by an hour.
    gated.move_times(SignedDuration::from_hours(-1), true);
    let mut agent = gated.run(&[]);
    agent.warns("the clock was set by 3");
    // Its label may be set again, but nothing is said about the gate but this.
    assert_eq!(agent.says("a.example/Ready "), "node-1: blocked: a.example/Ready Blocked (Missing)\n");
    agent.terminate();
    assert!(!gated.is_timed_out().await);
    // After another boot nobody can tell: the hour counts as passed.
    gated.move_times(SignedDuration::from_hours(-1), false);
    let _agent = gated.run(&[]);
    until("the timeout", async || gated.is_timed_out().await).await;
}

#[tokio::test]
async fn a_clock_that_is_set_back_locks_no_node_longer_than_its_timeout() {
    for is_same_boot in [true, false] {
        let gated = Gated::start(&[], gate(3, "BypassWithWarning")).await;
        let mut agent = gated.run(&[]);
        agent.says("node-1: blocked: a.example/Ready Blocked (Missing)");
        agent.terminate();
        gated.move_times(SignedDuration::from_hours(1), is_same_boot);
        let _agent = gated.run(&[]);
        until("the timeout", async || gated.is_timed_out().await).await;
    }
}

#[tokio::test]
async fn a_file_that_ends_early_is_read_and_a_damaged_one_is_not() {
    let gated = Gated::start(&[], gate(3600, "BypassWithWarning")).await;
    let mut agent = gated.run(&[]);
    agent.says("node-1: blocked");
    until("the label", async || gated.node().await.unwrap().metadata.labels.is_some()).await;
    agent.terminate();
    let text = fs::read_to_string(gated.state()).unwrap();
    let run = |text: &str| {
        fs::write(gated.state(), text).unwrap();
        gated.run(&[])
    };
    // The state is known: nothing is written to the node again.
    let mut agent = run(&format!("{text}[\"node-1\",{{\"ga"));
    agent.says("combined evaluates the gates of ");
    assert_eq!(agent.says("node-1"), "node-1: blocked: a.example/Ready Blocked (Missing)\n");
    agent.terminate();

    let header = text.lines().next().unwrap();
    for (text, words) in [
        (format!("{header}\n[\"node-1\",{{\"ga\n"), "state: line 2: EOF while parsing a string"),
        (format!("{header}\n[\"node-1\"]\n"), "state: line 2: "),
        (String::new(), "state: line 1: EOF while parsing a value"),
        ("{}\n".to_owned(), "state: line 1: missing field `version`"),
        (header.replace("\"version\":2", "\"version\":9") + "\n", "state: version 9; this release reads version 2"),
    ] {
        run(&text).warns(words);
        assert_eq!(fs::read_to_string(gated.state()).unwrap(), text);
    }
}

#[tokio::test]
async fn a_run_that_is_killed_leaves_nothing_that_the_next_one_does_not_remove() {
    let taint = json!({"conditionType": GATE, "timeoutSeconds": 1, "failureAction": "Taint",
        "readinessTaint": {"key": "a.example/late", "effect": "NoSchedule"}});
    let gated = Gated::start(&["--misbehave", "all", "--seed", "5"], taint).await;
    let is_tainted = async || {
        let spec = gated.node().await?.spec.unwrap_or_default();
        Some(spec.taints.is_some_and(|taints| !taints.is_empty()))
    };
    gated.boot("first").await;
    // Each run is killed at its first write, which is carried out or not, or some time after its start.
    let kills = std::env::var("AGENT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(4_u64);
    for kill in 0..kills {
        let mut agent = gated.run(&[]);
        if kill % 4 < 2 {
            agent.says("node-1: ");
        } else {
            tokio::time::sleep(Duration::from_millis(kill * 37 % 1_500)).await;
        }
        agent.process.kill().unwrap();
        agent.process.wait().unwrap();
        if kill % 8 == 7 {
            gated.report(GATE).await;
        }
        if kill % 8 == 3 {
            gated.set(GATE, "False").await;
        }
    }
    // A gate that was met stays so until the node boots.
    gated.set(GATE, "False").await;
    gated.boot("last").await;
    let _agent = gated.run(&[]);
    until("the taint", async || is_tainted().await == Some(true)).await;
    let patch = Patch::Merge(json!({"metadata": {"annotations": {ANNOTATION: "[]"}}}));
    until("no gate", async || gated.nodes.patch("node-1", &PatchParams::default(), &patch).await.is_ok()).await;
    until("no taint", async || is_tainted().await == Some(false)).await;
    let labels = async || gated.node().await.map(|node| node.metadata.labels.unwrap_or_default());
    until("no label", async || labels().await.is_some_and(|labels| labels.is_empty())).await;
}
