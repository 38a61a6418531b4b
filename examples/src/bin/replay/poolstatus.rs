//! The operation `poolstatus.compute`.

use std::collections::BTreeMap;

use dra_attrs::FieldErrors;
use dra_attrs::{Component, GateSet, Profile};
use k8s_openapi::Resource;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3;
use k8s_openapi::jiff::Timestamp;
use poolstatus::metrics::MetricIncrements;
use poolstatus::{AvailabilityReport, Cluster, Query, RequestOutcome, StatusRequest, kep};
use serde::Deserialize;
use serde_json::{Value, json};

use super::alloc::carriers;
use super::operation::Operation;
use super::refusal::{Refusal, objects, read};
use super::stopwatch::Stopwatch;

/// Form of the request and of its status.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    #[default]
    Kep,
    V1Alpha3,
}

impl Form {
    const fn profile(self) -> Profile {
        match self {
            Self::Kep => Profile::Kep,
            Self::V1Alpha3 => Profile::V1_37,
        }
    }
}

#[derive(Deserialize)]
struct ComputeInput {
    #[serde(default)]
    form: Form,
    #[serde(default, alias = "gates", deserialize_with = "crate::settings::gates")]
    features: BTreeMap<String, bool>,
    request: Value,
    #[serde(default)]
    slices: Vec<Value>,
    #[serde(default)]
    claims: Vec<Value>,
    #[serde(default)]
    taint_rules: Vec<Value>,
    now: Timestamp,
}

/// Query of a request, and the status that the request already has.
struct ReadRequest {
    query: Query,
    /// Status of a processed request.
    status: Option<Value>,
}

impl ReadRequest {
    fn read(form: Form, request: Value) -> Result<Self, Refusal> {
        let place = |refusal: Refusal| refusal.below("request");
        match form {
            Form::Kep => {
                check_kind(&request)?;
                let request: kep::ResourcePoolStatusRequest = read(request).map_err(place)?;
                Self::new((&request).into(), json!(request.status))
            }
            Form::V1Alpha3 => {
                let request: v1alpha3::ResourcePoolStatusRequest = read(request).map_err(place)?;
                Self::new((&request).into(), json!(request.status))
            }
        }
    }

    fn new(request: StatusRequest<'_>, status: Value) -> Result<Self, Refusal> {
        let query = Query::from_request(request).map_err(|errors| invalid(&errors))?;
        Ok(Self { query, status: request.is_processed().then_some(status) })
    }
}

pub(super) fn compute(input: Value) -> Result<Operation, Refusal> {
    let mut input: ComputeInput = read(input)?;
    let slices: Vec<ResourceSlice> = carriers("slices", input.slices.drain(..))?;
    let claims: Vec<ResourceClaim> = carriers("claims", input.claims.drain(..))?;
    let rules: Vec<DeviceTaintRule> = objects("taint_rules", input.taint_rules.drain(..))?;
    let request = ReadRequest::read(input.form, input.request.take())?;
    let profile = input.form.profile();
    let gates = GateSet::from_names(profile, |gate| Some(input.features.get(gate).copied().unwrap_or(false)));
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        if let Some(status) = &request.status {
            let observed = json!({"processed": 0, "errors": 0, "driver": request.query.driver()});
            return Ok(json!({"status": status, "lints": [], "observability": observed}));
        }
        let cluster =
            stopwatch.index(|| Cluster::new(Component::new(profile, gates), &slices, &claims).with_taint_rules(&rules));
        let (report, status) = stopwatch.run(|| {
            let report = cluster.report(&request.query, input.now);
            let status = to_form(&report, input.form);
            (report, status)
        });
        if !stopwatch.is_asked() {
            return Ok(Value::Null);
        }
        let warnings = report.warnings(profile).map(|(pool, warning)| format!("pool {pool}: {warning}"));
        let warnings: Vec<String> = warnings.collect();
        Ok(answer(&status, &warnings, &report.metric_increments(profile)))
    }))
}

/// Status in one of the forms.
enum FormedStatus {
    Kep(kep::Status),
    V1Alpha3(RequestOutcome),
}

fn to_form(report: &AvailabilityReport, form: Form) -> FormedStatus {
    match form {
        Form::Kep => FormedStatus::Kep(report.to_kep()),
        Form::V1Alpha3 => FormedStatus::V1Alpha3(report.to_v1alpha3()),
    }
}

/// Builds the output of the operation.
fn answer(status: &FormedStatus, lints: &[String], observability: &MetricIncrements) -> Value {
    match status {
        FormedStatus::Kep(status) => json!({"status": status, "lints": lints, "observability": observability}),
        FormedStatus::V1Alpha3(RequestOutcome::Incomplete { pools, preview }) => json!({
            "status": null, "incomplete": pools, "preview": preview, "lints": lints, "observability": observability,
        }),
        FormedStatus::V1Alpha3(outcome) => {
            json!({"status": outcome.status(), "lints": lints, "observability": observability})
        }
    }
}

/// Checks the kind of a request in the KEP's form. The types of k8s-openapi check theirs when they deserialize.
fn check_kind(request: &Value) -> Result<(), Refusal> {
    let expected = kep::ResourcePoolStatusRequest::KIND;
    match &request["kind"] {
        Value::Null => Ok(()),
        kind if kind == expected => Ok(()),
        kind => Err(Refusal::field("request.kind", format!("invalid value: {kind}, expected {expected}"))),
    }
}

/// Builds the refusal of a request with field errors.
fn invalid(errors: &FieldErrors) -> Refusal {
    let field = errors.iter().next().map_or_else(|| "request".to_owned(), |error| format!("request.{}", error.field));
    Refusal::field(&field, errors.to_string())
}
