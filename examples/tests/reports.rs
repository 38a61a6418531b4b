//! Inputs of public reports: the words that each answer has to have.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod program;
mod shared_corpus;

use program::Run;
use shared_corpus::shared_corpus;

const DRA: &str = env!("CARGO_BIN_EXE_kubectl-dra");
const SCHEDULER: &str = env!("CARGO_BIN_EXE_scheduler");
const AUTOSCALER: &str = env!("CARGO_BIN_EXE_autoscaler");
const AGENT: &str = env!("CARGO_BIN_EXE_node-agent");

/// A program with its arguments, its exit status, and parts of what it says on stdout and stderr, in this order.
type Row = (&'static str, &'static [&'static str], i32, &'static [&'static str]);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    (DRA, &["check", "01-taint-rule-forms.yaml"], 1, &["only-ml: spec.taint.effect: Required value", "unknown field spec.taints"]),
    (SCHEDULER, &["evict", "01-taint-rule-forms.yaml", "01-world.yaml"], 1, &["the API server would refuse it: spec.taint.key"]),
    (DRA, &["plan", "02-pod-source.yaml"], 1, &["possible once there is ResourceClaim default/c1", "no Node among the manifests"]),
    (DRA, &["check", "03-capacity-eq-string.yaml"], 1, &["found no matching overload for '_==_'", "objects: 4; refused: 4"]),
    (DRA, &["check", "04-quantity-typos.yaml"], 1, &["capacity.bandwidth.value: Invalid value: \"10GiB\""]),
    (SCHEDULER, &["05-shared-counter-rebuild.yaml"], 0, &["1 needs 2 of counter card-0/slots, 0 left"]),
    (SCHEDULER, &["--pods", "06-shared-multi-node-and-own.yaml"], 0, &["pod default/w0: n1", "pod default/w1: n2"]),
    (SCHEDULER, &["07-high-precision.yaml"], 0, &["1 has 0 bw left, 10E wanted"]),
    (SCHEDULER, &["08-negative-capacity.yaml"], 0, &["capacity value is negative", "1 has 100 bw, 120 wanted"]),
    (SCHEDULER, &["09-headline-mixed.json"], 0, &["1 no free device of class gpu that the selectors admit"]),
    (DRA, &["plan", "09-headline-mixed.json"], 1, &["p waits: 0/1 nodes are available: 1 no free device", "once other claims give back"]),
    (DRA, &["check", "10-dropped-fields.yaml"], 1, &["feature gate DRANodeAllocatableResources is off", "unknown field spec.devices[1].skipNodeOperations"]),
    (DRA, &["check", "12-counters.yaml"], 1, &["only one of `sharedCounters` or `devices` is allowed (accepted until 1.34", "spec.devices: Too many: 65"]),
    (SCHEDULER, &["14-stale-and-incomplete.yaml"], 0, &["1 of 2 slices are there"]),
    (AUTOSCALER, &["18-util-admin.yaml"], 0, &["│ n1   ┆ removable ┆     ┆   0% ┆"]),
    (AGENT, &["19-node.yaml", "19-dry.yaml"], 0, &["rule trial: dry run: it would hold w1 by the taint readiness.k8s.io/trial:NoSchedule"]),
    (AGENT, &["19-node.yaml", "19-rule.yaml", "--timeline", "19-timeline.yaml"], 0, &["the label tier is back; no rule asks for the gate", "node-readiness-controller leaves the taint readiness.k8s.io/net:NoSchedule"]),
    (DRA, &["check", "20-as-people-write.yaml"], 0, &["objects: 3; refused: 0"]),
    (DRA, &["check", "21-wrong-value-fields.yaml"], 1, &["resourceclaim d: apiVersion: must be set", "floating point `9.0`, expected a string", "write ResourceClaim"]),
    (AUTOSCALER, &["24-daemonset-on-new-node.yaml", "--simulate-group", "24-group.yaml"], 0, &["default/ds-1 on fresh: gpu.example.com/fresh/g0", "not default/train"]),
    (AUTOSCALER, &["26-gpu-node-use.yaml"], 0, &["100% in use, from 50% on it stays"]),
    (AUTOSCALER, &["26b-ds.yaml"], 0, &["│ gpu-node ┆ removable ┆     ┆   0% ┆"]),
    (AUTOSCALER, &["--scale-down", "26b-ds.yaml"], 0, &["nodes that can go together: gpu-node, cpu-node"]),
    (SCHEDULER, &["27-distinct.yaml"], 0, &["constraint on dra.net/numaNode: the device does not have the attribute"]),
    (SCHEDULER, &["--pods", "--feature-gates", "DRANodeAllocatableResources=true", "29-node-allocatable.yaml"], 0, &["pod default/p: 0/1 nodes are available: 1 Insufficient cpu"]),
    (DRA, &["plan", "--feature-gates", "DRANodeAllocatableResources=true", "29-node-allocatable.yaml"], 1, &["1 Insufficient cpu"]),
    (SCHEDULER, &["31-sanitized-claim.yaml"], 0, &["default/want: 0/1 nodes can serve the claims: 1 no free device of class gpu"]),
    (SCHEDULER, &["evict", "32-rule-selects-none.yaml"], 1, &["warning: the deviceSelector selects no published device", "Unsupported value: \"NoExec\""]),
    (DRA, &["check", "--lint", "33-no-such-key.yaml"], 0, &["fails on 1 of 2 devices (no such key: type): "]),
    (SCHEDULER, &["34-next-device.yaml"], 0, &["gpu.example.com/n1/d1"]),
    (DRA, &["plan", "35-conjunct.yaml"], 1, &["device.attributes[\"net.example.com\"].block == \"b-8\": true on 0 of 1 device\n      of class nic; values: b-7 (1)"]),
];

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_reports_have_their_answers() {
    let folder = shared_corpus("reports");
    for (program, args, code, parts) in ROWS {
        let run = Run::within(&folder, program, args, "");
        let told = format!("{}\n{}", run.stdout, run.stderr);
        assert_eq!(run.code, *code, "{args:?}: {told}");
        let mut rest = told.as_str();
        for part in *parts {
            let Some((_, behind)) = rest.split_once(part) else { panic!("{args:?}: no {part:?}: {told}") };
            rest = behind;
        }
    }
}

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_false_terms_are_data() {
    let folder = shared_corpus("reports");
    let plan = Run::within(&folder, DRA, &["plan", "-o", "json", "35-conjunct.yaml"], "").json();
    let term = plan.pointer("/workloads/0/waiting/0/selectors/0").unwrap();
    assert_eq!(term.pointer("/values/0").unwrap(), &serde_json::json!(["b-7", 1]));
}

/// The amounts of a device for an extended resource count as those of any other (KEP-5517).
#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_amounts_of_extended_resources_count() {
    let text = std::fs::read_to_string(shared_corpus("reports/23b-node-allocatable.jsonl")).unwrap();
    let run = Run::of(env!("CARGO_BIN_EXE_replay"), &[], &text).clean();
    assert_eq!(run.stdout.matches("\"demand\":{\"cpu\":\"1100m\"").count(), 2, "{}", run.stdout);
}
