//! docs/for-driver-authors.md: the driver of the page as a crate of its own, built and run on the stand-in.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dra_live::grpc::{prepare, registered};
use dra_node::kubelet::ClaimRef;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, Config};
use serde_json::{from_value, json};

const PATIENCE: Duration = Duration::from_secs(120);

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// Returns the first block of the page in a language.
fn block<'p>(page: &'p str, language: &str) -> &'p str {
    blocks(page, language).next().unwrap()
}

fn blocks<'p>(page: &'p str, language: &str) -> impl Iterator<Item = &'p str> {
    let begin = format!("\n```{language}\n");
    let parts: Vec<&str> = page.split(&begin).skip(1).collect();
    parts.into_iter().map(|part| part.split_once("\n```").unwrap().0)
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Builds the crate of the page, and returns its program.
fn build(folder: &Path) -> PathBuf {
    let page = fs::read_to_string(root().join("docs/for-driver-authors.md")).unwrap();
    let checkout = format!("path = \"{}/", root().display());
    fs::write(folder.join("Cargo.toml"), block(&page, "toml").replace("path = \"../dra-sdk/", &checkout)).unwrap();
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    fs::create_dir(folder.join("src")).unwrap();
    // The second block has parts of a toaster, which the program does not use.
    let [main, parts] = [0, 1].map(|number| blocks(&page, "rust,ignore").nth(number).unwrap());
    fs::write(folder.join("src/main.rs"), format!("{main}\nmod parts;\n")).unwrap();
    fs::write(folder.join("src/parts.rs"), parts).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("driver-of-the-page");
    let mut command = Command::new(env!("CARGO"));
    let command = command.args(["build", "--offline"]).current_dir(folder).env("CARGO_TARGET_DIR", &target);
    let output = command.env_remove("K8S_OPENAPI_ENABLED_VERSION").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("debug/toaster-driver")
}

#[tokio::test]
#[ignore = "builds a client and a gRPC server anew, which takes minutes"]
async fn page_the_driver_of_the_page_runs() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path());
    fs::create_dir(folder.path().join("toasters")).unwrap();
    fs::write(folder.path().join("toasters/toaster-1"), "").unwrap();
    let flags = ["--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition"];
    let server = stand_in::Server::start_with(&flags).unwrap();
    let client = Client::try_from(Config::new(server.url().parse().unwrap())).unwrap();
    let node: Node = from_value(json!({"metadata": {"name": "node-1"}})).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &node).await.unwrap();
    let mut command = Command::new(program);
    let command = command.arg(server.url()).current_dir(folder.path()).stdout(Stdio::null());
    let _driver = Running(command.spawn().unwrap());

    let begin = Instant::now();
    let slices: Api<ResourceSlice> = Api::all(client.clone());
    while slices.list(&ListParams::default()).await.unwrap().items.is_empty() {
        assert!(begin.elapsed() < PATIENCE, "nothing is published");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let claims: Api<ResourceClaim> = Api::default_namespaced(client);
    let request = json!({"name": "toaster", "exactly": {"deviceClassName": "toaster"}});
    let claim = json!({"metadata": {"name": "breakfast"}, "spec": {"devices": {"requests": [request]}}});
    let mut claim: ResourceClaim = claims.create(&PostParams::default(), &from_value(claim).unwrap()).await.unwrap();
    let result =
        json!({"request": "toaster", "driver": "toaster.example.com", "pool": "node-1", "device": "toaster-1"});
    claim.status = from_value(json!({"allocation": {"devices": {"results": [result]}}})).unwrap();
    claims.replace_status("breakfast", &PostParams::default(), &claim).await.unwrap();
    let (drivers, refused) = registered(&folder.path().join("plugins_registry")).await;
    let socket = drivers.get("toaster.example.com").unwrap_or_else(|| panic!("{refused:?}"));
    let uid = claim.metadata.uid.unwrap();
    let answers = prepare(socket, &[ClaimRef::new("default", "breakfast", &uid)], PATIENCE).await.unwrap();
    let devices = answers.into_iter().next().unwrap().1.unwrap();
    assert_eq!(devices.len(), 1);
    assert_eq!(fs::read_to_string(folder.path().join("toasters/toaster-1")).unwrap(), uid, "it is warm");
    let file = fs::read_dir(folder.path().join("cdi")).unwrap().next().unwrap().unwrap().path();
    assert!(fs::read_to_string(file).unwrap().contains("TOASTER=toaster-1"));
}
