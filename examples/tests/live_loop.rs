//! The loop on the stand-in for a cluster: published, allocated, bound, prepared, counted, freed, while the server misbehaves
//! and programs are killed. At the end no device was used twice, nothing is lost, and nothing is left prepared.
//!
//! On 1.37, and with two seeds on each release before it. `LIVE_SEEDS=50 cargo test -p examples --all-features --test live_loop`
//! runs fifty seeds; `LIVE_SEED` repeats one; `LIVE_RELEASE` chooses the release. Where libfaketime is installed, the clocks of
//! the running programs jump, too.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod stand_in;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dra_alloc::Profile;
use dra_alloc::claim_controller::ClaimController;
use dra_alloc::driver::Ledger;
use dra_alloc::pods::PodOptions;
use dra_live::controller_calls::finish;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};
use stand_in::{StandIn, listed};
use tempfile::TempDir;

const DRIVER: &str = "gpu.example.com";
const BOARDS: usize = 25;
/// Devices of a board: seven parts, and the whole.
const PARTS: usize = 7;
const PODS: usize = 12;
const PATIENCE: Duration = Duration::from_secs(120);
const POST: PostParams = PostParams { dry_run: false, field_manager: None };

/// Numbers that decide what is killed when.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Programs of a node and its cluster, each of which may be killed and is started again.
struct Programs {
    folder: TempDir,
    url: String,
    release: Profile,
    clocks: Clocks,
    running: BTreeMap<&'static str, Child>,
}

/// Clocks that the programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clocks {
    /// That of the machine.
    True,
    /// One that is set at random while they run. Time spans stay as they are, as when an administrator sets a clock.
    Jumping,
}

/// Library that stands between a program and its clock.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// Settings of a clock, in seconds beside the true one: years ago, in a century, and small ones in both directions. None is before 1970, since the
/// date of an HTTP answer can't be (httpdate panics); a machine without a clock begins there.
const JUMPS: [&str; 8] = ["+0", "+5", "-5", "+3600", "-3600", "+3153600000", "-1700000000", "-1790000000"];

/// There are two copies of the scheduler, of which one works at a time.
const NAMES: [&str; 6] = ["kubelet", "driver", "scheduler", "scheduler-2", "node-agent", "pool-status"];

/// Gates that the boards need. Releases have them off by default before 1.36.
const GATES: &str = "DRAPartitionableDevices=true";

/// Returns the programs that a release has something to do for: requests for the status of pools came with 1.36.
fn names(release: Profile) -> &'static [&'static str] {
    let has_status = !release.versions_of("ResourcePoolStatusRequest").is_empty();
    NAMES.get(..if has_status { NAMES.len() } else { NAMES.len() - 1 }).unwrap()
}

/// Gate of the node, which nobody reports until the end.
const GATE: &str = "a.example/Ready";

impl Programs {
    fn start(server: &StandIn, release: Profile, clocks: Clocks) -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["registry", "plugin", "state", "cdi"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        server.kubeconfig(folder.path());
        fs::write(folder.path().join("devices.json"), devices()).unwrap();
        fs::write(folder.path().join("gates.json"), gates()).unwrap();
        fs::write(folder.path().join("clock"), "+0").unwrap();
        let mut programs = Self { folder, url: server.url.clone(), release, clocks, running: BTreeMap::new() };
        for name in names(release) {
            programs.run(name);
        }
        programs
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&mut self, name: &'static str) {
        let at = |name: &str| self.at(name).display().to_string();
        let (registry, plugin, state, cdi, devices, checkpoint) =
            (at("registry"), at("plugin"), at("state"), at("cdi"), at("devices.json"), at("checkpoint"));
        let (remembered, gates) = (at("node-agent"), at("gates.json"));
        let release = self.release.name();
        let (program, args) = match name {
            "driver" => (
                env!("CARGO_BIN_EXE_driver"),
                vec![
                    "serve",
                    "--live",
                    "--driver",
                    DRIVER,
                    "--devices",
                    &devices,
                    "--state",
                    &state,
                    "--cdi",
                    &cdi,
                    "--plugin-dir",
                    &plugin,
                    "--registry",
                    &registry,
                    "--boot-id",
                    "boot",
                ],
            ),
            "kubelet" => {
                let args = vec!["--live", "--release", release, "--registry", &registry, "--state", &checkpoint];
                (env!("CARGO_BIN_EXE_kubelet"), args)
            }
            "pool-status" => {
                let args = vec!["--live", "--release", release, "--controller", "--lease-seconds", "1"];
                (env!("CARGO_BIN_EXE_pool-status"), args)
            }
            "node-agent" => {
                let args = vec!["--live", "--state", &remembered, "--lease-seconds", "1", &gates];
                (env!("CARGO_BIN_EXE_node-agent"), args)
            }
            _ => {
                let rules = ["--release", release, "--feature-gates", GATES];
                let args = [&["--live", "--bind", "--lease-seconds", "1"], &rules[..]].concat();
                (env!("CARGO_BIN_EXE_scheduler"), args)
            }
        };
        let log = File::options().create(true).append(true).open(self.at(&format!("{name}.log"))).unwrap();
        let mut command = Command::new(program);
        command.args(args).env("KUBECONFIG", self.at("kubeconfig")).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        if self.clocks == Clocks::Jumping {
            command.env("LD_PRELOAD", FAKETIME).env("FAKETIME_TIMESTAMP_FILE", self.at("clock"));
            command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        self.running.insert(name, command.spawn().unwrap());
    }

    /// Kills a program in the middle of whatever it does, and starts it again.
    fn kill(&mut self, name: &'static str) {
        let mut child = self.running.remove(name).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        self.run(name);
    }

    /// Sets the clock of all programs, if it may jump.
    fn jump(&self, dice: &mut Dice) {
        if self.clocks == Clocks::Jumping {
            let jump = JUMPS[usize::try_from(dice.below(JUMPS.len() as u64)).unwrap()];
            // By a new file: a program must not read half of it.
            fs::write(self.at("clock.new"), jump).unwrap();
            fs::rename(self.at("clock.new"), self.at("clock")).unwrap();
        }
    }

    /// Starts programs that have ended by themselves: for them that is an error of the server that they named.
    fn revive(&mut self) {
        for name in names(self.release) {
            if self.running.get_mut(*name).unwrap().try_wait().unwrap().is_some() {
                self.run(name);
            }
        }
    }

    fn logs(&self) -> String {
        let log = |name: &&str| format!("== {name}\n{}", fs::read_to_string(self.at(&format!("{name}.log"))).unwrap());
        format!("{}\n{}", self.url, names(self.release).iter().map(log).collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns boards that are used whole or in parts, as slices in a file.
fn devices() -> String {
    let set =
        |board: usize| json!({"name": format!("board-{board}"), "counters": {"parts": {"value": PARTS.to_string()}}});
    let device = |board: usize, part: usize| {
        let size = if part == PARTS { PARTS } else { 1 };
        let uses =
            json!([{"counterSet": format!("board-{board}"), "counters": {"parts": {"value": size.to_string()}}}]);
        json!({"name": format!("b{board}-{part}"), "attributes": {"size": {"int": size}}, "consumesCounters": uses})
    };
    let slice = |name: &str, field: &str, value: Value| {
        let pool = json!({"name": "file", "generation": 1, "resourceSliceCount": 2});
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name},
            "spec": {"driver": DRIVER, "nodeName": "file", "pool": pool, field: value}})
    };
    let sets: Vec<Value> = (0..BOARDS).map(set).collect();
    let devices: Vec<Value> = (0..BOARDS).flat_map(|board| (0..=PARTS).map(move |part| device(board, part))).collect();
    format!("{}\n---\n{}\n", slice("sets", "sharedCounters", json!(sets)), slice("devices", "devices", json!(devices)))
}

fn gates() -> String {
    let taint = json!({"key": "a.example/late", "effect": "NoSchedule"});
    let gate = json!({"conditionType": GATE, "timeoutSeconds": 1, "failureAction": "Taint", "readinessTaint": taint});
    json!({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "nodeReadinessGates": [gate]})
        .to_string()
}

/// Repeats a call until the server carries it out: its misbehaviour is not what is tested here.
async fn surely<T, F: Future<Output = Result<T, kube::Error>>>(call: impl Fn() -> F) -> T {
    let begin = Instant::now();
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) if begin.elapsed() > PATIENCE => panic!("{error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Resource + Clone + DeserializeOwned + serde::Serialize + Debug,
{
    let object: K = from_value(object).unwrap();
    surely(async || match api.create(&POST, &object).await {
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        outcome => outcome.map(drop),
    })
    .await;
}

async fn all<K>(api: &Api<K>) -> Vec<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    surely(|| async { listed(api, &ListParams::default()).await }).await
}

/// Devices of the claims, by device. Fails if a device is used twice, or more of a board than there is.
fn check_devices(claims: &[ResourceClaim]) -> BTreeMap<String, String> {
    let (mut holders, mut boards) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
    for claim in claims {
        let name = claim.metadata.name.clone().unwrap();
        for device in dra_alloc::allocated_devices(claim) {
            let before = holders.insert(device.device.clone(), name.clone());
            assert_eq!(before, None, "{} is used by {name} too", device.device);
            let (board, part) = device.device.split_once('-').unwrap();
            *boards.entry(board.to_owned()).or_default() += if part == PARTS.to_string() { PARTS } else { 1 };
        }
    }
    assert!(boards.values().all(|used| *used <= PARTS), "more of a board than there is: {boards:?}");
    holders
}

/// Stands for kube-controller-manager: what belongs to pods that are gone is taken back as the library's controller says.
async fn clean_up(client: &Client, release: Profile) {
    let (pods, claims): (Api<Pod>, Api<ResourceClaim>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
    let mut controller = ClaimController::new(PodOptions::new(release));
    // In this order: a claim that is read first may be reserved for a pod that is made later.
    let known = all(&claims).await;
    for pod in all(&pods).await {
        controller.observe_pod(pod);
    }
    let keys: Vec<_> = known.into_iter().flat_map(|claim| controller.observe_claim(claim)).collect();
    for key in keys {
        // Whatever fails is done at the next look.
        finish(client, &mut controller.sync(&key)).await;
    }
}

async fn run(release: Profile, seed: u64, clocks: Clocks) {
    let server = StandIn::start(&[
        "--release",
        release.name(),
        "--feature-gates",
        GATES,
        "--misbehave",
        "all",
        "--misbehave-percent",
        "8",
        "--history",
        "300",
        "--seed",
        &seed.to_string(),
    ]);
    let client = server.client();
    let mut programs = Programs::start(&server, release, clocks);
    let (pods, claims): (Api<Pod>, Api<ResourceClaim>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
    for (name, size) in [("part", 1), ("whole", PARTS)] {
        let expression = format!("device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].size == {size}");
        let class = json!({"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}});
        create(&Api::<DeviceClass>::all(client.clone()), class).await;
    }
    for number in 0..PODS {
        let name = format!("p{number}");
        let (class, count) = [("part", 1), ("part", 3), ("whole", 1)][number % 3];
        let request = json!({"name": "r", "exactly": {"deviceClassName": class, "count": count}});
        create(&claims, json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})).await;
        let container = json!({"name": "c", "image": "none", "resources": {"claims": [{"name": "r"}]}});
        let spec = json!({"schedulerName": "dra-sdk", "tolerations": [{"operator": "Exists"}], "containers": [container],
            "resourceClaims": [{"name": "r", "resourceClaimName": name}]});
        create(&pods, json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    let mut dice = Dice(seed);
    let is_running = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    until(&mut programs, &mut dice, &client, "all pods run", async || all(&pods).await.iter().all(is_running)).await;

    // Nobody has reported the gate: the node has its taint, until somebody does.
    let nodes: Api<Node> = Api::all(client.clone());
    let is_late = async || {
        let spec = surely(async || nodes.get("node-1").await).await.spec.unwrap_or_default();
        spec.taints.unwrap_or_default().iter().any(|taint| taint.key == "a.example/late")
    };
    until(&mut programs, &mut dice, &client, "the node is late", is_late).await;
    let patch = Patch::Strategic(json!({"status": {"conditions": [{"type": GATE, "status": "True"}]}}));
    surely(async || nodes.patch_status("node-1", &PatchParams::default(), &patch).await).await;

    // Everything that a pod uses is prepared, and counted once.
    let allocated = all(&claims).await;
    let holders = check_devices(&allocated);
    assert_eq!(holders.len(), PODS / 3 * 5);
    let prepared = file_names(&programs.at("state/hardware"));
    assert_eq!(prepared, holders.keys().map(|device| format!("node-1+{device}+whole")).collect::<Vec<_>>());

    let agrees = async |programs: &mut Programs, used: usize| pool_status_agrees(programs, &client, used).await;
    agrees(&mut programs, holders.len()).await;
    for number in 0..PODS {
        let name = format!("p{number}");
        surely(async || match pods.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            outcome => outcome.map(drop),
        })
        .await;
    }
    until(&mut programs, &mut dice, &client, "all pods are gone", async || all(&pods).await.is_empty()).await;
    let is_free = |claim: &ResourceClaim| claim.status.as_ref().is_none_or(|status| status.allocation.is_none());
    until(&mut programs, &mut dice, &client, "all claims are free", async || all(&claims).await.iter().all(is_free))
        .await;
    assert_eq!(all(&claims).await.len(), PODS, "no claim is lost");
    until(&mut programs, &mut dice, &client, "the node is in time", async || !is_late().await).await;
    agrees(&mut programs, 0).await;
    let state = programs.at("state");
    let is_empty = || file_names(&state.join("hardware")).is_empty() && file_names(&programs.at("cdi")).is_empty();
    assert!(is_empty(), "left prepared: {:?}", file_names(&state.join("hardware")));
    let ledger = Ledger::from_checkpoint(&fs::read(state.join("ledger.json")).unwrap()).unwrap();
    assert!(ledger.entries().is_empty(), "{ledger:?}");
    let slices = all(&Api::<ResourceSlice>::all(client.clone())).await;
    assert!(dra_alloc::pool::validate_pool(&slices).is_empty());
    let published: usize = slices.iter().map(|slice| slice.spec.devices.as_ref().map_or(0, Vec::len)).sum();
    assert_eq!(published, BOARDS * (PARTS + 1));
}

/// Asks for the status of the pool until the controller has counted as many devices as are in use.
async fn pool_status_agrees(programs: &mut Programs, client: &Client, used: usize) {
    if !names(programs.release).contains(&"pool-status") {
        return;
    }
    let requests: Api<ResourcePoolStatusRequest> = Api::all(client.clone());
    let begin = Instant::now();
    for attempt in 0.. {
        let name = format!("used-{used}-{attempt}");
        create(&requests, json!({"metadata": {"name": name}, "spec": {"driver": DRIVER}})).await;
        let status = loop {
            programs.revive();
            assert!(begin.elapsed() < PATIENCE, "no status of {used} devices in use\n{}", programs.logs());
            match surely(|| requests.get_opt(&name)).await.map(|request| request.status) {
                Some(Some(status)) => break Some(status),
                Some(None) => tokio::time::sleep(Duration::from_millis(50)).await,
                // A clock has jumped beyond the hour for which the answer stays.
                None => break None,
            }
        };
        let Some(status) = status else { continue };
        let pool = status.pools.unwrap().remove(0);
        assert_eq!(pool.total_devices, i32::try_from(BOARDS * (PARTS + 1)).ok());
        if pool.allocated_devices == i32::try_from(used).ok() {
            return;
        }
    }
}

/// Kills programs for a while, then waits until something holds. Checks all the time that no device is used twice.
async fn until(programs: &mut Programs, dice: &mut Dice, client: &Client, what: &str, holds: impl AsyncFn() -> bool) {
    let claims: Api<ResourceClaim> = Api::default_namespaced(client.clone());
    let begin = Instant::now();
    let mut kills = 5;
    while kills > 0 || !holds().await {
        tokio::time::sleep(Duration::from_millis(50 + dice.below(300))).await;
        if kills > 0 {
            kills -= 1;
            programs.jump(dice);
            let names = names(programs.release);
            programs.kill(names[usize::try_from(dice.below(names.len() as u64)).unwrap()]);
        }
        programs.revive();
        check_devices(&all(&claims).await);
        clean_up(client, programs.release).await;
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}\n{}", programs.logs());
    }
}

fn file_names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Returns the releases to run with their seeds: those that are asked for; or two seeds and one of the day for 1.37, and two for
/// each other release.
fn runs() -> Vec<(Profile, u64)> {
    let asked = std::env::var("LIVE_RELEASE").ok().map(|name| name.parse::<Profile>().unwrap());
    let others = Profile::RELEASES.into_iter().filter(|release| *release != Profile::V1_37);
    let others = others.filter(|_| asked.is_none()).flat_map(|release| [(release, 1), (release, 2)]);
    seeds().into_iter().map(|seed| (asked.unwrap_or(Profile::V1_37), seed)).chain(others).collect()
}

/// Returns the seeds to run: one that is asked for, a number of them, or two and one of the day.
fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("LIVE_SEED") {
        return vec![seed];
    }
    let day = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 86_400;
    number("LIVE_SEEDS").map_or_else(|| vec![1, 2, day], |count| (1..=count).collect())
}

#[test]
fn the_loop_closes_whatever_happens() {
    play(&runs(), Clocks::True);
}

#[test]
#[ignore = "needs libfaketime, which a machine may not have"]
fn faketime_the_loop_closes_while_clocks_jump() {
    assert!(Path::new(FAKETIME).exists(), "no {FAKETIME}");
    play(&runs(), Clocks::Jumping);
}

fn play(runs: &[(Profile, u64)], clocks: Clocks) {
    println!("runs {runs:?}");
    for some in runs.chunks(3) {
        std::thread::scope(|scope| {
            for (release, seed) in some {
                scope.spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    let begin = Instant::now();
                    runtime.block_on(run(*release, *seed, clocks));
                    println!("{release}, seed {seed}: {} s", begin.elapsed().as_secs());
                });
            }
        });
    }
}
