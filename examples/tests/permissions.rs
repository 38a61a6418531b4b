//! Manifests in examples/deploy: each program works with the rights of its role, and needs every one of them.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod recorder;
mod stand_in;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use examples::manifest::Manifests;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Container, Namespace, Node, Pod, PodTemplateSpec};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};
use tempfile::TempDir;

use recorder::{Mischief, Recorder, Right, Running};
use stand_in::StandIn;

const POST: PostParams = PostParams { dry_run: false, field_manager: None };
const PATIENCE: Duration = Duration::from_secs(60);
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Programs with a file of that name in examples/deploy.
const PROGRAMS: [(&str, &str); 6] = [
    ("autoscaler", env!("CARGO_BIN_EXE_autoscaler")),
    ("driver", env!("CARGO_BIN_EXE_driver")),
    ("kubelet", env!("CARGO_BIN_EXE_kubelet")),
    ("node-agent", env!("CARGO_BIN_EXE_node-agent")),
    ("pool-status", env!("CARGO_BIN_EXE_pool-status")),
    ("scheduler", env!("CARGO_BIN_EXE_scheduler")),
];

/// Returns the objects of a program's manifests.
fn manifests(program: &str) -> Vec<Value> {
    let text = fs::read_to_string(format!("{ROOT}/deploy/{program}.yaml")).unwrap();
    text.split("\n---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

/// Returns the only object of a kind.
fn only<T: DeserializeOwned>(objects: &[Value], kind: &str) -> Option<T> {
    let mut found = objects.iter().filter(|object| object["kind"] == kind);
    let object = found.next().cloned();
    assert!(found.next().is_none(), "{kind}: more than one");
    object.map(|object| from_value(object).unwrap())
}

fn rights(rules: &[PolicyRule], namespace: Option<&str>) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    assert!(![group, resource, verb].iter().any(|text| text.contains('*')), "a rule for all: {rule:?}");
                    let [group, resource, verb] = [group, resource, verb].map(String::clone);
                    let namespace = namespace.map(str::to_owned);
                    assert!(rights.insert(Right { group, resource, verb, namespace }), "twice: {rule:?}");
                }
            }
        }
    }
    rights
}

/// Returns what the roles of a program grant.
fn granted(program: &str) -> BTreeSet<Right> {
    let objects = manifests(program);
    let role: ClusterRole = only(&objects, "ClusterRole").unwrap();
    let mut granted = rights(&role.rules.unwrap(), None);
    if let Some(role) = only::<Role>(&objects, "Role") {
        granted.extend(rights(&role.rules.unwrap(), role.metadata.namespace.as_deref()));
    }
    granted
}

/// Adds what an API server asks for beside a write of `resourceclaims/status`, by what changes there.
fn with_parts_of_status(mut used: BTreeSet<Right>, program: &str) -> BTreeSet<Right> {
    let (part, prefix) = if program == "driver" {
        ("resourceclaims/driver", "associated-node:")
    } else {
        ("resourceclaims/binding", "")
    };
    let writes: Vec<Right> = used.iter().filter(|right| right.resource == "resourceclaims/status").cloned().collect();
    for Right { group, verb, namespace, .. } in writes {
        used.insert(Right { group, resource: part.to_owned(), verb: format!("{prefix}{verb}"), namespace });
    }
    used
}

/// Forgets namespaces of rights that a cluster role grants.
fn as_granted(used: BTreeSet<Right>, granted: &BTreeSet<Right>) -> BTreeSet<Right> {
    let everywhere = |right: Right| {
        let anywhere = Right { namespace: None, ..right.clone() };
        if granted.contains(&anywhere) { anywhere } else { right }
    };
    used.into_iter().map(everywhere).collect()
}

fn texts(rights: &BTreeSet<Right>) -> Vec<String> {
    let text = |right: &Right| {
        let namespace = right.namespace.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
        format!("{} {}.{}{namespace}", right.verb, right.resource, right.group)
    };
    rights.iter().map(text).collect()
}

#[test]
fn each_program_has_one_account_role_and_workload() {
    for (program, path) in PROGRAMS {
        let objects = manifests(program);
        let account: k8s_openapi::api::core::v1::ServiceAccount = only(&objects, "ServiceAccount").unwrap();
        assert_eq!(account.metadata.name.as_deref(), Some(program));
        let binding: ClusterRoleBinding = only(&objects, "ClusterRoleBinding").unwrap();
        let role: ClusterRole = only(&objects, "ClusterRole").unwrap();
        assert_eq!(Some(binding.role_ref.name), role.metadata.name);
        let mut subjects = binding.subjects.unwrap();
        if let Some(binding) = only::<RoleBinding>(&objects, "RoleBinding") {
            assert_eq!(Some(binding.role_ref.name), only::<Role>(&objects, "Role").unwrap().metadata.name);
            subjects.extend(binding.subjects.unwrap());
        }
        assert!(
            subjects.iter().all(|subject| subject.name == program && subject.namespace.as_deref() == Some("dra-sdk"))
        );
        let deployment = only::<Deployment>(&objects, "Deployment").map(|found| found.spec.template);
        let daemon_set = only::<DaemonSet>(&objects, "DaemonSet").map(|found| found.spec.template);
        assert_eq!(daemon_set.is_some(), program == "driver");
        let PodTemplateSpec { spec, .. } = deployment.or(daemon_set).unwrap();
        let spec = spec.unwrap();
        assert_eq!(spec.service_account_name.as_deref(), Some(program));
        assert_takes_arguments(path, &spec.containers[0]);
    }
}

/// Runs a program as its container does, without a cluster: it must not complain about its arguments.
fn assert_takes_arguments(path: &str, container: &Container) {
    let args = container.args.as_ref().unwrap().iter().map(|arg| arg.replace("$(NODE_NAME)", "node-1"));
    let folder = TempDir::new().unwrap();
    // Directories of a node are not those of this machine.
    let args = args.map(|arg| arg.replace("/var/", &format!("{}/var/", folder.path().display())));
    let args = args.map(|arg| arg.replace("/node/", &format!("{}/", folder.path().display())));
    let mut command = Command::new(path);
    command.args(args).env("KUBECONFIG", "/no/such/file").env_remove("KUBERNETES_SERVICE_HOST");
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(!stderr.contains("error: "), "{stderr}");
}

fn behind(server: &StandIn, folder: &Path, program: &'static str) -> Running {
    let path = PROGRAMS.iter().find(|(name, _)| *name == program).unwrap().1;
    let door = Recorder::start(&server.url, Some(granted(program)), Mischief::LosesFirstAnswers);
    Running::new(path, door, folder.join(format!("{program}.log")), program)
}

async fn until(what: &str, programs: &[&Running], holds: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        let logs = || {
            let logs: Vec<String> = programs.iter().map(|one| format!("== {}\n{}", one.program, one.log())).collect();
            logs.concat()
        };
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}\n{}", logs());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn read<T: DeserializeOwned + Debug>(object: Value) -> T {
    from_value(object).unwrap()
}

#[tokio::test]
async fn each_program_needs_every_right_and_no_other() {
    let (server, folder) = (StandIn::start(&[]), TempDir::new().unwrap());
    let client = server.client();
    for name in ["dra-sdk", "kube-node-lease"] {
        let namespace: Namespace = read(json!({"metadata": {"name": name}}));
        let _ = Api::all(client.clone()).create(&POST, &namespace).await;
    }
    for name in ["registry", "elsewhere", "plugin", "state", "cdi"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let at = |name: &str| folder.path().join(name).display().to_string();
    let [mut autoscaler, mut driver, mut kubelet, mut node_agent, mut pool_status, mut scheduler] =
        PROGRAMS.map(|(program, _)| behind(&server, folder.path(), program));

    let (registry, checkpoint) = (at("registry"), at("checkpoint"));
    let kubelet_args = ["--live", "--registry", &registry, "--state", &checkpoint];
    kubelet.start(&kubelet_args);
    until("the node is there", &[&kubelet], async || kubelet.log().contains("node-1 is a node of ")).await;

    // A node whose gate is late.
    let gate = json!([{"conditionType": "a.example/Ready", "timeoutSeconds": 1, "failureAction": "Taint",
        "readinessTaint": {"key": "a.example/late", "effect": "NoSchedule"}}]);
    let annotations = json!({"dra-sdk.example.com/readiness-gates": gate.to_string()});
    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let gated = json!({"metadata": {"name": "gated", "annotations": annotations}, "status": {"conditions": [ready]}});
    Api::<Node>::all(client.clone()).create(&POST, &read(gated)).await.unwrap();
    autoscaler.start(&["--live", "--watch"]);
    let remembered = at("node-agent.json");
    node_agent.start(&["--live", "--state", &remembered, "--lease-namespace", "dra-sdk", "--lease-seconds", "2"]);

    // A pod that has no device yet, a request, and one that was answered long ago.
    let mut objects = Manifests::default();
    objects.read_argument(&format!("{ROOT}/data/live/train.yaml"));
    let (pods, claims): (Api<Pod>, Api<ResourceClaim>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
    Api::all(client.clone()).create(&POST, &objects.classes[0]).await.unwrap();
    for claim in &objects.claims {
        claims.create(&POST, claim).await.unwrap();
    }
    let serve = objects.pods.iter().find(|pod| pod.metadata.name.as_deref() == Some("serve")).unwrap();
    pods.create(&POST, serve).await.unwrap();
    let requests: Api<ResourcePoolStatusRequest> = Api::all(client.clone());
    let spec = json!({"driver": "gpu.example.com"});
    requests.create(&POST, &read(json!({"metadata": {"name": "new"}, "spec": spec}))).await.unwrap();
    let mut old = requests.create(&POST, &read(json!({"metadata": {"name": "old"}, "spec": spec}))).await.unwrap();
    let condition = json!({"type": "Complete", "status": "True", "reason": "CalculationComplete", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    old.status = Some(read(json!({"poolCount": 0, "conditions": [condition]})));
    requests.replace_status("old", &POST, &old).await.unwrap();

    scheduler.start(&["--live", "--bind", "--lease-namespace", "dra-sdk", "--lease-seconds", "2"]);
    pool_status.start(&["--live", "--controller", "--lease-namespace", "dra-sdk", "--lease-seconds", "2"]);
    until("the pod is refused", &[&scheduler], async || scheduler.has_used("patch", "events")).await;
    until("requests are answered", &[&pool_status], async || {
        requests.list(&ListParams::default()).await.unwrap().items.iter().all(|request| request.status.is_some())
            && pool_status.has_used("delete", "resourcepoolstatusrequests")
    })
    .await;

    // The kubelet does not find the driver at first.
    let (boards, elsewhere) = (format!("{ROOT}/data/live/boards.yaml"), at("elsewhere"));
    let (plugin, state, cdi) = (at("plugin"), at("state"), at("cdi"));
    let args = ["serve", "--live", "--driver", "gpu.example.com", "--boot-id", "boot", "--plugin-dir", &plugin];
    let args = [&args[..], &["--state", &state, "--cdi", &cdi]].concat();
    driver.start(&[&args[..], &["--devices", &boards, "--registry", &elsewhere]].concat());
    until("the kubelet misses the driver", &[&kubelet, &scheduler, &driver], async || {
        kubelet.has_used("patch", "events")
    })
    .await;
    driver.stop();
    driver.start(&[&args[..], &["--devices", &boards, "--registry", &registry]].concat());
    let phase = async || pods.get("serve").await.unwrap().status.unwrap_or_default().phase;
    until("the pod runs", &[&kubelet, &scheduler, &driver], async || phase().await.as_deref() == Some("Running")).await;

    kubelet.stop();
    kubelet.start(&kubelet_args);
    pods.delete("serve", &DeleteParams::default()).await.unwrap();
    until("the pod is gone", &[&kubelet, &driver], async || pods.get_opt("serve").await.unwrap().is_none()).await;

    // A board less, and then none.
    driver.stop();
    let fewer = at("fewer.yaml");
    let slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "one"},
        "spec": {"driver": "gpu.example.com", "nodeName": "node-1", "devices": [{"name": "only"}],
            "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1}}});
    fs::write(&fewer, slice.to_string()).unwrap();
    driver.start(&[&args[..], &["--devices", &fewer, "--registry", &registry]].concat());
    let slices: Api<ResourceSlice> = Api::all(client.clone());
    until("one slice is left", &[&driver], async || {
        slices.list(&ListParams::default()).await.unwrap().items.len() == 1
    })
    .await;

    for running in [&autoscaler, &driver, &kubelet, &node_agent, &pool_status, &scheduler] {
        let granted = granted(running.program);
        let needed = || as_granted(with_parts_of_status(running.door.used(), running.program), &granted);
        let missing = || granted.difference(&needed()).cloned().collect::<BTreeSet<_>>();
        let begin = Instant::now();
        while !missing().is_empty() && begin.elapsed() < Duration::from_secs(10) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let program = running.program;
        let more: BTreeSet<Right> = needed().difference(&granted).cloned().collect();
        assert!(more.is_empty(), "{program} needs more: {:?}\n{}", texts(&more), running.log());
        assert!(missing().is_empty(), "{program} does not need: {:?}\n{}", texts(&missing()), running.log());
    }
}

/// Returns the arguments with which a program works in a directory.
fn arguments(program: &str, folder: &Path) -> Vec<String> {
    let at = |name: &str| folder.join(name).display().to_string();
    let args = match program {
        "driver" => "serve --live --capture xeon-cxl --boot-id boot",
        "autoscaler" | "kubelet" | "node-agent" => "--live",
        "pool-status" => "--live --controller",
        _ => "--live --bind",
    };
    let files: &[(&str, &str)] = match program {
        "driver" => &[("--state", "state"), ("--cdi", "cdi"), ("--plugin-dir", "plugin"), ("--registry", "registry")],
        "kubelet" => &[("--registry", "registry"), ("--state", "checkpoint")],
        "node-agent" => &[("--state", "state.json")],
        _ => &[],
    };
    let files = files.iter().flat_map(|(flag, name)| [(*flag).to_owned(), at(name)]);
    args.split(' ').map(str::to_owned).chain(files).collect()
}

#[tokio::test]
async fn each_program_says_which_right_or_version_it_lacks() {
    let server = StandIn::start(&[]);
    let node = json!({"metadata": {"name": "node-1", "labels": {"dra-sdk.example.com/virtual-node": "true"}}});
    Api::<Node>::all(server.client()).create(&POST, &read(node)).await.unwrap();
    let first_rights = [
        // The first to be refused of what it watches; each of them is below.
        ("autoscaler", "list "),
        ("driver", "get nodes"),
        ("kubelet", "create nodes"),
        ("node-agent", "get leases"),
        ("pool-status", "get leases"),
        ("scheduler", "get leases"),
    ];
    for ((program, path), (_, right)) in PROGRAMS.into_iter().zip(first_rights) {
        let folder = TempDir::new().unwrap();
        for name in ["registry", "plugin", "state", "cdi"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let args = arguments(program, folder.path());
        let run = |granted: Option<BTreeSet<Right>>, mischief: Mischief| {
            let door = Recorder::start(&server.url, granted, mischief);
            let output = Command::new(path).args(&args).args(["--server", &door.url]).output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{program}: {stderr}");
            stderr
        };
        let forbidden = run(Some(BTreeSet::new()), Mischief::None);
        let sentence = format!("{program}: not allowed to {right}");
        assert!(
            forbidden.contains(&sentence) && forbidden.contains("the program's role needs that verb"),
            "{forbidden}"
        );
        if program == "node-agent" {
            // Gates need no devices.
            continue;
        }
        let unserved = run(None, Mischief::HasNoDevices);
        assert!(unserved.contains(&format!("{program}: the API server does not serve ")), "{unserved}");
        assert!(unserved.contains("of resource.k8s.io"), "{unserved}");
    }
}

#[test]
fn the_autoscaler_says_which_of_its_rights_it_lacks() {
    let (server, granted) = (StandIn::start(&[]), granted("autoscaler"));
    for lacking in &granted {
        let rest = granted.iter().filter(|right| *right != lacking).cloned().collect();
        let door = Recorder::start(&server.url, Some(rest), Mischief::None);
        let mut command = Command::new(env!("CARGO_BIN_EXE_autoscaler"));
        let output = command.args(["--live", "--watch", "--server", &door.url]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{lacking:?}: {stderr}");
        let sentence = format!("autoscaler: not allowed to {} {}: ", lacking.verb, lacking.resource);
        assert!(stderr.starts_with(&sentence), "{stderr}");
    }
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
