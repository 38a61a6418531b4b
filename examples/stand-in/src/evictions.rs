//! Evictions of pods whose devices are tainted, decided by `dra_alloc::eviction`.

use dra_alloc::eviction::{EvictionCall, Evictions, TaintIndex, evict};
use dra_alloc::pods::PodOptions;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use object_patches::{Object, Patch};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::{Api, seconds};
use crate::controllers::{stored_kind, with};
use crate::door::{as_json, typed};
use crate::refusal::Refusal;
use crate::request::Subresource;

/// Kinds of which a change may be a reason to evict.
pub(crate) const WATCHED: [&str; 4] = ["DeviceTaintRule", "Pod", "ResourceClaim", "ResourceSlice"];

/// Evicts the pods that have to go now. Returns true if others have to go later.
///
/// # Errors
/// A call is refused.
pub(crate) fn evict_due(api: &mut Api, now: Timestamp) -> Result<bool, Refusal> {
    if !evicts_anybody(api)? {
        return Ok(false);
    }
    let slices: Vec<ResourceSlice> = all(api, "ResourceSlice")?;
    let rules: Vec<DeviceTaintRule> = all(api, "DeviceTaintRule")?;
    let claims: Vec<ResourceClaim> = all(api, "ResourceClaim")?;
    let pods: Vec<Pod> = all(api, "Pod")?;
    let component = api.door.component();
    let taints = TaintIndex::new(&slices);
    let taints = if component.reads_taint_rules() { taints.with_rules(&rules) } else { taints };
    let evictions = Evictions::new(&taints, &claims, PodOptions::new(component));
    let mut is_later = false;
    for pod in pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
        let Some(eviction) = evictions.of_pod(pod) else { continue };
        if eviction.at > now {
            is_later = true;
            continue;
        }
        for call in evict(pod, now) {
            carry_out(api, pod, call, now)?;
        }
    }
    Ok(is_later)
}

/// Returns true if a rule or a device has a taint that evicts pods.
fn evicts_anybody(api: &Api) -> Result<bool, Refusal> {
    let evicts = |taint: &Value| taint.text("/effect") == "NoExecute";
    let (rules, slices) = (stored_kind("DeviceTaintRule")?, stored_kind("ResourceSlice")?);
    let by_rule = api.store.list(rules, None).any(|rule| rule.pointer("/spec/taint").is_some_and(evicts));
    let list =
        |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let by_device =
        |slice: &Value| list(slice, "/spec/devices").iter().any(|device| list(device, "/taints").iter().any(evicts));
    Ok(by_rule || api.store.list(slices, None).any(|slice| by_device(slice)))
}

fn all<T: DeserializeOwned>(api: &Api, kind: &str) -> Result<Vec<T>, Refusal> {
    let kind = stored_kind(kind)?;
    api.store.list(kind, None).map(|object| typed(kind, object)).collect()
}

fn carry_out(api: &mut Api, pod: &Pod, call: EvictionCall, now: Timestamp) -> Result<(), Refusal> {
    let of = |field: &Option<String>| field.clone().unwrap_or_default();
    let (namespace, name) = (of(&pod.metadata.namespace), of(&pod.metadata.name));
    match call {
        EvictionCall::Event { reason, message } => {
            let about = json!({"kind": "Pod", "namespace": namespace, "name": name, "uid": pod.metadata.uid});
            let event = json!({
                "metadata": {"name": format!("{name}.{:x}", now.as_nanosecond())}, "involvedObject": about, "reason": reason, "message": message,
                "type": "Normal", "source": {"component": "device-taint-eviction"}, "count": 1,
                "firstTimestamp": seconds(now), "lastTimestamp": seconds(now),
            });
            with("Event", &namespace, Subresource::None, |context| api.create(context, event).map(drop))
        }
        EvictionCall::SetCondition { condition } => {
            let patch = json!({"status": {"conditions": [as_json(&condition)?]}});
            with("Pod", &namespace, Subresource::Status, |context| {
                api.patch(context, &name, Patch::Strategic(patch)).map(drop)
            })
        }
        EvictionCall::Delete { namespace, name, uid } => {
            let body = json!({"preconditions": {"uid": uid}});
            with("Pod", &namespace, Subresource::None, |context| api.delete(context, &name, &body).map(drop))
        }
        other => Err(Refusal::new(500, "InternalError", format!("no such call: {other:?}"))),
    }
}
