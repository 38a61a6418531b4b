//! The program `apiserver`, started on a free port of 127.0.0.1 and ended with the test.
#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod background;
pub(crate) mod fake_driver;
pub(crate) mod pods;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kube::{Client, Config};

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

impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
