//! The kubelet on a cluster: an agent of a virtual node. It registers the node, prepares the claims of the pods that are
//! bound to it, says that they run, and unprepares when they go. No container is started; the node has a taint, so that no
//! pod comes that has not asked for that.
//!
//! Its state is the checkpoint: a run that is killed at any point goes on where the file and the cluster say.

mod counts;
mod node;
mod plugins;
mod pods;

use examples::live::cluster::{connect, say_other_release};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use counts::Counts;
use dra_alloc::Component;
use dra_alloc::claims::ClaimKey;
use dra_alloc::declared_features::DeclaredFeature;
use dra_alloc::kubelet::ClaimCache;
use dra_attrs::{Version, VersionError};
use dra_live::connect::Cluster;
use dra_live::events::Events;
use dra_live::failure::LiveError as ClusterError;
use dra_live::stop::told_to_stop;
use dra_live::vitals::Vitals;
use dra_live::watching::{Change, Watches};
use examples::output::{LineForm, OutputError, put_line, say};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::{Config, Event};
use nnn::PodKey;
use node::OwnNode;
use plugins::Plugins;
use pods::Subject;
use tokio::time::Instant;

use super::agent::{Agent, AgentError};
use super::args::Args;
use super::line::Line;
use dra_live::state_file::StateFile;

/// Time between two looks, if nothing changes.
const LOOK: Duration = Duration::from_millis(300);

/// Pause after the first failure of a pod.
const FIRST_PAUSE: Duration = Duration::from_millis(300);

/// Longest pause between two attempts for a pod.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Largest number of pods that are worked on at a time: more than a node runs, so that none waits for the driver of another.
const MOST_AT_ONCE: usize = 128;

/// Reason that the kubelet ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    RealNode(#[from] node::RealNode),
    #[error(transparent)]
    AlwaysChanging(#[from] node::AlwaysChanging),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Version(#[from] VersionError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Agent of a node. Several of its pods are worked on at a time; nothing in `view` is borrowed meanwhile.
struct NodeAgent<'a> {
    cluster: &'a Cluster,
    node: &'a str,
    options: Component,
    /// Version against which declared features are compared; `None` without that check.
    admission: Option<Version>,
    form: LineForm,
    agent: Agent,
    events: Events,
    counts: Counts,
    view: RefCell<View>,
}

/// Work on pods, each with the UID of its pod.
type Operations<'w> = FuturesUnordered<Pin<Box<dyn Future<Output = (String, Result<(), LiveError>)> + 'w>>>;

/// Pods of the node as the watch shows them, and what is being done about them.
#[derive(Debug, Default)]
struct View {
    /// Pods of the node by UID.
    pods: BTreeMap<String, Pod>,
    new_pods: Vec<Pod>,
    /// UIDs of pods that can't be read.
    unread: BTreeSet<String>,
    /// True if there is a pod without name or UID: it may be any, so that none is taken for gone.
    has_strangers: bool,
    is_listed: bool,
    /// Pods that were said to run, by UID.
    running: BTreeSet<String>,
    /// Pods whose last attempt failed, by UID, with the time of the next one.
    delayed: BTreeMap<String, (Instant, Duration)>,
    /// Pods that are being worked on, by UID, with their claims: no other pod with one of them is.
    busy: BTreeMap<String, BTreeSet<ClaimKey>>,
}

/// Works for a node of a cluster until it is told to stop. What is prepared stays prepared.
///
/// # Errors
/// The checkpoint can't be used, or the cluster can't be reached.
pub(crate) async fn run(args: &Args, options: Component, plugins: BTreeMap<String, PathBuf>) -> Result<(), LiveError> {
    let file = StateFile::new(args.state.clone());
    let agent = Agent::start(file, options, plugins.clone(), args.call_timeout())?;
    let cluster = connect(env!("CARGO_BIN_NAME"), &args.server).await?;
    say_other_release(env!("CARGO_BIN_NAME"), &cluster, options.profile());
    let vitals = Vitals::default();
    vitals.serve(args.vitals.metrics_address).await?;
    let version: Version = super::VERSION.parse()?;
    let feature = DeclaredFeature::new(options.profile()).declared_by(options, &version);
    let node = OwnNode::register(&cluster, &args.node_name, feature).await?;
    let worker = NodeAgent {
        cluster: &cluster,
        node: &args.node_name,
        options,
        admission: (!args.no_admission).then_some(version),
        form: args.output,
        agent,
        events: Events::new("dra-sdk-kubelet"),
        counts: Counts::new(&vitals.metrics, args.rules.profile),
        view: RefCell::default(),
    };
    worker.tell(&Line::Registered { node: args.node_name.clone(), server: cluster.url.clone() })?;
    let beats = tokio::spawn(node.beat());
    let plugins = Plugins::new(plugins, args.registry.clone());
    let mut operations = Operations::new();
    let outcome = tokio::select! {
        outcome = worker.work(&mut operations, &vitals) => outcome,
        () = worker.keep_registered(plugins) => Ok(()),
        stopped = told_to_stop() => stopped.map_err(LiveError::from),
    };
    // A call of a driver that is under way has to be finished: it is not dropped for the signal.
    let mut ended = vec![outcome];
    while let Some((_, outcome)) = operations.next().await {
        ended.push(outcome);
    }
    beats.abort();
    ended.into_iter().collect()
}

impl NodeAgent<'_> {
    /// Works on the pods, many at a time.
    async fn work<'w>(&'w self, operations: &mut Operations<'w>, vitals: &Vitals) -> Result<(), LiveError> {
        let mut watches = Watches::default();
        let own = Config::default().fields(&format!("spec.nodeName={}", self.node));
        watches.add("pods", &self.cluster.client, own, Change::Pod);
        loop {
            vitals.round();
            for (uid, subject) in self.view.borrow_mut().begin(&self.agent, self.options) {
                operations.push(Box::pin(self.operation(uid, subject)));
            }
            tokio::select! {
                change = watches.next() => {
                    let rest = std::iter::from_fn(|| watches.next_waiting());
                    change.into_iter().chain(rest).try_for_each(|change| self.view.borrow_mut().apply(change))?;
                }
                Some((uid, outcome)) = operations.next() => {
                    self.view.borrow_mut().busy.remove(&uid);
                    outcome?;
                }
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    async fn operation(&self, uid: String, subject: Subject) -> (String, Result<(), LiveError>) {
        let outcome = self.work_on(&uid, subject).await;
        (uid, outcome)
    }

    /// Looks for drivers for ever. One that does not answer keeps nobody else waiting.
    async fn keep_registered(&self, mut plugins: Plugins) {
        loop {
            if let Some(found) = plugins.look().await {
                self.agent.set_plugins(found);
                self.view.borrow_mut().delayed.clear();
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn tell(&self, line: &Line) -> Result<(), OutputError> {
        put_line(self.form, line)
    }
}

impl View {
    fn apply(&mut self, change: Change) -> Result<(), LiveError> {
        match change {
            Change::Pod(Event::Init) => {
                self.new_pods.clear();
                self.unread.clear();
                self.has_strangers = false;
            }
            Change::Pod(Event::InitApply(pod)) if is_identified(&pod.metadata) => self.new_pods.push(pod),
            Change::Pod(Event::InitDone) => self.take_list(),
            Change::Pod(Event::Apply(pod)) if is_identified(&pod.metadata) => drop(self.pods.insert(uid_of(&pod), pod)),
            // It is there, whatever it is.
            Change::LeftOut(_, metadata) if is_identified(&metadata) => self.unread.extend(metadata.uid),
            Change::Pod(Event::InitApply(_)) | Change::LeftOut(..) => self.has_strangers = true,
            Change::Pod(Event::Delete(pod)) => drop(self.pods.remove(&uid_of(&pod))),
            Change::Failed(error) => return Err(error.into()),
            _ => {}
        }
        Ok(())
    }

    /// Takes a list of all pods.
    fn take_list(&mut self) {
        let pods = std::mem::take(&mut self.new_pods).into_iter();
        self.pods = pods.map(|pod| (uid_of(&pod), pod)).collect();
        self.is_listed = true;
        if self.has_strangers {
            note("the list of pods has one without name and UID, which may be any: no pod is taken for gone");
        }
    }

    /// Chooses what is worked on next: pods that are due, and what has claims but is no pod of the node any more. None of
    /// them shares a claim with another one that is worked on.
    fn begin(&mut self, agent: &Agent, options: Component) -> Vec<(String, Subject)> {
        // Before the list is complete, a pod that is not seen is not gone.
        if !self.is_listed {
            return Vec::new();
        }
        let mut held: BTreeMap<String, BTreeSet<ClaimKey>> = BTreeMap::new();
        for (key, info) in agent.cache().claims() {
            for uid in &info.pods {
                held.entry(uid.clone()).or_default().insert(key.clone());
            }
        }
        let pods = &self.pods;
        self.delayed.retain(|uid, _| pods.contains_key(uid) || held.contains_key(uid));
        self.running.retain(|uid| pods.contains_key(uid));
        let is_gone = |uid: &&String| !self.has_strangers && !self.unread.contains(*uid) && !pods.contains_key(*uid);
        let orphans = held.keys().filter(is_gone);
        let orphans: Vec<(String, Subject)> = orphans.map(|uid| (uid.clone(), Subject::Orphan)).collect();
        let pods = pods.iter().filter(|(uid, pod)| pods::needs_work(pod, self.running.contains(*uid)));
        let pods = pods.map(|(uid, pod)| (uid.clone(), Subject::Pod(Box::new(pod.clone()))));
        let mut begun = Vec::new();
        for (uid, subject) in orphans.into_iter().chain(pods.collect::<Vec<_>>()) {
            let mut claims = held.remove(&uid).unwrap_or_default();
            if let Subject::Pod(pod) = &subject {
                claims.extend(ClaimCache::claims_of_pod(pod, options).flatten().map(|named| named.claim));
            }
            if self.may_begin(&uid, &claims) {
                self.busy.insert(uid.clone(), claims);
                begun.push((uid, subject));
            }
        }
        begun
    }

    fn may_begin(&self, uid: &str, claims: &BTreeSet<ClaimKey>) -> bool {
        self.busy.len() < MOST_AT_ONCE
            && !self.busy.contains_key(uid)
            && self.busy.values().all(|busy| busy.is_disjoint(claims))
            && self.delayed.get(uid).is_none_or(|(due, _)| *due <= Instant::now())
    }

    fn delay(&mut self, uid: &str) {
        let pause = self.delayed.get(uid).map_or(FIRST_PAUSE, |(_, pause)| pause.saturating_mul(2)).min(LONGEST_PAUSE);
        let now = Instant::now();
        self.delayed.insert(uid.to_owned(), (now.checked_add(pause).unwrap_or(now), pause));
    }
}

/// Returns true if an object has a name and a UID.
fn is_identified(metadata: &ObjectMeta) -> bool {
    [&metadata.name, &metadata.uid].into_iter().all(|text| text.as_ref().is_some_and(|text| !text.is_empty()))
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
