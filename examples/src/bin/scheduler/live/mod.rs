//! The scheduler on a cluster: explains pending pods and claims, or works as a second scheduler.

mod attempt;
mod binding;
mod counts;
mod line;
mod preempt;
mod queue;

use std::collections::BTreeMap;
use std::time::Duration;

use attempt::OpenBinding;
use counts::Counts;
use dra_alloc::Allocator;
use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::PodOptions;
use dra_alloc::selector::SelectorCache;
use dra_attrs::Component;
use examples::live::cluster_view::{ClusterView, watch_cluster};
use examples::live::connect::Cluster;
use examples::live::events::Events;
use examples::live::failure::LiveError as ClusterError;
use examples::live::kinds::Kinds;
use examples::live::lease::work_alone;
use examples::live::listing::list_if_allowed;
use examples::live::touched::{Nodes, Place, Touched};
use examples::live::vitals::Vitals;
use examples::live::watching::Watches;
use examples::live::why::{GateSource, NotPending, Question, shown};
use examples::output::{Format, LineForm, OutputError, put, put_line, say};
use examples::preempt::Who;
use k8s_openapi::api::core::v1::Pod;
use line::Line;
use nnn::PodKey;
use queue::Queue;
use tokio::time::Instant;

use super::args::{Args, Command, Preempt};
use super::schedule::Settings;

/// Time in which changes are gathered before the pods are looked at anew.
const GATHERING: Duration = Duration::from_millis(20);

/// Longest time between two looks at pods whose time has come.
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
    /// Name that pods ask for in `schedulerName`.
    name: &'a str,
    watches: Watches,
    view: ClusterView,
    queue: Queue,
    kinds: Kinds,
    /// Time at which all verdicts were forgotten last.
    forgot: Instant,
    selectors: SelectorCache,
    events: Events,
    /// Pods that have a node and are not bound yet, by UID.
    open: BTreeMap<String, OpenBinding>,
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
    // The search works on this thread; lease, watches and health have one of their own.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(ClusterError::Runtime)?;
    runtime.block_on(async {
        let cluster = Cluster::connect(env!("CARGO_BIN_NAME"), &args.server).await?;
        cluster.say_other_release(env!("CARGO_BIN_NAME"), settings.profile);
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
        Self {
            cluster,
            settings,
            options: PodOptions::new(Component::new(settings.profile, settings.gates)),
            name: &args.scheduler_name,
            watches: Watches::default(),
            view: ClusterView::new(settings.gates),
            queue: Queue::new(args.scheduler_name.clone()),
            kinds: Kinds::default(),
            forgot: Instant::now(),
            selectors: SelectorCache::default(),
            events: Events::new("dra-sdk-scheduler"),
            open: BTreeMap::new(),
            preempt: args.preempt,
            awaited: BTreeMap::new(),
            form: if args.output == Format::Json { LineForm::Json } else { LineForm::Text },
            counts: Counts::new(&vitals.metrics),
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
        let (cluster, lease) = (self.cluster, format!("{}-scheduler", self.name));
        let bind = async || {
            self.begin_anew();
            self.tell(&Line::Binds { scheduler: self.name.to_owned(), server: cluster.url.clone() })?;
            self.work().await
        };
        Box::pin(work_alone(&cluster.client, &args.lease, &lease, bind)).await
    }

    /// Forgets what was seen: after a time without the lease it may be otherwise.
    fn begin_anew(&mut self) {
        self.watches = watch_cluster(self.cluster);
        self.view = ClusterView::new(self.settings.gates);
        self.queue = Queue::new(self.name.to_owned());
        self.kinds = Kinds::default();
        self.open.clear();
        self.awaited.clear();
    }

    async fn work(&mut self) -> Result<(), LiveError> {
        self.view.complete(&mut self.watches).await?;
        self.take(Touched::Pods);
        loop {
            self.vitals.round();
            self.forget_old();
            self.look().await?;
            let next =
                self.queue.next_due().map_or(LOOK, |due| due.saturating_duration_since(Instant::now()).min(LOOK));
            // Changes that come together are one reason to look.
            if let Ok(Some(change)) = tokio::time::timeout(next, self.watches.next()).await {
                let touched = self.view.apply(change)?;
                self.take(touched);
                tokio::time::sleep(GATHERING).await;
            }
            self.take_changes()?;
        }
    }

    /// Takes the changes that have come already.
    fn take_changes(&mut self) -> Result<(), LiveError> {
        while let Some(change) = self.watches.next_waiting() {
            let touched = self.view.apply(change)?;
            self.take(touched);
        }
        Ok(())
    }

    /// Notes what a change has touched.
    fn take(&mut self, touched: Touched) {
        match touched {
            Touched::Pods => {
                self.counts.looked_at(self.view.all_pods().count().try_into().unwrap_or(u64::MAX));
                self.queue.replace(&self.view);
            }
            Touched::Pod(place) => {
                self.counts.looked_at(1);
                self.queue.update(&place, self.view.pod_at(&place));
            }
            Touched::Claim(claim, nodes) => {
                self.queue.claim_changed(&claim);
                self.touch(&nodes);
            }
            Touched::Nodes(nodes) => self.touch(&nodes),
            _ => {}
        }
        self.touch_changed();
    }

    /// Notes that pods have taken or left something of nodes.
    fn touch_changed(&mut self) {
        let nodes = Nodes::These(self.view.pods.take_changed_nodes());
        self.touch(&nodes);
    }

    /// Takes the pod that an answer of the server shows: the watch may be behind.
    fn learn(&mut self, pod: Pod) {
        self.view.pods.observe(pod).map_or_else(note, drop);
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
            self.queue.nodes_changed();
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

fn note(line: impl std::fmt::Display) {
    say(&format_args!("scheduler: {line}"));
}
