//! Manifests in examples/deploy: each program works with the rights of its role, and needs every one of them.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "permissions/lacking.rs"]
mod lacking;
#[path = "permissions/manifests.rs"]
mod manifests;
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
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};
use tempfile::TempDir;

use manifests::{PROGRAMS, as_granted, granted, manifests, only, texts, with_parts_of_status};
use recorder::{Mischief, Recorder, Right, Running};
use stand_in::StandIn;

const POST: PostParams = PostParams { dry_run: false, field_manager: None };
const PATIENCE: Duration = Duration::from_secs(120);
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

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

/// The rights of `--preempt` are those of the scheduler and two more, each of which it needs.
#[tokio::test]
async fn preemption_needs_its_own_rights() {
    let (server, folder) = (StandIn::start(&[]), TempDir::new().unwrap());
    let client = server.client();
    let more = granted("optional/preemption");
    let all: BTreeSet<Right> = granted("scheduler").union(&more).cloned().collect();
    let path = PROGRAMS.iter().find(|(name, _)| *name == "scheduler").unwrap().1;
    let door = Recorder::start(&server.url, Some(all), Mischief::LosesFirstAnswers);
    let mut scheduler = Running::new(path, door, folder.path().join("scheduler.log"), "scheduler");
    let device = json!({"driver": "gpu.example.com", "nodeName": "n", "devices": [{"name": "gpu-0"}],
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}});
    let namespace: Namespace = read(json!({"metadata": {"name": "dra-sdk"}}));
    let _ = Api::all(client.clone()).create(&POST, &namespace).await;
    let create = async |object: Value| Api::<Node>::all(client.clone()).create(&POST, &read(object)).await.unwrap();
    create(json!({"metadata": {"name": "n"}})).await;
    let class: DeviceClass = read(json!({"metadata": {"name": "gpu"}, "spec": {}}));
    Api::all(client.clone()).create(&POST, &class).await.unwrap();
    let slice: ResourceSlice = read(json!({"metadata": {"name": "n"}, "spec": device}));
    Api::all(client.clone()).create(&POST, &slice).await.unwrap();
    let (pods, claims): (Api<Pod>, Api<ResourceClaim>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
    let urgent: PriorityClass = read(json!({"metadata": {"name": "urgent"}, "value": 100}));
    Api::all(client.clone()).create(&POST, &urgent).await.unwrap();
    let want = async |name: &str, class: &str| {
        let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
        let claim = json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}});
        claims.create(&POST, &read(claim)).await.unwrap();
        let spec = json!({"schedulerName": "dra-sdk", "priorityClassName": class, "containers": [{"name": "c", "image": "i"}],
            "resourceClaims": [{"name": "r", "resourceClaimName": name}]});
        pods.create(&POST, &read(json!({"metadata": {"name": name}, "spec": spec}))).await.unwrap();
    };
    scheduler.start(&["--live", "--bind", "--preempt", "--lease-namespace", "dra-sdk"]);
    want("notebook", "").await;
    let is_bound = async || pods.get("notebook").await.unwrap().spec.unwrap().node_name.is_some();
    until("the notebook runs", &[&scheduler], is_bound).await;
    want("train", "urgent").await;
    let is_leaving =
        async || pods.get_opt("notebook").await.unwrap().is_none_or(|pod| pod.metadata.deletion_timestamp.is_some());
    until("the notebook goes", &[&scheduler], is_leaving).await;
    until("all rights are used", &[&scheduler], async || more.is_subset(&as_granted(scheduler.door.used(), &more)))
        .await;
}

/// The right of `--consolidate` is one more than those of the autoscaler, and without it the program says so.
#[tokio::test]
async fn consolidation_needs_its_own_right() {
    let (server, folder, other) = (StandIn::start(&[]), TempDir::new().unwrap(), TempDir::new().unwrap());
    let more = granted("optional/consolidation");
    let path = PROGRAMS.iter().find(|(name, _)| *name == "autoscaler").unwrap().1;
    let all: BTreeSet<Right> = granted("autoscaler").union(&more).cloned().collect();
    let door = Recorder::start(&server.url, Some(all), Mischief::LosesFirstAnswers);
    let mut autoscaler = Running::new(path, door, folder.path().join("autoscaler.log"), "autoscaler");
    autoscaler.start(&["--live", "--watch", "--consolidate"]);
    until("all rights are used", &[&autoscaler], async || more.is_subset(&as_granted(autoscaler.door.used(), &more)))
        .await;
    until("there is a plan", &[&autoscaler], async || autoscaler.log().contains("no node can be emptied")).await;

    let mut without = behind(&server, other.path(), "autoscaler");
    without.start(&["--live", "--consolidate"]);
    until("the right is missed", &[&without], async || without.log().contains("poddisruptionbudgets")).await;
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
    let remembered = at("node-agent");
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
    let (boards, elsewhere) = (at("boards.yaml"), at("elsewhere"));
    let all_boards = fs::read_to_string(format!("{ROOT}/data/live/boards.yaml")).unwrap();
    fs::write(&boards, &all_boards).unwrap();
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

    // Somebody pulls the device that the pod has.
    let slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "one"},
        "spec": {"driver": "gpu.example.com", "nodeName": "node-1", "devices": [{"name": "only"}],
            "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1}}});
    fs::write(&boards, slice.to_string()).unwrap();
    until("the loss is told", &[&driver], async || driver.has_used("patch", "events")).await;
    fs::write(&boards, &all_boards).unwrap();

    kubelet.stop();
    kubelet.start(&kubelet_args);
    pods.delete("serve", &DeleteParams::default()).await.unwrap();
    until("the pod is gone", &[&kubelet, &driver], async || pods.get_opt("serve").await.unwrap().is_none()).await;

    // A board less, and then none.
    driver.stop();
    let fewer = at("fewer.yaml");
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
        while !missing().is_empty() && begin.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let program = running.program;
        let more: BTreeSet<Right> = needed().difference(&granted).cloned().collect();
        assert!(more.is_empty(), "{program} needs more: {:?}\n{}", texts(&more), running.log());
        assert!(missing().is_empty(), "{program} does not need: {:?}\n{}", texts(&missing()), running.log());
        // `managedFields` have what is before the slash.
        let name = format!("dra-sdk-{program}/{}", env!("CARGO_PKG_VERSION"));
        assert!(running.door.writers().iter().all(|writer| *writer == name), "{:?}", running.door.writers());
    }
}
