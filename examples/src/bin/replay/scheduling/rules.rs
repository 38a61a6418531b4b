//! Operations on single rules: names, owners, consumers, scores, binding conditions, hints.

use dra_alloc::pods::{
    BindingReport, BindingState, Consumer, PodOptions, QueueHint, can_reserve, check_group_owner, check_owner,
    claims_score, is_reserved_for, normalize_scores,
};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim, ResourceClaimConsumerReference};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::input::{cache, claim, group, options, pod, result};
use crate::alloc::carriers;
use crate::operation::Operation;
use crate::refusal::{Refusal, read};

#[derive(Deserialize)]
struct PodAndClaim {
    pod: Value,
    claim: Value,
}

pub(crate) fn is_for_pod(input: Value) -> Result<Operation, Refusal> {
    let options = options(&input)?;
    let input: PodAndClaim = read(input)?;
    let (pod, claim) = (pod("pod", input.pod)?, claim("claim", input.claim)?);
    Ok(result(move || json!({"error": check_owner(&pod, &claim, options).err().map(|error| error.to_string())})))
}

pub(crate) fn is_reserved(input: Value) -> Result<Operation, Refusal> {
    let options = options(&input)?;
    let input: PodAndClaim = read(input)?;
    let (pod, claim) = (pod("pod", input.pod)?, claim("claim", input.claim)?);
    Ok(result(move || json!(is_reserved_for(&pod, &claim, options))))
}

#[derive(Deserialize)]
struct GroupAndClaim {
    #[serde(rename = "podGroup")]
    group: Value,
    claim: Value,
}

pub(crate) fn is_for_group(input: Value) -> Result<Operation, Refusal> {
    let input: GroupAndClaim = read(input)?;
    let (group, claim) = (group("podGroup", input.group)?, claim("claim", input.claim)?);
    Ok(result(move || json!({"error": check_group_owner(&group, &claim).err().map(|error| error.to_string())})))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Room {
    pod: Value,
    reserved_for: usize,
    #[serde(default)]
    pods: Vec<String>,
}

pub(crate) fn can_reserve_claim(input: Value) -> Result<Operation, Refusal> {
    let input: Room = read(input)?;
    let pod = pod("pod", input.pod)?;
    let (name, uid) = (pod.metadata.name.unwrap_or_default(), pod.metadata.uid.unwrap_or_default());
    // The named entries first; one more than the limit tells as much as any larger number.
    let number = input.reserved_for.min(Consumer::MAX_PER_CLAIM + 1);
    let named =
        input.pods.iter().take(number).map(|other| if *other == name { uid.clone() } else { format!("{other}?") });
    let others = (0..).map(|index: usize| format!("other-{index}?"));
    let entry = |uid: String| ResourceClaimConsumerReference { uid, ..ResourceClaimConsumerReference::default() };
    let mut claim = ResourceClaim::default();
    claim.status.get_or_insert_default().reserved_for = Some(named.chain(others).take(number).map(entry).collect());
    let consumer = Consumer::Pod { name, uid };
    Ok(result(move || json!(can_reserve(&claim, &consumer).is_ok())))
}

#[derive(Deserialize)]
struct Scored {
    #[serde(default)]
    claims: Vec<Value>,
    #[serde(default)]
    results: Vec<Value>,
}

pub(crate) fn score(input: Value) -> Result<Operation, Refusal> {
    let input: Scored = read(input)?;
    let claims: Vec<ResourceClaim> = carriers("claims", input.claims.into_iter())?;
    let results: Vec<AllocationResult> = input
        .results
        .into_iter()
        .enumerate()
        .map(|(index, value)| read(value).map_err(|error: Refusal| error.below(&format!("results[{index}]"))))
        .collect::<Result<_, _>>()?;
    Ok(result(move || match claims_score(&claims, &results) {
        Ok(score) => json!({"score": score}),
        Err(error) => json!({"error": error.to_string()}),
    }))
}

#[derive(Deserialize)]
struct Scores {
    #[serde(default)]
    scores: Vec<i64>,
}

pub(crate) fn normalize(input: Value) -> Result<Operation, Refusal> {
    let input: Scores = read(input)?;
    Ok(result(move || {
        let mut scores = input.scores.clone();
        normalize_scores(&mut scores);
        json!(scores)
    }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bound {
    claim: Value,
    now: Timestamp,
    binding_timeout_seconds: Option<i64>,
}

/// Returns the options with a binding timeout in seconds.
pub(super) fn with_timeout(options: PodOptions, seconds: Option<i64>) -> PodOptions {
    seconds.map_or(options, |seconds| options.with_binding_timeout(SignedDuration::from_secs(seconds)))
}

pub(crate) fn binding(input: Value) -> Result<Operation, Refusal> {
    let input: Bound = read(input)?;
    let claim = claim("claim", input.claim)?;
    let options = with_timeout(PodOptions::new(dra_attrs::Profile::V1_37), input.binding_timeout_seconds);
    Ok(result(move || {
        let report = BindingReport::of_claim(&claim, input.now, options);
        let devices = report.devices.iter().map(|binding| {
            let device = &binding.device;
            let (pending, failed) = (&binding.pending, &binding.failed);
            json!({"driver": device.driver, "pool": device.pool, "device": device.device, "pending": pending, "failed": failed})
        });
        let devices: Vec<Value> = devices.collect();
        let error = match &report.state {
            BindingState::Failed(failure) => Some(failure.to_string()),
            BindingState::Ready | BindingState::Pending => None,
        };
        let ready = report.state == BindingState::Ready;
        json!({"ready": ready, "timedOut": report.timed_out, "devices": devices, "error": error})
    }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimChange {
    pod: Value,
    old_claim: Option<Value>,
    new_claim: Option<Value>,
    #[serde(default)]
    claims: Vec<Value>,
}

fn hinted(hint: QueueHint) -> Value {
    json!({"hint": hint, "error": null})
}

pub(crate) fn claim_hint(input: Value) -> Result<Operation, Refusal> {
    let options = options(&input)?;
    let input: ClaimChange = read(input)?;
    let (pod, claims) = (pod("pod", input.pod)?, cache("claims", input.claims)?);
    let old = input.old_claim.map(|value| claim("oldClaim", value)).transpose()?;
    let new = input.new_claim.map(|value| claim("newClaim", value)).transpose()?;
    Ok(result(move || hinted(QueueHint::after_claim_change(&pod, old.as_ref(), new.as_ref(), &claims, options))))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodChange {
    pod: Value,
    new_pod: Value,
    #[serde(default)]
    claims: Vec<Value>,
}

pub(crate) fn pod_hint(input: Value) -> Result<Operation, Refusal> {
    let options = options(&input)?;
    let input: PodChange = read(input)?;
    let (waiting, updated) = (pod("pod", input.pod)?, pod("newPod", input.new_pod)?);
    let claims = cache("claims", input.claims)?;
    Ok(result(move || hinted(QueueHint::after_pod_change(&waiting, &updated, &claims, options))))
}
