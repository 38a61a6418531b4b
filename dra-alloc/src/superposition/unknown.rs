//! Attributes that nobody knows before the node exists: what must be true of them.
//!
//! A placeholder stands for an unknown value. Devices with one placeholder have one value, and this is all that is known: two
//! placeholders may stand for equal values, and one may stand for a value that a device of the cluster has. The allocator takes
//! placeholders as values, so that
//!
//! - devices that match by one placeholder match for sure;
//! - devices that are distinct by placeholders may be equal: that they differ is a condition;
//! - devices that do not match by placeholders may match: they are tried with each value that a device of the cluster has, and
//!   with one that none has. That values are equal is a condition then.

use std::collections::BTreeSet;
use std::sync::Arc;

use dra_attrs::lookup_by_name;
use dra_device::DeviceId;
use dra_device::claims::ClaimKey;
use dra_device::internal::of_allocation;
use dra_device::pool::slice_devices;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{DeviceAttribute, DeviceConstraint, ResourceClaim, ResourceSlice};

use super::answer::{PlacedPod, UnknownCondition};
use crate::autoscaler::{NodeTemplate, claims_of};
use crate::pods::{ClaimLookup, ClaimTracker};

/// Largest number of values, or combinations of values, that are tried in place of placeholders.
const MOST_VALUES: usize = 64;

/// Returns the unknown attributes that claims of pods match.
pub(super) fn matched(pods: &[&Pod], tracker: &ClaimTracker, template: &NodeTemplate) -> BTreeSet<String> {
    let named = pods.iter().flat_map(|pod| claims_of(pod));
    let claims = named.filter_map(|named| tracker.claim(&named.claim.namespace, &named.claim.name));
    let compared =
        claims.flat_map(|claim| constraints(claim)).filter_map(|constraint| constraint.match_attribute.clone());
    compared.filter(|attribute| template.unknown_attributes().contains(attribute)).collect()
}

/// Returns slices of a template, with each combination of values that may stand behind the placeholders of attributes.
pub(super) fn with_values(
    template: &NodeTemplate,
    cluster: &[Arc<ResourceSlice>],
    attributes: &BTreeSet<String>,
) -> Vec<Vec<Arc<ResourceSlice>>> {
    let mut all = vec![template.slices().to_vec()];
    for attribute in attributes {
        let values = values_of(attribute, cluster);
        let with_each = all.iter().flat_map(|slices| {
            values.iter().map(move |value| slices.iter().map(|slice| with_value(slice, attribute, value)).collect())
        });
        all = with_each.take(MOST_VALUES).collect();
    }
    all
}

/// Returns the values that devices have of an attribute, and one more.
fn values_of(attribute: &str, slices: &[Arc<ResourceSlice>]) -> Vec<DeviceAttribute> {
    let mut values = vec![DeviceAttribute { string: Some("unknown".to_owned()), ..DeviceAttribute::default() }];
    for slice in slices {
        for device in slice_devices(slice) {
            let attributes = device.attributes.as_ref();
            let value = attributes.and_then(|all| lookup_by_name(all, attribute, &slice.spec.driver));
            if let Some(value) = value.filter(|value| values.len() < MOST_VALUES && !values.contains(value)) {
                values.push(value.clone());
            }
        }
    }
    values
}

fn with_value(slice: &Arc<ResourceSlice>, attribute: &str, value: &DeviceAttribute) -> Arc<ResourceSlice> {
    let mut slice = ResourceSlice::clone(slice);
    let driver = &slice.spec.driver;
    let short = attribute.split_once('/').filter(|(domain, _)| domain == driver).map(|(_, name)| name);
    for attributes in slice.spec.devices.iter_mut().flatten().flat_map(|device| &mut device.attributes) {
        let name = if attributes.contains_key(attribute) { Some(attribute) } else { short };
        if let Some(placeholder) = name.and_then(|name| attributes.get_mut(name)) {
            placeholder.clone_from(value);
        }
    }
    Arc::new(slice)
}

/// Returns what must be true so that the allocations of pods are right.
pub(super) fn conditions(
    placed: &[PlacedPod],
    tracker: &ClaimTracker,
    template: &NodeTemplate,
) -> Vec<UnknownCondition> {
    let mut conditions = BTreeSet::new();
    for (claim, result) in placed.iter().flat_map(|pod| &pod.results) {
        let Some(object) = tracker.claim(&claim.namespace, &claim.name) else { continue };
        for constraint in constraints(object) {
            let results = of_allocation(result).iter().filter(|one| is_compared(constraint, &one.request));
            let devices = results.map(|one| DeviceId::new(&one.driver, &one.pool, &one.device)).collect();
            conditions.extend(condition(claim, constraint, devices, template));
        }
    }
    conditions.into_iter().collect()
}

/// Returns the condition that a constraint makes; `None` if it holds for sure.
fn condition(
    claim: &ClaimKey,
    constraint: &DeviceConstraint,
    devices: Vec<DeviceId>,
    template: &NodeTemplate,
) -> Option<UnknownCondition> {
    let attribute = constraint.match_attribute.as_ref().or(constraint.distinct_attribute.as_ref())?.clone();
    let placeholders: Vec<_> = devices.iter().map(|device| value_of(device, &attribute, template)).collect();
    let is_unknown = template.unknown_attributes().contains(&attribute) && placeholders.iter().any(Option::is_some);
    if devices.len() < 2 || !is_unknown {
        return None;
    }
    let claim = claim.clone();
    if constraint.match_attribute.is_none() {
        return Some(UnknownCondition::Different { claim, attribute, devices });
    }
    let is_sure = placeholders.windows(2).all(|pair| matches!(pair, [one, other] if one == other));
    (!is_sure).then_some(UnknownCondition::Equal { claim, attribute, devices })
}

/// Returns the placeholder of a device that comes with the node; `None` for another device.
fn value_of<'t>(device: &DeviceId, attribute: &str, template: &'t NodeTemplate) -> Option<&'t DeviceAttribute> {
    let spec = template.slices().iter().map(|slice| &slice.spec);
    let mut own = spec.filter(|spec| *spec.driver == *device.driver && *spec.pool.name == *device.pool);
    own.find_map(|spec| {
        let found = spec.devices.iter().flatten().find(|one| *one.name == *device.device)?;
        lookup_by_name(found.attributes.as_ref()?, attribute, &spec.driver)
    })
}

fn constraints(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceConstraint> {
    let devices = claim.spec.as_ref().and_then(|spec| spec.devices.as_ref());
    devices.into_iter().flat_map(|devices| devices.constraints.iter().flatten())
}

/// Returns true if a constraint is about a request, or the request of which it is an alternative.
fn is_compared(constraint: &DeviceConstraint, request: &str) -> bool {
    let named = constraint.requests.as_deref().unwrap_or_default();
    let parent = request.split_once('/').map_or(request, |(parent, _)| parent);
    named.is_empty() || named.iter().any(|name| name == request || name == parent)
}
