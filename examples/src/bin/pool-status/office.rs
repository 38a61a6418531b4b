//! Answers to the requests of the manifests: the API server's check, the controller's decisions, and the status.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use dra_alloc::{Component, InventoryError};
use dra_attrs::{Gate, GateSet, Profile};
use examples::manifest::{Manifests, PoolStatusRequest, name_of};
use examples::pool_question::{Question, incomplete_pools};
use examples::pool_table::tables;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::jiff::Timestamp;
use poolstatus::lifecycle::{RateLimiter, RequestController, RequestDecision, RequestPhase};
use poolstatus::metrics::{Metric, MetricIncrements};
use poolstatus::{AvailabilityReport, DeviceTotals, InputKind, PoolIndex, Query, RequestOutcome, StatusRequest};
use serde_json::{Value, json};

use super::PoolStatusError;
use super::args::Args;

/// Time after which a user may create one more request.
const REFILL: Duration = Duration::from_secs(60);

/// Answer to one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// The request with its status, unless it is refused or deleted.
    pub(crate) object: Option<Value>,
    /// Report from which the status was computed.
    report: Option<AvailabilityReport>,
    /// Messages for stderr.
    pub(crate) notes: Vec<String>,
    /// Alert and metrics, for stderr.
    pub(crate) lines: Vec<String>,
    /// True if the API server does not accept the request.
    pub(crate) is_refused: bool,
}

impl Answer {
    fn refused(note: String) -> Self {
        Self { notes: vec![note], is_refused: true, ..Self::default() }
    }

    /// Returns the tables of the report.
    pub(crate) fn table(&self, args: &Args) -> Option<String> {
        self.report.as_ref().map(|report| tables(std::slice::from_ref(report), &[], args.by, args.rules.profile))
    }
}

/// API server and controller for requests, at one point in time.
pub(crate) struct Office<'a> {
    /// Objects of the cluster, indexed once for all requests.
    index: PoolIndex,
    gates: GateSet,
    args: &'a Args,
    now: Timestamp,
    controller: RequestController,
    limiter: Option<RateLimiter>,
    /// Role of the user, if it is the only one.
    role: Option<&'a ClusterRole>,
    /// Time that each request took to process.
    durations: Vec<Duration>,
}

impl<'a> Office<'a> {
    /// Indexes the objects of the manifests.
    ///
    /// # Errors
    /// There is no such role, or an object can't be indexed.
    pub(crate) fn new(
        manifests: &'a Manifests,
        question: &Question,
        args: &'a Args,
        now: Timestamp,
    ) -> Result<Self, PoolStatusError> {
        let find = |name: &String| {
            let role = manifests.roles.iter().find(|role| role.metadata.name.as_ref() == Some(name));
            role.ok_or_else(|| PoolStatusError::NoRole { name: name.clone() })
        };
        let role = args.as_role.as_ref().map(find).transpose()?;
        let on = question.gates.with(Gate::ResourcePoolStatus);
        let manager = if args.no_controller { on.without(Gate::ResourcePoolStatus) } else { on };
        let server = if args.not_served { on.without(Gate::ResourcePoolStatus) } else { on };
        let mut controller = RequestController::new(server, manager);
        let kinds = [InputKind::ResourceSlices, InputKind::ResourceClaims, InputKind::DeviceTaintRules];
        let not_synced = args.not_synced.map(InputKind::from);
        kinds.into_iter().filter(|kind| Some(*kind) != not_synced).for_each(|kind| controller.mark_synced(kind));
        let limiter = args.per_user.map(|burst: NonZeroU32| RateLimiter::new(burst, REFILL));
        let (index, durations) = (index(manifests, question.controllers())?, Vec::new());
        Ok(Self { index, gates: question.gates, args, now, controller, limiter, role, durations })
    }

    /// Creates, processes or deletes a request, as its state wants it.
    pub(crate) fn answer(&mut self, request: &PoolStatusRequest) -> Answer {
        let view = request.view();
        let name = format!("ResourcePoolStatusRequest {}", name_of(view.metadata()));
        if self.controller.decide(view) == RequestDecision::Inaccessible {
            let gate = Gate::ResourcePoolStatus.name(view.profile());
            return Answer::refused(format!("{name}: not served: the feature gate {gate} is off in the API server"));
        }
        if let Err(note) = self.authorize(view) {
            return Answer::refused(format!("{name}: {note}"));
        }
        if !view.is_processed() {
            if let Err(errors) = view.validate(self.gates).into_result() {
                return Answer::refused(format!("{name}: {errors}"));
            }
            if let Some(wait) = self.limiter.as_mut().and_then(|limiter| limiter.take("user", self.now)) {
                return Answer::refused(format!("{name}: too many requests, try again in {wait:?}"));
            }
        }
        match request.is_expired(self.now) {
            Err(reason) => return Answer::refused(format!("{name}: {reason}")),
            Ok(true) => return Answer { notes: vec![format!("{name}: expired, deleted")], ..Answer::default() },
            Ok(false) => {}
        }
        match self.controller.decide(view) {
            RequestDecision::Process => self.process(request, &name),
            decision => Answer {
                object: Some(object(request)),
                notes: vec![format!("{name}: {}", self.state(view, decision))],
                ..Answer::default()
            },
        }
    }

    /// Checks that the user may create a request that is new, and read it.
    fn authorize(&self, view: StatusRequest<'_>) -> Result<(), String> {
        let Some(role) = self.role else { return Ok(()) };
        let name = view.metadata().name.as_deref().unwrap_or_default();
        let create = (!view.is_processed()).then_some(("create", ""));
        let refused = create
            .into_iter()
            .chain([("get", name)])
            .find(|(verb, name)| !StatusRequest::is_granted_by(role, verb, name));
        match refused {
            Some((verb, _)) => Err(format!(
                "forbidden: ClusterRole {} does not grant {verb} on resourcepoolstatusrequests",
                name_of(&role.metadata)
            )),
            None => Ok(()),
        }
    }

    /// Returns a line about the objective of the controller, if metrics are asked for.
    pub(crate) fn objective(&self) -> Option<String> {
        let word = if Metric::is_objective_met(&self.durations) { "met" } else { "missed" };
        let line = || format!("objective: 99 % of the requests within {} s: {word}", Metric::OBJECTIVE.as_secs());
        self.args.metrics.then(line)
    }

    /// Computes the status of a request.
    fn process(&mut self, request: &PoolStatusRequest, name: &str) -> Answer {
        let view = request.view();
        let query = match Query::from_request(view) {
            Ok(query) => query,
            Err(errors) => return Answer::refused(format!("{name}: {errors}")),
        };
        let failed = self.args.list_error.map(InputKind::from);
        if let Some(kind) = failed {
            return self.unlisted(request, name, kind, query.driver());
        }
        let clock = self.args.now.is_none().then(Instant::now);
        let report = self.index.report(&query, self.now);
        let taken = clock.map(|begin| begin.elapsed()).unwrap_or_default();
        self.durations.push(taken);
        let mut lines = self.metrics(&report.metric_increments(view.profile()), view.profile());
        lines.extend(self.duration(taken, query.driver(), view.profile()));
        let mut answer = Answer { lines, ..Answer::default() };
        let totals = match request {
            PoolStatusRequest::Kep(request) => {
                let mut request = request.clone();
                request.status = report.to_kep();
                answer.object = Some(json!(request));
                DeviceTotals::from(&request.status)
            }
            PoolStatusRequest::V1alpha3(request) => {
                let mut request = request.clone();
                request.status = report.to_v1alpha3().status().cloned();
                answer.object = Some(json!(request));
                let pools = incomplete_pools(&report);
                if !pools.is_empty() {
                    answer
                        .notes
                        .push(format!("{name}: pending: no status while pools are incomplete: {}", pools.join(", ")));
                }
                request.status.as_ref().map(DeviceTotals::from).unwrap_or_default()
            }
        };
        let warnings = report.warnings(view.profile());
        answer.notes.extend(warnings.map(|(pool, warning)| format!("{name}: pool {pool}: {warning}")));
        if self.args.alert_below.is_some_and(|threshold| totals.is_below(threshold)) {
            answer.lines.insert(0, format!("ALERT: Only {} devices available cluster-wide", totals.available));
        }
        if let Some(uid) = &view.metadata().uid {
            self.controller.mark_written(uid);
        }
        answer.report = Some(report);
        answer
    }

    /// Answers a request whose objects can't be listed.
    fn unlisted(&self, request: &PoolStatusRequest, name: &str, kind: InputKind, driver: &str) -> Answer {
        let profile = request.view().profile();
        let lines = self.metrics(&MetricIncrements::from_list_error(driver, profile), profile);
        let outcome = RequestOutcome::from_list_error(kind, "the server could not be reached", self.now);
        match request {
            PoolStatusRequest::V1alpha3(request) => {
                let mut request = request.clone();
                request.status = outcome.status().cloned();
                Answer { object: Some(json!(request)), lines, ..Answer::default() }
            }
            PoolStatusRequest::Kep(_) => {
                let notes = vec![format!("{name}: pending: {} can't be listed", kind.name())];
                Answer { object: Some(object(request)), notes, lines, ..Answer::default() }
            }
        }
    }

    fn state(&self, request: StatusRequest<'_>, decision: RequestDecision) -> String {
        let reason = match decision {
            RequestDecision::Processed => "processed before, and never again",
            RequestDecision::NotReady => "no controller processes requests",
            RequestDecision::NotSynced(kind) => return format!("pending: the list of {} is not complete", kind.name()),
            _ => "not served",
        };
        match RequestPhase::from_request(request, self.now) {
            RequestPhase::Pending { waiting: Some(waiting) } => {
                format!("pending for {} s: {reason}", waiting.as_secs())
            }
            RequestPhase::Pending { waiting: None } => format!("pending: {reason}"),
            RequestPhase::Failed => format!("failed: {reason}"),
            _ => format!("complete: {reason}"),
        }
    }

    fn metrics(&self, increments: &MetricIncrements, profile: Profile) -> Vec<String> {
        if !self.args.metrics {
            return Vec::new();
        }
        let counts = [(Metric::Processed, increments.processed), (Metric::Errors, increments.errors)];
        let line = |(metric, count): (Metric, u64)| {
            let (name, label) = (metric.name(profile), Metric::DRIVER_LABEL);
            format!("{name}{{{label}={:?}}} {count}", increments.driver)
        };
        counts.into_iter().map(line).collect()
    }

    /// Returns the sum and count of the histogram of durations, with one duration.
    fn duration(&self, taken: Duration, driver: &str, profile: Profile) -> Vec<String> {
        if !self.args.metrics {
            return Vec::new();
        }
        let name = Metric::Duration.name(profile);
        let label = Metric::DRIVER_LABEL;
        let line = |part: &str, value: String| format!("{name}_{part}{{{label}={driver:?}}} {value}");
        vec![line("sum", taken.as_secs_f64().to_string()), line("count", "1".to_owned())]
    }
}

/// Indexes the objects from which a status is computed.
fn index(manifests: &Manifests, controllers: Component) -> Result<PoolIndex, InventoryError> {
    let mut index = PoolIndex::new(controllers);
    index.replace_slices(manifests.slices.iter().cloned())?;
    index.replace_claims(manifests.claims.iter().cloned())?;
    index.replace_taint_rules(manifests.taint_rules.iter().cloned())?;
    Ok(index)
}

fn object(request: &PoolStatusRequest) -> Value {
    match request {
        PoolStatusRequest::Kep(request) => json!(request),
        PoolStatusRequest::V1alpha3(request) => json!(request),
    }
}
