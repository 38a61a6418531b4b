//! The scheduler on a cluster: explains pending pods and claims, or works as a second scheduler.

mod attempt;
mod binding;
mod calls;
mod counts;
mod ending;
mod left;
mod line;
mod placement;
mod preempt;
mod queue;

use examples::live::cluster::{connect, say_other_release};
use std::collections::BTreeMap;
use std::time::Duration;

use binding::OpenBinding;
use calls::{Answer, Asker, Call, Calls};
use counts::Counts;
use dra_alloc::Allocator;
use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::PodOptions;
use dra_alloc::selector::SelectorCache;
use dra_attrs::Component;
use dra_live::cluster_view::{ClusterView, watch_cluster};
use dra_live::connect::Cluster;
use dra_live::events::{EventQueue, Events};
use dra_live::failure::LiveError as ClusterError;
use dra_live::lease::work_alone;
use dra_live::listing::list_if_allowed;
use dra_live::touched::{Nodes, Place, Touched};
use dra_live::vitals::Vitals;
use dra_live::watching::{Change, Watches};
use ending::Ending;
use examples::live::kinds::Kinds;
use examples::live::why::{GateSource, NotPending, Question, shown};
use examples::output::{Format, LineForm, OutputError, put, put_line, say};
use examples::preempt::Who;
use k8s_openapi::api::core::v1::Pod;
use left::LeftToOthers;
use line::Line;
use nnn::PodKey;
use queue::PodQueue;
use tokio::time::Instant;

use super::args::{Args, Command, Preempt};
use super::schedule::Settings;

/// Number of events that are written at a time.
const EVENTS_AT_A_TIME: usize = 8;

/// Longest time between two looks at bindings that wait for devices.
const LOOK: Duration = Duration::from_millis(500);

/// Time after which every verdict is forgotten, as kube-scheduler tries a pod that waits again after five minutes: a search that
/// its budget has stopped may end another time.
const FORGET_AFTER: Duration = Duration::from_secs(300);

/// Reason that the program ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    NotPending(#[from] NotPending),
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Scheduler on a cluster.
struct LiveScheduler<'a> {
    cluster: &'a Cluster,
    settings: &'a Settings,
    options: PodOptions,
    /// Names that pods ask for in `schedulerName`.
    names: &'a [String],
    left: LeftToOthers,
    watches: Watches,
    view: ClusterView,
    queue: PodQueue,
    kinds: Kinds,
    /// Time at which all verdicts were forgotten last.
    forgot: Instant,
    selectors: SelectorCache,
    events: EventQueue,
    calls: Calls,
    /// Largest number of pods with a call under way.
    at_a_time: usize,
    /// Pods that have a node and are not bound yet, by UID.
    open: BTreeMap<String, OpenBinding>,
    /// Attempts that end without a binding, by number.
    endings: BTreeMap<u64, Ending>,
    next_ending: u64,
    /// Time of the last look at bindings that wait for devices, and true if a claim has changed since.
    looked: (Instant, bool),
    /// Rule by which pods are preempted, if they are.
    preempt: Option<Preempt>,
    /// Claims that are to become free for a pod, by its UID.
    awaited: BTreeMap<String, Vec<ClaimKey>>,
    form: LineForm,
    vitals: Vitals,
    counts: Counts,
}

/// Works on a cluster.
///
/// # Errors
/// The cluster can't be reached, or another copy works now.
pub(crate) fn run(args: &Args, settings: &Settings) -> Result<(), LiveError> {
    // The search works on this thread; watches, writes and health have others.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(ClusterError::Runtime)?;
    runtime.block_on(async {
        let cluster = connect(env!("CARGO_BIN_NAME"), &args.server).await?;
        say_other_release(env!("CARGO_BIN_NAME"), &cluster, settings.profile);
        let scheduler = LiveScheduler::new(&cluster, settings, args);
        match &args.command {
            Some(Command::Why { name }) => scheduler.why(name.as_deref(), args).await,
            None if args.bind => Box::pin(scheduler.bind(args)).await,
            _ => scheduler.why(None, args).await,
        }
    })
}

impl<'a> LiveScheduler<'a> {
    fn new(cluster: &'a Cluster, settings: &'a Settings, args: &'a Args) -> Self {
        let vitals = Vitals::default();
        let counts = Counts::new(&vitals.metrics);
        let (client, at_a_time) = (cluster.client.clone(), usize::from(args.binds));
        Self {
            cluster,
            settings,
            options: PodOptions::new(Component::new(settings.profile, settings.gates)),
            names: &args.scheduler_name,
            left: LeftToOthers::new(&args.leave_drivers, &args.leave_classes),
            watches: Watches::default(),
            view: ClusterView::new(settings.gates),
            queue: PodQueue::new(&args.scheduler_name, counts.clone()),
            kinds: Kinds::default(),
            forgot: Instant::now(),
            selectors: SelectorCache::default(),
            events: EventQueue::start(
                Events::new("dra-sdk-scheduler"),
                &client,
                EVENTS_AT_A_TIME,
                counts.events_lost(),
            ),
            calls: Calls::new(client, at_a_time).0,
            at_a_time,
            open: BTreeMap::new(),
            endings: BTreeMap::new(),
            next_ending: 0,
            looked: (Instant::now(), false),
            preempt: args.preempt,
            awaited: BTreeMap::new(),
            form: if args.output == Format::Json { LineForm::Json } else { LineForm::Text },
            counts,
            vitals,
        }
    }

    /// Explains what is pending.
    async fn why(mut self, name: Option<&str>, args: &Args) -> Result<(), LiveError> {
        let mut watches = watch_cluster(self.cluster);
        self.view.complete_once(&mut watches).await?;
        let budgets = list_if_allowed(&self.cluster.client, "poddisruptionbudgets").await?;
        let question = Question {
            allocator: &allocator(self.settings, &self.view, &self.selectors),
            options: self.options,
            profile: self.settings.profile,
            namespace: &self.cluster.namespace,
            gates: GateSource::Known,
            budgets: &budgets,
            who: Who::Room,
        };
        Ok(put(&shown(&question.ask(&self.view, name)?, args.output)?)?)
    }

    /// Binds pods until it is told to stop, or another copy has taken over.
    async fn bind(mut self, args: &Args) -> Result<(), LiveError> {
        self.vitals.serve(args.vitals.metrics_address).await?;
        let cluster = self.cluster;
        let lease = format!("{}-scheduler", self.names.first().map(String::as_str).unwrap_or_default());
        let bind = async || {
            // Without the lease no call is made any more.
            let (calls, _held) = Calls::new(cluster.client.clone(), self.at_a_time);
            self.begin_anew(calls);
            self.tell(&Line::Binds { scheduler: self.names.join(", "), server: cluster.url.clone() })?;
            self.work().await
        };
        Box::pin(work_alone(cluster, &args.lease.terms(), &lease, bind)).await
    }

    /// Forgets what was seen: after a time without the lease it may be otherwise.
    fn begin_anew(&mut self, calls: Calls) {
        self.calls = calls;
        self.watches = watch_cluster(self.cluster);
        self.view = ClusterView::new(self.settings.gates);
        self.view.without_drivers.clone_from(&self.left.drivers);
        self.queue = PodQueue::new(self.names, self.counts.clone());
        self.kinds = Kinds::default();
        self.open.clear();
        self.endings.clear();
        self.awaited.clear();
    }

    async fn work(&mut self) -> Result<(), LiveError> {
        self.view.complete(&mut self.watches).await?;
        let (nodes, pods) = (self.view.nodes.len(), self.view.all_pods().count());
        note(format_args!("has read {nodes} nodes and {pods} pods"));
        self.counts.looked_at(pods.try_into().unwrap_or(u64::MAX));
        self.queue.begin(&self.view);
        self.touch_changed();
        loop {
            self.vitals.round();
            self.forget_old();
            self.take_changes()?;
            self.take_answers()?;
            self.look()?;
            self.decide().await?;
            self.queue.show();
            let has_room = self.under_way() < self.at_a_time;
            let next = self.queue.next_in().filter(|_| has_room).map_or(LOOK, |next| next.min(LOOK));
            tokio::select! {
                Some(change) = self.watches.next() => self.take_change(change)?,
                Some((asker, answer)) = self.calls.next() => self.take_answer(asker, answer)?,
                () = tokio::time::sleep(next) => {}
            }
        }
    }

    /// Looks at the bindings that wait for devices, and at writes of which nobody knows if they were stored.
    fn look(&mut self) -> Result<(), LiveError> {
        let (at, has_news) = self.looked;
        if at.elapsed() >= LOOK {
            // All claims are looked at: not after each change.
            self.looked = (Instant::now(), false);
            self.settle_doubts();
            return self.go_on_with_waiting();
        }
        self.looked.1 = false;
        if has_news { self.go_on_with_waiting() } else { Ok(()) }
    }

    /// Reads claims and writes nominations of which nobody knows what is stored, once those before are answered.
    fn settle_doubts(&mut self) {
        if self.endings.values().any(|ending| ending.attempt.is_none()) {
            return;
        }
        let claims = self.view.claims.calls_in_doubt();
        let pods = Call::in_doubt(&self.view.pods, |pod| self.open.contains_key(&pod.uid));
        if !claims.is_empty() || !pods.is_empty() {
            self.end(Ending { claims, pods, attempt: None });
        }
    }

    /// Takes the changes that have come already.
    fn take_changes(&mut self) -> Result<(), LiveError> {
        while let Some(change) = self.watches.next_waiting() {
            self.take_change(change)?;
        }
        Ok(())
    }

    /// Takes the answers that have come already.
    fn take_answers(&mut self) -> Result<(), LiveError> {
        while let Some((asker, answer)) = self.calls.next_waiting() {
            self.take_answer(asker, answer)?;
        }
        Ok(())
    }

    fn take_answer(&mut self, asker: Asker, answer: Answer) -> Result<(), LiveError> {
        match asker {
            Asker::Binding(uid) => self.answer_binding(&uid, answer),
            Asker::Ending(number) => {
                self.answer_ending(number, answer);
                Ok(())
            }
        }
    }

    /// Takes a change, and notes what it has touched.
    fn take_change(&mut self, change: Change) -> Result<(), LiveError> {
        let Self { view, queue, .. } = self;
        match view.apply_and_tell(change, |event| queue.observe(event))? {
            Touched::Pods => {
                self.counts.looked_at(self.view.all_pods().count().try_into().unwrap_or(u64::MAX));
                self.queue.retain(&self.view);
            }
            Touched::Pod(_) => self.counts.looked_at(1),
            Touched::Claim(_, nodes) => {
                self.looked.1 = true;
                self.touch(&nodes);
            }
            Touched::Nodes(nodes) => self.touch(&nodes),
            _ => {}
        }
        self.touch_changed();
        Ok(())
    }

    /// Notes that pods have taken or left something of nodes.
    fn touch_changed(&mut self) {
        let nodes = Nodes::These(self.view.pods.take_changed_nodes());
        self.touch(&nodes);
    }

    /// Takes the pod that an answer of the server shows: the watch may be behind.
    fn learn(&mut self, pod: Pod) {
        let Self { view, queue, .. } = self;
        view.learn(pod, |event| queue.observe(event));
        self.touch_changed();
    }

    fn forget_old(&mut self) {
        if self.forgot.elapsed() >= FORGET_AFTER {
            self.forgot = Instant::now();
            self.touch(&Nodes::All);
        }
    }

    /// Notes that verdicts on nodes may be others now.
    fn touch(&mut self, nodes: &Nodes) {
        if !nodes.is_empty() {
            self.kinds.touch(nodes);
        }
    }

    fn tell(&self, line: &Line) -> Result<(), OutputError> {
        put_line(self.form, line)
    }
}

fn allocator<'a>(settings: &'a Settings, view: &'a ClusterView, selectors: &'a SelectorCache) -> Allocator<'a> {
    Allocator::new(Component::new(settings.profile, settings.gates), &view.inventory, &view.classes)
        .with_selector_cache(selectors)
        .with_explanation(settings.detail)
        .with_objective(&settings.objective)
}

fn place_of(pod: &PodKey) -> Place {
    (pod.namespace.clone(), pod.name.clone())
}

fn key_of(pod: &Pod) -> PodKey {
    let metadata = &pod.metadata;
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    PodKey::new(&text(&metadata.namespace), &text(&metadata.name), &text(&metadata.uid))
}

/// Returns the name that a pod asks for in `schedulerName`.
fn profile_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref()).unwrap_or_default()
}

fn note(line: impl std::fmt::Display) {
    say(&format_args!("scheduler: {line}"));
}
