//! The operation `poolstatus.compute`.

use std::collections::BTreeMap;

use dra_attrs::field::FieldErrors;
use dra_attrs::profile::Profile;
use k8s_openapi::Resource;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3;
use k8s_openapi::jiff::Timestamp;
use poolstatus::compute::Cluster;
use poolstatus::gate::Gates;
use poolstatus::kep;
use poolstatus::lint::Lint;
use poolstatus::metrics::Observability;
use poolstatus::outcome::Outcome;
use poolstatus::report::Report;
use poolstatus::request::{Query, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use super::alloc::carriers;
use super::refusal::{Refusal, read};
use super::{Operation, Stopwatch};

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
    #[serde(default, alias = "gates")]
    features: BTreeMap<String, bool>,
    request: Value,
    #[serde(default)]
    slices: Vec<Value>,
    #[serde(default)]
    claims: Vec<Value>,
    #[serde(default)]
    taint_rules: Vec<DeviceTaintRule>,
    now: Timestamp,
}

/// A request, as far as it matters.
struct Asked {
    query: Query,
    /// The answer that is there already.
    answer: Option<Value>,
}

impl Asked {
    fn read(form: Form, request: Value) -> Result<Self, Refusal> {
        let place = |refusal: Refusal| refusal.below("request");
        match form {
            Form::Kep => {
                check_kind(&request)?;
                let request: kep::ResourcePoolStatusRequest = read(request).map_err(place)?;
                Self::of((&request).into(), json!(request.status))
            }
            Form::V1Alpha3 => {
                let request: v1alpha3::ResourcePoolStatusRequest = read(request).map_err(place)?;
                Self::of((&request).into(), json!(request.status))
            }
        }
    }

    fn of(request: Request<'_>, status: Value) -> Result<Self, Refusal> {
        let query = Query::of(request).map_err(|errors| invalid(&errors))?;
        Ok(Self { query, answer: request.is_processed().then_some(status) })
    }
}

pub(super) fn compute(input: Value) -> Result<Operation, Refusal> {
    let mut input: ComputeInput = read(input)?;
    let slices: Vec<ResourceSlice> = carriers("slices", input.slices.drain(..))?;
    let claims: Vec<ResourceClaim> = carriers("claims", input.claims.drain(..))?;
    let asked = Asked::read(input.form, input.request.take())?;
    let gates = Gates::from_gates(|gate| Some(input.features.get(gate).copied().unwrap_or(false)));
    let profile = input.form.profile();
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        if let Some(status) = &asked.answer {
            let observed = json!({"processed": 0, "errors": 0, "driver": asked.query.driver()});
            return Ok(json!({"status": status, "lints": [], "observability": observed}));
        }
        let cluster =
            stopwatch.index(|| Cluster::new(&slices, &claims).with_taint_rules(&input.taint_rules).with_gates(gates));
        let (report, status) = stopwatch.run(|| {
            let report = cluster.report(&asked.query, input.now);
            let status = rendered(&report, input.form);
            (report, status)
        });
        if !stopwatch.is_asked() {
            return Ok(Value::Null);
        }
        Ok(answer(&status, &report.lints(profile).collect::<Vec<_>>(), &report.observability(profile)))
    }))
}

/// A status in one of the forms.
enum Rendered {
    Kep(kep::Status),
    Shipped(Outcome),
}

fn rendered(report: &Report, form: Form) -> Rendered {
    match form {
        Form::Kep => Rendered::Kep(report.kep()),
        Form::V1Alpha3 => Rendered::Shipped(report.shipped()),
    }
}

fn answer(status: &Rendered, lints: &[Lint], observability: &Observability) -> Value {
    match status {
        Rendered::Kep(status) => json!({"status": status, "lints": lints, "observability": observability}),
        Rendered::Shipped(Outcome::Incomplete { pools, preview }) => json!({
            "status": null, "incomplete": pools, "preview": preview, "lints": lints, "observability": observability,
        }),
        Rendered::Shipped(outcome) => {
            json!({"status": outcome.status(), "lints": lints, "observability": observability})
        }
    }
}

/// The types of Kubernetes look at this themselves.
fn check_kind(request: &Value) -> Result<(), Refusal> {
    let expected = kep::ResourcePoolStatusRequest::KIND;
    match &request["kind"] {
        Value::Null => Ok(()),
        kind if kind == expected => Ok(()),
        kind => Err(Refusal::field("request.kind", format!("invalid value: {kind}, expected {expected}"))),
    }
}

/// A request that no API server would store.
fn invalid(errors: &FieldErrors) -> Refusal {
    let field = errors.iter().next().map_or_else(|| "request".to_owned(), |error| format!("request.{}", error.field));
    Refusal::field(&field, errors.to_string())
}
