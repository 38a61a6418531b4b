//! The operation `scheduling.node_allocatable`: node resources that a pod's claims take, and the fit of the pod.

use std::collections::BTreeMap;

use dra_alloc::claims::{ClaimKey, PodClaim};
use dra_alloc::pods::{NodeResourcesRefusal, PodNodeResources, StatusCode, with_node_allocatable_resources};
use dra_alloc::{Inventory, allocated_devices};
use dra_attrs::{ClaimAmounts, Resources};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Deserialize;
use serde_json::{Value, json};

use super::input::{options, pod, result};
use crate::alloc::carriers;
use crate::operation::Operation;
use crate::refusal::{Refusal, object, read};

#[derive(Deserialize)]
struct Taken {
    pod: Value,
    #[serde(default)]
    claims: Vec<Value>,
    #[serde(default)]
    slices: Vec<Value>,
    node: Value,
    /// Requests of the other pods on the node.
    #[serde(default)]
    requested: BTreeMap<String, Quantity>,
}

pub(crate) fn node_allocatable(input: Value) -> Result<Operation, Refusal> {
    let options = options(&input)?;
    let input: Taken = read(input)?;
    let (pod, node): (_, Node) = (pod("pod", input.pod)?, object("node", input.node)?);
    let slices: Vec<ResourceSlice> = carriers("slices", input.slices.into_iter().map(with_node_allocatable_resources))?;
    let claims: Vec<ResourceClaim> = carriers("claims", input.claims.into_iter())?;
    let inventory = Inventory::new(slices);
    let resources = |field: &str, list: &BTreeMap<String, Quantity>| {
        Resources::parse(list).map_err(|error| Refusal::field(field, error.to_string()))
    };
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
    let allocatable = resources("node.status.allocatable", &allocatable)?;
    let requested = resources("requested", &input.requested)?;
    Ok(result(move || {
        let entries = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten());
        let of_entries = entries.filter_map(|entry| Some(PodClaim::of_entry(&pod, entry).ok()??.claim));
        let extended = pod.status.as_ref().and_then(|status| status.extended_resource_claim_status.as_ref());
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let extended = extended.map(|status| ClaimKey::new(namespace, &status.resource_claim_name));
        let named: Vec<ClaimKey> = of_entries.chain(extended).collect();
        let used = || claims.iter().filter(|claim| named.contains(&ClaimKey::from_metadata(&claim.metadata)));
        let allocated = used().filter(|claim| !allocated_devices(claim).is_empty());
        let results = allocated.filter_map(|claim| Some((claim, claim.status.as_ref()?.allocation.as_ref()?)));
        let taken = match PodNodeResources::new(&pod, results, &inventory, &node) {
            Ok(taken) => taken,
            Err(error) => return json!({"error": error.to_string()}),
        };
        let refusals = match taken.check_sharing(&pod, used(), options) {
            Ok(()) => taken.refusals(&pod, &allocatable, &requested),
            Err(refusal) => Ok(vec![refusal]),
        };
        match refusals {
            Err(error) => json!({"error": error.to_string()}),
            Ok(refusals) => {
                let code = refusals.iter().map(NodeResourcesRefusal::code).max().unwrap_or(StatusCode::Success);
                let reasons: Vec<String> = refusals.iter().map(ToString::to_string).collect();
                let status: Vec<Value> = taken.amounts.iter().map(status).collect();
                json!({"status": status, "demand": taken.demand, "fit": code, "reasons": reasons})
            }
        }
    }))
}

/// Writes the amounts of a claim as the pod's status has them.
fn status(amounts: &ClaimAmounts) -> Value {
    let mapping: Vec<Value> =
        amounts.mapping.iter().map(|(name, quantity)| json!({"name": name, "quantity": quantity})).collect();
    let overhead: Vec<Value> = amounts
        .overhead
        .iter()
        .map(|(name, overhead)| {
            json!({"name": name, "perPod": overhead.per_pod, "perContainer": overhead.per_container})
        })
        .collect();
    json!({"resourceClaimName": amounts.claim, "containers": amounts.containers, "mapping": mapping, "overhead": overhead})
}
