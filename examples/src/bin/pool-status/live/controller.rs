//! Controller that answers requests, each once, and deletes those that were kept long enough.

use std::num::NonZeroU32;
use std::time::Duration;

use dra_attrs::{Component, Gate, GateSet, Profile};
use dra_live::connect::Cluster;
use dra_live::lease::work_alone;
use dra_live::now;
use dra_live::vitals::Vitals;
use dra_live::watching::{Change, Watches};
use examples::live::pool_request_calls::{StatusWritten, delete, write_status};
use examples::live::pool_view::{PoolView, Seen, watch_pools, watch_requests};
use examples::manifest::PoolStatusRequest;
use examples::output::{Format, LineForm, put_line, say};
use examples::pool_question::Question;
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequestStatus;
use k8s_openapi::jiff::Timestamp;
use poolstatus::lifecycle::{RateLimiter, RequestController, RequestDecision};
use poolstatus::{AvailabilityReport, Query, RequestOutcome};
use tokio::time::Instant;

use super::super::args::Args;
use super::LiveError;
use super::counts::Counts;
use super::line::Line;
use super::pending::{Pending, soon};

/// Name of the lease.
const LEASE: &str = "dra-sdk-pool-status";

/// Name of the one bucket of the rate limit. Users are known to the API server alone.
const EVERYBODY: &str = "";

/// Changes that are taken before an answer: an answer is not put off for ever.
const MOST_CHANGES: usize = 256;

/// Longest time between two rounds of the loop.
const ROUND: Duration = Duration::from_secs(10);

/// Controller of requests.
pub(super) struct Controller<'a> {
    cluster: &'a Cluster,
    profile: Profile,
    view: PoolView,
    gates: GateSet,
    decisions: RequestController,
    limiter: RateLimiter,
    pending: Pending,
    cleanup: Instant,
    form: LineForm,
    vitals: Vitals,
    counts: Counts,
}

impl<'a> Controller<'a> {
    /// Creates a controller that has seen nothing.
    pub(super) fn new(cluster: &'a Cluster, question: &Question, args: &Args) -> Self {
        let gates = question.gates.with(Gate::ResourcePoolStatus);
        let (rate, vitals) = (args.answers_per_second, Vitals::default());
        Self {
            cluster,
            view: PoolView::new(Component::new(question.profile, gates)),
            gates,
            decisions: RequestController::new(gates, gates),
            limiter: RateLimiter::new(rate, refill(rate)),
            pending: Pending::new(),
            cleanup: Instant::now(),
            counts: Counts::new(&vitals.metrics, question.profile),
            form: if args.output == Some(Format::Json) { LineForm::Json } else { LineForm::Text },
            vitals,
            profile: question.profile,
        }
    }

    /// Answers requests until the program is told to stop, or another copy has taken over.
    pub(super) async fn run(mut self, args: &Args) -> Result<(), LiveError> {
        self.vitals.serve(args.vitals.metrics_address).await?;
        let cluster = self.cluster;
        let answer = async || {
            let mut watches = watch_pools(cluster);
            watch_requests(cluster, &mut watches, self.profile);
            put_line(self.form, &Line::Answers { server: cluster.url.clone() })?;
            self.work(&mut watches).await
        };
        work_alone(cluster, &args.lease.terms(), LEASE, answer).await
    }

    async fn work(&mut self, watches: &mut Watches) -> Result<(), LiveError> {
        // After a time without the lease everything is seen anew.
        self.view = PoolView::new(Component::new(self.profile, self.gates));
        self.decisions = RequestController::new(self.gates, self.gates);
        self.pending.clear();
        loop {
            self.vitals.round();
            for change in std::iter::from_fn(|| watches.next_waiting()).take(MOST_CHANGES) {
                self.observe(change)?;
            }
            if !self.view.is_complete() {
                if let Some(change) = watches.next().await {
                    self.observe(change)?;
                }
                continue;
            }
            if self.cleanup <= Instant::now() {
                self.clean_up().await?;
            }
            match self.pending.next() {
                Some((name, due)) if due <= Instant::now() => self.answer(&name).await?,
                next => {
                    let wake = next.map_or(self.cleanup, |(_, due)| due).min(self.cleanup).min(soon(ROUND));
                    if let Ok(Some(change)) = tokio::time::timeout_at(wake, watches.next()).await {
                        self.observe(change)?;
                    }
                }
            }
        }
    }

    fn observe(&mut self, change: Change) -> Result<(), LiveError> {
        match self.view.apply(change)? {
            Seen::List(kind) => {
                self.decisions.mark_synced(kind);
                self.pending.soon();
            }
            Seen::Pools => self.pending.soon(),
            Seen::Requests => {
                // Memory of requests that went unseen ends here; a write that the list lacks is a conflict.
                self.decisions = RequestController::new(self.gates, self.gates);
                self.view.listed_kinds().for_each(|kind| self.decisions.mark_synced(kind));
                self.pending.clear();
                self.cleanup = Instant::now();
                self.view.requests.keys().cloned().collect::<Vec<_>>().iter().for_each(|name| self.consider(name));
            }
            Seen::Request(name) => self.consider(&name),
            Seen::RequestDeleted(request) => {
                self.pending.remove(request.view().metadata().name.as_deref().unwrap_or_default());
                self.decisions.forget(request.view().metadata().uid.as_deref().unwrap_or_default());
            }
            _ => {}
        }
        Ok(())
    }

    /// Puts a request among those that are pending, or takes it away.
    fn consider(&mut self, name: &str) {
        let Some(request) = self.view.requests.get(name) else { return };
        if self.decisions.decide(request.view()) == RequestDecision::Processed {
            self.pending.remove(name);
        } else {
            self.pending.add(name);
        }
    }

    /// Answers a request, unless its pools are incomplete.
    async fn answer(&mut self, name: &str) -> Result<(), LiveError> {
        let request = self.view.requests.get(name).cloned();
        let Some(mut request) =
            request.filter(|request| self.decisions.decide(request.view()) == RequestDecision::Process)
        else {
            self.pending.remove(name);
            return Ok(());
        };
        if let Some(wait) = self.limiter.take(EVERYBODY, now()) {
            self.pending.hold_all(wait);
            return Ok(());
        }
        let query = match Query::from_request(request.view()) {
            Ok(query) => query,
            Err(errors) => {
                self.pending.put_off(name, &errors.to_string());
                return Ok(());
            }
        };
        let begin = Instant::now();
        // A status has whole seconds.
        let time = Timestamp::from_second(now().as_second()).unwrap_or_default();
        let report = self.view.index.report(&query, time);
        let counts = match fill(&mut request, &report) {
            Ok(counts) => counts,
            Err(pools) => {
                self.pending.put_off(name, &format!("no status while pools are incomplete: {}", listed(&pools)));
                return Ok(());
            }
        };
        let written = write_status(&self.cluster.client, &request).await;
        let increments = report.metric_increments(self.profile);
        let increments = match &written {
            StatusWritten::Failed(_) => increments.with_failed_write(self.profile),
            _ => increments,
        };
        self.counts.add(&increments, begin.elapsed());
        self.note(name, &request, counts, written)
    }

    fn note(
        &mut self,
        name: &str,
        answered: &PoolStatusRequest,
        (pools, listed): (i32, usize),
        written: StatusWritten,
    ) -> Result<(), LiveError> {
        let request = name.to_owned();
        let line = match written {
            StatusWritten::Stored => Line::Answered { request, pools, listed, seen: self.view.versions() },
            StatusWritten::ByOther => Line::AnsweredByOther { request },
            StatusWritten::Gone => Line::Gone { request },
            StatusWritten::Failed(reason) => {
                self.pending.put_off(name, &reason);
                return Ok(());
            }
        };
        self.decisions.mark_written(answered.view().metadata().uid.as_deref().unwrap_or_default());
        self.pending.remove(name);
        Ok(put_line(self.form, &line)?)
    }

    /// Deletes the requests that were kept long enough.
    async fn clean_up(&mut self) -> Result<(), LiveError> {
        let begin = now();
        for (name, request) in &self.view.requests {
            // A time that is none is refused when the request is made.
            if request.is_expired(begin).unwrap_or_default() {
                match delete(&self.cluster.client, request).await {
                    Ok(()) => put_line(self.form, &Line::Expired { request: name.clone() })?,
                    Err(reason) => say(&format_args!("pool-status: {name}: expired, not deleted: {reason}")),
                }
            }
        }
        self.limiter.forget_idle(begin);
        self.cleanup = soon(RequestController::CLEANUP_INTERVAL);
        Ok(())
    }
}

/// Writes the status of a report into a request. Returns the number of matching pools and of those that are listed; or the
/// names of incomplete pools, while which there is no status.
fn fill(request: &mut PoolStatusRequest, report: &AvailabilityReport) -> Result<(i32, usize), Vec<String>> {
    match request {
        PoolStatusRequest::Kep(request) => {
            request.status = report.to_kep();
            Ok((request.status.total_matching_pools, request.status.pools.len()))
        }
        PoolStatusRequest::V1alpha3(request) => {
            let outcome = report.to_v1alpha3();
            if let RequestOutcome::Incomplete { pools, .. } = outcome {
                return Err(pools);
            }
            request.status = outcome.status().cloned();
            let counts = |status: &ResourcePoolStatusRequestStatus| {
                (status.pool_count, status.pools.as_ref().map_or(0, Vec::len))
            };
            Ok(request.status.as_ref().map(counts).unwrap_or_default())
        }
    }
}

/// Returns the time after which one more request may be answered.
fn refill(rate: NonZeroU32) -> Duration {
    Duration::from_secs(1).checked_div(rate.get()).unwrap_or_default()
}

/// Returns the first of some names, and the number of the others.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
