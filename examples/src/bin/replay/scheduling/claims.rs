//! Operations on the entries of a pod or group: names of claims, and their consumers.

use dra_alloc::claims::{ClaimOrigin, PodClaim};
use dra_alloc::pods::{Consumer, claim_of_group_entry};
use serde::Deserialize;
use serde_json::{Value, json};

use super::input::{group, options, pod, result};
use crate::operation::Operation;
use crate::refusal::{Refusal, read};

#[derive(Deserialize)]
struct OfPod {
    pod: Value,
}

#[derive(Deserialize)]
struct OfGroup {
    #[serde(rename = "podGroup")]
    group: Value,
}

#[derive(Deserialize)]
struct Bound {
    pod: Value,
    #[serde(rename = "podGroup")]
    group: Option<Value>,
}

/// Writes the claim of one entry. Only an entry with a template may need no claim.
fn named(entry: &str, claim: Result<Option<PodClaim>, impl std::error::Error>) -> Value {
    match claim {
        Ok(Some(PodClaim { claim, origin, .. })) => {
            json!({"entry": entry, "claim": claim.name, "checkOwner": origin == ClaimOrigin::Template})
        }
        Ok(None) => json!({"entry": entry, "claim": null, "checkOwner": true}),
        Err(error) => json!({"entry": entry, "error": error.to_string()}),
    }
}

pub(crate) fn name(input: Value) -> Result<Operation, Refusal> {
    let input: OfPod = read(input)?;
    let pod = pod("pod", input.pod)?;
    Ok(result(move || {
        let entries = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten());
        entries.map(|entry| named(&entry.name, PodClaim::of_entry(&pod, entry))).collect()
    }))
}

pub(crate) fn group_name(input: Value) -> Result<Operation, Refusal> {
    let input: OfGroup = read(input)?;
    let group = group("podGroup", input.group)?;
    Ok(result(move || {
        let entries = group.spec.resource_claims.iter().flatten();
        entries.map(|entry| named(&entry.name, claim_of_group_entry(&group, entry))).collect()
    }))
}

pub(crate) fn bind_to(input: Value) -> Result<Operation, Refusal> {
    let options = options(&input)?;
    let input: Bound = read(input)?;
    let pod = pod("pod", input.pod)?;
    let group = input.group.map(|value| group("podGroup", value)).transpose()?;
    Ok(result(move || {
        let entries = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten());
        let consumers = entries.map(|entry| match Consumer::of_entry(&pod, entry, group.as_ref(), options) {
            Ok(consumer) => json!({"entry": entry.name, "consumer": consumer.reference()}),
            Err(error) => json!({"entry": entry.name, "error": error.to_string()}),
        });
        consumers.collect()
    }))
}
