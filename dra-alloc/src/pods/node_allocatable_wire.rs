//! JSON of the fields of KEP-5517 in the forms of Kubernetes 1.36, 1.37 and 1.38, of which the types know that of 1.37.

use std::collections::BTreeMap;

use dra_attrs::{ClaimAmounts, DeviceOverhead, Quantity};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Field of a device in Kubernetes 1.36.
const MAPPINGS: &str = "nodeAllocatableResourceMappings";
/// Field of a device in Kubernetes 1.37.
const RESOURCES: &str = "nodeAllocatableResources";

/// Converts the node resources of devices in the JSON of a `ResourceSlice` from the form of Kubernetes 1.36 to that of 1.37.
/// Anything else stays.
///
/// ```
/// use dra_alloc::pods::with_node_allocatable_resources;
/// use serde_json::json;
/// let slice = json!({"spec": {"devices": [{"name": "a",
///     "nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "cores", "allocationMultiplier": "2"}}}]}});
/// let slice = with_node_allocatable_resources(slice);
/// let mapping = &slice["spec"]["devices"][0]["nodeAllocatableResources"]["cpu"]["mapping"];
/// assert_eq!(*mapping, json!({"capacityKey": "cores", "capacityMultiplier": "2"}));
/// ```
#[must_use]
pub fn with_node_allocatable_resources(mut slice: Value) -> Value {
    let devices = slice.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten().filter_map(Value::as_object_mut) {
        if device.contains_key(RESOURCES) {
            continue;
        }
        if let Some(Value::Object(mappings)) = device.remove(MAPPINGS) {
            let resources: Map<String, Value> =
                mappings.into_iter().map(|(name, mapping)| (name, json!({"mapping": to_mapping(&mapping)}))).collect();
            device.insert(RESOURCES.to_owned(), Value::Object(resources));
        }
    }
    slice
}

fn to_mapping(old: &Value) -> Value {
    let one = json!("1");
    let multiplier = old.get("allocationMultiplier").filter(|multiplier| !multiplier.is_null());
    let key = old.get("capacityKey").filter(|key| key.as_str().is_some_and(|key| !key.is_empty()));
    match key {
        Some(key) => json!({"capacityKey": key, "capacityMultiplier": multiplier.unwrap_or(&one)}),
        None => json!({"deviceMultiplier": multiplier}),
    }
}

/// Reads the node resources that a pod's claims take from the JSON of the pod, in the form of Kubernetes 1.36, 1.37 or 1.38.
/// The result is what `nnn::view` takes as an argument, for instance.
///
/// ```
/// use dra_alloc::pods::claim_amounts_from_json;
/// use serde_json::json;
/// let v1_36 = json!({"status": {"nodeAllocatableResourceClaimStatuses": [
///     {"resourceClaimName": "c", "containers": ["a"], "resources": {"cpu": "2"}}]}});
/// let v1_38 = json!({"status": {"additionalNodeAllocatableResources": [
///     {"sourceKind": "ResourceClaim", "sourceName": "c", "containers": ["a"], "mapping": [{"name": "cpu", "quantity": "2"}]}]}});
/// assert_eq!(claim_amounts_from_json(&v1_36)?, claim_amounts_from_json(&v1_38)?);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// A field has another type, or an amount is not a quantity.
pub fn claim_amounts_from_json(pod: &Value) -> Result<Vec<ClaimAmounts>, serde_json::Error> {
    let Some(status) = pod.get("status").filter(|status| !status.is_null()) else { return Ok(Vec::new()) };
    let PodStatus { statuses, additional } = PodStatus::deserialize(status)?;
    let all = statuses.into_iter().flatten().chain(additional.into_iter().flatten());
    Ok(all.map(ClaimAmounts::from).collect())
}

#[derive(Deserialize)]
struct PodStatus {
    #[serde(rename = "nodeAllocatableResourceClaimStatuses")]
    statuses: Option<Vec<Status>>,
    #[serde(rename = "additionalNodeAllocatableResources")]
    additional: Option<Vec<Status>>,
}

/// Entry of a pod's status, in any form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(alias = "sourceName")]
    resource_claim_name: String,
    containers: Option<Vec<String>>,
    /// Amounts in Kubernetes 1.36.
    resources: Option<BTreeMap<String, Quantity>>,
    mapping: Option<Vec<Mapped>>,
    overhead: Option<Vec<Overhead>>,
}

#[derive(Deserialize)]
struct Mapped {
    name: String,
    quantity: Quantity,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Overhead {
    name: String,
    per_pod: Option<Quantity>,
    per_container: Option<Quantity>,
}

impl From<Status> for ClaimAmounts {
    fn from(status: Status) -> Self {
        let mut amounts = Self::new(status.resource_claim_name);
        amounts.containers = status.containers.unwrap_or_default();
        let mapped = status.mapping.into_iter().flatten().map(|Mapped { name, quantity }| (name, quantity));
        for (name, quantity) in status.resources.into_iter().flatten().chain(mapped) {
            let sum = amounts.mapping.entry(name).or_default();
            *sum = sum.saturating_add(quantity);
        }
        for Overhead { name, per_pod, per_container } in status.overhead.into_iter().flatten() {
            amounts.overhead.entry(name).or_default().add(DeviceOverhead { per_pod, per_container });
        }
        amounts
    }
}
