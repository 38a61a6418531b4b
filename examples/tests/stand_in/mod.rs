//! The program `apiserver`, started on a free port of 127.0.0.1 and ended with the test.
#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod background;
pub(crate) mod fake_driver;
pub(crate) mod pods;

use std::fmt::Debug;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kube::api::ListParams;
use kube::{Api, Client, Config};
use serde::de::DeserializeOwned;

/// Running server.
pub(crate) struct StandIn {
    process: Child,
    pub(crate) url: String,
}

/// Returns the path of a program: in the folder `LIVE_PROGRAMS` if that is set, else where the test was built.
pub(crate) fn program_at(built: &str) -> PathBuf {
    let built = Path::new(built);
    match std::env::var_os("LIVE_PROGRAMS") {
        Some(folder) => Path::new(&folder).join(built.file_name().unwrap()),
        None => built.to_owned(),
    }
}

impl StandIn {
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut command = Command::new(program_at(env!("CARGO_BIN_EXE_apiserver")));
        // A test that says nothing of a release runs on any.
        let release = std::env::var("STAND_IN_RELEASE").ok().filter(|_| !args.contains(&"--release"));
        command.args(release.into_iter().flat_map(|release| ["--release".to_owned(), release]));
        // Nobody here makes service accounts, or calls nodes ready.
        if !args.iter().any(|arg| arg.starts_with("--disable-admission-plugins")) {
            command.args(["--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition"]);
        }
        // Lists come in pieces, as a real server may send them.
        if !args.contains(&"--chunk") {
            command.args(["--chunk", "50"]);
        }
        command.args(["--port", "0"]).args(args).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned() }
    }

    /// Returns the id of the process.
    pub(crate) fn process(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn client(&self) -> Client {
        Client::try_from(Config::new(self.url.parse().unwrap())).unwrap()
    }

    /// Returns the path of a kubeconfig for the server, in a directory.
    pub(crate) fn kubeconfig(&self, folder: &Path) -> PathBuf {
        let path = folder.join("kubeconfig");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: stand-in\nclusters:\n- name: stand-in\n  cluster: {{server: \
             '{}'}}\ncontexts:\n- name: stand-in\n  context: {{cluster: stand-in, user: nobody}}\nusers:\n- name: \
             nobody\n  user: {{}}\n",
            self.url
        );
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// Returns all objects that a selection has, which come in pieces.
pub(crate) async fn listed<K>(api: &Api<K>, selection: &ListParams) -> Result<Vec<K>, kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let (mut objects, mut page) = (Vec::new(), selection.clone());
    loop {
        let list = api.list(&page).await?;
        objects.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(objects),
        }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
