//! `driver serve --live` with servers that do not do all that it asks for.
#![cfg(all(feature = "live", feature = "grpc"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod recorder;
mod stand_in;

use std::fs;
use std::path::Path;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{from_value, json};
use tempfile::TempDir;

use recorder::{Mischief, Recorder};
use stand_in::StandIn;
use stand_in::background::{Background, until};

const DRIVER: &str = env!("CARGO_BIN_EXE_driver");
const KUBELET: &str = env!("CARGO_BIN_EXE_kubelet");
const POST: PostParams = PostParams { dry_run: false, field_manager: None };

/// A server, and folders for a driver.
fn empty_server() -> (StandIn, TempDir) {
    let (server, folder) = (StandIn::start(&[]), TempDir::new().unwrap());
    for name in ["state", "registry"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    (server, folder)
}

/// A server with a node.
async fn server() -> (StandIn, TempDir) {
    let (server, folder) = empty_server();
    let node = json!({"metadata": {"name": "node-1"}});
    Api::<Node>::all(server.client()).create(&POST, &from_value(node).unwrap()).await.unwrap();
    (server, folder)
}

fn driver(url: &str, folder: &Path, more: &[&str]) -> Background {
    let at = |name: &str| folder.join(name).display().to_string();
    let args = ["serve", "--live", "--server", url, "--capture", "xeon-cxl", "--boot-id", "boot"].map(str::to_owned);
    let folders = [("--state", "state"), ("--cdi", "cdi"), ("--plugin-dir", "plugin"), ("--registry", "registry")];
    let folders = folders.into_iter().flat_map(|(flag, name)| [flag.to_owned(), at(name)]);
    let args: Vec<String> = args.into_iter().chain(folders).chain(more.iter().map(ToString::to_string)).collect();
    Background::start(DRIVER, &args.iter().map(String::as_str).collect::<Vec<_>>())
}

#[tokio::test]
async fn lists_that_the_server_refuses_are_published_as_scalars() {
    let (server, folder) = server().await;
    let _driver = driver(&server.url, folder.path(), &["--list"]);
    let slices: Api<ResourceSlice> = Api::all(server.client());
    let stored = async || slices.list(&ListParams::default()).await.unwrap().items;
    until("slices", async || !stored().await.is_empty()).await;
    let devices = stored().await.remove(0).spec.devices.unwrap();
    let numa = |device: &k8s_openapi::api::resource::v1::Device| {
        device.attributes.as_ref().and_then(|all| all.get("resource.kubernetes.io/numaNode")?.int)
    };
    assert!(devices.iter().any(|device| numa(device).is_some()), "{devices:?}");
}

#[tokio::test]
async fn a_pool_of_a_former_name_is_withdrawn() {
    let (server, folder) = server().await;
    let slices: Api<ResourceSlice> = Api::all(server.client());
    for (name, driver, node) in [
        ("former", "pci.example.com", "node-1"),
        ("of-others", "gpu.example.com", "node-1"),
        ("elsewhere", "pci.example.com", "node-2"),
    ] {
        let spec = json!({"driver": driver, "nodeName": node, "devices": [{"name": "a"}],
            "pool": {"name": "former", "generation": 1, "resourceSliceCount": 1}});
        let slice = json!({"metadata": {"name": name}, "spec": spec});
        slices.create(&POST, &from_value(slice).unwrap()).await.unwrap();
    }
    let _driver = driver(&server.url, folder.path(), &[]);
    until("the new pool", async || {
        slices.list(&ListParams::default()).await.unwrap().items.iter().any(|slice| slice.spec.pool.name == "node-1")
    })
    .await;
    let left: Vec<ResourceSlice> = slices.list(&ListParams::default()).await.unwrap().items;
    let left: Vec<String> = left.into_iter().filter_map(|slice| slice.metadata.name).collect();
    assert!(!left.contains(&"former".to_owned()), "{left:?}");
    assert!(left.contains(&"of-others".to_owned()) && left.contains(&"elsewhere".to_owned()), "{left:?}");
}

#[tokio::test]
async fn a_report_that_is_refused_is_written_later() {
    let (server, folder) = empty_server();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let args = ["--live", "--server", &server.url, "--registry", &at("registry"), "--state", &at("checkpoint")];
    let mut kubelet = Background::start(KUBELET, &args);
    kubelet.says("node-1 is a node of ");
    let door = Recorder::start(&server.url, None, Mischief::RefusesReports);
    let mut driver = driver(&door.url, folder.path(), &[]);

    let (claims, pods): (Api<ResourceClaim>, Api<Pod>) =
        (Api::default_namespaced(server.client()), Api::default_namespaced(server.client()));
    let request = json!({"name": "r", "exactly": {"deviceClassName": "pci"}});
    let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}});
    let mut claim: ResourceClaim = claims.create(&POST, &from_value(claim).unwrap()).await.unwrap();
    let container = json!({"name": "c", "image": "none", "resources": {"claims": [{"name": "r"}]}});
    let spec = json!({"nodeName": "node-1", "containers": [container],
        "resourceClaims": [{"name": "r", "resourceClaimName": "c"}]});
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    let pod: Pod = pods.create(&POST, &from_value(pod).unwrap()).await.unwrap();
    let result = json!({"request": "r", "driver": "pci.example.com", "pool": "node-1", "device": "d"});
    let consumer = json!({"resource": "pods", "name": "p", "uid": pod.metadata.uid});
    claim.status =
        from_value(json!({"allocation": {"devices": {"results": [result]}}, "reservedFor": [consumer]})).unwrap();
    claims.replace_status("c", &POST, &claim).await.unwrap();

    driver.warns("default/c: status not written: ");
    until("the report", async || {
        claims.get("c").await.unwrap().status.unwrap().devices.is_some_and(|devices| devices.len() == 1)
    })
    .await;
    assert_eq!(door.asked("patch", "resourceclaims/status"), 3);
}
