//! The list or an answer for a cluster: once, or kept.

use std::time::Duration;

use examples::live::cluster_view::{ClusterView, watch_cluster};
use examples::live::connect::Cluster;
pub(crate) use examples::live::failure::LiveError;
use examples::live::now;
use examples::live::stop::told_to_stop;
use examples::output::put;
use nnn::view::ClusterObjects;
use tokio::time::{sleep, timeout};

use super::scaling::{ClusterParts, Question};
use super::{Args, AutoscalerError};

/// Time in which changes are gathered before the text is made anew.
const GATHERING: Duration = Duration::from_millis(200);

/// Longest time between two looks: terminating pods become overdue without a change.
const LOOK: Duration = Duration::from_secs(10);

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

/// Prints the text of a cluster, and with `--watch` each other one that it becomes.
async fn show(args: &Args, question: Option<&Question<'_>>) -> Result<(), AutoscalerError> {
    let cluster = Cluster::connect(&args.server).await?;
    let (mut view, mut watches) = (ClusterView::new(args.scaling.gates()?), watch_cluster(&cluster));
    view.complete(&mut watches).await?;
    let mut printed = String::new();
    loop {
        let text = text(args, question, &mut view)?;
        if text != printed {
            put(&text)?;
            printed = text;
        }
        if !args.watch {
            return Ok(());
        }
        if let Ok(Some(change)) = timeout(LOOK, watches.next()).await {
            view.apply(change)?;
            sleep(GATHERING).await;
        }
        while let Some(change) = watches.next_waiting() {
            view.apply(change)?;
        }
    }
}

fn text(args: &Args, question: Option<&Question<'_>>, view: &mut ClusterView) -> Result<String, AutoscalerError> {
    let now = args.now.unwrap_or_else(now);
    let Some(question) = question else {
        let objects = ClusterObjects::new(view.nodes.values(), view.pods.values());
        return args.listed(objects.with_devices(view.inventory.slices(), view.claims.claims()).with_now(now));
    };
    let cluster = ClusterParts {
        nodes: view.nodes.values().collect(),
        pods: view.pods.values().collect(),
        pod_groups: &[],
        inventory: &mut view.inventory,
        classes: &view.classes,
        claims: &view.claims,
    };
    Ok(args.answered(&question.answer(cluster, now)?)?)
}
