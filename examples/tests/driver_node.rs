//! The driver on its node as a user runs it: `driver prepare`, `unprepare` and `serve`, the kubelet's calls over real sockets,
//! and random kills of both.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dra_alloc::driver::{CdiSpec, Ledger};
use serde_json::{Value, json};
use tempfile::TempDir;

const DRIVER: &str = "gpu.example.com";

/// Claim of a pod, allocated to a device.
fn claim(name: &str, uid: &str, device: &str, version: usize) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"namespace": "default", "name": name, "uid": uid, "resourceVersion": version.to_string()},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "reservedFor": [{"resource": "pods", "name": format!("pod-{name}"), "uid": format!("pod-{uid}")}],
            "allocation": {"devices": {"results": [
                {"request": "gpu", "driver": DRIVER, "pool": "node-1", "device": device},
            ]}},
        },
    })
}

/// Directories of one node.
struct Node {
    folder: TempDir,
    boot: usize,
}

impl Node {
    fn new() -> Self {
        let node = Self { folder: TempDir::new().unwrap(), boot: 0 };
        node.show(&[]);
        node
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts objects into the API server, in place of all others.
    fn show(&self, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        fs::write(self.path("api.tmp"), list.to_string()).unwrap();
        fs::rename(self.path("api.tmp"), self.path("api.json")).unwrap();
    }

    fn driver(&self, command: &str) -> Command {
        let mut driver = Command::new(env!("CARGO_BIN_EXE_driver"));
        driver.arg(command).args(["--driver", DRIVER, "--boot-id", &format!("boot-{}", self.boot)]);
        driver.arg("--state").arg(self.path("state")).arg("--cdi").arg(self.path("cdi"));
        driver
    }

    fn run(&self, command: &str) -> Output {
        self.driver(command).arg(self.path("api.json")).output().unwrap()
    }

    fn ledger(&self) -> Ledger {
        match fs::read(self.path("state/ledger.json")) {
            Ok(bytes) => Ledger::from_checkpoint(&bytes).unwrap(),
            Err(_) => Ledger::default(),
        }
    }

    fn files(&self, folder: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Returns the claims for which devices are set up, by the file of the device.
    fn set_up(&self) -> BTreeMap<PathBuf, String> {
        let files = self.files("state/hardware").into_iter();
        files.map(|path| (path.clone(), fs::read_to_string(path).unwrap_or_default())).collect()
    }

    #[cfg(feature = "grpc")]
    /// Checks what holds whenever nobody is in the middle of a step.
    fn check(&self, context: &str) {
        let ledger = self.ledger();
        let boot = format!("boot-{}", self.boot);
        let mut holders = BTreeMap::new();
        for (uid, entry) in ledger.entries().iter().filter(|(_, entry)| entry.is_of_boot(&boot)) {
            for held in &entry.devices {
                let other = holders.insert((held.pool.clone(), held.device.clone()), uid.clone());
                assert_eq!(other, None, "{context}: {} is held twice", held.device);
            }
        }
        for (path, holder) in self.set_up() {
            let is_known = holder.is_empty() || ledger.entries().contains_key(&holder);
            assert!(is_known, "{context}: {} is set up for {holder}, which nobody remembers", path.display());
        }
        for (uid, entry) in ledger.entries().iter().filter(|(_, entry)| entry.is_of_boot(&boot)) {
            let is_set_up = self.set_up().values().any(|holder| holder == uid);
            assert!(
                entry.state != dra_alloc::driver::EntryState::Completed || is_set_up,
                "{context}: {uid} is prepared without set-up"
            );
        }
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn spec(path: &Path) -> CdiSpec {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn claims_given_as_files() {
    let node = Node::new();
    node.show(&[claim("a", "u1", "gpu-0", 1), claim("b", "u2", "gpu-1", 1)]);
    for turn in 0..2 {
        let output = node.run("prepare");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let lines = "default/a: k8s.gpu.example.com/claim=u1-gpu-0\ndefault/b: k8s.gpu.example.com/claim=u2-gpu-1\n";
        assert_eq!(text(&output.stdout), lines, "turn {turn}");
    }
    assert_eq!(node.files("cdi").len(), 2);
    for path in node.files("cdi") {
        let spec = spec(&path);
        assert_eq!((spec.kind.as_str(), spec.cdi_version.as_str()), ("k8s.gpu.example.com/claim", "0.3.0"));
    }
    fs::remove_dir_all(node.path("cdi")).unwrap();
    assert!(node.run("prepare").status.success());
    assert_eq!(node.files("cdi").len(), 2, "files that were lost are written again");
    for _ in 0..2 {
        let output = node.run("unprepare");
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    assert!(node.files("cdi").is_empty() && node.set_up().is_empty() && node.ledger().entries().is_empty());
}

#[test]
fn a_device_in_use_and_a_damaged_ledger() {
    let node = Node::new();
    node.show(&[claim("a", "u1", "gpu-0", 1), claim("b", "u2", "gpu-0", 1)]);
    let output = node.run("prepare");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).ends_with("default/b: error: device node-1/gpu-0 is in use by claim u1\n"));
    assert_eq!(node.files("cdi").len(), 1);

    fs::write(node.path("state/ledger.json"), "{").unwrap();
    for command in ["prepare", "unprepare"] {
        let output = node.run(command);
        assert!(text(&output.stderr).contains("ledger of prepared claims is corrupted: file: EOF"), "{command}");
    }
    assert_eq!(fs::read(node.path("state/ledger.json")).unwrap(), b"{", "never written over");
    assert_eq!(node.files("cdi").len(), 1, "and nothing is removed");
}

#[test]
fn a_cdi_file_that_was_cut_or_zeroed_is_written_again() {
    let node = Node::new();
    node.show(&[claim("a", "u1", "gpu-0", 1)]);
    assert!(node.run("prepare").status.success());
    let [path] = node.files("cdi").try_into().unwrap();
    let whole = fs::read(&path).unwrap();
    for damaged in [whole[..whole.len() / 2].to_vec(), vec![0; whole.len()], Vec::new()] {
        fs::write(&path, damaged).unwrap();
        // The start of any command mends it.
        node.show(&[]);
        assert!(node.run("unprepare").status.success());
        assert_eq!(fs::read(&path).unwrap(), whole);
        node.show(&[claim("a", "u1", "gpu-0", 1)]);
    }
}

#[test]
fn without_its_ledger_nothing_is_removed_before_a_person_says_so() {
    let node = Node::new();
    node.show(&[claim("a", "u1", "gpu-0", 1), claim("b", "u2", "gpu-1", 1)]);
    assert!(node.run("prepare").status.success());
    let (ledger, kept) = (node.path("state/ledger.json"), node.path("kept.json"));
    fs::rename(&ledger, &kept).unwrap();
    for command in ["prepare", "unprepare"] {
        let output = node.run(command);
        assert_eq!(output.status.code(), Some(1), "{command}");
        let told = text(&output.stderr);
        assert!(told.contains("ledger.json: no ledger there, but "), "{told}");
        assert!(told.contains("cdi has the files of 2 claims, such as u") && told.contains("--new-ledger"), "{told}");
        assert_eq!((node.files("cdi").len(), node.set_up().len(), ledger.exists()), (2, 2, false), "{command}");
    }
    // Either the ledger comes back, or nothing of it is in use any more.
    fs::rename(&kept, &ledger).unwrap();
    assert!(node.run("prepare").status.success());
    fs::remove_file(&ledger).unwrap();
    node.show(&[claim("c", "u3", "gpu-0", 1)]);
    let output = node.driver("prepare").arg("--new-ledger").arg(node.path("api.json")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(node.set_up().into_values().collect::<Vec<_>>(), ["u3"]);
    assert_eq!(node.files("cdi").len(), 1);
    assert!(node.run("prepare").status.success(), "without the flag as well");
}

#[test]
fn a_lock_of_another_instance_is_not_waited_for_without_end() {
    let node = Node::new();
    node.show(&[]);
    fs::create_dir_all(node.path("state")).unwrap();
    let lock = fs::File::create(node.path("state/serialize.lock")).unwrap();
    lock.lock().unwrap();
    let output = node.run("prepare");
    assert!(
        text(&output.stderr)
            .ends_with("serialize.lock: another process is working on this file; try again when it has ended\n")
    );
}

#[cfg(not(feature = "grpc"))]
#[test]
fn without_grpc_it_says_what_to_add() {
    let node = Node::new();
    let output = node.driver("serve").args(["--plugin-dir", "p", "--registry", "r", "/dev/null"]).output().unwrap();
    assert!(
        text(&output.stderr)
            .ends_with("which this program was built without: add --features grpc to the cargo command\n")
    );
}

#[cfg(feature = "grpc")]
mod served {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::process::{Child, Stdio};
    use std::thread;
    use std::time::{Duration, SystemTime};

    use super::*;

    /// Random numbers of a seed (`SplitMix64`).
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ mixed >> 31) % limit
        }

        fn one_in(&mut self, count: u64) -> bool {
            self.below(count) == 0
        }
    }

    /// Driver in a process of its own, killed when it is dropped.
    struct Serving(Child);

    impl Serving {
        fn start(node: &Node) -> Self {
            Self::instance(node, &[])
        }

        fn instance(node: &Node, more: &[&str]) -> Self {
            let mut serve = node.driver("serve");
            serve.args(more);
            serve.arg("--plugin-dir").arg(node.path("plugin")).arg("--registry").arg(node.path("registry"));
            let mut child = serve.arg(node.path("api.json")).stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert!(line.starts_with("gpu.example.com serves "), "{line}");
            Self(child)
        }
    }

    impl Drop for Serving {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// HEADERS of a kubelet's `GetInfo`, as recorded from grpc-go 1.81: its authority is the percent-encoded path.
    const GET_INFO: &str = "00006d0104000000018386459c62ba2d98d558598c84d83498f52fb4b31909b06931ea63115392a94f41955458534d\
                            6a8b0c96775458663aa2c241d6ba0e4ebf5f8b1d75d0620d263d4c4d65647a8a9acac8b4c7602bbc15c34002746586\
                            4d833505b11f40899acac8b24d494f6a7f860befbef34d5b";

    /// Reads frames until one of a kind comes on the first stream, and returns its payload.
    fn frame_of_kind(stream: &mut UnixStream, kind: u8) -> Vec<u8> {
        loop {
            let mut header = [0; 9];
            stream.read_exact(&mut header).unwrap();
            let mut payload = vec![0; usize::from(header[1]) << 8 | usize::from(header[2])];
            stream.read_exact(&mut payload).unwrap();
            assert!(header[3] != 3 && header[3] != 7, "the server resets the stream: {header:?} {payload:?}");
            if header[3] == kind && header[8] == 1 {
                return payload;
            }
        }
    }

    #[test]
    fn the_bytes_of_a_kubelet_are_answered() {
        let node = Node::new();
        let _serving = Serving::start(&node);
        let socket = node.path("registry/gpu.example.com-reg.sock");
        let mut stream = UnixStream::connect(socket).unwrap();
        let pairs = GET_INFO.as_bytes().chunks(2).map(text);
        let headers: Vec<u8> = pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
        // Preface, empty SETTINGS, the recorded HEADERS, and DATA with an empty message that ends the stream.
        let data = [0, 0, 5, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0];
        let bytes =
            [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &[0, 0, 0, 4, 0, 0, 0, 0, 0], &headers, &data].concat();
        stream.write_all(&bytes).unwrap();
        let info = frame_of_kind(&mut stream, 0);
        let contains = |wanted: &str| info.windows(wanted.len()).any(|window| window == wanted.as_bytes());
        assert!(contains("DRAPlugin") && contains(DRIVER) && contains("v1.DRAPlugin"), "{info:?}");
        assert!(contains(node.path("plugin/dra.sock").to_str().unwrap()));
    }

    #[test]
    fn two_instances_during_an_update() {
        let (node, cluster) = (Node::new(), Cluster { anew: 0, version: 1 });
        node.show(&cluster.objects());
        let old = Serving::instance(&node, &["--pod-uid", "old"]);
        let api = node.path("api.json");
        let run = |command: &str, pod: &str| kubelet(&node, &[command, pod, api.to_str().unwrap()]).output().unwrap();
        assert!(run("prepare", "pod-a").status.success());
        let new = Serving::instance(&node, &["--pod-uid", "new"]);
        assert!(run("prepare", "pod-c").status.success());
        assert_eq!(node.ledger().entries().len(), 2, "both know both claims");
        let refused = run("prepare", "pod-b");
        assert!(
            text(&refused.stderr).contains("device node-1/gpu-0 is in use by claim a0"),
            "{}",
            text(&refused.stderr)
        );
        drop(old);
        fs::remove_file(node.path("registry/gpu.example.com-old-reg.sock")).unwrap();
        for pod in ["pod-a", "pod-b", "pod-c"] {
            assert!(run("unprepare", pod).status.success(), "{pod}");
        }
        drop(new);
        assert!(node.files("cdi").is_empty() && node.set_up().is_empty() && node.ledger().entries().is_empty());
    }

    fn kubelet(node: &Node, command: &[&str]) -> Command {
        let mut kubelet = Command::new(env!("CARGO_BIN_EXE_kubelet"));
        kubelet.arg("--registry").arg(node.path("registry")).arg("--state").arg(node.path("kubelet_state"));
        kubelet.args(command);
        kubelet
    }

    /// Pods and claims in the API server. Two claims want one device, as after a deletion by force; the first one is deleted
    /// and created anew under its name.
    struct Cluster {
        /// Number of times that the first claim was created anew.
        anew: usize,
        /// `resourceVersion` of all claims: somebody reserves one before each call.
        version: usize,
    }

    const PODS: [&str; 3] = ["a", "b", "c"];

    impl Cluster {
        fn objects(&self) -> Vec<Value> {
            let devices = ["gpu-0", "gpu-0", "gpu-1"];
            let uid = |name: &str| if name == "a" { format!("a{}", self.anew) } else { format!("{name}0") };
            let claims = PODS.iter().zip(devices).map(|(name, device)| claim(name, &uid(name), device, self.version));
            let pod = |name: &&str| {
                json!({
                    "apiVersion": "v1", "kind": "Pod",
                    "metadata": {"namespace": "default", "name": format!("pod-{name}"), "uid": format!("pod-{}", uid(name))},
                    "spec": {
                        "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}],
                        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
                    },
                })
            };
            claims.chain(PODS.iter().map(pod)).collect()
        }
    }

    /// Calls the kubelet; on the way, the driver or the kubelet may be killed.
    fn call(
        node: &Node,
        random: &mut Random,
        serving: &mut Option<Serving>,
        command: &[&str],
        kills: bool,
    ) -> Option<String> {
        let api = node.path("api.json");
        let mut args = command.to_vec();
        args.push(api.to_str().unwrap());
        let mut child = kubelet(node, &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        if kills && random.one_in(2) {
            thread::sleep(Duration::from_micros(random.below(40_000)));
            if random.one_in(4) {
                let _ = child.kill();
            } else {
                *serving = None;
            }
        }
        let output = child.wait_with_output().unwrap();
        let error = text(&output.stderr).to_owned();
        assert!(!error.contains("is set up for"), "prepared twice: {error}");
        (!output.status.success()).then_some(error)
    }

    /// One history of a node. Returns the number of kills.
    fn history(seed: u64) -> usize {
        let mut random = Random(seed);
        let (mut node, mut cluster) = (Node::new(), Cluster { anew: 0, version: 1 });
        node.show(&cluster.objects());
        let (mut serving, mut kills) = (Some(Serving::start(&node)), 0);
        for step in 0..20 {
            let context = format!("seed {seed}, step {step}");
            if serving.is_none() {
                kills += 1;
                if random.one_in(3) {
                    // The node boots: the directory of CDI files is empty then, and the driver has hardware without settings.
                    node.boot += 1;
                    node.files("cdi").into_iter().for_each(|path| fs::remove_file(path).unwrap());
                }
                node.check(&context);
                serving = Some(Serving::start(&node));
                node.check(&context);
            }
            cluster.version += 1;
            node.show(&cluster.objects());
            let pod = format!("pod-{}", PODS[usize::try_from(random.below(3)).unwrap()]);
            match random.below(8) {
                0..4 => drop(call(&node, &mut random, &mut serving, &["prepare", &pod], true)),
                4..7 => drop(call(&node, &mut random, &mut serving, &["unprepare", &pod], true)),
                _ => {
                    // The pod of the first claim ends before the claim is deleted and created anew.
                    if serving.is_some()
                        && call(&node, &mut random, &mut serving, &["unprepare", "pod-a"], false).is_none()
                    {
                        cluster.anew += 1;
                    }
                }
            }
            if serving.is_some() {
                node.check(&context);
            }
        }
        drop(serving);
        let mut serving = Some(Serving::start(&node));
        for pod in PODS {
            let error = call(&node, &mut random, &mut serving, &["unprepare", &format!("pod-{pod}")], false);
            assert_eq!(error, None, "seed {seed}: {pod}");
        }
        drop(serving);
        // A claim that the kubelet never remembered is undone when the driver looks it up and finds it gone.
        node.show(&[]);
        drop(Serving::start(&node));
        let left = node.ledger();
        let left: Vec<_> = left.entries().iter().map(|(uid, entry)| (uid, entry.state)).collect();
        assert!(left.is_empty(), "seed {seed}: {left:?}");
        assert!(node.files("cdi").is_empty(), "seed {seed}: {:?}", node.files("cdi"));
        assert!(node.set_up().is_empty(), "seed {seed}: {:?}", node.set_up());
        kills
    }

    /// Three histories, one of them new each day; `DRIVER_KILLS=50` runs fifty.
    #[test]
    fn killed_at_any_point() {
        let day = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() / 86_400;
        let seeds: Vec<u64> = match std::env::var("DRIVER_KILLS") {
            Ok(count) => (0..count.parse().unwrap()).collect(),
            Err(_) => vec![1, 2, day],
        };
        println!("seeds {seeds:?}");
        let kills: usize = seeds.iter().map(|seed| history(*seed)).sum();
        println!("{} seeds, {kills} kills of the driver", seeds.len());
        assert!(kills > seeds.len(), "{kills} kills");
    }
}
