//! The list or an answer for a cluster: once, or kept.

mod followed;

use examples::live::cluster::{connect, say_other_release};
use std::time::Duration;

use dra_live::cluster_view::{ClusterView, watch_cluster};
pub(crate) use dra_live::failure::LiveError;
use dra_live::metrics::{Metrics, Series};
use dra_live::now;
use dra_live::stop::told_to_stop;
use dra_live::touched::Touched;
use dra_live::vitals::Vitals;
use dra_live::watching::Watches;
use examples::live::kept_list::{Changed, KeptList};
use examples::output::{as_json, put};
use serde_json::json;
use tokio::time::{Instant, timeout, timeout_at};

use super::list::List;
use super::scaling::Question;
use super::{Args, AutoscalerError, Output};
use followed::Followed;

/// Time in which changes are gathered before something is made anew.
const GATHERING: Duration = Duration::from_millis(200);

/// Time in which they are gathered before an answer, for each second that the answer before it has taken.
const REST: u32 = 9;

/// Longest time between two looks: terminating pods become overdue without a change.
const LOOK: Duration = Duration::from_secs(10);

/// Metrics of an autoscaler that stays.
struct Counts {
    nodes: Series,
    pods: Series,
    answers: Series,
}

impl Counts {
    fn new(metrics: &Metrics) -> Self {
        Self {
            nodes: metrics.counter("dra_autoscaler_nodes_looked_at_total", "Nodes that were listed anew", &[]),
            pods: metrics.counter("dra_autoscaler_pods_looked_at_total", "Pods that were counted anew", &[]),
            answers: metrics.counter("dra_autoscaler_answers_total", "Answers that were made, alike or not", &[]),
        }
    }

    fn looked_at(&self, changed: &Changed) {
        let (nodes, pods) = changed.looked_at;
        self.nodes.add(&[], nodes.try_into().unwrap_or(u64::MAX));
        self.pods.add(&[], pods.try_into().unwrap_or(u64::MAX));
    }
}

/// Works on a cluster.
///
/// # Errors
/// The cluster can't be reached, or the question has no answer.
pub(crate) fn run(args: &Args) -> Result<(), AutoscalerError> {
    let question = args.scaling.question()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LiveError::Runtime)?;
    runtime.block_on(async {
        let show = show(args, question.as_ref());
        if !args.watch {
            return show.await;
        }
        tokio::select! {
            ended = show => ended,
            stopped = told_to_stop() => Ok(stopped?),
        }
    })
}

/// Prints the list or the answer of a cluster, and with `--watch` what changes.
async fn show(args: &Args, question: Option<&Question<'_>>) -> Result<(), AutoscalerError> {
    let vitals = Vitals::default();
    let counts = Counts::new(&vitals.metrics);
    vitals.serve(args.vitals.metrics_address).await?;
    let cluster = connect(env!("CARGO_BIN_NAME"), &args.server).await?;
    say_other_release(env!("CARGO_BIN_NAME"), &cluster, args.scaling.rules.profile);
    let (mut view, mut watches) = (ClusterView::new(args.scaling.gates()?), watch_cluster(&cluster));
    if question.is_some_and(Question::reads_budgets) {
        view.watch_budgets(&cluster, &mut watches);
    }
    if args.watch {
        view.complete(&mut watches).await?;
    } else {
        view.complete_once(&mut watches).await?;
    }
    match question {
        Some(question) => keep_answer(args, question, view, watches, &vitals, &counts).await,
        None => keep_list(args, view, watches, &vitals, &counts).await,
    }
}

/// Prints the list, and then what changes of it.
async fn keep_list(
    args: &Args,
    mut view: ClusterView,
    mut watches: Watches,
    vitals: &Vitals,
    counts: &Counts,
) -> Result<(), AutoscalerError> {
    let mut list = KeptList::new(args.view_options());
    counts.looked_at(&list.renew(&view, args.now.unwrap_or_else(now))?);
    put(&args.listed(&List { nodes: list.nodes().collect(), pods: list.pods().collect() })?)?;
    loop {
        if !args.watch {
            return Ok(());
        }
        vitals.round();
        for touched in next_changes(&mut view, &mut watches, GATHERING).await? {
            list.take(touched);
        }
        let changed = list.renew(&view, args.now.unwrap_or_else(now))?;
        counts.looked_at(&changed);
        put(&changed_text(args, &changed)?)?;
    }
}

/// Prints the answer, and then each other one that it becomes. It is made anew when something of it may have changed, and no
/// more than a tenth of the time.
async fn keep_answer(
    args: &Args,
    question: &Question<'_>,
    mut view: ClusterView,
    mut watches: Watches,
    vitals: &Vitals,
    counts: &Counts,
) -> Result<(), AutoscalerError> {
    let mut followed = Followed::new(question, &view);
    let (mut printed, mut gathering) = (String::new(), GATHERING);
    loop {
        if followed.is_due() {
            let begin = Instant::now();
            let text = args.answered(&followed.answer(&mut view, args.now.unwrap_or_else(now))?)?;
            counts.answers.add(&[], 1);
            gathering = begin.elapsed().saturating_mul(REST).max(GATHERING);
            if text != printed {
                put(&text)?;
                printed = text;
            }
        }
        if !args.watch {
            return Ok(());
        }
        vitals.round();
        for touched in next_changes(&mut view, &mut watches, gathering).await? {
            followed.take(&touched, &view);
        }
    }
}

/// Returns what has changed of a list, as text; empty if that is nothing.
fn changed_text(args: &Args, changed: &Changed) -> Result<String, AutoscalerError> {
    let list = List {
        nodes: changed.nodes.values().collect(),
        pods: changed.pods.iter().map(|(pod, class)| (pod, *class)).collect(),
    };
    let [served, gone_pods] =
        [&changed.served, &changed.gone_pods].map(|pods| pods.iter().map(ToString::to_string).collect::<Vec<String>>());
    let is_same = list.nodes.is_empty() && changed.gone.is_empty() && served.is_empty();
    Ok(match args.output {
        Output::Json if is_same && list.pods.is_empty() && gone_pods.is_empty() => String::new(),
        Output::Json => {
            let mut object = list.object(args.mode);
            if let Some(fields) = object.as_object_mut() {
                fields.insert("goneNodes".to_owned(), json!(changed.gone));
                fields.insert("gonePods".to_owned(), json!(gone_pods));
            }
            as_json(&object)?
        }
        Output::Table => {
            let mut lines = list.table(args.mode);
            if list.nodes.is_empty() {
                lines.remove(0);
            }
            lines.extend(changed.gone.iter().map(|node| format!("gone: {node}")));
            lines.extend(served.iter().map(|pod| format!("needs no node now: {pod}")));
            lines.into_iter().map(|line| line + "\n").collect()
        }
    })
}

/// Takes the changes that come together: within a time from the first one.
async fn next_changes(
    view: &mut ClusterView,
    watches: &mut Watches,
    gathering: Duration,
) -> Result<Vec<Touched>, LiveError> {
    let Ok(Some(first)) = timeout(LOOK, watches.next()).await else { return Ok(Vec::new()) };
    let (mut changes, begin) = (vec![view.apply(first)?], Instant::now());
    let end = begin.checked_add(gathering).unwrap_or(begin);
    while let Ok(Some(change)) = timeout_at(end, watches.next()).await {
        changes.push(view.apply(change)?);
    }
    Ok(changes)
}
