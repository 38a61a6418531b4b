//! Sentences of programs that lack a right, or a version of Kubernetes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::Api;
use serde_json::json;
use tempfile::TempDir;

use super::manifests::{PROGRAMS, granted};
use super::recorder::{Mischief, Recorder, Right};
use super::stand_in::StandIn;
use super::stand_in::background::Background;
use super::{POST, read};

/// Returns the arguments with which a program works in a directory.
fn arguments(program: &str, folder: &Path) -> Vec<String> {
    let at = |name: &str| folder.join(name).display().to_string();
    let args = match program {
        "driver" => "serve --live --capture xeon-cxl --boot-id boot",
        "autoscaler" => "--live --watch",
        "kubelet" | "node-agent" => "--live",
        "pool-status" => "--live --controller",
        _ => "--live --bind",
    };
    let files: &[(&str, &str)] = match program {
        "driver" => &[("--state", "state"), ("--cdi", "cdi"), ("--plugin-dir", "plugin"), ("--registry", "registry")],
        "kubelet" => &[("--registry", "registry"), ("--state", "checkpoint")],
        "node-agent" => &[("--state", "states")],
        _ => &[],
    };
    let lease: &[&str] = if ["node-agent", "pool-status", "scheduler"].contains(&program) {
        &["--lease-namespace", "dra-sdk"]
    } else {
        &[]
    };
    let files = files.iter().flat_map(|(flag, name)| [(*flag).to_owned(), at(name)]);
    args.split(' ').chain(lease.iter().copied()).map(str::to_owned).chain(files).collect()
}

/// Returns the sentence with which a program ends that lacks a right.
fn sentence(program: &str, Right { group, resource, verb, .. }: &Right) -> String {
    let answer = format!("cannot {verb} resource {resource:?} in API group {group:?}");
    format!("{program}: not allowed to {verb} {resource}: {answer}; the program's role needs that verb")
}

/// Starts a server with the node of the driver and the kubelet, and the namespace of the leases.
async fn server_with_a_node() -> StandIn {
    let server = StandIn::start(&[]);
    let namespace: Namespace = read(json!({"metadata": {"name": "dra-sdk"}}));
    Api::all(server.client()).create(&POST, &namespace).await.unwrap();
    let node = json!({"metadata": {"name": "node-1", "labels": {"dra-sdk.example.com/virtual-node": "true"}}});
    Api::<Node>::all(server.client()).create(&POST, &read(node)).await.unwrap();
    server
}

/// Runs a program with some rights, which it must end with, and returns the last line that it says.
fn ends(program: &str, server: &StandIn, granted: Option<BTreeSet<Right>>, mischief: Mischief) -> String {
    let (folder, path) = (TempDir::new().unwrap(), PROGRAMS.iter().find(|(name, _)| *name == program).unwrap().1);
    for name in ["registry", "plugin", "state", "cdi"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let door = Recorder::start(&server.url, granted, mischief);
    let mut command = Command::new(path);
    let output = command.args(arguments(program, folder.path())).args(["--server", &door.url]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{program}: {stderr}");
    stderr.lines().last().unwrap().to_owned()
}

#[tokio::test]
async fn each_program_says_which_right_or_version_it_lacks_first() {
    let server = server_with_a_node().await;
    let first_rights = [
        // Any of its lists may be the first to be refused.
        ("autoscaler", "list", None),
        ("driver", "get", Some("nodes")),
        ("kubelet", "create", Some("nodes")),
        ("node-agent", "get", Some("leases")),
        ("pool-status", "get", Some("leases")),
        ("scheduler", "get", Some("leases")),
    ];
    for (program, verb, resource) in first_rights {
        let forbidden = ends(program, &server, Some(BTreeSet::new()), Mischief::None);
        let granted = granted(program);
        let is_first =
            |right: &&Right| right.verb == verb && resource.is_none_or(|resource| right.resource == resource);
        let sentences: Vec<String> = granted.iter().filter(is_first).map(|right| sentence(program, right)).collect();
        assert!(sentences.contains(&forbidden), "{forbidden}");
        if ["kubelet", "node-agent"].contains(&program) {
            // Gates need no devices, and a kubelet needs none before a pod has claims.
            continue;
        }
        let unserved = ends(program, &server, None, Mischief::HasNoDevices);
        assert!(unserved.starts_with(&format!("{program}: the API server does not serve ")), "{unserved}");
        assert!(unserved.contains("of resource.k8s.io"), "{unserved}");
    }
}

#[tokio::test]
async fn each_program_says_which_of_its_watches_it_may_not_make() {
    let server = server_with_a_node().await;
    for (program, _) in PROGRAMS {
        let granted = granted(program);
        for lacking in granted.iter().filter(|right| ["list", "watch"].contains(&right.verb.as_str())) {
            let rest = granted.iter().filter(|right| *right != lacking).cloned().collect();
            assert_eq!(ends(program, &server, Some(rest), Mischief::None), sentence(program, lacking));
        }
    }
}

#[tokio::test]
async fn a_kubelet_says_that_it_may_not_read_the_claims_of_a_pod() {
    let server = server_with_a_node().await;
    let pod: Pod = read(json!({
        "metadata": {"name": "serve"},
        "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "none"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]},
    }));
    Api::default_namespaced(server.client()).create(&POST, &pod).await.unwrap();
    let (folder, granted) = (TempDir::new().unwrap(), granted("kubelet"));
    fs::create_dir(folder.path().join("registry")).unwrap();
    let lacking = granted.iter().find(|right| right.resource == "resourceclaims").unwrap();
    assert_eq!(lacking.verb, "get");
    let rest = granted.iter().filter(|right| *right != lacking).cloned().collect();
    let door = Recorder::start(&server.url, Some(rest), Mischief::None);
    let args = arguments("kubelet", folder.path());
    let args: Vec<&str> = args.iter().map(String::as_str).chain(["--server", &door.url]).collect();
    let mut kubelet = Background::start(env!("CARGO_BIN_EXE_kubelet"), &args);
    let said = kubelet.warns("claims not read");
    let sentence = sentence("claims not read", lacking);
    assert_eq!(said, format!("kubelet: default/serve: {sentence}\n"));
}

#[test]
fn pool_status_lists_and_says_what_is_missing() {
    let server = StandIn::start(&[]);
    let run = |args: &[&str], granted: Option<BTreeSet<Right>>, mischief: Mischief| {
        let door = Recorder::start(&server.url, granted, mischief);
        let output =
            Command::new(env!("CARGO_BIN_EXE_pool-status")).args(args).args(["--server", &door.url]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let forbidden = run(&["--live"], Some(BTreeSet::new()), Mischief::None);
    let sentence = "pool-status: not allowed to list resourceslices: cannot list resource \"resourceslices\" in API group \
                    \"resource.k8s.io\"; the program's role needs that verb\n";
    assert_eq!(forbidden, sentence);
    let unserved = run(&["--live"], None, Mischief::HasNoDevices);
    let sentence = "pool-status: the API server does not serve resourceslices: v1 of resource.k8s.io has it since \
                    Kubernetes 1.34\n";
    assert_eq!(unserved, sentence);
    let missing = run(&["--live", "--controller", "--lease-namespace", "none"], None, Mischief::None);
    assert_eq!(missing, "pool-status: create leases: namespaces \"none\" not found\n");
}
