//! Runs of the program `kubelet`: its commands, and with the feature `grpc` its demonstration and calls of a driver in
//! another process, over a real socket.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/kubelet/pods.yaml");

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kubelet"))
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

/// Node of a test: a directory with the state file, and perhaps a driver.
struct Node {
    folder: TempDir,
    gate: &'static str,
}

impl Node {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), gate: "DRAOptionalNodePreparation=true" }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn run(&self, plugin: Option<&Path>, command: &[&str]) -> Output {
        let mut kubelet = program();
        kubelet.arg("--state").arg(self.state()).args(["--profile", "kep", "--feature-gates", self.gate]);
        if let Some(socket) = plugin {
            kubelet.arg("--plugin").arg(format!("gpu.example.com={}", socket.display()));
        }
        kubelet.args(command).output().unwrap()
    }

    fn succeeds(&self, plugin: Option<&Path>, command: &[&str]) -> String {
        let output = self.run(plugin, command);
        assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
        text(&output.stdout).to_owned()
    }

    fn fails(&self, plugin: Option<&Path>, command: &[&str]) -> String {
        let output = self.run(plugin, command);
        assert!(!output.status.success(), "{command:?}: {}", text(&output.stdout));
        text(&output.stderr).to_owned()
    }
}

#[cfg(not(feature = "grpc"))]
#[test]
fn without_grpc_it_says_what_to_add() {
    let sentence = "drivers are called over gRPC, which this program was built without: add --features grpc to the \
                    cargo command\n";
    let node = Node::new();
    let socket = node.folder.path().join("dra.sock");
    for args in [vec![], vec!["--fake-driver", socket.to_str().unwrap()]] {
        let output = program().args(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert_eq!(text(&output.stderr), format!("kubelet: {sentence}"), "{args:?}");
    }
    let call = node.fails(Some(&socket), &["prepare", "train", MANIFEST]);
    assert_eq!(
        call,
        format!("kubelet: FailedPrepareDynamicResources: prepare dynamic resources: NodePrepareResources: {sentence}")
    );
}

#[test]
fn without_a_driver() {
    let node = Node::new();
    let missing = node.fails(None, &["prepare", "train", MANIFEST]);
    assert_eq!(
        missing,
        "kubelet: FailedPrepareDynamicResources: prepare dynamic resources: DRA driver gpu.example.com is not registered\n"
    );
    let skipped = node.succeeds(None, &["prepare", "infer", MANIFEST]);
    assert!(skipped.starts_with("skipped NodePrepareResources of fabric.example.com\n"), "{skipped}");
    let off = Node { folder: node.folder, gate: "DRAOptionalNodePreparation=false" };
    // req: 5945-KUBELET-9, 5945-KUBELET-18
    let rejected = "kubelet: PodFeatureUnsupported: Pod requires node features that are not available: DraOptionalNodePreparation\n";
    assert_eq!(off.fails(None, &["prepare", "late", MANIFEST]), rejected);
    let unchecked = off.fails(None, &["--no-admission", "prepare", "late", MANIFEST]);
    assert!(
        unchecked.contains("FailedPrepareDynamicResources: ")
            && unchecked.contains("DRAOptionalNodePreparationDisabled")
    );
    assert_eq!(
        off.succeeds(None, &["unprepare", "infer", MANIFEST]),
        "skipped NodeUnprepareResources of fabric.example.com\n"
    );
}

/// People write workloads and templates: their pods and claims are made, and allocated where the manifests have room.
#[test]
fn pods_of_workloads_are_prepared() {
    const ALL: &str = r"
{apiVersion: v1, kind: Node, metadata: {name: n}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: gpu.example.com, nodeName: n,
  pool: {name: n, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: one}, spec: {spec: {devices: {requests: [
  {name: r, exactly: {deviceClassName: gpu}}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {}, template: {spec: {
  containers: [{name: main, image: app}], resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}}
";
    let node = Node::new();
    let file = node.folder.path().join("all.yaml");
    fs::write(&file, ALL).unwrap();
    let run = |command: &str, pod: &str| node.fails(None, &[command, pod, file.to_str().unwrap(), "-n", "shop"]);
    let made = "kubelet: made 2 pods of Deployment shop/web and 2 claims of templates, as a cluster would; names are made up\n";
    let begin = format!("kubelet: ignored: Service (1)\n{made}");
    let placed = run("prepare", "shop/web-1");
    let called = "kubelet: FailedPrepareDynamicResources: prepare dynamic resources: DRA driver gpu.example.com is not registered\n";
    assert_eq!(placed, format!("{begin}kubelet: pod shop/web-1 is placed on n, as kubectl dra plan does\n{called}"));
    let waiting = run("prepare", "shop/web-2");
    let reason = "kubelet: pod shop/web-2 has no place, so that its claims are not allocated: 0/1 nodes are available: 1 no free device of class gpu\n";
    assert!(waiting.starts_with(&format!("{begin}{reason}")), "{waiting}");
}

#[test]
fn pods_that_are_gone() {
    let node = Node::new();
    node.succeeds(None, &["prepare", "infer", MANIFEST]);
    assert_eq!(node.succeeds(None, &["reconcile", MANIFEST]), "", "the pod is active");
    let gone = node.succeeds(None, &["reconcile", "--none-active"]);
    assert_eq!(gone, "pod pod-infer:\nskipped NodeUnprepareResources of fabric.example.com\n");
    assert_eq!(node.succeeds(None, &["show"]), "{}\n");
}

#[test]
fn active_pods_that_are_not_recognised_keep_their_devices() {
    let node = Node::new();
    node.succeeds(None, &["prepare", "infer", MANIFEST]);
    let before = fs::read(node.state()).unwrap();
    let manifest = fs::read_to_string(MANIFEST).unwrap();
    let without_uids = manifest.replace(", uid: pod-infer}\n", "}\n");
    assert_ne!(without_uids, manifest);
    let no_pod = "with nothing active, every claim would be unprepared; if that is meant, say --none-active instead\n";
    let deployments = "kind: List\nitems: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}]\n";
    for (text, said) in [
        (without_uids.as_str(), "metadata.uid: must be set; take the object from the cluster"),
        ("kind: pod\nmetadata: {name: infer, uid: pod-infer}\n", "kind: no such kind; write Pod\n"),
        ("", no_pod),
        (deployments, no_pod),
    ] {
        let file = node.folder.path().join("pods.yaml");
        fs::write(&file, text).unwrap();
        let error = node.fails(None, &["reconcile", file.to_str().unwrap()]);
        assert!(error.contains(said), "{text}: {error}");
    }
    fs::create_dir(node.folder.path().join("empty")).unwrap();
    let folder = node.folder.path().join("empty");
    assert!(node.fails(None, &["reconcile", folder.to_str().unwrap()]).contains(no_pod));
    assert!(node.fails(None, &["reconcile", "-"]).contains(no_pod), "an empty stdin");
    let usage = node.run(None, &["reconcile"]);
    assert_eq!(usage.status.code(), Some(2), "{}", text(&usage.stderr));
    assert_eq!(fs::read(node.state()).unwrap(), before);
}

#[test]
fn lists_that_are_not_whole_take_nothing_away() {
    let node = Node::new();
    node.succeeds(None, &["prepare", "infer", MANIFEST]);
    let before = fs::read(node.state()).unwrap();
    let file = node.folder.path().join("pods.json");
    let name = file.to_str().unwrap();
    let not_whole = ": the list is not whole: the server has more objects; ask without a limit\n";
    let page = r#""metadata": {"continue": "eyJ2IjoibWV0YS5rOHMuaW8vdjEi", "remainingItemCount": 2}"#;
    let other = r#"{"metadata": {"name": "other", "namespace": "default", "uid": "other"}}"#;
    for (list, said) in [
        (format!(r#"{{"kind": "PodList", {page}, "items": [{other}]}}"#), format!("PodList: metadata.continue{not_whole}")),
        (format!(r#"{{"kind": "List", {page}, "items": [{other}]}}"#), format!("List: metadata.continue{not_whole}")),
        (
            format!(r#"{{"kind": "List", "items": [{{"kind": "PodList", "items": [{other}]}}, {{"kind": "PodList", {page}, "items": []}}]}}"#),
            format!("PodList: metadata.continue{not_whole}"),
        ),
        (
            format!(r#"{{"kind": "PodList", "metadata": {{"continue": 7}}, "items": [{other}]}}"#),
            format!("PodList: metadata.continue{not_whole}"),
        ),
        (r#"{"kind": "PodList", "items": null}"#.to_owned(), "PodList: items: must be a list\n".to_owned()),
        (format!(r#"{{"kind": "PodList", "items": {other}}}"#), "PodList: items: must be a list\n".to_owned()),
        (r#"{"kind": "PodList"}"#.to_owned(), "PodList: items: must be set\n".to_owned()),
        (
            format!(r#"{{"kind": "PodList", "items": [{other}, null, null]}}"#),
            "PodList: items[1]: null in place of an object; the first of 2 items that can't be read\n".to_owned(),
        ),
        (
            r#"{"kind": "NodeList", "items": [{"kind": "Pod", "metadata": {"name": "other", "uid": "other"}}]}"#.to_owned(),
            "NodeList: items[0].kind: Pod in a list of kind NodeList\n".to_owned(),
        ),
        (
            format!(r#"{{"apiVersion": "example.com/v1", "kind": "PodList", "items": [{other}]}}"#),
            "with nothing active, every claim would be unprepared; if that is meant, say --none-active instead\n".to_owned(),
        ),
        (format!(r#"{{"kind": "PodList", "items": [{other}, {{}}]}}"#), "Pod: metadata.name: must be set\n".to_owned()),
        (
            format!(r#"{{"kind": "PodList", "items": [{other}, {{"metadata": {{"name": "", "uid": "u"}}}}]}}"#),
            "Pod: metadata.name: must be set\n".to_owned(),
        ),
        (
            format!(r#"{{"kind": "PodList", "items": [{other}, {{"metadata": {{"name": "p", "namespace": "n", "uid": ""}}}}]}}"#),
            "kubelet: Pod n/p: metadata.uid: must be set; take the object from the cluster, as kubectl get -o yaml prints it\n"
                .to_owned(),
        ),
    ] {
        fs::write(&file, &list).unwrap();
        let output = node.run(None, &["reconcile", name]);
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""), "{list}: {error}");
        assert!(error.ends_with(&said), "{list}: {error}");
        assert_eq!(fs::read(node.state()).unwrap(), before, "{list}");
    }
    // A UID that nobody knows is that of a pod that is there; the one that has claims is not.
    fs::write(&file, format!(r#"{{"kind": "PodList", "metadata": {{"continue": ""}}, "items": [{other}]}}"#)).unwrap();
    let gone = node.succeeds(None, &["reconcile", name]);
    assert_eq!(gone, "pod pod-infer:\nskipped NodeUnprepareResources of fabric.example.com\n");
}

#[test]
fn misspelt_fields_are_not_passed_over() {
    let node = Node::new();
    let file = node.folder.path().join("pods.yaml");
    fs::write(&file, fs::read_to_string(MANIFEST).unwrap().replace("resourceClaims:", "resourceclaims:")).unwrap();
    let file = file.to_str().unwrap();
    let error = node.fails(None, &["prepare", "infer", file]);
    assert!(error.contains("spec.resourceclaims: unknown field, ignored; correct the manifest"), "{error}");
    node.succeeds(None, &["--ignore-unknown-fields", "prepare", "infer", file]);
}

#[test]
fn one_kubelet_at_a_time_works_on_a_checkpoint() {
    let node = Node::new();
    node.succeeds(None, &["prepare", "infer", MANIFEST]);
    let lock = fs::File::options().write(true).open(node.folder.path().join("state.lock")).unwrap();
    lock.lock().unwrap();
    let refused = node.fails(None, &["unprepare", "infer", MANIFEST]);
    assert!(refused.ends_with("state: another process is working on this file; try again when it has ended\n"));
    assert!(node.succeeds(None, &["show"]).contains("pod-infer"), "it may be read");
    drop(lock);
    node.succeeds(None, &["unprepare", "infer", MANIFEST]);
}

/// Runs kubelets at the same time on one checkpoint, each for a pod of its own; `KUBELET_RACES` sets how often.
#[test]
fn kubelets_at_the_same_time_lose_nothing() {
    let races: usize = std::env::var("KUBELET_RACES").map_or(2, |text| text.parse().unwrap());
    let claim = |index: usize| {
        format!(
            "---\n{{kind: Pod, metadata: {{name: p{index}, namespace: default, uid: pod-{index}}}, spec: {{containers: [{{name: c}}], \
             resourceClaims: [{{name: r, resourceClaimName: c{index}}}]}}}}\n---\n{{kind: ResourceClaim, \
             metadata: {{name: c{index}, namespace: default, uid: claim-{index}}}, spec: {{}}, status: {{reservedFor: \
             [{{resource: pods, name: p{index}, uid: pod-{index}}}], allocation: {{devices: {{results: [{{request: r, \
             driver: fabric.example.com, pool: p, device: d{index}, skipNodeOperations: [\"*\"]}}]}}}}}}}}\n"
        )
    };
    for _ in 0..races {
        let node = Node::new();
        let file = node.folder.path().join("pods.yaml");
        fs::write(&file, (0..20).map(claim).collect::<String>()).unwrap();
        let children: Vec<_> = (0..20)
            .map(|index| {
                let mut kubelet = program();
                kubelet.arg("--state").arg(node.state()).args(["--profile", "kep", "--feature-gates", node.gate]);
                kubelet.args(["prepare", &format!("p{index}")]).arg(&file);
                kubelet.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        let outputs: Vec<Output> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        let kept = node.succeeds(None, &["show"]);
        for (index, output) in outputs.iter().enumerate() {
            let is_kept = kept.contains(&format!("\"default/c{index}\""));
            assert_eq!(output.status.success(), is_kept, "{index}: {}", text(&output.stderr));
            assert!(is_kept || text(&output.stderr).contains("is working on this file"));
        }
        assert!(kept.contains("claim-"), "one of them had the lock");
    }
}

#[test]
fn the_checkpoint_is_a_plain_file_of_this_version() {
    let node = Node::new();
    let missing = node.fails(None, &["show"]);
    assert!(missing.ends_with("state: no checkpoint there\n"), "{missing}");
    // A link is followed, also to a file that does not exist yet.
    let elsewhere = node.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink("elsewhere/real", node.state()).unwrap();
    // What a killed process has left goes; the files of others stay.
    fs::write(elsewhere.join("real.tmp"), "").unwrap();
    fs::write(elsewhere.join(".other.x1.tmp"), "").unwrap();
    node.succeeds(None, &["prepare", "infer", MANIFEST]);
    assert!(node.state().symlink_metadata().unwrap().is_symlink());
    let mut names: Vec<_> = fs::read_dir(&elsewhere).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort_unstable();
    assert_eq!(names, [".other.x1.tmp", "real", "real.lock"]);

    let show = |state: &str| {
        let output = program().args(["--state", state, "show"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr).to_owned()
    };
    assert_eq!(show("/dev/full"), "kubelet: /dev/full: not a plain file\n");
    assert!(show(elsewhere.to_str().unwrap()).contains("not a plain file"));
    let prepare = program().args(["--state", "no/such/state", "prepare", "infer", MANIFEST]).output().unwrap();
    assert_eq!(text(&prepare.stderr), "kubelet: no/such/state: no folder no/such\n");

    let newer = text(&fs::read(elsewhere.join("real")).unwrap()).replace("kubelet.k8s.io/v1", "kubelet.k8s.io/v2");
    let data: serde_json::Value = serde_json::from_str(&newer).unwrap();
    let checksum = crc32fast::hash(data["Data"].as_str().unwrap().as_bytes());
    let newer = serde_json::json!({"Data": data["Data"], "Checksum": checksum}).to_string();
    fs::write(elsewhere.join("real"), &newer).unwrap();
    let error = node.fails(None, &["unprepare", "infer", MANIFEST]);
    assert!(error.ends_with("use the kubelet that wrote it\n"), "{error}");
    assert_eq!(fs::read_to_string(elsewhere.join("real")).unwrap(), newer);
}

#[test]
fn a_damaged_file_is_no_empty_state() {
    let node = Node::new();
    node.succeeds(None, &["prepare", "infer", MANIFEST]);
    let whole = fs::read(node.state()).unwrap();
    fs::write(node.state(), &whole[..whole.len() / 2]).unwrap();
    let error = node.fails(None, &["show"]);
    assert!(error.contains("state: checkpoint is corrupted: file is not JSON"), "{error}");
    assert!(error.ends_with("; drain the node, then remove the file\n"), "{error}");
    assert_eq!(fs::read(node.state()).unwrap().len(), whole.len() / 2, "it is left as it is");
}

#[test]
fn what_is_asked_wrongly() {
    let node = Node::new();
    assert_eq!(node.fails(None, &["prepare", "nobody", MANIFEST]), "kubelet: no pod nobody in the manifests\n");
    let gate = program().args(["--feature-gates", "DRANothing=true", "show"]).output().unwrap();
    assert_eq!(gate.status.code(), Some(2));
    let twice = program().args(["--plugin", "a=x", "--plugin", "a=y", "show"]).output().unwrap();
    assert_eq!((twice.status.code(), text(&twice.stderr)), (Some(2), "kubelet: --plugin a: given twice\n"));
    assert!(
        text(&gate.stderr).contains(r#"--feature-gates: no feature gate "DRANothing" in profile v1.37"#),
        "{}",
        text(&gate.stderr)
    );
}

#[cfg(feature = "grpc")]
mod grpc {
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixStream;
    use std::process::Child;

    use super::*;

    /// Driver in a process of its own, stopped at the end of the test.
    struct Driver {
        process: Child,
        socket: PathBuf,
    }

    impl Driver {
        fn start(folder: &Path) -> Self {
            let socket = folder.join("dra.sock");
            let mut serve = program();
            serve.arg("--fake-driver").arg(&socket).args(["--driver", "gpu.example.com"]);
            let process = serve.stdout(Stdio::piped()).spawn().unwrap();
            while UnixStream::connect(&socket).is_err() {
                std::thread::yield_now();
            }
            Self { process, socket }
        }

        /// Stops the driver and returns the calls that it received.
        fn stop(mut self) -> Vec<String> {
            self.process.kill().unwrap();
            let stdout = self.process.stdout.take().unwrap();
            let lines = BufReader::new(stdout).lines().map(Result::unwrap).skip(1).collect();
            self.process.wait().unwrap();
            lines
        }
    }

    #[test]
    fn the_story() {
        let output = program().output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let story = text(&output.stdout);
        let (_, seen) = story.split_once("== What the driver saw\n").unwrap();
        assert_eq!(
            seen.lines().collect::<Vec<_>>(),
            [
                "NodePrepareResources(default/train-gpu)",
                "NodePrepareResources(default/train-gpu)",
                "NodeUnprepareResources(default/train-gpu)",
            ],
            "the second after the restart; never a call for a claim that skips"
        );
        for line in [
            "infer starts: NodePrepareResources of fabric.example.com was skipped",
            "infer has ended: NodeUnprepareResources of fabric.example.com was skipped",
            "claims left: 0",
        ] {
            assert!(story.lines().any(|found| found == line), "{line}:\n{story}");
        }
        assert!(story.contains("DRAOptionalNodeOperations feature gate is disabled on kubelet"));
        let kep = program().args(["--profile", "kep"]).output().unwrap();
        assert!(text(&kep.stdout).contains("DRAOptionalNodePreparationDisabled"));
    }

    #[test]
    fn a_driver_in_another_process_is_called_and_the_file_survives() {
        let node = Node::new();
        let driver = Driver::start(node.folder.path());
        let socket = driver.socket.clone();
        let started = node.succeeds(Some(&socket), &["prepare", "train", MANIFEST]);
        assert_eq!(
            started,
            "called gpu.example.com for default/train-gpu\ncontainer main: CDI devices: gpu.example.com/device=train-gpu\n"
        );
        assert!(node.succeeds(None, &["show"]).contains("gpu.example.com/device=train-gpu"));
        node.succeeds(Some(&socket), &["unprepare", "train", MANIFEST]);
        assert_eq!(node.succeeds(None, &["show"]), "{}\n");
        let left: Vec<_> = fs::read_dir(node.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 3, "socket, state and its lock, no temporary file: {left:?}");
        assert_eq!(
            driver.stop(),
            ["NodePrepareResources(default/train-gpu)", "NodeUnprepareResources(default/train-gpu)"]
        );
    }

    #[test]
    fn a_socket_has_one_driver() {
        let folder = TempDir::new().unwrap();
        let driver = Driver::start(folder.path());
        let second = program().arg("--fake-driver").arg(&driver.socket).output().unwrap();
        assert_eq!(second.status.code(), Some(1));
        assert!(text(&second.stderr).ends_with("dra.sock: another driver listens there\n"), "{}", text(&second.stderr));
        driver.stop();
        let left = folder.path().join("dra.sock");
        assert!(left.exists(), "a socket that nobody listens on is replaced");
        Driver::start(folder.path()).stop();
    }

    #[test]
    fn no_driver_is_called_if_the_result_could_not_be_stored() {
        let node = Node::new();
        let driver = Driver::start(node.folder.path());
        let socket = driver.socket.clone();
        node.succeeds(Some(&socket), &["prepare", "train", MANIFEST]);
        // No file may grow, so that a new checkpoint can't be written.
        let mut unprepare = Command::new("sh");
        unprepare.args([
            "-c",
            "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_kubelet"),
            "--state",
        ]);
        unprepare.arg(node.state()).arg("--plugin").arg(format!("gpu.example.com={}", socket.display()));
        let unprepare = unprepare.args(["unprepare", "train", MANIFEST]).output().unwrap();
        assert_eq!(unprepare.status.code(), Some(1), "{}", text(&unprepare.stderr));
        assert!(text(&unprepare.stderr).contains("File too large"), "{}", text(&unprepare.stderr));
        assert_eq!(driver.stop(), ["NodePrepareResources(default/train-gpu)"]);
    }

    #[test]
    fn a_driver_that_does_not_listen() {
        let node = Node::new();
        let dead = node.folder.path().join("dead.sock");
        let unreachable = node.fails(Some(&dead), &["prepare", "train", MANIFEST]);
        assert!(
            unreachable
                .starts_with("kubelet: FailedPrepareDynamicResources: prepare dynamic resources: NodePrepareResources: rpc error: code = Unavailable")
        );
        assert!(unreachable.contains("No such file or directory"), "{unreachable}");
        let skipped = node.succeeds(None, &["prepare", "infer", MANIFEST]);
        assert!(skipped.starts_with("skipped NodePrepareResources of fabric.example.com\n"), "{skipped}");
    }
}
