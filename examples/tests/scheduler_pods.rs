//! Runs of `scheduler --pods`: claims, extended resources and gangs of pods.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "shared with tests that read JSON")]
mod program;

use program::Run;

fn run(args: &[&str]) -> Run {
    Run::of(env!("CARGO_BIN_EXE_scheduler"), args, "").clean()
}

fn cluster(name: &str) -> String {
    format!("{}/data/clusters/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn pods_that_share_a_claim_are_both_reserved() {
    let run = run(&["--pods", &cluster("shared")]);
    assert_eq!(
        run.stdout,
        "pod default/train: node-2\n\
         \x20 update default/model: finalizer\n\
         \x20 update default/model/status: devices gpu.example.com/node-2/gpu-0, gpu.example.com/node-2/gpu-1; \
         reserved for pods/train\n\
         pod default/watch: node-2\n\
         \x20 update default/model/status: devices gpu.example.com/node-2/gpu-0, gpu.example.com/node-2/gpu-1; \
         reserved for pods/train, pods/watch\n\
         pod default/late: 0/2 nodes are available: 1 no free device of class gpu, 1 too few: 1 of 1 free, \
         2 wanted of class gpu; possible on 1 node if request gpu asked for 1 device, possible on 1 node once other claims \
         give back what they hold\n\
         pod default/moved: 0/2 nodes are available: 2 claim allocated for other nodes\n\
         \x20 update default/left-over/status: devices none; reserved for none\n\
         \x20 deallocation of ResourceClaim completed; the pod is tried again\n"
    );
}

#[test]
fn extended_resources_get_a_claim_where_the_node_does_not_provide_them() {
    let run = run(&["--pods", &cluster("extended")]);
    assert_eq!(
        run.stdout,
        "pod default/train: node-2\n\
         \x20 create train-extended-resources-*: 2 gpu\n\
         \x20 update default/train-extended-resources-00001: finalizer\n\
         \x20 update default/train-extended-resources-00001/status: devices gpu.example.com/node-2/gpu-0, \
         gpu.example.com/node-2/gpu-1; reserved for pods/train\n\
         \x20 patch pod default/train/status: train-extended-resources-00001 for example.com/gpu of main, \
         example.com/gpu of load\n\
         pod default/claimed: node-1\n\
         \x20 update default/one: finalizer\n\
         \x20 update default/one/status: devices gpu.example.com/node-1/gpu-0; reserved for pods/claimed\n\
         pod default/served: node-3\n\
         pod default/nobody: 0/3 nodes are available: 3 no device plugin or device class for example.com/fpga\n"
    );
}

#[test]
fn a_gang_is_placed_whole_or_not_at_all() {
    let run = run(&["--pods", "--feature-gates=DRAWorkloadResourceClaims=true", &cluster("gang")]);
    let lines: Vec<&str> = run.stdout.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(
        lines[..3],
        ["gang ring, 2 pods: all are placed", "pod default/ring-1: node-1", "pod default/ring-2: node-2"]
    );
    assert!(run.stdout.contains(
        "update default/fabric/status: devices fabric.example.com/rack/domain-0; reserved for podgroups/ring"
    ));
    let last = lines[3];
    assert!(
        last.starts_with(
            "gang wide, 2 pods: none is placed: pod default/wide-2: 0/2 nodes are available: 2 no free device"
        ),
        "{last}"
    );
    assert!(last.ends_with("pod wide-1 on node-2, placed before it, holds gpu.example.com/node-2/gpu-1"), "{last}");
    assert_eq!(lines.len(), 4);
}

/// Two nodes with a large and a small device each, and a gang of two pods.
const SIZES: &str = r"
{apiVersion: v1, kind: Node, metadata: {name: a}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: a}, spec: {driver: gpu.example.com, nodeName: a,
  pool: {name: a, generation: 1, resourceSliceCount: 1},
  devices: [{name: big, capacity: {memory: {value: 80Gi}}}, {name: small, capacity: {memory: {value: 8Gi}}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: b}, spec: {driver: gpu.example.com, nodeName: b,
  pool: {name: b, generation: 1, resourceSliceCount: 1},
  devices: [{name: big, capacity: {memory: {value: 80Gi}}}, {name: tiny, capacity: {memory: {value: 2Gi}}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: x}, spec: {devices: {requests: [
  {name: r, exactly: {deviceClassName: gpu}}]}}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: y}, spec: {devices: {requests: [
  {name: r, exactly: {deviceClassName: gpu}}]}}}
";

/// Returns pods for the claims `x` and `y`.
fn pods_of_sizes(group: &str) -> String {
    let pod = |name: &str| {
        format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{{group}containers: [{{name: main, image: i}}], \
             resourceClaims: [{{name: gpu, resourceClaimName: {name}}}]}}}}\n"
        )
    };
    SIZES.to_owned() + &pod("x") + &pod("y")
}

#[test]
fn pods_and_gangs_go_where_the_devices_are_best() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("waste.json");
    std::fs::write(&file, r#"[[{"term": "waste", "capacity": "gpu.example.com/memory"}]]"#).unwrap();
    let places = |group: &str, args: &[&str]| {
        let args = [args, &["--pods", "-"]].concat();
        let run = Run::of(env!("CARGO_BIN_EXE_scheduler"), &args, &pods_of_sizes(group));
        let lines = run.stdout.lines().filter(|line| line.starts_with("pod") || line.contains("rather than"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let objective = ["--objective", file.to_str().unwrap()];
    let wasted = |amount: &str| {
        format!(": less of gpu.example.com/memory is wasted (waste of gpu.example.com/memory {amount} instead of 1000)")
    };
    for group in ["", "schedulingGroup: {podGroupName: g}, "] {
        assert_eq!(places(group, &[]), ["pod x: a", "pod y: a"]);
        let best = places(group, &objective);
        assert_eq!(best[0], "pod x: b", "{best:?}");
        assert_eq!(best[1], format!("  b/tiny rather than b/big{}", wasted("25")));
        assert_eq!(best[2], "pod y: a");
        assert_eq!(best[3], format!("  a/small rather than a/big{}", wasted("100")));
    }
}

/// A deployment with a template of claims on two devices, each of which stands for four CPUs of a node of six.
const CORES: &str = "
{apiVersion: v1, kind: Node, metadata: {name: w}, status: {allocatable: {cpu: '6'}}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: cpu.example.com, nodeName: w,
  pool: {name: w, generation: 1, resourceSliceCount: 1}, devices: [
    {name: a, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: '4'}}}},
    {name: b, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: '4'}}}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: cores}, spec: {}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: one}, spec: {spec: {devices: {requests: [
  {name: r, exactly: {deviceClassName: cores}}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: app}, spec: {replicas: 2, selector: {}, template: {spec: {
  containers: [{name: c, image: c, resources: {claims: [{name: r}]}}],
  resourceClaims: [{name: r, resourceClaimTemplateName: one}]}}}}
";

#[test]
fn pods_and_claims_are_made_of_workloads_and_templates() {
    let run = Run::of(env!("CARGO_BIN_EXE_scheduler"), &["--pods", "-"], CORES);
    let made =
        "scheduler: made 2 pods of Deployment app and 2 claims of templates, as a cluster would; names are made up";
    assert!(run.stderr.contains(made), "{}", run.stderr);
    assert!(run.stdout.contains("pod app-1: w") && run.stdout.contains("pod app-2: w"), "{}", run.stdout);
}

#[test]
fn amounts_of_node_resources_count_if_their_gate_is_on() {
    let gate = ["--pods", "-", "--feature-gates", "DRANodeAllocatableResources=true"];
    let run = Run::of(env!("CARGO_BIN_EXE_scheduler"), &gate, CORES);
    assert!(run.stdout.contains("pod app-1: w"), "{}", run.stdout);
    assert!(run.stdout.contains("pod app-2: 0/1 nodes are available: 1 Insufficient cpu"), "{}", run.stdout);
}

#[test]
fn full_explanations_ask_the_terms_of_selectors() {
    let claim = "
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: {devices: {requests: [{name: r, exactly: {
  deviceClassName: gpu, selectors: [{cel: {expression: 'device.attributes[\"gpu.example.com\"].numaNode == 0 &&
    device.attributes[\"gpu.example.com\"].model == \"H200\"'}}]}}]}}}
";
    let cluster = concat!(env!("CARGO_MANIFEST_DIR"), "/data/plans/cluster.yaml");
    let run = Run::of(env!("CARGO_BIN_EXE_scheduler"), &["--explain", "full", "-", cluster], claim);
    let term = "device.attributes[\"gpu.example.com\"].model == \"H200\": true on 0 of 8 devices of class gpu; values: A100 (4), H100 (4)";
    assert!(run.stdout.contains(term), "{}", run.stdout);
    assert!(run.stdout.contains("fail selector 0 of the request ("), "{}", run.stdout);
}
