//! Runs of the program `scheduler` on its clusters and on manifests of all forms.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod program;

use std::fs;
use std::path::{Path, PathBuf};

use examples::manifest::Manifests;
use serde_json::{Value, json};

use program::Run;

const LISTS: &str = "--feature-gates=DRAListTypeAttributes=true";
const CLUSTERS: [&str; 3] = ["rack", "stories", "boards"];

impl Run {
    /// Returns the rows of the table: claim, node, request, device, notes. Later rows of a claim repeat its name.
    fn rows(&self) -> Vec<[String; 5]> {
        let mut rows: Vec<[String; 5]> = Vec::new();
        for line in self.stdout.lines().filter(|line| line.starts_with("│")).skip(1) {
            let cells: Vec<String> = line.split(['│', '┆']).map(|cell| cell.trim().to_owned()).collect();
            let mut row: [String; 5] = cells[1..6].to_vec().try_into().unwrap();
            if let Some(last) = rows.last().filter(|_| row[0].is_empty()) {
                (row[0], row[1]) = (last[0].clone(), last[1].clone());
            }
            rows.push(row);
        }
        rows
    }

    /// Returns the devices of a claim as `request pool/device`; empty if it is not allocated.
    fn devices(&self, claim: &str) -> Vec<String> {
        let rows = self.rows();
        let own: Vec<_> = rows.iter().filter(|row| row[0] == claim).collect();
        assert!(!own.is_empty(), "{claim}: {}", self.stdout);
        let devices = own.iter().filter(|row| row[3] != "-");
        devices.map(|row| format!("{} {}", row[2], row[3].split_once('/').unwrap().1)).collect()
    }

    /// Returns the lines below the table.
    fn refusals(&self) -> Vec<&str> {
        self.stdout.lines().filter(|line| !line.starts_with(['┌', '│', '╞', '└'])).collect()
    }

    /// Returns the claims that have lines below the table.
    fn refused(&self) -> Vec<&str> {
        let claims = self.refusals().into_iter().filter(|line| !line.starts_with(' '));
        claims.map(|line| line.split(": ").next().unwrap()).collect()
    }
}

fn run(args: &[&str], stdin: &str) -> Run {
    Run::of(env!("CARGO_BIN_EXE_scheduler"), args, stdin)
}

/// Runs the program on manifests and checks that it reports no problem.
fn clean(args: &[&str], stdin: &str) -> Run {
    run(args, stdin).clean()
}

fn cluster_file(name: &str) -> String {
    format!("{}/data/clusters/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

/// Returns an empty directory for one test; files of an earlier run are removed.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scheduler").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    let api = if kind == "Node" { "v1" } else { "resource.k8s.io/v1" };
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn slice(node: &str, devices: &Value) -> Value {
    let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": "cpu.example.com", "nodeName": node, "pool": pool, "devices": devices});
    object("ResourceSlice", node, &spec)
}

fn class() -> Value {
    object("DeviceClass", "cpu", &json!({}))
}

fn claim(name: &str, cores: u32) -> Value {
    let exactly = json!({"deviceClassName": "cpu", "capacity": {"requests": {"cores": cores}}});
    object("ResourceClaim", name, &json!({"devices": {"requests": [{"name": "cpu", "exactly": exactly}]}}))
}

/// Builds nodes with 8 cores each, which claims share.
fn cpus(nodes: &[&str]) -> Vec<Value> {
    let device = json!([{"name": "cpu-0", "allowMultipleAllocations": true, "capacity": {"cores": {"value": 8}}}]);
    let per_node = nodes.iter().flat_map(|node| [object("Node", node, &json!({})), slice(node, &device)]);
    per_node.chain([class()]).collect()
}

fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

#[test]
fn the_rack() {
    let run = clean(&[LISTS], "");
    let expected = ["gpu rack-1/gpu-0", "nic rack-1/nic-0", "cpu rack-1/numa-0", "memory rack-1/numa-0"];
    assert_eq!(run.devices("default/inference-0"), expected);
    let expected = ["gpu rack-1/gpu-1", "nic rack-1/nic-1", "cpu rack-1/numa-1", "memory rack-1/numa-1"];
    assert_eq!(run.devices("default/inference-1"), expected);
    let expected = ["gpu rack-2/gpu-1", "nic rack-2/nic-0", "cpu rack-2/numa-4", "memory rack-2/numa-4"];
    assert_eq!(run.devices("default/inference-2"), expected);
    assert_eq!(run.devices("default/build"), ["cpu rack-1/numa-0"]);
    assert_eq!(run.devices("default/gpu-or-cpu"), ["compute/cpu rack-1/numa-1"], "no l40s is left");
    assert!(run.devices("default/wrong-model").is_empty() && run.devices("default/no-class").is_empty());

    let refusals = run.refusals();
    assert_eq!(refusals.len(), 4, "{refusals:?}");
    assert!(refusals[0].starts_with("default/wrong-model: 0/2 nodes can serve the claim"), "{refusals:?}");
    assert!(refusals[1].starts_with("  rack-1:") && refusals[2].starts_with("  rack-2:"), "{refusals:?}");
    assert!(
        refusals[3].starts_with("default/no-class: ")
            && refusals[3].ends_with("class fpga: not found; add the DeviceClass to the manifests")
    );

    assert_eq!(run.rows().iter().rev().nth(1).unwrap()[4], "not allocated");
    let notes = |device: &str| run.rows().into_iter().find(|row| row[3] == device).unwrap()[4].clone();
    assert_eq!(notes("gpu.example.com/rack-2/gpu-1"), "numaNode [5 4 6 7]");
    assert_eq!(notes("memory.example.com/rack-2/numa-4"), "numaNode 4, share bytes 64Gi");
}

#[test]
fn the_rack_without_lists() {
    let run = run(&[], "");
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains("DRAListTypeAttributes=true") && run.stderr.lines().count() == 1, "{}", run.stderr);
    assert!(run.devices("default/inference-2").is_empty());
    assert_eq!(run.devices("default/inference-1").len(), 4);
}

#[test]
fn the_stories_of_kep_6072() {
    let run = clean(&["--cluster", "stories", LISTS], "");
    let expected = ["gpu story-1/gpu-0", "nic story-1/nic-0", "cpu story-1/numa-0"];
    assert_eq!(run.devices("story-1/vllm"), expected);
    for (pod, function) in ["pf-0-vf-0", "pf-0-vf-1", "pf-1-vf-0", "pf-1-vf-1"].iter().enumerate() {
        let expected =
            [format!("gpu story-2/gpu-{pod}"), format!("nic story-2/{function}"), format!("cpu story-2/numa-{pod}")];
        assert_eq!(run.devices(&format!("story-2/pod-{pod}")), expected);
    }
    assert!(run.devices("story-2/pod-4").is_empty());
    assert!(run.refusals()[0].starts_with("story-2/pod-4: 0/3 nodes can serve the claim"));
    assert_eq!(run.devices("story-3/cross-quadrant"), ["gpu story-3/slot-7", "nic story-3/nic-0"]);
}

#[test]
fn the_stories_need_lists() {
    for profile in ["kep", "v1.37"] {
        let run = run(&["--cluster", "stories", "--profile", profile], "");
        assert!(run.rows().iter().all(|row| row[1] == "-"), "{profile}: {}", run.stdout);
    }
}

#[test]
fn the_boards_of_kep_6072() {
    let lists = clean(&["--cluster", "boards", LISTS], "");
    let scalars = run(&["--cluster", "boards"], "");
    let placed = |run: &Run, prefix: &str| {
        let rows = run.rows();
        let gpus = rows.iter().filter(|row| row[0].starts_with(prefix) && row[2] == "gpu");
        gpus.inspect(|row| assert!(prefix.starts_with(&row[1]), "{row:?}")).count()
    };
    for (prefix, gpus) in [
        ("xe8640-root", 1),
        ("xe8640-numa", 1),
        ("r760xa-root", 0),
        ("r760xa-numa", 2),
        ("as-8126gs-root", 8),
        ("r7725-root", 0),
    ] {
        assert_eq!(placed(&lists, prefix), gpus, "{prefix}");
        assert_eq!(placed(&scalars, prefix), gpus, "{prefix}");
    }
    assert_eq!((placed(&lists, "r7725-numa"), placed(&scalars, "r7725-numa")), (1, 0));
}

#[test]
fn every_form_of_input_gives_the_same() {
    for name in CLUSTERS {
        let file = cluster_file(name);
        let text = fs::read_to_string(&file).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let expected = clean(&["--cluster", name, LISTS], "").stdout;
        assert_eq!(clean(&[LISTS, &file], "").stdout, expected, "{name}: YAML");
        assert_eq!(clean(&[LISTS, "-"], &text).stdout, expected, "{name}: stdin");
        assert_eq!(clean(&[LISTS, "-"], &list(&documents)).stdout, expected, "{name}: a JSON list of lists");
        assert_eq!(clean(&[LISTS, "-"], &text.replace('\n', "\r\n")).stdout, expected, "{name}: CRLF");

        let folder = folder(name);
        let below = folder.join("b/c");
        fs::create_dir_all(&below).unwrap();
        fs::write(folder.join("README.md"), "not a manifest").unwrap();
        for (number, document) in documents.iter().enumerate() {
            let folder = if number < 3 { folder.join("a") } else { below.clone() };
            fs::create_dir_all(&folder).unwrap();
            let (name, text) = match number % 3 {
                0 => ("yaml", serde_saphyr::to_string(document).unwrap()),
                1 => ("yml", serde_saphyr::to_string(document).unwrap()),
                _ => ("json", serde_json::to_string_pretty(document).unwrap().replace("  ", "\t")),
            };
            fs::write(folder.join(format!("{number:03}.{name}")), text).unwrap();
        }
        assert_eq!(clean(&[LISTS, folder.to_str().unwrap()], "").stdout, expected, "{name}: a folder");
    }
}

#[test]
fn what_is_written_can_be_read_again() {
    for name in CLUSTERS {
        let file = cluster_file(name);
        let json = run(&["--cluster", name, LISTS, "-o", "json"], "");
        let yaml = run(&["--cluster", name, LISTS, "-o", "yaml"], "");
        assert_eq!(json.json()["kind"], "List");
        let documents: Vec<Value> = serde_saphyr::from_multiple(&yaml.stdout).unwrap();
        assert_eq!(json.json()["items"], Value::Array(documents), "{name}");
        assert!(json.stderr.contains("nodes can serve the claim"), "{}", json.stderr);

        let first = clean(&["--cluster", name, LISTS], "");
        for written in [&json.stdout, &yaml.stdout] {
            let again = run(&[LISTS, &file, "-"], written);
            assert_eq!(again.code, 0);
            assert!(again.stderr.lines().all(|line| line.contains("replaces the one of")), "{}", again.stderr);
            assert_eq!(again.refused(), first.refused(), "{name}");
            let pairs = first.rows().into_iter().zip(again.rows());
            pairs.for_each(|(first, again)| assert_eq!(first[..4], again[..4], "{name}"));
            let pending = again.rows().into_iter().filter(|row| row[1] != "-" && !row[4].ends_with("allocated before"));
            assert_eq!(pending.count(), 0, "{name}");
            assert_eq!(run(&[LISTS, &file, "-", "-o", "json"], written).stdout, json.stdout, "{name}");
        }
    }
}

#[test]
fn the_time_of_an_allocation_is_not_set() {
    let claims = run(&["-o", "json"], "").json();
    let allocation = &claims["items"][0]["status"]["allocation"];
    assert!(allocation["devices"].is_object() && allocation.get("allocationTimestamp").is_none());
    assert_eq!(allocation["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"], json!(["rack-1"]));
}

#[test]
fn claims_share_a_cpu_until_it_is_full() {
    let claims: Vec<Value> = (0..6).map(|number| claim(&format!("claim-{number}"), 3)).collect();
    let run = clean(&["-"], &list(&[cpus(&["a", "b"]), claims].concat()));
    let nodes: Vec<String> = run.rows().iter().map(|row| row[1].clone()).collect();
    assert_eq!(nodes, ["a", "a", "b", "b", "-", "-"], "2 cores are left of 8");
    assert!(run.rows()[..4].iter().all(|row| row[4] == "share cores 3"));
}

#[test]
fn all_claims_of_a_pod_go_to_one_node() {
    let claims = [claim("first", 5), claim("left", 3), claim("right", 3)];
    let nodes = |objects: &[Value]| -> Vec<String> {
        clean(&["-"], &list(objects)).rows().iter().map(|row| row[1].clone()).collect()
    };
    let alone = [cpus(&["a", "b"]), claims.to_vec()].concat();
    assert_eq!(nodes(&alone), ["a", "a", "b"], "each claim goes where it fits first");
    let uses = json!([{"name": "l", "resourceClaimName": "left"}, {"name": "r", "resourceClaimName": "right"}]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": {"resourceClaims": uses}});
    assert_eq!(nodes(&[alone, vec![pod]].concat()), ["a", "b", "b"]);
}

#[test]
fn ids_of_shares_are_not_given_twice() {
    let first = clean(&["-o", "json", "-"], &list(&[cpus(&["a"]), vec![claim("first", 5)]].concat())).json();
    let objects = [cpus(&["a"]), vec![first, claim("second", 3), claim("third", 1)]].concat();
    let run = clean(&["-"], &list(&objects));
    let nodes: Vec<String> = run.rows().iter().map(|row| row[1].clone()).collect();
    assert_eq!(nodes, ["a", "a", "-"]);
    assert_eq!(run.rows()[0][4], "share cores 5, allocated before");
}

#[test]
fn nodes_are_tried_in_the_order_given() {
    let objects = list(&[cpus(&["a", "b", "c"]), vec![claim("claim", 3)]].concat());
    assert_eq!(clean(&["-"], &objects).rows()[0][1], "a");
    assert_eq!(clean(&["--node", "c", "--node", "a", "-"], &objects).rows()[0][1], "c");
    let unknown = run(&["--node", "d", "-"], &objects);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (1, ""));
    assert_eq!(unknown.stderr, "scheduler: no node \"d\"; known: a, b, c\n");
}

#[test]
fn a_claim_for_nothing_is_allocated_on_the_first_node() {
    let empty = "kind: ResourceClaim\nmetadata: {name: empty}\n---\nkind: Node\nmetadata: {name: a}\n";
    assert_eq!(clean(&["-"], empty).rows()[0][..2], ["empty", "a"]);
}

#[test]
fn words_that_old_yaml_took_for_truth_values_are_names() {
    let mut manifests = Manifests::default();
    manifests.read("nodes.yaml", "kind: Node\nmetadata: {name: no, labels: {y: on}}\n");
    assert!(manifests.problems.is_empty(), "{:?}", manifests.problems);
    assert_eq!(manifests.nodes[0].metadata.name.as_deref(), Some("no"));
}

#[test]
fn broken_manifests_are_reported_and_the_others_count() {
    let folder = folder("broken");
    fs::write(folder.join("a.json"), list(&cpus(&["a"]))).unwrap();
    let bad = "\
# Only one of these is good.
kind: ResourceSlice
metadata:
  name: bad
spec:
  driver: cpu.example.com
  pool: {name: bad, generation: one, resourceSliceCount: 1}
---
kind: ResourceClaim
metadata:
  name: unclosed
  labels: {a: b
--- # the good one
apiVersion: resource.k8s.io/v1beta2
kind: ResourceClaim
metadata: {name: good, namespace: team}
spec: {devices: {requests: [{name: cpu, exactly: {deviceClassName: cpu}}]}}
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaim
metadata: {name: old}
---
kind: ResourceClaim
metadata: {name: held, namespace: team}
status:
  allocation:
    devices:
      results:
      - skipNodeOperations: 3
";
    fs::write(folder.join("b.yaml"), bad).unwrap();
    fs::write(folder.join("c.json"), "{\n  \"kind\": \"ResourceClaim\",\n  \"metadata\": {\"name\": 5}\n}\n").unwrap();
    fs::write(folder.join("d.yaml"), b"kind: \xff\n").unwrap();
    let missing = folder.join("e.yaml");

    let run = run(&[folder.to_str().unwrap(), missing.to_str().unwrap()], "");
    assert_eq!(run.code, 1);
    assert_eq!(run.devices("team/good"), ["cpu a/cpu-0"]);
    assert_eq!(run.rows().len(), 1);
    let prefix = format!("{}/", folder.display());
    let lines: Vec<&str> = run.stderr.lines().map(|line| line.strip_prefix(&prefix).unwrap_or(line)).collect();
    let expected = [
        "b.yaml:7: ResourceSlice bad: spec.pool.generation: invalid type: string \"one\", expected i64",
        "b.yaml:12: ",
        "b.yaml:19: ResourceClaim old: apiVersion: version v1alpha2 can't be read, only v1, v1beta2, v1beta1; ask for kubectl get \
         resourceclaims.v1.resource.k8s.io",
        "b.yaml:29: ResourceClaim team/held: status.allocation.devices.results[0].skipNodeOperations: neither a bool ",
        "c.json:3: ResourceClaim: metadata.name: invalid type: integer `5`, expected a string",
        "d.yaml: ",
        "e.yaml: ",
        "b.yaml:14: ResourceClaim team/good: converted from resource.k8s.io/v1beta2, as all objects that are written so",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
}

#[test]
fn lists_that_are_not_whole_are_refused_and_the_others_count() {
    let page =
        "kind: ResourceSliceList\nmetadata: {continue: next, remainingItemCount: 7}\nitems: [{metadata: {name: x}}]\n";
    let whole = "---\napiVersion: v1\nkind: NodeList\nmetadata: {continue: \"\"}\nitems: [{metadata: {name: a}}, null, {kind: Pod}]\n";
    let run = run(&["-"], &format!("{page}{whole}---\n{}", list(&cpus(&["b"]))));
    assert_eq!(run.code, 1);
    let expected = "\
stdin:2: ResourceSliceList: metadata.continue: the list is not whole: the server has more objects; ask without a limit
stdin:8: NodeList: items[1]: null in place of an object; the first of 2 items that can't be read
";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
}

#[test]
fn times_after_the_last_of_the_types_are_read() {
    let late = json!([{"name": "cpu-0", "taints": [
        {"key": "example.com/never", "effect": "None", "timeAdded": "9999-12-31T23:59:59Z"}]}]);
    let mut node = object(
        "Node",
        "a",
        &json!({"taints": [
        {"key": "example.com/never", "effect": "PreferNoSchedule", "timeAdded": "9999-12-31T12:00:00-12:00"}]}),
    );
    node["metadata"]["annotations"] = json!({"time": "9999-12-31T23:59:59Z"});
    let claim = object(
        "ResourceClaim",
        "c",
        &json!({"devices": {"requests": [
        {"name": "cpu", "exactly": {"deviceClassName": "cpu"}}]}}),
    );
    let run = clean(&["-"], &list(&[node, slice("a", &late), class(), claim]));
    assert_eq!(run.devices("c"), ["cpu a/cpu-0"]);
}

#[test]
fn what_the_allocator_must_not_see_is_refused() {
    let held = "{driver: d, pool: p, device: x, request: r, shareID: s, consumedCapacity: {cores: 3q}}";
    for (text, expected) in [
        ("kind: Node\nmetadata: {}\n", "stdin:2: Node: metadata.name: must be set"),
        ("\nmetadata: {name: x}\n", "stdin:2: x: kind: must be set"),
        ("- a\n", "stdin:1: a list; put it into {kind: List, items: [...]}"),
        ("kind: ResourceSlice\nmetadata: {name: x}\n", "stdin:1: ResourceSlice x: spec.driver: must be set"),
        ("kind: Node\n---\nkind: Node\na: 1\na: 2\n", "stdin:5: duplicate mapping key: a"),
    ] {
        let run = run(&["-"], text);
        assert_eq!(run.code, 1, "{text}");
        assert!(run.stderr.lines().any(|line| line == expected), "{text}: {}", run.stderr);
    }
    let text = format!(
        "kind: ResourceClaim\nmetadata: {{name: x}}\nstatus: {{allocation: {{devices: {{results: [{held}]}}}}}}"
    );
    let expected = "stdin:3: ResourceClaim x: status.allocation.devices.results[0].consumedCapacity.cores: Invalid value: \"3q\": ";
    assert!(run(&["-"], &text).stderr.starts_with(expected));
}

#[test]
fn what_may_not_be_meant_is_noted() {
    let text = "\
kind: ResourceClaim
metadata: {name: x}
spec:
  devices:
    requests: []
    constraint: [{matchAttribute: a.example.com/b}]
---
kind: Pod
metadata: {name: a}
---
kind: ResourceClaimTemplate
metadata: {name: t}
spec: {spec: {}}
---
kind: Pod
metadata: {name: b}
---
apiVersion: example.com/v1
kind: Node
---
kind: NodeList
items: [{metadata: {name: a}, status: {news: {of: tomorrow}}}]
";
    let run = run(&["-"], text);
    assert_eq!((run.code, run.rows()[0][1].as_str()), (0, "a"));
    let expected = [
        "stdin:6: ResourceClaim x: spec.devices.constraint: unknown field, ignored",
        "scheduler: ignored: Node of group example.com (1)",
        "scheduler: ignored: Pod (2) without claims; nominate reads it",
        "scheduler: ignored: ResourceClaimTemplate (1): no pod names it",
    ];
    assert_eq!(run.stderr.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn gates_switch_features() {
    let rule = json!({"deviceSelector": {"driver": "cpu.example.com"}, "taint": {"key": "a", "effect": "NoSchedule"}});
    let tainted = [cpus(&["a"]), vec![object("DeviceTaintRule", "rule", &rule), claim("claim", 1)]].concat();
    assert_eq!(clean(&["-"], &list(&tainted)).rows()[0][1], "-");
    assert_eq!(clean(&["--feature-gates", "DRADeviceTaints=false", "-"], &list(&tainted)).rows()[0][1], "a");
    let off = clean(&["--feature-gates", " DRADeviceTaints=false, DRAConsumableCapacity=false ", "-"], &list(&tainted));
    assert_eq!(off.rows()[0][4], "error");
    assert!(off.refusals()[0].ends_with("has capacity requests, but the DRAConsumableCapacity feature is disabled"));

    for (gates, expected) in [
        ("DRANonsense=true", "no feature gate \"DRANonsense\" in profile v1.37; the nearest is "),
        (
            "DRAOptionalNodePreparation=true",
            "no feature gate \"DRAOptionalNodePreparation\" in profile v1.37; the nearest is DRAOptionalNodeOperations",
        ),
        ("DRADeviceTaints", "feature gate \"DRADeviceTaints\" is not NAME=true or NAME=false"),
        ("DRADeviceTaints=yes", "feature gate \"DRADeviceTaints=yes\" is not NAME=true or NAME=false"),
    ] {
        let wrong = run(&["--feature-gates", gates], "");
        assert_eq!((wrong.code, wrong.stdout.as_str()), (2, ""));
        assert!(wrong.stderr.starts_with(&format!("scheduler: --feature-gates: {expected}")), "{}", wrong.stderr);
    }
}

#[test]
fn skipped_operations_are_written_in_the_form_of_the_profile() {
    let with = |declaration: Value| {
        let mut objects = [cpus(&["a"]), vec![claim("claim", 1)]].concat();
        objects[0]["status"] = json!({"declaredFeatures": ["DRAOptionalNodeOperations", "DraOptionalNodePreparation"]});
        objects[1]["spec"]["skipNodeOperations"] = declaration;
        list(&objects)
    };
    let written = |run: &Run| {
        run.json()["items"][0]["status"]["allocation"]["devices"]["results"][0]["skipNodeOperations"].clone()
    };
    let kep = ["--profile=kep", "--feature-gates=DRAOptionalNodePreparation=true", "-o", "json", "-"];
    let shipped = ["--profile=v1.37", "--feature-gates=DRAOptionalNodeOperations=true", "-o", "json", "-"];
    for declaration in [json!(true), json!(["*"])] {
        assert_eq!(written(&clean(&kep, &with(declaration.clone()))), json!(true));
        assert_eq!(written(&clean(&shipped, &with(declaration.clone()))), json!(["*"]));
        assert_eq!(
            clean(&[kep[0], kep[1], "-"], &with(declaration.clone())).rows()[0][4],
            "share cores 1, skips node operations"
        );
        let off = clean(&["--profile=kep", "-"], &with(declaration));
        assert!(off.refusals()[1].ends_with("but the DRAOptionalNodePreparation feature is disabled"));
    }
    let one = run(&kep, &with(json!(["NodePrepareResources"])));
    assert_eq!(written(&one), json!(["NodePrepareResources"]));
    assert!(
        one.stderr.ends_with("the bool form can't say that only NodePrepareResources is skipped; written as a list\n")
    );
}

#[test]
fn explanations_have_three_lengths() {
    let lines = |detail: &str| clean(&["--explain", detail, LISTS], "").refusals().len();
    assert!(lines("off") == lines("summary") && lines("full") >= lines("summary"));
    assert_eq!(run(&["--explain", "all"], "").code, 2);
}

#[test]
fn odd_arguments() {
    let none = run(&["-"], "# nothing\n---\n%YAML 1.2\n---\nnull\n");
    assert_eq!((none.code, none.rows().len()), (0, 0));
    assert_eq!(none.stderr, "scheduler: no Node among the manifests: nothing can be allocated\n");
    for wrong in [&["--cluster", "attic"][..], &["--cluster", "rack", "-"], &["--profile", "v1.38"], &["-o", "xml"]] {
        assert_eq!(run(wrong, "").code, 2, "{wrong:?}");
    }
}

#[test]
fn the_best_devices_are_taken_on_request() {
    let gpu = |name: &str, memory: &str| json!({"name": name, "capacity": {"memory": {"value": memory}}});
    let request = json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "cpu"}}]}});
    let claim = object("ResourceClaim", "c", &request);
    let devices = json!([gpu("big", "80Gi"), gpu("small", "4Gi")]);
    let manifests = list(&[object("Node", "n", &json!({})), slice("n", &devices), class(), claim]);
    let folder = folder("objective");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let waste = file("waste.json", r#"[[{"term": "waste", "capacity": "cpu.example.com/memory"}]]"#);
    assert_eq!(clean(&["-"], &manifests).devices("c"), ["r n/big"]);
    let best = clean(&["--objective", &waste, "-"], &manifests);
    assert_eq!(best.devices("c"), ["r n/small"]);
    let reason = "n/small rather than n/big: less of cpu.example.com/memory is wasted \
                  (waste of cpu.example.com/memory 50 instead of 1000)";
    assert_eq!(best.stdout.lines().last(), Some(&*format!("c: {reason}")));
    // Of two nodes, the one where less is wasted.
    let tight = slice("m", &json!([gpu("big", "80Gi"), gpu("tiny", "2Gi")]));
    let others = [object("Node", "m", &json!({})), tight].map(|object| object.to_string()).join("\n---\n");
    let both = format!("{manifests}\n---\n{others}");
    assert_eq!(clean(&["--objective", &waste, "-"], &both).devices("c"), ["r m/tiny"]);
    let wrong = file("wrong.json", r#"[[{"term": "waste"}]]"#);
    let refused = run(&["--objective", &wrong, "-"], &manifests);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    assert_eq!(refused.stderr, format!("scheduler: {wrong}: objective[0][0].capacity: is missing\n"));
}

#[test]
fn the_node_with_the_least_room_left_is_taken_on_request() {
    let gpus = |node: &str, count: usize| {
        let devices: Vec<Value> = (0..count).map(|index| json!({"name": format!("gpu-{index}")})).collect();
        slice(node, &json!(devices))
    };
    let mut claim = object(
        "ResourceClaim",
        "c",
        &json!({"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "cpu"}}]}}),
    );
    claim["metadata"]["namespace"] = json!("default");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [], "resourceClaims": [{"name": "r", "resourceClaimName": "c"}]}});
    let nodes = ["wide", "narrow", "other"].map(|name| object("Node", name, &json!({})));
    let objects = [gpus("wide", 4), gpus("narrow", 2), gpus("other", 2), class(), claim, pod];
    let manifests = list(&[&nodes[..], &objects].concat());
    let first_line = |args: &[&str]| clean(args, &manifests).stdout.lines().next().unwrap().to_owned();
    assert_eq!(first_line(&["--pods", "-"]), "pod default/p: wide");
    assert_eq!(first_line(&["--pods", "--best-fit", "-"]), "pod default/p: narrow", "the first of two");
    assert_eq!(run(&["--best-fit", "-"], &manifests).code, 2, "claims without pods have no order of nodes");
}

#[test]
fn a_claim_that_cannot_be_read_keeps_its_devices_or_marks_the_answer() {
    let slice = object(
        "ResourceSlice",
        "s",
        &json!({"driver": "cpu.example.com", "nodeName": "node-1",
        "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "cpu-0"}]}),
    );
    let spec = |class: &str| json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": class}}]}});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}});
    let holder = |results: Value, other: Value| {
        let mut claim = object("ResourceClaim", "held", &spec("cpu"));
        claim["status"] = json!({"allocation": {"devices": {"results": results}}, "devices": other});
        claim
    };
    let results = json!([{"request": "r", "driver": "cpu.example.com", "pool": "node-1", "device": "cpu-0"}]);
    let cut = json!([{"driver": "cpu.example.com", "pool": "node-1", "device": "cpu-0",
        "conditions": [{"type": 7, "status": "True", "reason": "x", "message": ""}]}]);
    let objects = |holder: Value| {
        let class = object("DeviceClass", "cpu", &json!({}));
        list(&[node.clone(), slice.clone(), class, object("ResourceClaim", "want", &spec("cpu")), holder])
    };
    let read = run(&["-"], &objects(holder(results, cut.clone())));
    assert_eq!(read.code, 1);
    assert!(read.stderr.contains("expected a string; of this claim, the allocation alone is read"));
    assert!(read.stdout.contains("no free device of class cpu"), "{}", read.stdout);
    let marked = run(&["-"], &objects(holder(json!("cut out"), cut)));
    assert_eq!(marked.code, 1);
    assert!(marked.stdout.ends_with("1 claim can't be read: its devices count as free here\n"), "{}", marked.stdout);
}
