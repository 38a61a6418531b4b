//! The scheduler on a cluster: explains pending pods and claims, or works as a second scheduler.

mod attempt;
mod binding;
mod counts;
mod line;

use std::collections::BTreeMap;
use std::time::Duration;

use dra_alloc::pods::PodOptions;
use dra_alloc::{Allocator, SelectorCache};
use examples::candidates::is_pending;
use examples::live::cluster_view::{ClusterView, watch_cluster};
use examples::live::connect::Cluster;
use examples::live::events::Events;
use examples::live::failure::LiveError as ClusterError;
use examples::live::lease::work_alone;
use examples::live::vitals::Vitals;
use examples::live::watching::Watches;
use examples::live::why::{NotPending, Question, shown};
use examples::output::{Format, LineForm, OutputError, put, put_line, say};
use k8s_openapi::api::core::v1::Pod;
use tokio::time::Instant;

use super::args::{Args, Command};
use super::schedule::Settings;
use attempt::{Delay, OpenBinding};
use counts::Counts;
use line::Line;

/// Time in which changes are gathered before the pods are looked at anew.
const GATHERING: Duration = Duration::from_millis(20);

/// Longest time between two looks at pods whose time has come.
const LOOK: Duration = Duration::from_millis(500);

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
    view: ClusterView,
    selectors: SelectorCache,
    events: Events,
    /// Pods that have a node and are not bound yet, by UID.
    open: BTreeMap<String, OpenBinding>,
    /// Pods that have no node, by UID, with the time of the next attempt.
    delayed: BTreeMap<String, Delay>,
    /// Time at which each pod was first seen to be pending, by UID.
    pending_since: BTreeMap<String, Instant>,
    form: LineForm,
    vitals: Vitals,
    counts: Counts,
}

/// Works on a cluster.
///
/// # Errors
/// The cluster can't be reached, or another copy works now.
pub(crate) fn run(args: &Args, settings: &Settings) -> Result<(), LiveError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ClusterError::Runtime)?;
    runtime.block_on(async {
        let cluster = Cluster::connect(&args.server).await?;
        let scheduler = LiveScheduler::new(&cluster, settings, args);
        match &args.command {
            Some(Command::Why { name }) => scheduler.why(name.as_deref(), args).await,
            None if args.bind => scheduler.bind(args).await,
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
            options: PodOptions::new(settings.profile).with_gates(settings.gates),
            name: &args.scheduler_name,
            view: ClusterView::new(settings.gates),
            selectors: SelectorCache::default(),
            events: Events::new("dra-sdk-scheduler"),
            open: BTreeMap::new(),
            delayed: BTreeMap::new(),
            pending_since: BTreeMap::new(),
            form: if args.output == Format::Json { LineForm::Json } else { LineForm::Text },
            counts: Counts::new(&vitals.metrics),
            vitals,
        }
    }

    fn allocator(&self) -> Allocator<'_> {
        Allocator::new(self.settings.profile, &self.view.inventory, &self.view.classes)
            .with_selector_cache(&self.selectors)
            .with_gates(self.settings.gates)
            .with_explanation(self.settings.detail)
    }

    /// Explains what is pending.
    async fn why(mut self, name: Option<&str>, args: &Args) -> Result<(), LiveError> {
        let mut watches = watch_cluster(self.cluster);
        self.view.complete(&mut watches).await?;
        let question =
            Question { allocator: &self.allocator(), options: self.options, namespace: &self.cluster.namespace };
        Ok(put(&shown(&question.ask(&self.view, name)?, args.output)?)?)
    }

    /// Binds pods until it is told to stop, or another copy has taken over.
    async fn bind(mut self, args: &Args) -> Result<(), LiveError> {
        self.vitals.serve(args.vitals.metrics_address).await?;
        let (cluster, lease) = (self.cluster, format!("{}-scheduler", self.name));
        let bind = async || {
            let mut watches = watch_cluster(cluster);
            self.tell(&Line::Binds { scheduler: self.name.to_owned(), server: cluster.url.clone() })?;
            self.work(&mut watches).await
        };
        work_alone(&cluster.client, &args.lease, &lease, bind).await
    }

    async fn work(&mut self, watches: &mut Watches) -> Result<(), LiveError> {
        self.view.complete(watches).await?;
        loop {
            self.vitals.round();
            self.look().await?;
            // Changes that come together are one reason to look.
            if let Ok(Some(change)) = tokio::time::timeout(LOOK, watches.next()).await {
                self.view.apply(change)?;
                self.something_changed();
                tokio::time::sleep(GATHERING).await;
            }
            while let Some(change) = watches.next_waiting() {
                self.view.apply(change)?;
                self.something_changed();
            }
        }
    }

    fn tell(&self, line: &Line) -> Result<(), OutputError> {
        put_line(self.form, line)
    }

    /// Returns the pods that this scheduler has to place, the oldest first.
    fn queue(&self) -> Vec<Pod> {
        let mut pods: Vec<&Pod> = self.view.pods.values().filter(|pod| is_pending(pod, Some(self.name))).collect();
        pods.sort_by_key(|pod| (pod.metadata.creation_timestamp.clone(), pod.metadata.name.clone()));
        pods.into_iter().cloned().collect()
    }
}

fn note(line: impl std::fmt::Display) {
    say(&format_args!("scheduler: {line}"));
}
