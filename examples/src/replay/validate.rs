//! The operations `alloc.validate_slice`, `_claim`, `_claim_status`, `_claim_template`, `_class` and `_taint_rule`.

use std::collections::BTreeMap;

use dra_alloc::skip::WireForm;
use dra_alloc::skip::wire::{Carrier, WriteError, write};
use dra_alloc::validate::{Admission, Admitted, ApiServer, NamespaceAccess};
use dra_attrs::field::FieldErrors;
use dra_attrs::profile::Profile;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Operation;
use super::alloc::{carrier, features};
use super::refusal::{Refusal, read};

#[derive(Deserialize)]
struct ValidateInput {
    #[serde(default)]
    profile: Profile,
    #[serde(default, alias = "gates")]
    features: BTreeMap<String, bool>,
    namespace: Option<Namespace>,
    old: Option<Value>,
    new: Value,
}

pub(super) fn slice(input: Value) -> Result<Operation, Refusal> {
    operation(input, carrier::<ResourceSlice>, ApiServer::slice, written)
}

pub(super) fn claim(input: Value) -> Result<Operation, Refusal> {
    operation(input, carrier::<ResourceClaim>, ApiServer::claim, written)
}

pub(super) fn claim_status(input: Value) -> Result<Operation, Refusal> {
    operation(input, carrier::<ResourceClaim>, ApiServer::claim_status, written)
}

pub(super) fn claim_template(input: Value) -> Result<Operation, Refusal> {
    operation(input, plain::<ResourceClaimTemplate>, ApiServer::claim_template, as_it_is)
}

pub(super) fn class(input: Value) -> Result<Operation, Refusal> {
    operation(input, plain::<DeviceClass>, ApiServer::class, as_it_is)
}

pub(super) fn taint_rule(input: Value) -> Result<Operation, Refusal> {
    operation(input, plain::<DeviceTaintRule>, rule_and_status, as_it_is)
}

/// A write of a rule, then one of its status if that changes.
fn rule_and_status(
    server: ApiServer,
    write: Admission<'_, DeviceTaintRule>,
) -> Result<Admitted<DeviceTaintRule>, FieldErrors> {
    let admitted = server.taint_rule(write);
    if write.new.status.is_none() || write.old.is_some_and(|old| old.status == write.new.status) {
        return admitted;
    }
    let status = server.taint_rule_status(write);
    match (admitted, status) {
        (Ok(mut admitted), Ok(status)) => {
            admitted.object.status = status.object.status;
            Ok(admitted)
        }
        (admitted, status) => Err(admitted.err().into_iter().chain(status.err()).flatten().collect()),
    }
}

fn operation<T: 'static>(
    input: Value,
    parse: fn(&str, Value) -> Result<T, Refusal>,
    decide: fn(ApiServer, Admission<'_, T>) -> Result<Admitted<T>, FieldErrors>,
    write: fn(&T, WireForm) -> Result<Value, Refusal>,
) -> Result<Operation, Refusal> {
    let input: ValidateInput = read(input)?;
    let old = input.old.map(|old| parse("old", old)).transpose()?;
    let new = parse("new", input.new)?;
    let namespace = input.namespace.as_ref().map(NamespaceAccess::of).unwrap_or_default();
    let server = ApiServer::new(input.profile, features(input.profile, &input.features)).in_namespace(namespace);
    let form = WireForm::of(input.profile);
    Ok(Box::new(move |stopwatch| {
        let outcome = stopwatch.run(|| decide(server, Admission { old: old.as_ref(), new: &new }));
        match outcome {
            Ok(admitted) => Ok(json!({"errors": [], "object": write(&admitted.object, form)?})),
            Err(errors) => Ok(json!({"errors": errors, "object": null})),
        }
    }))
}

fn plain<T: DeserializeOwned>(field: &str, object: Value) -> Result<T, Refusal> {
    read(object).map_err(|refusal| refusal.below(field))
}

fn written<T: Carrier>(object: &T, form: WireForm) -> Result<Value, Refusal> {
    write(object, form).map_err(|error| {
        let kind = if matches!(error, WriteError::NotExpressible(_)) { "NotExpressible" } else { "Json" };
        Refusal::new(kind, error.to_string())
    })
}

fn as_it_is<T: Serialize>(object: &T, _: WireForm) -> Result<Value, Refusal> {
    serde_json::to_value(object).map_err(|error| Refusal::new("Json", error.to_string()))
}
