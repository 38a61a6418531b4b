//! Whether an attribute is in use, and whether it does what it is for (KEP-6072, Monitoring).

use dra_attrs::matching::{ListTypes, MatchState, ValueSet};
use dra_attrs::name::lookup;
use dra_attrs::value::Scalar;
use k8s_openapi::api::resource::v1::{
    Device, DeviceConstraint, DeviceRequestAllocationResult, ResourceClaim, ResourceSlice,
};

use crate::allocated::{of_claim, published};
use crate::inventory::pool::devices_of;

/// How much an attribute is used in a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttributeUsage {
    /// Devices that have the attribute.
    pub devices: usize,
    /// Claims with a `matchAttribute` constraint on it.
    pub claims: usize,
}

impl AttributeUsage {
    /// Whether both sides are there: devices that have the attribute, and claims that match on it.
    #[must_use]
    pub const fn is_in_use(self) -> bool {
        self.devices > 0 && self.claims > 0
    }
}

/// Counts the devices that have an attribute, and the claims that match on it.
///
/// ```
/// use dra_alloc::usage::attribute_usage;
/// use dra_attrs::standard::NUMA_NODE;
/// use k8s_openapi::api::resource::v1::ResourceSlice;
/// use serde_json::{from_value, json};
///
/// let slice: ResourceSlice = from_value(json!({"spec": {"driver": "nic.example.com", "devices": [
///     {"name": "nic-0", "attributes": {NUMA_NODE: {"int": 1}}}, {"name": "nic-1"},
/// ]}}))?;
/// let usage = attribute_usage([&slice], [], NUMA_NODE);
/// assert_eq!((usage.devices, usage.claims, usage.is_in_use()), (1, 0, false));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn attribute_usage<'a>(
    slices: impl IntoIterator<Item = &'a ResourceSlice>,
    claims: impl IntoIterator<Item = &'a ResourceClaim>,
    attribute: &str,
) -> AttributeUsage {
    let has = |slice: &ResourceSlice, device: &Device| {
        device.attributes.as_ref().is_some_and(|all| lookup(all, attribute, &slice.spec.driver).is_some())
    };
    let devices = slices.into_iter().map(|slice| devices_of(slice).iter().filter(|device| has(slice, device)).count());
    let on_attribute = |constraint: &DeviceConstraint| constraint.match_attribute.as_deref() == Some(attribute);
    let matches = |claim: &&ResourceClaim| constraints(claim).any(on_attribute);
    AttributeUsage { devices: devices.sum(), claims: claims.into_iter().filter(matches).count() }
}

/// The values of an attribute that all devices of an allocated claim have in common: for `numaNode`, the nodes that
/// they share. Empty when there are none, when a device is unknown, or when nothing is allocated.
///
/// Devices are looked up in the slices given, the last one of a name if there are several.
///
/// ```
/// use dra_alloc::usage::common_values;
/// use k8s_openapi::api::resource::v1::ResourceClaim;
/// assert!(common_values(&[], &ResourceClaim::default(), "resource.kubernetes.io/numaNode").is_empty());
/// ```
#[must_use]
pub fn common_values<'a>(slices: &'a [ResourceSlice], claim: &ResourceClaim, attribute: &str) -> Vec<Scalar<'a>> {
    common_of(of_claim(claim).iter(), slices, attribute)
}

/// For each `matchAttribute` constraint of an allocated claim on an attribute: the values that the devices of the requests
/// which it binds have in common, as in [`common_values`]. The constraint does its work if none of them is empty.
///
/// ```
/// use dra_alloc::usage::matched_values;
/// use k8s_openapi::api::resource::v1::ResourceClaim;
/// assert!(matched_values(&[], &ResourceClaim::default(), "resource.kubernetes.io/numaNode").is_empty());
/// ```
#[must_use]
pub fn matched_values<'a>(slices: &'a [ResourceSlice], claim: &ResourceClaim, attribute: &str) -> Vec<Vec<Scalar<'a>>> {
    let on_attribute = constraints(claim).filter(|constraint| constraint.match_attribute.as_deref() == Some(attribute));
    let bound = |constraint: &DeviceConstraint| {
        let results = of_claim(claim).iter().filter(|result| binds(constraint, &result.request));
        common_of(results, slices, attribute)
    };
    on_attribute.map(bound).collect()
}

fn common_of<'r, 'a>(
    results: impl Iterator<Item = &'r DeviceRequestAllocationResult>,
    slices: &'a [ResourceSlice],
    attribute: &str,
) -> Vec<Scalar<'a>> {
    let mut common = MatchState::new();
    for result in results {
        let attribute = published(result, slices)
            .and_then(|(slice, device)| lookup(device.attributes.as_ref()?, attribute, &slice.spec.driver));
        if common.push(&ValueSet::of(attribute, ListTypes::Enabled)).is_err() {
            return Vec::new();
        }
    }
    common.common().to_vec()
}

/// Whether a constraint binds the request of a result: every request, this one, or this alternative of it.
fn binds(constraint: &DeviceConstraint, request: &str) -> bool {
    let parent = request.split_once('/').map_or(request, |(parent, _)| parent);
    let names = constraint.requests.as_deref().unwrap_or_default();
    names.is_empty() || names.iter().any(|name| name == request || name == parent)
}

fn constraints(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceConstraint> {
    let devices = claim.spec.iter().filter_map(|spec| spec.devices.as_ref());
    devices.flat_map(|devices| devices.constraints.iter().flatten())
}
