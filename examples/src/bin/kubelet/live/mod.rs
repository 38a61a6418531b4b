//! The kubelet on a cluster: an agent of a virtual node. It registers the node, prepares the claims of the pods that are
//! bound to it, says that they run, and unprepares when they go. No container is started; the node has a taint, so that no
//! pod comes that has not asked for that.
//!
//! Its state is the checkpoint: a run that is killed at any point goes on where the file and the cluster say.

mod node;
mod plugins;
mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use dra_alloc::kubelet::{ClaimKey, KubeletOptions};
use dra_attrs::{Version, VersionError};
use examples::live::connect::Cluster;
use examples::live::events::Events;
use examples::live::failure::LiveError as ClusterError;
use examples::live::watching::{Change, Watches};
use examples::output::{OutputError, say};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::Api;
use kube::runtime::watcher::{Config, Event};
use nnn::PodKey;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::Args;
use super::agent::{Agent, AgentError};
use super::state_file::StateFile;
use plugins::Plugins;

/// Time between two looks, if nothing changes.
const LOOK: Duration = Duration::from_millis(300);

/// Pause after the first failure of a pod.
const FIRST_PAUSE: Duration = Duration::from_millis(300);

/// Longest pause between two attempts for a pod.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Reason that the kubelet ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    RealNode(#[from] node::RealNode),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Version(#[from] VersionError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Agent of a node.
struct NodeAgent<'a> {
    cluster: &'a Cluster,
    node: &'a str,
    options: KubeletOptions,
    /// Version against which declared features are compared; `None` without that check.
    admission: Option<Version>,
    agent: Agent,
    plugins: Plugins,
    events: Events,
    /// Pods of the node by UID.
    pods: BTreeMap<String, Pod>,
    claims: BTreeMap<ClaimKey, ResourceClaim>,
    new_pods: Vec<Pod>,
    new_claims: Vec<ResourceClaim>,
    listed: BTreeSet<&'static str>,
    /// Pods that were said to run, by UID.
    running: BTreeSet<String>,
    /// Pods whose last attempt failed, and `None` for what has no pod, with the time of the next one.
    delayed: BTreeMap<Option<String>, (Instant, Duration)>,
}

/// Works for a node of a cluster until it is told to stop. What is prepared stays prepared.
///
/// # Errors
/// The checkpoint can't be used, or the cluster can't be reached.
pub(crate) async fn run(
    args: &Args,
    options: KubeletOptions,
    plugins: BTreeMap<String, PathBuf>,
) -> Result<(), LiveError> {
    let agent = Agent::start(StateFile::new(args.state.clone()), options, plugins.clone())?;
    let cluster = Cluster::connect(&args.server).await?;
    node::register(&cluster, &args.node_name).await?;
    let mut worker = NodeAgent {
        cluster: &cluster,
        node: &args.node_name,
        options,
        admission: if args.no_admission { None } else { Some(super::VERSION.parse()?) },
        agent,
        plugins: Plugins::new(plugins, args.registry.clone()),
        events: Events::new("dra-sdk-kubelet"),
        pods: BTreeMap::new(),
        claims: BTreeMap::new(),
        new_pods: Vec::new(),
        new_claims: Vec::new(),
        listed: BTreeSet::new(),
        running: BTreeSet::new(),
        delayed: BTreeMap::new(),
    };
    super::print(&format!("{} is a node of {}", args.node_name, cluster.url))?;
    let beats = tokio::spawn(node::beat(cluster.clone(), args.node_name.clone()));
    let (mut terminate, mut interrupt) = (stop_signal(SignalKind::terminate())?, stop_signal(SignalKind::interrupt())?);
    // A call of a driver that is under way has to be finished: it is not dropped for the signal.
    let mut watches = worker.watches();
    let outcome = loop {
        if let Err(error) = worker.look().await {
            break Err(error);
        }
        tokio::select! {
            change = tokio::time::timeout(LOOK, watches.next()) => {
                let rest = std::iter::from_fn(|| watches.next_waiting());
                let changes: Vec<Change> = change.ok().flatten().into_iter().chain(rest).collect();
                if let Err(error) = changes.into_iter().try_for_each(|change| worker.apply(change)) {
                    break Err(error);
                }
            }
            _ = terminate.recv() => break Ok(()),
            _ = interrupt.recv() => break Ok(()),
        }
    };
    beats.abort();
    outcome
}

fn stop_signal(kind: SignalKind) -> Result<tokio::signal::unix::Signal, ClusterError> {
    signal(kind).map_err(ClusterError::Runtime)
}

impl NodeAgent<'_> {
    fn watches(&self) -> Watches {
        let client = || self.cluster.client.clone();
        let mut watches = Watches::default();
        let own = Config::default().fields(&format!("spec.nodeName={}", self.node));
        watches.add("pods", Api::all(client()), own, Change::Pod);
        watches.add("resourceclaims", Api::all(client()), Config::default(), Change::Claim);
        watches
    }

    fn apply(&mut self, change: Change) -> Result<(), LiveError> {
        match change {
            Change::Pod(Event::Init) => self.new_pods.clear(),
            Change::Pod(Event::InitApply(pod)) => self.new_pods.push(pod),
            Change::Pod(Event::InitDone) => {
                let pods = std::mem::take(&mut self.new_pods).into_iter();
                self.pods = pods.map(|pod| (uid_of(&pod), pod)).collect();
                self.listed.insert("pods");
            }
            Change::Pod(Event::Apply(pod)) => drop(self.pods.insert(uid_of(&pod), pod)),
            Change::Pod(Event::Delete(pod)) => drop(self.pods.remove(&uid_of(&pod))),
            Change::Claim(Event::Init) => self.new_claims.clear(),
            Change::Claim(Event::InitApply(claim)) => self.new_claims.push(claim),
            Change::Claim(Event::InitDone) => {
                let claims = std::mem::take(&mut self.new_claims).into_iter();
                self.claims = claims.map(|claim| (ClaimKey::from_metadata(&claim.metadata), claim)).collect();
                self.listed.insert("claims");
            }
            Change::Claim(Event::Apply(claim)) => {
                drop(self.claims.insert(ClaimKey::from_metadata(&claim.metadata), claim));
            }
            Change::Claim(Event::Delete(claim)) => drop(self.claims.remove(&ClaimKey::from_metadata(&claim.metadata))),
            Change::Failed(error) => return Err(error.into()),
            _ => {}
        }
        Ok(())
    }

    /// Looks at everything once.
    async fn look(&mut self) -> Result<(), LiveError> {
        if let Some(found) = self.plugins.look().await {
            self.agent.set_plugins(found);
            self.delayed.clear();
        }
        // Before the lists are complete, a pod that is not seen is not gone.
        if self.listed.len() < 2 {
            return Ok(());
        }
        self.unprepare_orphans().await?;
        let pods: Vec<Pod> = self.pods.values().cloned().collect();
        let (pods_now, delayed) = (&self.pods, &mut self.delayed);
        delayed.retain(|uid, _| uid.as_ref().is_none_or(|uid| pods_now.contains_key(uid)));
        self.running.retain(|uid| pods_now.contains_key(uid));
        for pod in &pods {
            if self.is_due(Some(&uid_of(pod))) {
                self.look_at(pod).await?;
            }
        }
        Ok(())
    }

    fn is_due(&self, uid: Option<&str>) -> bool {
        self.delayed.get(&uid.map(str::to_owned)).is_none_or(|(due, _)| *due <= Instant::now())
    }

    fn delay(&mut self, uid: Option<&str>) {
        let uid = uid.map(str::to_owned);
        let pause = self.delayed.get(&uid).map_or(FIRST_PAUSE, |(_, pause)| pause.saturating_mul(2)).min(LONGEST_PAUSE);
        let now = Instant::now();
        self.delayed.insert(uid, (now.checked_add(pause).unwrap_or(now), pause));
    }
}

fn uid_of(pod: &Pod) -> String {
    pod.metadata.uid.clone().unwrap_or_default()
}

fn key_of(pod: &Pod) -> PodKey {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    PodKey::new(&text(&pod.metadata.namespace), &text(&pod.metadata.name), &uid_of(pod))
}

fn note(line: impl std::fmt::Display) {
    say(&format_args!("kubelet: {line}"));
}
