//! Operations `alloc.validate_slice`, `_claim`, `_claim_status`, `_claim_template`, `_class` and `_taint_rule`.

use std::collections::BTreeMap;

use dra_alloc::skip::{SkipField, WireForm, WireFormError};
use dra_alloc::validate::{Accepted, ApiServer, NamespaceAccess, Write};
use dra_attrs::{Component, FieldErrors, Profile};
use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use k8s_openapi::jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::alloc::{carrier, features};
use super::operation::Operation;
use super::refusal::{Refusal, object, read};

#[derive(Deserialize)]
struct ValidateInput {
    #[serde(default = "crate::operation::kep")]
    profile: Profile,
    #[serde(default, alias = "gates", deserialize_with = "crate::settings::gates")]
    features: BTreeMap<String, bool>,
    namespace: Option<Namespace>,
    now: Option<Timestamp>,
    old: Option<Value>,
    new: Value,
}

pub(super) fn slice(input: Value) -> Result<Operation, Refusal> {
    operation(input, carrier::<ResourceSlice>, ApiServer::validate_slice, written)
}

pub(super) fn claim(input: Value) -> Result<Operation, Refusal> {
    operation(input, carrier::<ResourceClaim>, ApiServer::validate_claim, written)
}

pub(super) fn claim_status(input: Value) -> Result<Operation, Refusal> {
    operation(input, carrier::<ResourceClaim>, ApiServer::validate_claim_status, written)
}

pub(super) fn claim_template(input: Value) -> Result<Operation, Refusal> {
    operation(input, plain::<ResourceClaimTemplate>, ApiServer::validate_claim_template, as_it_is)
}

pub(super) fn class(input: Value) -> Result<Operation, Refusal> {
    operation(input, object::<DeviceClass>, ApiServer::validate_class, as_it_is)
}

pub(super) fn taint_rule(input: Value) -> Result<Operation, Refusal> {
    operation(input, object::<DeviceTaintRule>, rule_and_status, as_it_is)
}

/// Validates a write of a rule, then one of its status if the status changes.
fn rule_and_status(
    server: ApiServer,
    write: Write<'_, DeviceTaintRule>,
) -> Result<Accepted<DeviceTaintRule>, FieldErrors> {
    let admitted = server.validate_taint_rule(write);
    if write.new.status.is_none() || write.old.is_some_and(|old| old.status == write.new.status) {
        return admitted;
    }
    let status = server.validate_taint_rule_status(write);
    match (admitted, status) {
        (Ok(mut admitted), Ok(status)) => {
            admitted.object.status = status.object.status;
            Ok(admitted)
        }
        (admitted, status) => Err(admitted.err().into_iter().chain(status.err()).flatten().collect()),
    }
}

fn operation<T: Resource + 'static>(
    input: Value,
    parse: fn(&str, Value) -> Result<T, Refusal>,
    decide: fn(ApiServer, Write<'_, T>) -> Result<Accepted<T>, FieldErrors>,
    write: fn(&T, WireForm) -> Result<Value, Refusal>,
) -> Result<Operation, Refusal> {
    let input: ValidateInput = read(input)?;
    let profile = input.profile;
    let old = input.old.map(|old| parse("old", decode::<T>("old", old, profile)?)).transpose()?;
    let new = parse("new", decode::<T>("new", input.new, profile)?)?;
    let namespace = input.namespace.as_ref().map(NamespaceAccess::from_namespace).unwrap_or_default();
    let server = ApiServer::new(Component::new(input.profile, features(input.profile, &input.features)))
        .with_namespace(namespace);
    let server = input.now.map_or(server, |now| server.with_now(now));
    let form = WireForm::from_profile(input.profile);
    Ok(Box::new(move |stopwatch| {
        let outcome = stopwatch.run(|| decide(server, Write { old: old.as_ref(), new: &new }));
        match outcome {
            Ok(admitted) => Ok(json!({"errors": [], "object": write(&admitted.object, form)?})),
            Err(errors) => Ok(json!({"errors": errors, "object": null})),
        }
    }))
}

/// Reads an object's JSON as the API server does: in any version of its group, without unknown fields.
fn decode<T: Resource>(field: &str, mut object: Value, profile: Profile) -> Result<Value, Refusal> {
    if let Some(fields) = object.as_object_mut() {
        fields.entry("kind").or_insert_with(|| json!(T::KIND));
    }
    let read = dra_alloc::validate::read(object, profile).map_err(|errors| {
        let first = errors.first().map(|error| error.field.as_str()).unwrap_or_default();
        Refusal::field(first, errors.to_string()).below(field)
    })?;
    Ok(read.object)
}

fn plain<T: DeserializeOwned>(field: &str, object: Value) -> Result<T, Refusal> {
    read(object).map_err(|refusal| refusal.below(field))
}

fn written<T: SkipField>(object: &T, form: WireForm) -> Result<Value, Refusal> {
    object.write(form).map_err(|error| {
        let kind = if matches!(error, WireFormError::NotExpressible { .. }) { "NotExpressible" } else { "Json" };
        Refusal::new(kind, error.to_string())
    })
}

fn as_it_is<T: Serialize>(object: &T, _: WireForm) -> Result<Value, Refusal> {
    serde_json::to_value(object).map_err(|error| Refusal::new("Json", error.to_string()))
}
