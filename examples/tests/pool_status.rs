//! The program `pool-status` on its built-in cluster and on manifests, and the operation `poolstatus.compute`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod program;
mod replies;

use serde_json::{Value, json};

use program::Run;
use replies::replies;

const NOW: &str = "2026-11-21T12:00:00Z";

impl Run {
    /// Returns the cells of every row of the tables, headers included.
    fn rows(&self) -> Vec<Vec<String>> {
        let lines = self.stdout.lines().filter(|line| line.starts_with('│'));
        let cells =
            |line: &str| -> Vec<String> { line.split(['│', '┆']).map(|cell| cell.trim().to_owned()).collect() };
        lines.map(|line| cells(line)[1..].to_vec()).collect()
    }

    /// Returns the cells after `start` of the row that begins with `start`.
    fn row(&self, start: &[&str]) -> Vec<String> {
        let row = self.rows().into_iter().find(|row| row.iter().zip(start).all(|(cell, start)| cell == start));
        let row = row.unwrap_or_else(|| panic!("no row {start:?}: {}", self.stdout));
        row[start.len()..].to_vec()
    }
}

fn run(args: &[&str], stdin: &str) -> Run {
    Run::of(env!("CARGO_BIN_EXE_pool-status"), args, stdin)
}

/// Runs the program, which must succeed without a message on stderr.
fn clean(args: &[&str], stdin: &str) -> Run {
    run(args, stdin).clean()
}

#[test]
fn the_built_in_cluster() {
    let run = clean(&["--profile", "kep"], "");
    let gpu = |pool: &str| run.row(&["gpu.example.com", pool])[1..].to_vec();
    assert_eq!(gpu("node-1")[..5], ["8", "3", "4", "1", "███▒░░░░░░"]);
    assert_eq!(gpu("node-2")[..4], ["4", "2", "2", "0"], "a device that is allocated is not unavailable too");
    assert_eq!(gpu("node-3")[5], "incomplete, 1 of 2 slices");
    assert_eq!(gpu("node-4")[..6], ["13", "1", "12", "0", "█░░░░░░░░░", "partitions"]);
    assert_eq!(gpu("node-5")[5], "PartitionCostMismatch");
    assert_eq!(run.row(&["nic.example.com", "fabric", "-"])[..4], ["4", "1", "3", "0"]);
    assert_eq!(run.row(&["all", "", ""])[..4], ["39", "8", "30", "1"]);
    for (partition, numbers) in [("1g.10gb", ["7", "4"]), ("3g.40gb", ["2", "1"]), ("7g.80gb", ["1", "0"])] {
        assert_eq!(run.row(&["node-4", partition])[..2], numbers);
    }
    assert_eq!(run.row(&["fabric", "bandwidth"])[..5], ["400G", "65G", "335G", "3", "1"]);
    let last = run.stdout.lines().last().unwrap();
    assert_eq!(last, "nic.example.com: pool rack-1/node-1: 1 allocated device(s) not found");
    for consumer in ["research", "training", "inference", "vf-9"] {
        assert!(!run.stdout.contains(consumer), "{consumer}");
    }
}

#[test]
fn the_shipped_counts() {
    let shown = run(&[], "");
    assert_eq!(shown.stdout, run(&["--profile", "v1.37"], "").stdout, "the release is the default");
    assert_eq!(shown.stderr, "pool-status: gpu.example.com: no status while pools are incomplete: node-3\n");
    assert_eq!(shown.row(&["gpu.example.com", "node-2", "node-2"])[..4], ["4", "2", "1", "1"]);
    assert_eq!(shown.row(&["gpu.example.com", "node-3", "node-3"])[..4], ["-", "-", "-", "-"]);
    let off = run(&["--feature-gates", "DRADeviceTaintRules=false"], "");
    assert_eq!(off.row(&["gpu.example.com", "node-1", "node-1"])[..4], ["8", "3", "5", "0"]);
}

#[test]
fn by_node() {
    let run = clean(&["--profile", "kep", "--by", "node"], "");
    assert_eq!(run.row(&["node-1"])[..6], ["gpu.example.com nic.example.com", "2", "12", "4", "7", "1"]);
    assert_eq!(run.row(&["-"])[..3], ["nic.example.com", "1", "4"]);
    assert_eq!(run.row(&["all"])[2..4], ["39", "8"]);
}

#[test]
fn some_pools_only() {
    for (profile, counts) in [("kep", ["4", "2", "2", "0"]), ("v1.37", ["4", "2", "1", "1"])] {
        let one = clean(&["--profile", profile, "--driver", "gpu.example.com", "--pool", "node-2"], "");
        assert_eq!(one.row(&["all", "", ""])[..4], counts, "{profile}");
    }
    let few = clean(&["--driver", "gpu.example.com", "--limit", "2"], "");
    assert_eq!(few.row(&["gpu.example.com", "3 more"])[0], "");
    assert_eq!(few.row(&["all", "", ""])[5], "at least");
    let ours = clean(&["--namespace", "research"], "");
    let pools: Vec<String> = ours.rows().iter().filter(|row| row[0].contains('.')).map(|row| row[1].clone()).collect();
    assert_eq!(pools, ["node-1", "node-4"]);
    let refused = run(&["--limit", "1001"], "");
    assert!(refused.code != 0 && refused.stderr.contains("1001 is not in 1..=1000"), "{}", refused.stderr);
}

#[test]
fn objects() {
    let args = ["--driver", "gpu.example.com", "--pool", "node-1", "--now", NOW];
    let kep = clean(&[&args[..], &["-o", "json", "--profile", "kep"]].concat(), "").json();
    let expected = json!({
        "apiVersion": "resource.k8s.io/v1alpha1", "kind": "ResourcePoolStatusRequest",
        "metadata": {"name": "pool-status-gpu.example.com"},
        "spec": {"driver": "gpu.example.com", "poolName": "node-1", "limit": 100},
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&kep[field], value);
    }
    assert_eq!((&kep["status"]["observationTime"], &kep["status"]["totalMatchingPools"]), (&json!(NOW), &json!(1)));

    let shipped = clean(&[&args[..], &["-o", "yaml"]].concat(), "").stdout;
    assert!(
        shipped.starts_with("---\n") && shipped.contains("poolCount: 1") && shipped.contains("v1alpha3"),
        "{shipped}"
    );

    let all = clean(&["-o", "json", "--profile", "kep", "--now", NOW], "").json();
    assert_eq!((all["kind"].as_str(), all["items"].as_array().unwrap().len()), (Some("List"), 2));
}

#[test]
fn manifests_of_all_sorts() {
    let slice = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"},
        "spec": {"driver": "d.example.com", "nodeName": "n", "devices": [{"name": "a"}, {"name": "b"}],
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}},
    });
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"namespace": "x", "name": "c"},
        "status": {"allocation": {"devices": {"results": [
            {"request": "r", "driver": "d.example.com", "pool": "n", "device": "a"},
        ]}}},
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [slice, claim]}).to_string();
    assert_eq!(clean(&["-"], &list).row(&["d.example.com", "n", "n"])[..4], ["2", "1", "1", "0"]);
    let broken = run(&["-"], "kind: ResourceSlice\nmetadata: {name: s}\n");
    assert!(broken.code == 1 && broken.stderr.contains("spec.driver: must be set"), "{}", broken.stderr);
    let empty = run(&["-"], "");
    assert_eq!(empty.stderr, "pool-status: no ResourceSlice among the manifests: there are no pools\n");
    let unknown = run(&["--feature-gates", "DRAAdminAcces=true"], "");
    assert!(unknown.code == 2 && unknown.stderr.contains("the nearest is DRAAdminAccess"), "{}", unknown.stderr);
    let idle = run(&["--feature-gates", "DRAAdminAccess=true,SidecarContainers=true"], "");
    let named = "feature gates without effect here: DRAAdminAccess, SidecarContainers";
    assert!(idle.stderr.contains(named), "{}", idle.stderr);
}

/// A pool of two devices, and claims that hold them: each a namespace, a name, a device and the ID of a share.
fn held(claims: &[(&str, &str, &str, Option<&str>)]) -> String {
    let slice = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"},
        "spec": {"driver": "d.example.com", "nodeName": "n", "devices": [{"name": "a"}, {"name": "b"}],
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}},
    });
    let claims = claims.iter().map(|(namespace, name, device, share)| {
        let mut result = json!({"request": "r", "driver": "d.example.com", "pool": "n", "device": device});
        if let Some(share) = share {
            result["shareID"] = json!(share);
            result["consumedCapacity"] = json!({"memory": "1Gi"});
        }
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"namespace": namespace, "name": name},
            "status": {"allocation": {"devices": {"results": [result]}}},
        })
    });
    let items: Vec<Value> = std::iter::once(slice).chain(claims).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

#[test]
fn a_device_that_several_claims_hold_is_told_with_them() {
    let (one, other) = (("x", "one", "a", None), ("y", "other", "a", None));
    let share = |name, device| ("x", name, device, Some("00000000-0000-0000-0000-000000000001"));
    let line = "d.example.com: pool n: device a is held by 2 claims: x/one, y/other";
    let shared = "d.example.com: pool n: device a is held by 2 claims: x/one, x/share";
    let is_table = |last: &str| last.starts_with('└');
    for (claims, expected) in [
        (&[one, other][..], Some(line)),
        (&[other, one], Some(line)),
        (&[one, share("share", "a")], Some(shared)),
        (&[one, ("y", "other", "b", None)], None),
        (&[share("share", "a"), share("another", "a")], None),
    ] {
        let told = clean(&["-"], &held(claims)).stdout;
        let last = told.lines().last().unwrap();
        assert!(expected.map_or_else(|| is_table(last), |line| line == last), "{told}");
    }
    let both = held(&[one, other]);
    assert_eq!(clean(&["-"], &both).row(&["d.example.com", "n", "n"])[..4], ["2", "1", "1", "0"], "it counts once");
    for (args, is_told) in [
        (["--driver", "d.example.com"], true),
        (["--pool", "n"], true),
        (["--pool", "m"], false),
        (["--namespace", "y"], true),
        (["--namespace", "z"], false),
    ] {
        let told = clean(&[&args[..], &["-"]].concat(), &both).stdout;
        assert_eq!(told.contains(line), is_told, "{args:?}: {told}");
    }
    // Neither an object of the API nor its answer names claims: the operator reads it beside the output.
    for args in [&["-o", "json", "-"][..], &["-o", "yaml", "-"]] {
        let told = run(args, &both);
        assert_eq!((told.code, told.stderr), (0, format!("pool-status: {line}\n")));
        assert!(!told.stdout.contains("other"), "{}", told.stdout);
    }
    let request = "{\"apiVersion\": \"resource.k8s.io/v1alpha3\", \"kind\": \"ResourcePoolStatusRequest\", \
                   \"metadata\": {\"name\": \"r\"}, \"spec\": {\"driver\": \"d.example.com\"}}";
    let answered = run(&["-"], &format!("{both}\n---\n{request}"));
    assert!(answered.stderr.ends_with(&format!("pool-status: {line}\n")), "{}", answered.stderr);
    assert!(answered.code == 0 && !answered.stdout.contains("other"), "{}", answered.stdout);
}

fn answer(input: &Value) -> Value {
    let request = json!({"id": 1, "op": "poolstatus.compute", "input": input});
    serde_json::from_str(&replies(&[request.to_string()])[0]).unwrap()
}

/// Builds an input with one node of two devices: a claim holds one, and a rule taints the other.
fn input(form: &str, more: &Value) -> Value {
    let pool = json!({"name": "node-1", "generation": 1, "resourceSliceCount": 1});
    let devices = json!([{"name": "gpu-0"}, {"name": "gpu-1"}]);
    let spec = json!({"driver": "gpu.example.com", "nodeName": "node-1", "devices": devices, "pool": pool});
    let held = json!({"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"});
    let taint = json!({"key": "k", "effect": "NoExecute"});
    let mut input = json!({
        "form": form, "now": NOW, "request": {"metadata": {"name": "check"}, "spec": {"driver": "gpu.example.com"}},
        "slices": [{"metadata": {"name": "s"}, "spec": spec}],
        "claims": [{"metadata": {"name": "c"}, "spec": {},
            "status": {"allocation": {"devices": {"results": [held]}}}}],
        "taint_rules": [{"metadata": {"name": "r"}, "spec": {"deviceSelector": {"device": "gpu-1"}, "taint": taint}}],
    });
    for (field, value) in more.as_object().unwrap() {
        input[field] = value.clone();
    }
    input
}

#[test]
fn replay_in_both_forms() {
    // req: 5677-FORM-1
    let kep = answer(&input("kep", &json!({})))["ok"].clone();
    assert_eq!(kep["observability"], json!({"processed": 1, "errors": 0, "driver": "gpu.example.com"}));
    assert_eq!((&kep["status"]["observationTime"], &kep["lints"]), (&json!(NOW), &json!([])));
    assert_eq!(kep["status"]["pools"][0]["unavailableDevices"], 0, "gates that are not named are off");
    assert_eq!(kep, answer(&input("kep", &json!({"form": null})))["ok"], "the KEP's form is the default");

    let rules = json!({"features": {"DRADeviceTaintRules": true}});
    let shipped = answer(&input("v1alpha3", &rules))["ok"].clone();
    let expected = json!({
        "driver": "gpu.example.com", "poolName": "node-1", "nodeName": "node-1", "generation": 1,
        "resourceSliceCount": 1, "totalDevices": 2, "allocatedDevices": 1, "availableDevices": 0,
        "unavailableDevices": 1,
    });
    assert_eq!(shipped["status"]["pools"], json!([expected]));
}

#[test]
fn replay_of_an_incomplete_pool() {
    // req: 5677-VALID-2
    let mut incomplete = input("v1alpha3", &json!({}));
    incomplete["slices"][0]["spec"]["pool"]["resourceSliceCount"] = json!(2);
    let shipped = answer(&incomplete)["ok"].clone();
    assert_eq!((&shipped["status"], &shipped["incomplete"]), (&Value::Null, &json!(["node-1"])));
    assert_eq!(shipped["preview"]["poolCount"], 1);
    assert_eq!(shipped["observability"]["processed"], 0);
    incomplete["form"] = json!("kep");
    let kep = answer(&incomplete)["ok"].clone();
    assert_eq!(kep["status"]["validationErrors"].as_array().unwrap().len(), 1);
    assert_eq!((&kep["incomplete"], &kep["preview"]), (&Value::Null, &Value::Null));
}

#[test]
fn replay_of_an_answered_request() {
    // req: 5677-REQ-5
    let status = json!({"poolCount": 7});
    let request = json!({"metadata": {"name": "check"}, "spec": {"driver": "gpu.example.com"}, "status": status});
    let again = answer(&input("v1alpha3", &json!({"request": request})))["ok"].clone();
    assert_eq!((&again["status"], &again["observability"]["processed"]), (&status, &json!(0)));
}

#[test]
fn replay_refusals_name_the_field() {
    // req: 5677-REQ-1, 5677-REQ-3
    let refused = |spec: Value| {
        let error = answer(&input("v1alpha3", &json!({"request": {"spec": spec}})))["error"].clone();
        (error["kind"].as_str().unwrap().to_owned(), error["field"].as_str().unwrap().to_owned())
    };
    let invalid = |field: &str| ("InvalidInput".to_owned(), field.to_owned());
    assert_eq!(refused(json!({})), invalid("request.spec.driver"));
    assert_eq!(refused(json!({"driver": "gpu.example.com", "limit": 1001})), invalid("request.spec.limit"));
    assert_eq!(refused(json!({"driver": 5})), invalid("request.spec.driver"));
    let error = answer(&input("other", &json!({})))["error"].clone();
    assert_eq!(error["field"], "form");
    let error = answer(&input("kep", &json!({"now": null})))["error"].clone();
    assert_eq!(error["field"], "now");
}
