//! Runs of the program `kubelet`: its commands, and with the feature `grpc` its demonstration and calls of a driver in
//! another process, over a real socket.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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

#[test]
fn pods_that_are_gone() {
    let node = Node::new();
    node.succeeds(None, &["prepare", "infer", MANIFEST]);
    assert_eq!(node.succeeds(None, &["reconcile", MANIFEST]), "", "the pod is active");
    let gone = node.succeeds(None, &["reconcile"]);
    assert_eq!(gone, "pod pod-infer:\nskipped NodeUnprepareResources of fabric.example.com\n");
    assert_eq!(node.succeeds(None, &["show"]), "{}\n");
}

#[test]
fn a_damaged_file_is_no_empty_state() {
    let node = Node::new();
    node.succeeds(None, &["prepare", "infer", MANIFEST]);
    let whole = std::fs::read(node.state()).unwrap();
    std::fs::write(node.state(), &whole[..whole.len() / 2]).unwrap();
    let error = node.fails(None, &["show"]);
    assert!(error.contains("state: checkpoint is corrupted: file is not JSON"), "{error}");
    assert_eq!(std::fs::read(node.state()).unwrap().len(), whole.len() / 2, "it is left as it is");
}

#[test]
fn what_is_asked_wrongly() {
    let node = Node::new();
    assert_eq!(node.fails(None, &["prepare", "nobody", MANIFEST]), "kubelet: no pod nobody in the manifests\n");
    let gate = program().args(["--feature-gates", "DRANothing=true", "show"]).output().unwrap();
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
    use std::process::{Child, Stdio};

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
        let left: Vec<_> =
            std::fs::read_dir(node.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "socket and state, no temporary file: {left:?}");
        assert_eq!(
            driver.stop(),
            ["NodePrepareResources(default/train-gpu)", "NodeUnprepareResources(default/train-gpu)"]
        );
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
        let skipped = node.succeeds(None, &["prepare", "infer", MANIFEST]);
        assert!(skipped.starts_with("skipped NodePrepareResources of fabric.example.com\n"), "{skipped}");
    }
}
