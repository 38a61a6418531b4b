//! Operation `alloc.selector`: a selector's type, estimated cost, and its result and cost on devices.

use std::collections::BTreeMap;

use dra_alloc::selector::{Options, Selector, SelectorInput, Value as Outcome};
use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::Device;
use serde::Deserialize;
use serde_json::{Value, json};

use super::alloc::features;
use super::operation::Operation;
use super::refusal::{Refusal, read};
use super::stopwatch::Stopwatch;

#[derive(Deserialize)]
struct SelectorOperation {
    #[serde(default = "crate::operation::kep")]
    profile: Profile,
    expression: String,
    #[serde(default)]
    mode: Mode,
    #[serde(default, alias = "gates", deserialize_with = "crate::settings::gates")]
    features: BTreeMap<String, bool>,
    #[serde(default)]
    devices: Vec<Input>,
    cost_limit: Option<u64>,
}

/// Origin of the expression.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Stored,
    New,
}

#[derive(Deserialize)]
struct Input {
    driver: String,
    device: Value,
}

pub(super) fn evaluate(input: Value) -> Result<Operation, Refusal> {
    let input: SelectorOperation = read(input)?;
    let options = match input.mode {
        Mode::Stored => Options::stored(),
        Mode::New => Options::new_expression(features(input.profile, &input.features)),
    };
    let options = options.with_profile(input.profile);
    let options = options.with_cost_limit(input.cost_limit.unwrap_or(Options::COST_LIMIT));
    let devices = input.devices.into_iter().enumerate().map(|(index, Input { driver, device })| {
        let device = read(device).map_err(|refusal| refusal.below(&format!("devices[{index}].device")));
        device.map(|device| (driver, device))
    });
    let devices: Vec<(String, Device)> = devices.collect::<Result<_, _>>()?;
    let expression = input.expression;
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let selector = stopwatch.index(|| Selector::compile(&expression, &options));
        let selector = selector.map_err(|error| Refusal::new("SelectorCompile", error.to_string()))?;
        let evaluations = stopwatch.run(|| {
            let inputs = devices.iter().map(|(driver, device)| SelectorInput::new(driver, device));
            inputs.map(|input| selector.evaluate(input)).collect::<Vec<_>>()
        });
        let results = evaluations.into_iter().map(|evaluation| match evaluation.result {
            Ok(Outcome::Bool(value)) => json!({"value": value, "cost": evaluation.cost}),
            Ok(other) => json!({"error": format!("no bool: {other}"), "cost": evaluation.cost}),
            Err(error) => json!({"error": error.message(), "cost": evaluation.cost}),
        });
        let (min, max) = selector.estimated_cost();
        let results: Vec<Value> = results.collect();
        Ok(json!({"type": selector.result_type(), "estimated": {"min": min, "max": max}, "results": results}))
    }))
}
