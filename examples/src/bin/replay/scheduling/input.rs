//! Input that several operations share, and devices and consumers as texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_alloc::GateSet;
use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::PodOptions;
use dra_attrs::{Component, Profile};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequestAllocationResult, ResourceClaim};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::alloc::{carrier, carriers};
use crate::operation::Operation;
use crate::refusal::{Refusal, object, read};

/// Profile and gates of an operation. A gate that is not named is as Kubernetes 1.37 has it.
#[derive(Deserialize)]
struct Rules {
    #[serde(default = "crate::operation::kep")]
    profile: Profile,
    #[serde(default, deserialize_with = "crate::settings::gates")]
    gates: BTreeMap<String, bool>,
}

/// Reads profile and gates of an operation's input.
pub(super) fn options(input: &Value) -> Result<PodOptions, Refusal> {
    let named = ["profile", "gates"].into_iter().filter_map(|name| Some((name.to_owned(), input.get(name)?.clone())));
    let Rules { profile, gates } = read(Value::Object(named.collect()))?;
    let is_on = |gate: &str| {
        let mut named = gates.iter().filter(|(names, _)| names.split('+').any(|name| name == gate));
        named.next().map(|(_, is_on)| *is_on)
    };
    Ok(PodOptions::new(Component::new(profile, GateSet::from_names(profile, is_on))))
}

/// Wraps the answer of an operation without an index.
pub(super) fn result(answer: impl Fn() -> Value + 'static) -> Operation {
    Box::new(move |stopwatch| Ok(json!({"result": stopwatch.run(&answer)})))
}

pub(super) fn pod(field: &str, value: Value) -> Result<Pod, Refusal> {
    object(field, value)
}

pub(super) fn group(field: &str, value: Value) -> Result<PodGroup, Refusal> {
    object(field, value)
}

pub(super) fn claim(field: &str, value: Value) -> Result<ResourceClaim, Refusal> {
    carrier(field, value)
}

/// Reads claims as a cache that finds them by name.
pub(super) fn cache(field: &str, values: Vec<Value>) -> Result<BTreeMap<ClaimKey, Arc<ResourceClaim>>, Refusal> {
    let claims: Vec<ResourceClaim> = carriers(field, values.into_iter())?;
    Ok(claims.into_iter().map(|claim| (ClaimKey::from_metadata(&claim.metadata), Arc::new(claim))).collect())
}

/// Writes the devices of an allocation, each as `request=driver/pool/device`.
pub(super) fn devices(allocation: &AllocationResult) -> Vec<String> {
    let results = allocation.devices.iter().flat_map(|devices| devices.results.iter().flatten());
    let text = |result: &DeviceRequestAllocationResult| {
        format!("{}={}/{}/{}", result.request, result.driver, result.pool, result.device)
    };
    results.map(text).collect()
}
