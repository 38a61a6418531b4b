//! The driver `gpu_driver` on the stand-in: published, prepared, killed, rebooted, with devices that go and break.
//! `STAND_IN_RELEASE=v1.36` chooses the release, `DRIVER_KILLS=50` the number of kills.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dra_live::grpc::api::dra_v1beta1::dra_plugin_client::DraPluginClient as ClientV1beta1;
use dra_live::grpc::api::dra_v1beta1::{Claim as ClaimV1beta1, NodePrepareResourcesRequest};
use dra_live::grpc::api::health::NodeWatchResourcesRequest as RequestV1alpha1;
use dra_live::grpc::api::health::dra_resource_health_client::DraResourceHealthClient as HealthV1alpha1;
use dra_live::grpc::api::health_v1::dra_resource_health_client::DraResourceHealthClient as HealthV1;
use dra_live::grpc::api::health_v1::{HealthStatus, NodeWatchResourcesRequest};
use dra_live::grpc::{prepare, registered, unprepare};
use dra_node::driver::{CdiSpec, DeviceMetadata, EntryState, Ledger, MetadataVersion};
use dra_node::kubelet::{ClaimRef, PreparedDevice};
use k8s_openapi::api::core::v1::{Event, Node};
use k8s_openapi::api::resource::v1::{Device, ResourceClaim, ResourceSlice};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Config};
use serde_json::{Value, from_value, json};
use tempfile::TempDir;
use tonic::transport::Endpoint;

const DRIVER: &str = "gpu.example.com";
const PATIENCE: Duration = Duration::from_secs(120);
const GATES: &str = "DRAPartitionableDevices=true,DRAConsumableCapacity=true,DRADeviceTaints=true";

/// A server, and the folders of a driver's node.
struct Trial {
    server: stand_in::Server,
    client: Client,
    folder: TempDir,
}

/// Driver in a process of its own, killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Trial {
    async fn new() -> Self {
        let release = std::env::var("STAND_IN_RELEASE").unwrap_or_else(|_| "v1.37".to_owned());
        let plugins = "ServiceAccount,TaintNodesByCondition";
        let args = ["--release", &release, "--feature-gates", GATES, "--disable-admission-plugins", plugins];
        let server = stand_in::Server::start_with(&args).unwrap();
        let client = Client::try_from(Config::new(server.url().parse().unwrap())).unwrap();
        let trial = Self { server, client, folder: TempDir::new().unwrap() };
        trial.add_node().await;
        trial
    }

    async fn add_node(&self) {
        let node: Node = from_value(json!({"metadata": {"name": "node-1"}})).unwrap();
        Api::<Node>::all(self.client.clone()).create(&PostParams::default(), &node).await.unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn card(&self, name: &str) -> PathBuf {
        self.at(&format!("plugins/{DRIVER}/machine/{name}"))
    }

    fn run(&self) -> Running {
        self.instance("boot-0", None)
    }

    fn instance(&self, boot: &str, pod_uid: Option<&str>) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpu_driver"));
        command.args(["node-1", self.folder.path().to_str().unwrap(), self.server.url()]).env("BOOT_ID", boot);
        command.envs(pod_uid.map(|uid| ("POD_UID", uid))).stdout(Stdio::null());
        Running(command.spawn().unwrap())
    }

    /// Waits for the driver's registration, and returns the socket for calls.
    async fn socket(&self) -> PathBuf {
        let begin = Instant::now();
        loop {
            if let Some(socket) = registered(&self.at("plugins_registry")).await.0.get(DRIVER) {
                return socket.clone();
            }
            assert!(begin.elapsed() < PATIENCE, "it does not register");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn slices(&self) -> Vec<ResourceSlice> {
        Api::<ResourceSlice>::all(self.client.clone()).list(&ListParams::default()).await.unwrap().items
    }

    /// Returns the devices of all pools, by pool and name.
    async fn devices(&self) -> BTreeMap<(String, String), Device> {
        let slices = self.slices().await.into_iter();
        let devices = slices.flat_map(|slice| {
            let pool = slice.spec.pool.name.clone();
            slice.spec.devices.into_iter().flatten().map(move |device| ((pool.clone(), device.name.clone()), device))
        });
        devices.collect()
    }

    /// Creates a claim that is allocated to devices, each with its pool, and shares if they have any.
    async fn claim(&self, name: &str, devices: &[(&str, &str, Option<&str>)]) -> ClaimRef {
        let claims: Api<ResourceClaim> = Api::default_namespaced(self.client.clone());
        let request = |index: usize| json!({"name": format!("r{index}"), "exactly": {"deviceClassName": "any"}});
        let requests: Vec<Value> = (0..devices.len()).map(request).collect();
        let claim = json!({"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}});
        let mut claim: ResourceClaim =
            claims.create(&PostParams::default(), &from_value(claim).unwrap()).await.unwrap();
        let result = |(index, (pool, device, share)): (usize, &(&str, &str, Option<&str>))| {
            let mut result = json!({"request": format!("r{index}"), "driver": DRIVER, "pool": pool, "device": device});
            if let Some(share) = share {
                result["shareID"] = json!(share);
                result["consumedCapacity"] = json!({"bandwidth": "10Gi"});
            }
            result
        };
        let results: Vec<Value> = devices.iter().enumerate().map(result).collect();
        let user = json!({"resource": "pods", "name": format!("{name}-pod"), "uid": format!("{name}-pod")});
        let status = json!({"allocation": {"devices": {"results": results}}, "reservedFor": [user]});
        claim.status = from_value(status).unwrap();
        claims.replace_status(name, &PostParams::default(), &claim).await.unwrap();
        ClaimRef::new("default", name, claim.metadata.uid.as_deref().unwrap())
    }

    /// Changes a claim, so that a call to prepare it is no late one of an earlier use.
    async fn touch(&self, name: &str, turn: u64) {
        let claims: Api<ResourceClaim> = Api::default_namespaced(self.client.clone());
        let patch = Patch::Merge(json!({"metadata": {"labels": {"turn": turn.to_string()}}}));
        claims.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn conditions(&self, name: &str) -> Vec<(String, String)> {
        let claims: Api<ResourceClaim> = Api::default_namespaced(self.client.clone());
        let devices = claims.get(name).await.unwrap().status.unwrap().devices.unwrap_or_default();
        let ready = |device: k8s_openapi::api::resource::v1::AllocatedDeviceStatus| {
            (device.device, device.conditions.unwrap()[0].status.clone())
        };
        devices.into_iter().map(ready).collect()
    }

    fn ledger(&self) -> Ledger {
        let file = self.at(&format!("plugins/{DRIVER}/state/ledger.json"));
        fs::read(file).map_or_else(|_| Ledger::default(), |bytes| Ledger::from_checkpoint(&bytes).unwrap())
    }

    fn files(&self, folder: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.at(folder)).into_iter().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn prepared(socket: &Path, claim: &ClaimRef) -> Result<Vec<PreparedDevice>, String> {
    let answers = prepare(socket, std::slice::from_ref(claim), PATIENCE).await?;
    answers.into_iter().next().unwrap().1
}

async fn unprepared(socket: &Path, claim: &ClaimRef) -> Result<(), String> {
    let answers = unprepare(socket, std::slice::from_ref(claim), PATIENCE).await?;
    answers.into_iter().next().unwrap().1
}

const HALF: [(&str, &str, Option<&str>); 1] = [("node-1", "gpu-0-half-0", None)];

#[tokio::test]
async fn pools_follow_the_hardware() {
    let trial = Trial::new().await;
    let _driver = trial.run();
    until("44 parts of four GPUs, and a network card", async || trial.devices().await.len() == 45).await;
    let nic = trial.devices().await.remove(&("node-1/nics".to_owned(), "nic-0".to_owned())).unwrap();
    assert_eq!(nic.allow_multiple_allocations, Some(true));

    fs::remove_file(trial.card("gpu-2")).unwrap();
    until("the device is gone", async || trial.devices().await.len() == 34).await;
    fs::write(trial.card("gpu-2"), "broken").unwrap();
    let tainted = async || {
        let devices = trial.devices().await;
        devices.into_values().filter(|device| device.taints.is_some()).map(|device| device.name).collect::<Vec<_>>()
    };
    until("a taint", async || tainted().await.len() == 11).await;
    assert!(tainted().await.iter().all(|name| name.starts_with("gpu-2-")));
    fs::write(trial.card("gpu-2"), "ok").unwrap();
    until("no taint", async || tainted().await.is_empty()).await;

    let slices: Api<ResourceSlice> = Api::all(trial.client.clone());
    let lost = trial.slices().await.remove(0).metadata.name.unwrap();
    slices.delete(&lost, &DeleteParams::default()).await.unwrap();
    until("the slice again", async || trial.devices().await.len() == 45).await;
}

#[tokio::test]
async fn a_claim_with_parts_shares_and_metadata() {
    let trial = Trial::new().await;
    let driver = trial.run();
    let socket = trial.socket().await;
    let share = Some("5b0c6a4e-5c7e-4f6b-9f0e-0a1b2c3d4e5f");
    let claim = trial.claim("train", &[HALF[0], ("node-1/nics", "nic-0", share)]).await;
    let devices = prepared(&socket, &claim).await.unwrap();
    assert_eq!(devices, prepared(&socket, &claim).await.unwrap(), "again");
    assert_eq!(devices[1].share_id.as_deref(), share);
    assert_eq!(devices[0].cdi_ids.len(), 2, "the device, and the mount of its metadata: {devices:?}");
    assert_eq!(fs::read_to_string(trial.card("in-use/gpu-0-half-0")).unwrap(), claim.uid);

    let specs: Vec<CdiSpec> =
        trial.files("cdi").iter().map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect();
    let known: Vec<String> = specs
        .iter()
        .flat_map(|spec| spec.devices.iter().map(move |device| format!("{}={}", spec.kind, device.name)))
        .collect();
    assert!(devices.iter().flat_map(|device| &device.cdi_ids).all(|id| known.contains(id)), "{known:?}");
    let mounts = specs.iter().flat_map(|spec| &spec.devices).flat_map(|device| &device.container_edits.mounts);
    let documents: Vec<DeviceMetadata> = mounts
        .map(|mount| {
            let text = fs::read_to_string(&mount.host_path).unwrap();
            DeviceMetadata::from_stream(&text, &[MetadataVersion::V1beta1.api_version()]).unwrap().1
        })
        .collect();
    assert_eq!(documents.len(), 2, "one for each request");
    assert!(documents.iter().all(|document| document.requests.len() == 1 && document.metadata.uid == claim.uid));
    let attributes = &documents[0].requests[0].devices[0].attributes;
    assert!(attributes.contains_key("resource.kubernetes.io/numaNode"), "{attributes:?}");

    let whole = trial.claim("whole", &[("node-1", "gpu-0-whole-0", None)]).await;
    let refused = prepared(&socket, &whole).await.unwrap_err();
    assert!(refused.contains("gpu-0-whole-0 is in use by claim"), "{refused}");
    let sibling = trial.claim("sibling", &[("node-1", "gpu-0-half-1", None)]).await;
    assert_eq!(prepared(&socket, &sibling).await.unwrap().len(), 1);
    until("the report", async || {
        trial.conditions("train").await
            == [("gpu-0-half-0", "True"), ("nic-0", "True")].map(|(a, b)| (a.into(), b.into()))
    })
    .await;

    // A card that is pulled while a claim has it.
    fs::remove_file(trial.card("gpu-0")).unwrap();
    until("the report of the loss", async || {
        trial.conditions("train").await.contains(&("gpu-0-half-0".to_owned(), "False".to_owned()))
    })
    .await;
    let events: Api<Event> = Api::default_namespaced(trial.client.clone());
    until("events of the node and of the pod", async || {
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let is_told = |event: &&Event| event.message.as_deref().is_some_and(|text| text.contains("gpu-0-half-0"));
        let about: BTreeSet<_> =
            events.iter().filter(is_told).map(|event| event.involved_object.name.clone()).collect();
        about == BTreeSet::from(["node-1", "train-pod"].map(|name| Some(name.to_owned())))
    })
    .await;
    for claim in [&claim, &sibling, &whole] {
        unprepared(&socket, claim).await.unwrap();
    }
    assert!(trial.ledger().entries().is_empty() && trial.files("cdi").is_empty());
    assert!(trial.files(&format!("plugins/{DRIVER}/dra-device-metadata")).is_empty());
    assert!(trial.files(&format!("plugins/{DRIVER}/machine/in-use")).is_empty());
    drop(driver);
}

#[tokio::test]
async fn kubelets_of_each_release_are_answered() {
    let trial = Trial::new().await;
    let _driver = trial.run();
    let socket = trial.socket().await;
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&socket).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "nobody else may call");
    let claim = trial.claim("old", &HALF).await;
    let channel = Endpoint::from_shared(format!("unix:{}", socket.display())).unwrap().connect().await.unwrap();
    let asked = ClaimV1beta1 { namespace: "default".into(), uid: claim.uid.clone(), name: "old".into() };
    let request = NodePrepareResourcesRequest { claims: vec![asked] };
    let answer = ClientV1beta1::new(channel.clone()).node_prepare_resources(request).await.unwrap().into_inner();
    assert_eq!(answer.claims[&claim.uid].devices[0].device_name, "gpu-0-half-0");

    let mut old = HealthV1alpha1::new(channel.clone());
    let mut stream = old.node_watch_resources(RequestV1alpha1 {}).await.unwrap().into_inner();
    assert_eq!(stream.message().await.unwrap().unwrap().devices.len(), 45);
    let mut new = HealthV1::new(channel);
    let mut stream = new.node_watch_resources(NodeWatchResourcesRequest {}).await.unwrap().into_inner();
    fs::write(trial.card("gpu-1"), "broken").unwrap();
    fs::remove_file(trial.card("gpu-0")).unwrap();
    let begin = Instant::now();
    loop {
        let list = stream.message().await.unwrap().unwrap().devices;
        let unhealthy = list.iter().filter(|device| device.health() == HealthStatus::Unhealthy).count();
        // Eleven parts of the broken card, and the half in use of the one that is gone, whose other parts are in no list.
        if (list.len(), unhealthy) == (35, 12) {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{list:?}");
    }
}

#[tokio::test]
async fn a_node_that_comes_late_and_an_update() {
    let trial = Trial::new().await;
    Api::<Node>::all(trial.client.clone()).delete("node-1", &DeleteParams::default()).await.unwrap();
    let old = trial.instance("boot-0", Some("old"));
    let socket = trial.socket().await;
    let claim = trial.claim("a", &HALF).await;
    prepared(&socket, &claim).await.unwrap();
    assert!(trial.slices().await.is_empty(), "they would have no owner");
    trial.add_node().await;
    until("slices", async || trial.devices().await.len() == 45).await;

    let versions = async || {
        let slices = trial.slices().await;
        slices.into_iter().filter_map(|slice| slice.metadata.resource_version).collect::<Vec<_>>()
    };
    let before = versions().await;
    let new = trial.instance("boot-0", Some("new"));
    let newer = trial.at(&format!("plugins/{DRIVER}/dra-new.sock"));
    until("the second instance", async || newer.exists()).await;
    unprepared(&newer, &claim).await.unwrap();
    drop(old);
    prepared(&newer, &trial.claim("b", &HALF).await).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(versions().await, before, "the slices stay");
    drop(new);
}

#[tokio::test]
async fn files_that_are_lost_and_a_boot() {
    let trial = Trial::new().await;
    let driver = trial.run();
    let claim = trial.claim("a", &HALF).await;
    let devices = prepared(&trial.socket().await, &claim).await.unwrap();
    drop(driver);
    let files = trial.files("cdi");
    let whole: Vec<String> = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    fs::remove_file(&files[0]).unwrap();
    fs::write(&files[1], &whole[1][..20]).unwrap();
    let driver = trial.run();
    trial.socket().await;
    let again: Vec<String> = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert_eq!(again, whole);
    drop(driver);

    // A boot takes the state of the hardware and the CDI files.
    for path in trial.files(&format!("plugins/{DRIVER}/machine/in-use")).into_iter().chain(trial.files("cdi")) {
        fs::remove_file(path).unwrap();
    }
    let _driver = trial.instance("boot-1", None);
    let socket = trial.socket().await;
    assert_eq!(prepared(&socket, &claim).await.unwrap(), devices, "set up anew");
    assert_eq!(trial.files("cdi").len(), 2);
    unprepared(&socket, &claim).await.unwrap();
    assert!(trial.files("cdi").is_empty() && trial.ledger().entries().is_empty());
}

/// Kills the driver at random times of a call; the next run and the next call must make up for it.
#[tokio::test]
async fn killed_at_any_point() {
    let kills: u64 = std::env::var("DRIVER_KILLS").map_or(8, |count| count.parse().unwrap());
    let trial = Trial::new().await;
    let claim = trial.claim("a", &HALF).await;
    let mut dice: u64 = 11;
    let mut below = |limit: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % limit
    };
    for turn in 0..kills {
        trial.touch("a", turn).await;
        let driver = trial.run();
        let socket = trial.socket().await;
        let call = async {
            if turn % 2 == 0 { prepared(&socket, &claim).await.map(drop) } else { unprepared(&socket, &claim).await }
        };
        let _ = tokio::time::timeout(Duration::from_micros(below(12_000)), call).await;
        drop(driver);
        for (uid, entry) in trial.ledger().entries() {
            let file = fs::read_to_string(trial.card("in-use/gpu-0-half-0"));
            let is_set_up = file.is_ok_and(|holder| holder == *uid);
            assert!(entry.state != EntryState::Completed || is_set_up, "turn {turn}: prepared without set-up");
        }
    }
    trial.touch("a", kills).await;
    let _driver = trial.run();
    let socket = trial.socket().await;
    assert_eq!(prepared(&socket, &claim).await.unwrap().len(), 1);
    unprepared(&socket, &claim).await.unwrap();
    assert!(trial.files("cdi").is_empty() && trial.ledger().entries().is_empty());
    assert!(trial.files(&format!("plugins/{DRIVER}/machine/in-use")).is_empty());
}
