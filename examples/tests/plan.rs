//! Plans of workloads as people write them: a transcript for each kind.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anstream::adapter::strip_str;
use dra_alloc::objective::Objective;
use dra_alloc::{GateSet, Profile};
use examples::manifest::Manifests;
use examples::plan::{Plan, Rules, plan, plan_best};
use examples::preempt::Who;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/plans")
}

fn planned(files: &[&Path]) -> Plan {
    planned_with(files, Who::Room)
}

fn planned_with(files: &[&Path], who: Who) -> Plan {
    let mut manifests = Manifests::default()
        .in_namespace(Some("default".to_owned()))
        .with_templates(vec!["MPIJob=spec.mpiReplicaSpecs.*.template".parse().unwrap()]);
    for file in files {
        manifests.read_path(file);
    }
    plan(manifests, Rules { profile: Profile::V1_37, gates: GateSet::of(Profile::V1_37), who }).unwrap()
}

fn text(plan: &Plan) -> String {
    strip_str(&plan.text("default")).to_string()
}

fn workloads() -> BTreeSet<PathBuf> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|it| it == "yaml") && !path.ends_with("cluster.yaml")).collect()
}

/// `UPDATE=1` writes them anew.
#[test]
fn transcripts_are_as_written() {
    let files = workloads();
    assert!(files.len() >= 20);
    for file in files {
        let told = text(&planned(&[&folder().join("cluster.yaml"), &file]));
        let transcript = file.with_extension("txt");
        if env::var_os("UPDATE").is_some() {
            fs::write(&transcript, &told).unwrap();
        }
        assert_eq!(told, fs::read_to_string(&transcript).unwrap_or_default(), "{}", file.display());
        assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    }
}

/// Two nodes with one and two devices, and a pod.
const TWO_NODES: &str = "
{apiVersion: v1, kind: Node, metadata: {name: a}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: a}, spec: {driver: gpu.example.com, nodeName: a,
  pool: {name: a, generation: 1, resourceSliceCount: 1}, devices: [{name: big, capacity: {memory: {value: 80Gi}}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: b}, spec: {driver: gpu.example.com, nodeName: b,
  pool: {name: b, generation: 1, resourceSliceCount: 1},
  devices: [{name: big, capacity: {memory: {value: 80Gi}}}, {name: tiny, capacity: {memory: {value: 2Gi}}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: one}, spec: {spec: {devices: {requests: [
  {name: gpu, exactly: {deviceClassName: gpu}}]}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: main, image: i}],
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]}}
";

#[test]
fn the_best_devices_are_planned_with_the_reason() {
    let read = || {
        let mut manifests = Manifests::default();
        manifests.read("cluster.yaml", TWO_NODES);
        manifests
    };
    let rules = Rules { profile: Profile::V1_37, gates: GateSet::of(Profile::V1_37), who: Who::Room };
    let waste = Objective::least_waste("gpu.example.com/memory").unwrap();
    let first = plan(read(), rules).unwrap();
    let best = plan_best(read(), rules, &waste).unwrap();
    let placed = |plan: &Plan| {
        let pod = &plan.workloads[0].placed[0];
        (pod.node.clone(), pod.devices.clone(), pod.choice.clone())
    };
    assert_eq!(placed(&first), ("a".to_owned(), vec!["gpu.example.com/a/big".to_owned()], None));
    let reason = "b/tiny rather than b/big: less of gpu.example.com/memory is wasted \
                  (waste of gpu.example.com/memory 25 instead of 1000)";
    assert_eq!(placed(&best), ("b".to_owned(), vec!["gpu.example.com/b/tiny".to_owned()], Some(reason.to_owned())));
    let shown = text(&best);
    assert!(
        shown.contains("    b/tiny rather than b/big: less of gpu.example.com/memory is wasted (waste of\n"),
        "{shown}"
    );
}

#[test]
fn a_plan_is_the_same_at_each_run() {
    let cluster = folder().join("cluster.yaml");
    let all: Vec<PathBuf> = workloads().into_iter().collect();
    let files: Vec<&Path> = [cluster.as_path()].into_iter().chain(all.iter().map(PathBuf::as_path)).collect();
    let both = [planned(&files), planned(&files)].map(|plan| serde_json::to_string(&plan).unwrap());
    assert_eq!(both[0], both[1]);
}

/// No device is given twice, and each placed pod is on a node of the manifests.
#[test]
fn devices_are_given_once() {
    let cluster = folder().join("cluster.yaml");
    let all: Vec<PathBuf> = workloads().into_iter().filter(|file| !file.ends_with("pods-share-a-claim.yaml")).collect();
    let files: Vec<&Path> = [cluster.as_path()].into_iter().chain(all.iter().map(PathBuf::as_path)).collect();
    let plan = planned(&files);
    let placed = plan.workloads.iter().flat_map(|workload| &workload.placed);
    let gpus: Vec<&String> = placed.flat_map(|pod| &pod.devices).filter(|device| device.starts_with("gpu.")).collect();
    let distinct: BTreeSet<&&String> = gpus.iter().collect();
    assert!(!gpus.is_empty());
    assert_eq!(gpus.len(), distinct.len());
}

#[test]
fn more_nodes_place_no_fewer_pods() {
    let cluster = fs::read_to_string(folder().join("cluster.yaml")).unwrap();
    let more = cluster.replace("node-a", "node-x").replace("node-b", "node-y").replace("node-c", "node-z");
    for file in workloads() {
        let place = |texts: &[&str]| {
            let mut manifests = Manifests::default().in_namespace(Some("default".to_owned()));
            for text in texts {
                manifests.read("cluster.yaml", text);
            }
            manifests.read_path(&file);
            plan(manifests, Rules { profile: Profile::V1_37, gates: GateSet::of(Profile::V1_37), who: Who::Room })
                .unwrap()
                .placed
        };
        assert!(place(&[&cluster]) <= place(&[&cluster, &more]), "{}", file.display());
    }
}

#[test]
fn each_rule_says_who_would_have_to_go_and_who_is_in_the_way() {
    let files = ["cluster.yaml", "priorities.yaml"].map(|name| folder().join(name));
    let told = text(&planned_with(&files.each_ref().map(PathBuf::as_path), Who::Whole)).replace("\n      ", " ");
    let usual =
        "    no pod may go for it; in the way: default/notebook-1 (priority 10), by kube-scheduler's rule as well\n";
    let train = "    would fit on node-c if default/notebook-1 (priority 10, 2 devices) went; disruption budgets allow it, by \
                 kube-scheduler's rule as well\n";
    assert!(told.contains(usual) && told.contains(train), "{told}");
}

/// Reasons that keep pods where they are, and the words for them.
#[test]
fn moves_are_told_only_where_they_help() {
    let texts = ["cluster.yaml", "moves.yaml"].map(|name| fs::read_to_string(folder().join(name)).unwrap());
    let moves_with = |changes: &[(&str, &str)]| {
        let mut manifests = Manifests::default().in_namespace(Some("default".to_owned()));
        for text in &texts {
            manifests.read("m.yaml", &changes.iter().fold(text.clone(), |text, (old, new)| text.replace(old, new)));
        }
        let rules = Rules { profile: Profile::V1_37, gates: GateSet::of(Profile::V1_37), who: Who::Room };
        let plan = plan(manifests, rules).unwrap();
        let waiting = &plan.workloads.iter().find(|workload| workload.name.ends_with("train")).unwrap().waiting;
        waiting.first().map(|group| group.moves.as_ref().map(ToString::to_string))
    };
    let to_b = "would fit on node-a after moving default/web-1 from node-a to node-b";
    assert_eq!(moves_with(&[]), Some(Some(to_b.to_owned())));
    // The other one moves if the first one must not.
    // The claims of the pods are named `web-1-gpu` and `web-2-gpu`.
    let pinned = ("name: web-1\n  uid", "name: web-1\n  annotations: {karpenter.sh/do-not-disrupt: 'true'}\n  uid");
    let to_a = "would fit on node-b after moving default/web-2 from node-b to node-a";
    assert_eq!(moves_with(&[pinned]), Some(Some(to_a.to_owned())));
    let other = ("name: web-2\n  uid", "name: web-2\n  annotations: {karpenter.sh/do-not-disrupt: 'true'}\n  uid");
    assert_eq!(moves_with(&[pinned, other]), Some(None));
    // Nobody would make a pod without a controller anew.
    assert_eq!(
        moves_with(&[("kind: ReplicaSet, name: web, uid: web, controller: true", "kind: R, name: w, uid: w")]),
        Some(None)
    );
    // A node that has no CPU left for it: the other nodes have no H100, which web-1 does not ask for.
    let small = (
        "metadata: {name: node-b, labels: {kubernetes.io/hostname: node-b, gpu: h100}}\nstatus: {allocatable: {cpu: \"16\"",
        "metadata: {name: node-b, labels: {kubernetes.io/hostname: node-b, gpu: h100}}\nstatus: {allocatable: {cpu: \"0\"",
    );
    let wants = ("image: web, resources: {", "image: web, resources: {requests: {cpu: \"1\"}, ");
    let to_c = "would fit on node-a after moving default/web-1 from node-a to node-c";
    assert_eq!(moves_with(&[small, wants]), Some(Some(to_c.to_owned())));
    // The job wants a node that is not one of these two.
    let selector = ("      restartPolicy: Never\n", "      restartPolicy: Never\n      nodeSelector: {gpu: a100}\n");
    assert_eq!(moves_with(&[selector]), Some(None));
}

#[test]
fn a_priority_class_that_is_not_there_is_told() {
    let mut manifests = Manifests::default();
    manifests.read("p.yaml", "{kind: Pod, metadata: {name: p}, spec: {containers: [], priorityClassName: urgent}}");
    let rules = Rules { profile: Profile::V1_37, gates: GateSet::of(Profile::V1_37), who: Who::Room };
    let told = text(&plan(manifests, rules).unwrap());
    assert!(told.contains("no PriorityClass urgent among the manifests: priority 0\n"), "{told}");
}

/// The answer that rests on a claim which can't be read says so, and a plan has status 1.
#[test]
fn what_can_t_be_read_is_told_in_the_answer() {
    let mut manifests = Manifests::default();
    manifests.read(
        "c.yaml",
        "{kind: ResourceClaim, metadata: {name: c}, spec: {}, status: {allocation: {devices: {results: [7]}}}}",
    );
    let rules = Rules { profile: Profile::V1_37, gates: GateSet::of(Profile::V1_37), who: Who::Room };
    let plan = plan(manifests, rules).unwrap();
    assert!(!plan.is_whole());
    assert!(text(&plan).contains("1 claim can't be read: its devices count as free here"), "{}", text(&plan));
}

#[test]
fn a_container_s_claim_that_the_pod_lacks_is_told() {
    let mut manifests = Manifests::default();
    let pod = "{kind: Pod, metadata: {name: p}, spec: {resourceClaims: [{name: gpus, resourceClaimTemplateName: t}],
        containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]}}";
    manifests.read("p.yaml", pod);
    let rules = Rules { profile: Profile::V1_37, gates: GateSet::of(Profile::V1_37), who: Who::Room };
    let told = text(&plan(manifests, rules).unwrap());
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("container c uses claim gpu, and spec.resourceClaims has gpus"), "{told}");
    assert!(words.contains("no claim to check"), "{told}");
}

#[test]
fn the_readme_shows_what_is_printed() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let begin = "$ kubectl dra plan selector-with-a-typo.yaml cluster.yaml\n";
    let shown = readme.split(begin).nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(shown, fs::read_to_string(folder().join("selector-with-a-typo.txt")).unwrap());
    assert!(shown.lines().count() < 14);
}
