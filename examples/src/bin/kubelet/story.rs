//! Demonstration in four parts on one node: a claim whose driver is called, one without any driver, a restart in
//! between, and the gate switched off.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use dra_alloc::GateSet;
use dra_attrs::{Component, Gate, Profile};
use examples::manifest::Manifests;
use k8s_openapi::api::core::v1::Pod;
use tempfile::TempDir;

use super::agent::{Agent, AgentError, CALL_TIMEOUT, Done};
use super::grpc::{ServeError, listen, serve_while};
use dra_live::state_file::StateFile;

const DRIVER: &str = "gpu.example.com";
const MANIFEST: &str = include_str!("../../../data/kubelet/pods.yaml");

/// Reason that the demonstration ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoryError {
    /// The agent failed unexpectedly.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The directory for the socket and the file can't be created.
    #[error("temporary directory: {0}")]
    Folder(#[from] io::Error),
    /// The driver can't serve.
    #[error(transparent)]
    Driver(#[from] ServeError),
    /// A pod is not in the manifest.
    #[error("the manifest has no pod {0}")]
    NoPod(String),
}

/// Runs the demonstration and returns its text. The driver's lines come from the driver itself.
///
/// # Errors
/// The reason that it ends early.
pub(crate) async fn tell(profile: Profile) -> Result<String, StoryError> {
    let folder = TempDir::new()?;
    let socket = folder.path().join("dra.sock");
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&seen);
    let on_call = Box::new(move |method: &'static str, claims: &[String]| {
        let line = format!("{method}({})", claims.join(", "));
        heard.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    });
    let told = Box::pin(Teller::new(profile, &folder, &seen).tell(&socket));
    serve_while(listen(&socket)?, DRIVER, on_call, told).await?
}

struct Teller<'a> {
    settings: Component,
    file: StateFile,
    seen: &'a Mutex<Vec<String>>,
    text: String,
    manifests: Manifests,
}

impl<'a> Teller<'a> {
    fn new(profile: Profile, folder: &TempDir, seen: &'a Mutex<Vec<String>>) -> Self {
        let mut manifests = Manifests::default();
        manifests.read("pods.yaml", MANIFEST);
        let settings = Component::new(profile, GateSet::of(Profile::V1_37).with(Gate::OptionalNodeOperations));
        let file = StateFile::new(folder.path().join("dra_manager_state"));
        Self { settings, file, seen, text: String::new(), manifests }
    }

    async fn tell(mut self, socket: &Path) -> Result<String, StoryError> {
        let plugins = BTreeMap::from([(DRIVER.to_owned(), socket.to_owned())]);
        let [train, infer, late] = [self.pod("train")?, self.pod("infer")?, self.pod("late")?];
        let agent = Agent::start(self.file.clone(), self.settings, plugins.clone(), CALL_TIMEOUT)?;

        self.chapter("A device that its driver prepares");
        let done = agent.prepare(&train, &self.manifests.claims).await?;
        self.done("train starts", &done);
        self.devices(&agent, &train)?;

        self.chapter("A device without any driver on the node");
        let done = agent.prepare(&infer, &self.manifests.claims).await?;
        self.done("infer starts", &done);
        self.devices(&agent, &infer)?;

        self.chapter("The kubelet restarts");
        drop(agent);
        let agent = Agent::start(self.file.clone(), self.settings, plugins.clone(), CALL_TIMEOUT)?;
        let claims: Vec<String> = agent.cache().claims().keys().map(ToString::to_string).collect();
        self.line(&format!("the checkpoint has the claims {}", claims.join(" and ")));
        let done = agent.prepare(&train, &self.manifests.claims).await?;
        self.done("train is looked at again", &done);
        let done = agent.prepare(&infer, &self.manifests.claims).await?;
        self.done("infer is looked at again", &done);
        self.metrics(&agent);

        let gate = Gate::OptionalNodeOperations.name(self.settings.profile());
        self.chapter(&format!("The kubelet restarts with the gate {gate} off"));
        drop(agent);
        let off = Component::new(self.settings.profile(), self.settings.gates().without(Gate::OptionalNodeOperations));
        let agent = Agent::start(self.file.clone(), off, plugins, CALL_TIMEOUT)?;
        match agent.prepare(&late, &self.manifests.claims).await {
            Err(error @ AgentError::Prepare(_)) => self.line(&format!("late does not start: {error}")),
            Err(error) => return Err(error.into()),
            Ok(done) => self.done("late starts", &done),
        }
        let done = agent.unprepare(&infer).await?;
        self.done("infer has ended", &done);
        let done = agent.unprepare(&train).await?;
        self.done("train has ended", &done);
        self.line(&format!("claims left: {}", agent.cache().claims().len()));
        self.metrics(&agent);

        self.chapter("What the driver saw");
        for call in std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner)) {
            self.line(&call);
        }
        Ok(self.text)
    }

    fn pod(&self, name: &str) -> Result<Pod, StoryError> {
        let pod = self.manifests.pods.iter().find(|pod| pod.metadata.name.as_deref() == Some(name));
        pod.cloned().ok_or_else(|| StoryError::NoPod(name.to_owned()))
    }

    fn chapter(&mut self, title: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.line(&format!("{gap}== {title}"));
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn done(&mut self, what: &str, done: &Done) {
        let called = done.called.iter().map(|(driver, claims)| {
            let names: Vec<&str> = claims.iter().map(|claim| claim.key.name.as_str()).collect();
            format!("{driver} was called for {}", names.join(", "))
        });
        let skipped =
            done.skipped.iter().map(|skip| format!("{} of {} was skipped", skip.operation.method(), skip.driver));
        let parts: Vec<String> = called.chain(skipped).collect();
        let parts = if parts.is_empty() { "no call was needed".to_owned() } else { parts.join("; ") };
        self.line(&format!("{what}: {parts}"));
    }

    fn devices(&mut self, agent: &Agent, pod: &Pod) -> Result<(), AgentError> {
        for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
            let ids = agent.container_devices(pod, container)?;
            let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            self.line(&format!("container {}: CDI devices: {ids}", container.name));
        }
        Ok(())
    }

    fn metrics(&mut self, agent: &Agent) {
        agent.metrics().iter().for_each(|line| self.line(line));
    }
}
