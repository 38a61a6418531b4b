//! Operations of an autoscaler on the slices and claims of a node.

use std::collections::BTreeMap;

use dra_alloc::autoscaler::{NodeCopy, NodeUtilization, PoolReadiness, TemplateRules, Utilization};
use k8s_openapi::api::core::v1::PodResourceClaimStatus;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::input::{pod, result};
use crate::alloc::carriers;
use crate::operation::Operation;
use crate::refusal::{Refusal, read};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pools {
    #[serde(default)]
    slices: Vec<Value>,
    #[serde(default)]
    template_slices: Vec<Value>,
}

pub(crate) fn ready(input: Value) -> Result<Operation, Refusal> {
    let input: Pools = read(input)?;
    let slices: Vec<ResourceSlice> = carriers("slices", input.slices.into_iter())?;
    let wanted: Vec<ResourceSlice> = carriers("templateSlices", input.template_slices.into_iter())?;
    Ok(result(move || {
        let pools = PoolReadiness::of_node(&slices, &wanted);
        json!({"wanted": pools.wanted, "complete": pools.complete, "ready": pools.is_ready()})
    }))
}

#[derive(Deserialize)]
struct Used {
    #[serde(default)]
    slices: Vec<Value>,
    #[serde(default)]
    claims: Vec<Value>,
}

pub(crate) fn utilization(input: Value) -> Result<Operation, Refusal> {
    let input: Used = read(input)?;
    let slices: Vec<ResourceSlice> = carriers("slices", input.slices.into_iter())?;
    let claims: Vec<ResourceClaim> = carriers("claims", input.claims.into_iter())?;
    Ok(result(move || match NodeUtilization::of_node(&slices, &claims) {
        Ok(NodeUtilization { pools, .. }) => {
            let mut by_driver: BTreeMap<&str, BTreeMap<&str, Value>> = BTreeMap::new();
            for (pool, used) in &pools {
                by_driver.entry(&pool.driver).or_default().insert(&pool.name, fraction(used));
            }
            json!({"pools": by_driver})
        }
        Err(error) => json!({"error": error.to_string()}),
    }))
}

/// Writes a utilization as Cluster Autoscaler computes it; a whole number has no point.
#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "a number of the answer, not of a decision")]
fn fraction(used: &Utilization) -> Value {
    let divisor = used.divisor() as f64;
    let sum = used.shares().iter().fold(0.0, |sum, share| sum + share.used as f64 / share.all as f64 / divisor);
    let nearest = (used.billionths() + 500_000_000) / 1_000_000_000;
    if sum.fract() == 0.0 { json!(nearest) } else { json!(sum) }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Template {
    #[serde(default)]
    slices: Vec<Value>,
    #[serde(default)]
    claims: Vec<Value>,
    #[serde(default)]
    old_name: String,
    new_name: String,
    suffix: String,
    old_pod: Option<Value>,
    new_pod: Option<Value>,
}

pub(crate) fn template(input: Value) -> Result<Operation, Refusal> {
    let input: Template = read(input)?;
    let slices: Vec<ResourceSlice> = carriers("slices", input.slices.into_iter())?;
    let claims: Vec<ResourceClaim> = carriers("claims", input.claims.into_iter())?;
    let (old_name, new_name, suffix) = (input.old_name, input.new_name, input.suffix);
    let pods = match (input.old_pod, input.new_pod) {
        (Some(old), Some(new)) => Some((pod("oldPod", old)?, pod("newPod", new)?)),
        (None, None) => None,
        (Some(_), None) => return Err(Refusal::field("newPod", "needed beside oldPod")),
        (None, Some(_)) => return Err(Refusal::field("oldPod", "needed beside newPod")),
    };
    Ok(result(move || {
        let copy = NodeCopy::new(&old_name, &new_name, &suffix);
        let template = match copy.slices(&slices, TemplateRules::default()) {
            Ok(template) => template,
            Err(error) => return json!({"error": error.to_string()}),
        };
        let of_slices = json!({"slices": bare(&template.slices), "oldPools": template.old_pools});
        let Some((old_pod, new_pod)) = &pods else { return of_slices };
        let names: Vec<PodResourceClaimStatus> = copy.claim_names(old_pod, |_| true);
        let (claims, error) = match copy.claims(old_pod, new_pod, &claims, &template.old_pools) {
            Ok(claims) => (bare(&claims), None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        json!({"slices": bare(&template.slices), "oldPools": template.old_pools, "podStatus": names, "claims": claims,
            "claimsError": error})
    }))
}

/// Writes objects without version and kind.
fn bare<T: Serialize>(objects: &[T]) -> Vec<Value> {
    let bare = |object: &T| {
        let mut written = json!(object);
        if let Some(fields) = written.as_object_mut() {
            fields.retain(|name, _| name != "apiVersion" && name != "kind");
        }
        written
    };
    objects.iter().map(bare).collect()
}
