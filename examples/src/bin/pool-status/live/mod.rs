//! The pools of a cluster: a table, once or kept, or answers to requests.

mod controller;
mod counts;
mod line;
mod pending;

use examples::live::cluster::{connect, say_other_release};
use std::time::Duration;

use dra_live::connect::Cluster;
use dra_live::failure::LiveError as ClusterError;
use dra_live::now;
use dra_live::stop::told_to_stop;
use dra_live::vitals::Vitals;
use examples::live::devices::list_devices;
use examples::live::pool_view::{PoolView, watch_pools};
use examples::output::{OutputError, put};
use examples::pool_question::Question;
use tokio::time::timeout;

use super::args::Args;
use super::{note, text};
use controller::Controller;

/// Time in which changes are gathered before the table is made anew.
const GATHERING: Duration = Duration::from_millis(200);

/// Longest time between two rounds of the loop.
const ROUND: Duration = Duration::from_secs(10);

/// Reason that the program ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Works on a cluster.
///
/// # Errors
/// The cluster can't be reached, or another copy works now.
pub(crate) fn run(args: &Args, question: &Question) -> Result<(), LiveError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ClusterError::Runtime)?;
    runtime.block_on(async {
        let cluster = connect(env!("CARGO_BIN_NAME"), &args.server).await?;
        say_other_release(env!("CARGO_BIN_NAME"), &cluster, question.profile);
        match (args.controller, args.watch) {
            (true, _) => Controller::new(&cluster, question, args).run(args).await,
            (_, true) => tokio::select! {
                ended = watch(&cluster, question, args) => ended,
                stopped = told_to_stop() => Ok(stopped?),
            },
            _ => once(&cluster, question, args).await,
        }
    })
}

async fn once(cluster: &Cluster, question: &Question, args: &Args) -> Result<(), LiveError> {
    let answer = question.ask(&list_devices(cluster).await?, args.now.unwrap_or_else(now));
    note(&answer, question, args);
    Ok(put(&text(&answer, question, args)?)?)
}

/// Prints the table whenever it has become another one.
async fn watch(cluster: &Cluster, question: &Question, args: &Args) -> Result<(), LiveError> {
    let vitals = Vitals::default();
    let tables = vitals.metrics.counter("dra_pool_status_tables_total", "Tables that were printed", &[]);
    vitals.serve(args.vitals.metrics_address).await?;
    let (mut view, mut watches, mut printed) =
        (PoolView::new(question.controllers()), watch_pools(cluster), String::new());
    loop {
        vitals.round();
        let Ok(Some(change)) = timeout(ROUND, watches.next()).await else { continue };
        view.apply(change)?;
        if view.is_complete() {
            tokio::time::sleep(GATHERING).await;
        }
        while let Some(change) = watches.next_waiting() {
            view.apply(change)?;
        }
        if !view.is_complete() {
            continue;
        }
        let answer = question.ask_index(&view.index, args.now.unwrap_or_else(now));
        let text = text(&answer, question, args)?;
        if text != printed {
            put(&text)?;
            tables.add(&[], 1);
            printed = text;
        }
    }
}
