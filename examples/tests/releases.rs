//! Programs by release: the flag, the objects of other releases, and the stand-in for an API server of each.
#![cfg(all(feature = "live", feature = "simulate"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod program;
mod stand_in;

use std::io::{Read, Write};
use std::net::TcpStream;

use dra_attrs::{Gate, GateSet, Profile};
use serde_json::{Value, json};

use program::Run;
use stand_in::StandIn;
use stand_in::background::Background;

const KUBECTL_DRA: &str = env!("CARGO_BIN_EXE_kubectl-dra");

/// Programs that follow the rules of a release.
const PROGRAMS: [&str; 9] = [
    env!("CARGO_BIN_EXE_apiserver"),
    env!("CARGO_BIN_EXE_autoscaler"),
    env!("CARGO_BIN_EXE_driver"),
    KUBECTL_DRA,
    env!("CARGO_BIN_EXE_kubelet"),
    env!("CARGO_BIN_EXE_nominate"),
    env!("CARGO_BIN_EXE_pool-status"),
    env!("CARGO_BIN_EXE_scheduler"),
    env!("CARGO_BIN_EXE_simulate"),
];

/// Answer over HTTP.
struct Answer {
    /// Empty if the connection was cut.
    text: String,
    body: Value,
}

fn ask(server: &str, method: &str, path: &str, body: &Value) -> Answer {
    let address = server.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    let body = body.to_string();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}",
        body.len()
    );
    write!(connection, "{head}\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    let _ = connection.read_to_string(&mut text);
    let body = text.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok()).unwrap_or_default();
    Answer { text, body }
}

fn get(server: &StandIn, path: &str) -> Answer {
    ask(&server.url, "GET", path, &Value::Null)
}

fn post(server: &StandIn, path: &str, body: &Value) -> Answer {
    ask(&server.url, "POST", &format!("/apis/resource.k8s.io/{path}"), body)
}

fn check(args: &[&str], manifest: &str) -> Run {
    Run::of(KUBECTL_DRA, &[&["check", "-"], args].concat(), manifest)
}

fn slice(spec: &str) -> String {
    format!(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: s}}\nspec:\n  driver: d.example.com\n  \
         nodeName: n\n  pool: {{name: n, generation: 1, resourceSliceCount: 1}}\n{spec}"
    )
}

#[test]
fn every_program_takes_a_release() {
    let names = Profile::RELEASES.map(Profile::name);
    let numbers = names.map(|name| name.trim_start_matches('v'));
    let (in_help, known) = (format!("({}),", numbers.join(", ")), format!("known: kep, {}", names.join(", ")));
    for program in PROGRAMS {
        for name in numbers.iter().chain(&names).chain(&["kep"]) {
            let help = Run::of(program, &["--release", name, "--help"], "").clean().stdout;
            assert!(help.contains("--release") && help.contains("[default: v1.37]"), "{program}: {help}");
            assert!(help.contains(&in_help), "{program} does not list {in_help}: {help}");
        }
        let unknown = Run::of(program, &["--release", "1.33"], "");
        assert_eq!(unknown.code, 2, "{program}: {}", unknown.stderr);
        assert!(unknown.stderr.contains(&format!("{known}\n")), "{program}: {}", unknown.stderr);
    }
}

#[test]
fn check_names_the_release_that_knows_a_field() {
    let lists = slice("  devices: [{name: a, attributes: {numa: {ints: [1]}}}]\n");
    let run = check(&["--release", "1.35"], &lists);
    let lines: Vec<&str> = run.stdout.lines().collect();
    let dropped = "ResourceSlice s: spec.devices[0].attributes[numa].ints would be dropped: Kubernetes 1.35 does not know the \
                   field; known from 1.36 on (feature gate DRAListTypeAttributes, off by default there)";
    assert_eq!(lines[0], dropped);
    let refused = "(accepted from 1.36 on with feature gate DRAListTypeAttributes, off by default)";
    assert!(lines[1].ends_with(refused), "{}", run.stdout);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    // A field of an earlier release, and one of none.
    let mappings = "  devices: [{name: a, nodeAllocatableResourceMappings: {cpu: {}}, colour: red}]\n";
    let run = check(&["--release", "1.37"], &slice(mappings));
    let line =
        "nodeAllocatableResourceMappings would be dropped: Kubernetes 1.37 does not know the field; known in 1.36 only";
    assert!(run.stdout.contains(line), "{}", run.stdout);
    assert!(run.stdout.contains("strict decoding error: unknown field spec.devices[0].colour"), "{}", run.stdout);
    let lenient = ["--release", "1.37", "--validate", "ignore"];
    let run = check(&lenient, &slice(mappings));
    assert_eq!(run.stderr, "stdin:8: ResourceSlice s: spec.devices[0].colour: unknown field, ignored\n");
    let gates = ["--feature-gates", "DRANodeAllocatableResources=true", "--validate", "ignore"];
    let mapped = check(&[&["--release", "1.36"], &gates[..]].concat(), &slice(mappings));
    assert!(mapped.stdout.ends_with("objects: 1; refused: 0\n"), "{}", mapped.stdout);
}

#[test]
fn check_names_the_releases_that_accept_a_value() {
    let slashes = slice("  devices: [{name: a, attributes: {a.b/c/d: {int: 1}}}]\n");
    let now = check(&[], &slashes).stdout;
    assert!(now.lines().next().unwrap().ends_with("(accepted until 1.36)"), "{now}");
    assert_eq!(check(&["--release", "1.36"], &slashes).clean().stdout, "objects: 1; refused: 0\n");
    let none = slice("  devices: [{name: a, taints: [{key: a.example.com/b, effect: None}]}]\n");
    let old = check(&["--release", "1.34", "--feature-gates", "DRADeviceTaints=true"], &none).stdout;
    assert!(old.lines().next().unwrap().ends_with("(accepted from 1.35 on)"), "{old}");
    let off = check(&["--release", "1.35"], &none).clean().stdout;
    let line = "ResourceSlice s: spec.devices[0].taints would be dropped: feature gate DRADeviceTaints is off (on by default \
                from 1.36 on)\n";
    assert!(off.starts_with(line), "{off}");
}

/// Slice on which the API server stops up to 1.36.
fn stopping(version: &str) -> Value {
    let policy = json!({"default": "1", "validRange": {"min": "1", "step": "0"}});
    let device = json!({"allowMultipleAllocations": true, "capacity": {"m": {"value": "4", "requestPolicy": policy}}});
    let device = if version == "v1beta1" { json!({"basic": device}) } else { device };
    let mut named = device;
    named["name"] = "a".into();
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    json!({
        "apiVersion": format!("resource.k8s.io/{version}"), "kind": "ResourceSlice", "metadata": {"name": "stops"},
        "spec": {"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": [named]},
    })
}

#[test]
fn check_says_where_a_server_stops() {
    for version in ["v1", "v1beta2", "v1beta1"] {
        let slice = stopping(version).to_string();
        let old = check(&["--release", "1.36"], &slice).stdout;
        let line = "requestPolicy.validRange.step: the API server of Kubernetes 1.36 stops on this value: it cuts the connection \
                    and stores nothing; that is a bug of Kubernetes, mended in Kubernetes 1.37\n";
        assert!(old.contains(line), "{old}");
        assert!(check(&[], &slice).stdout.contains("must be greater than zero\n"));
    }
}

#[test]
fn check_prints_version_v1() {
    let claim = "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: {requests: \
                 [{name: r, deviceClassName: gpu}]}}\n";
    let run = check(&["--as-v1", "-o", "json"], claim);
    let objects = run.json();
    assert_eq!(objects[0]["apiVersion"], "resource.k8s.io/v1");
    assert_eq!(objects[0]["spec"]["devices"]["requests"][0]["exactly"], json!({"deviceClassName": "gpu"}));
    let notes = "stdin:1: ResourceClaim c: converted from resource.k8s.io/v1beta1, as all objects that are written so\n\
                 objects: 1; refused: 0\n";
    assert_eq!((run.code, run.stderr.as_str()), (0, notes));
    let yaml = check(&["--as-v1"], claim).stdout;
    assert!(yaml.starts_with("---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"), "{yaml}");
    assert_eq!(check(&["--as-v1", "-o", "json"], &yaml).json(), objects, "it is read as it is written");
    assert_eq!(check(&["-o", "json"], claim).code, 2, "there is no other format of answers");
}

#[test]
fn pods_of_before_1_31_are_read() {
    let objects = "kind: Pod\nmetadata: {name: p, namespace: default}\nspec:\n  containers: [{name: c, image: i}]\n  \
                   resourceClaims: [{name: r, source: {resourceClaimName: held}}]\n---\napiVersion: resource.k8s.io/v1beta1\n\
                   kind: ResourceClaim\nmetadata: {name: held, namespace: default}\nspec: {devices: {requests: [{name: r, \
                   deviceClassName: gpu}]}}\n";
    let run = Run::of(env!("CARGO_BIN_EXE_scheduler"), &["-"], objects);
    assert!(run.stderr.contains("Pod default/p: converted from spec.resourceClaims[*].source"), "{}", run.stderr);
    assert!(!run.stderr.contains("unknown field"), "{}", run.stderr);
}

#[test]
fn a_stand_in_has_the_versions_of_its_release() {
    /// Release, its minor version, versions of taint rules with all versions on, and whether there are pool requests.
    const RELEASES: [(&str, &str, &[&str], bool); 4] = [
        ("1.34", "34", &["v1alpha3"], false),
        ("1.35", "35", &["v1alpha3"], false),
        ("1.36", "36", &["v1beta2", "v1alpha3"], true),
        ("1.37", "37", &["v1"], true),
    ];
    for (release, minor, rules, has_requests) in RELEASES {
        let has = |server: &StandIn, version: &str, plural: &str| {
            let list = get(server, &format!("/apis/resource.k8s.io/{version}")).body;
            list["resources"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["name"] == plural))
        };
        let plain = StandIn::start(&["--release", release]);
        let version = get(&plain, "/version").body;
        assert_eq!((&version["minor"], &version["gitVersion"]), (&json!(minor), &json!(format!("v1.{minor}.0"))));
        assert!(has(&plain, "v1", "resourceslices") && !has(&plain, "v1beta2", "resourceslices"), "{release}");
        assert_eq!(has(&plain, "v1", "devicetaintrules"), rules.contains(&"v1"), "{release}");
        assert_eq!(has(&plain, "v1alpha3", "resourcepoolstatusrequests"), has_requests, "{release}");
        let all = StandIn::start(&["--release", release, "--runtime-config", "api/all=true"]);
        assert!(has(&all, "v1beta2", "resourceslices") && has(&all, "v1beta1", "resourceclaims"), "{release}");
        for version in ["v1", "v1beta2", "v1alpha3"] {
            assert_eq!(has(&all, version, "devicetaintrules"), rules.contains(&version), "{release} {version}");
        }
    }
    let one = StandIn::start(&["--release", "1.36", "--runtime-config", "resource.k8s.io/v1beta1=true"]);
    let group = get(&one, "/apis/resource.k8s.io").body;
    let versions: Vec<&Value> =
        group["versions"].as_array().unwrap().iter().map(|version| &version["version"]).collect();
    assert_eq!(versions, ["v1", "v1beta1", "v1alpha3"]);
}

#[test]
fn a_stand_in_shows_objects_in_the_version_of_the_request() {
    let gates = ["--feature-gates", "DRANodeAllocatableResources=true"];
    let server = StandIn::start(&[&["--release", "1.36", "--runtime-config", "api/all=true"], &gates[..]].concat());
    let mappings = json!({"cpu": {"allocationMultiplier": "2"}});
    let device = json!({"name": "a", "nodeAllocatableResourceMappings": mappings});
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": [device]});
    let stored = post(&server, "v1/resourceslices", &json!({"metadata": {"name": "s"}, "spec": spec}));
    assert!(stored.text.starts_with("HTTP/1.1 201") && !stored.text.contains("warning"), "{}", stored.text);
    assert_eq!(stored.body["spec"]["devices"], json!([device]));
    let old = get(&server, "/apis/resource.k8s.io/v1beta1/resourceslices").body;
    let basic = json!({"name": "a", "basic": {"nodeAllocatableResourceMappings": mappings}});
    assert_eq!(old["items"][0]["spec"]["devices"], json!([basic]));
    assert_eq!((&old["apiVersion"], &old["items"][0]["apiVersion"]), (&json!("resource.k8s.io/v1beta1"), &Value::Null));
    // What is shown can be written.
    let path = "/apis/resource.k8s.io/v1beta1/resourceslices/s";
    let same = ask(&server.url, "PUT", path, &get(&server, path).body);
    assert_eq!(same.body["metadata"]["resourceVersion"], stored.body["metadata"]["resourceVersion"], "{}", same.text);
    let request = json!([{"name": "r", "deviceClassName": "c"}]);
    let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": request}}});
    let claim = post(&server, "v1beta1/namespaces/default/resourceclaims", &claim);
    assert_eq!(claim.body["spec"]["devices"]["requests"][0]["deviceClassName"], "c", "{}", claim.text);
    let path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c";
    assert_eq!(get(&server, path).body["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"], "c");
}

#[test]
fn a_stand_in_warns_of_fields_that_its_release_does_not_know() {
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    let spec =
        json!({"driver": "d.example.com", "nodeName": "n", "pool": pool, "skipNodeOperations": ["*"], "colour": "red"});
    let slice = json!({"metadata": {"name": "s"}, "spec": spec});
    let server = StandIn::start(&["--release", "1.36"]);
    let strict = post(&server, "v1/resourceslices?fieldValidation=Strict", &slice);
    let errors = r#"strict decoding error: unknown field \"spec.colour\", unknown field \"spec.skipNodeOperations\""#;
    assert!(strict.text.starts_with("HTTP/1.1 400") && strict.text.contains(errors), "{}", strict.text);
    let stored = post(&server, "v1/resourceslices", &slice);
    for field in ["spec.skipNodeOperations", "spec.colour"] {
        let warning = format!("warning: 299 - \"unknown field \\\"{field}\\\"\"\r\n");
        assert!(stored.text.contains(&warning), "{}", stored.text);
    }
    assert_eq!(stored.body["spec"].get("skipNodeOperations"), None);
    // 1.37 knows the field, and drops it without a word while its gate is off.
    let newest = post(&StandIn::start(&[]), "v1/resourceslices", &slice);
    assert_eq!(newest.text.matches("warning").count(), 1, "{}", newest.text);
}

#[test]
fn a_stand_in_stops_where_its_release_does() {
    let mut server = Background::start(env!("CARGO_BIN_EXE_apiserver"), &["--port", "0", "--release", "1.36"]);
    let url = server.says("http://").trim().to_owned();
    let path = "/apis/resource.k8s.io/v1/resourceslices";
    assert_eq!(ask(&url, "POST", path, &stopping("v1")).text, "", "the connection is cut");
    server
        .warns("a handler ends, and its connection is cut, as in this release: ResourceSlice stops: spec.devices[0].");
    let list = ask(&url, "GET", path, &Value::Null).body;
    assert_eq!(list["items"], json!([]), "nothing is stored, and the server goes on");
    let newest = post(&StandIn::start(&[]), "v1/resourceslices", &stopping("v1"));
    assert!(newest.text.starts_with("HTTP/1.1 422"), "{}", newest.text);
}

#[test]
fn a_stand_in_shows_its_gates() {
    for (release, profile) in Profile::RELEASES.map(|profile| (profile.name(), profile)) {
        let server = StandIn::start(&["--release", release]);
        let text = get(&server, "/metrics").text;
        let known = Gate::ALL.into_iter().filter(|gate| gate.stage(profile).exists());
        assert_eq!(text.matches("\nkubernetes_feature_enabled{").count(), known.count(), "{text}");
        let (_, metrics) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(GateSet::from_metrics(metrics, profile).unwrap(), GateSet::of(profile));
    }
    let server = StandIn::start(&["--release", "1.35", "--feature-gates", "DRADeviceTaints=true"]);
    let metrics = get(&server, "/metrics").text;
    assert!(metrics.contains("kubernetes_feature_enabled{name=\"DRADeviceTaints\",stage=\"ALPHA\"} 1\n"), "{metrics}");
    assert!(!metrics.contains("DRAListTypeAttributes"), "{metrics}");
}

#[test]
fn taint_rules_are_read_in_the_version_that_a_server_has() {
    for (release, version) in [("1.34", "v1alpha3"), ("1.36", "v1beta2"), ("1.37", "v1")] {
        let server = StandIn::start(&["--release", release, "--runtime-config", "api/all=true"]);
        let pool = json!({"name": "n", "generation": 1, "resourceSliceCount": 1});
        let devices = json!([{"name": "a"}, {"name": "b"}]);
        let spec = json!({"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": devices});
        post(&server, "v1/resourceslices", &json!({"metadata": {"name": "s"}, "spec": spec}));
        let taint = json!({"key": "example.com/broken", "effect": "NoSchedule"});
        let spec = json!({"deviceSelector": {"device": "a"}, "taint": taint});
        let rule = json!({"metadata": {"name": "r"}, "spec": spec});
        let stored = post(&server, &format!("{version}/devicetaintrules"), &rule);
        assert!(stored.text.starts_with("HTTP/1.1 201"), "{release}: {}", stored.text);
        let args = ["--live", "--server", &server.url, "-o", "json"];
        let counts = Run::of(env!("CARGO_BIN_EXE_pool-status"), &args, "").json();
        let pool = &counts["status"]["pools"][0];
        assert_eq!((&pool["totalDevices"], &pool["unavailableDevices"]), (&json!(2), &json!(1)), "{release}: {counts}");
    }
    let none = StandIn::start(&["--release", "1.36"]);
    let args = ["--live", "--server", &none.url, "--driver", "d.example.com"];
    let told = Run::of(env!("CARGO_BIN_EXE_pool-status"), &args, "").stderr;
    assert!(told.contains("serves no device taint rules, in no version"), "{told}");
}
