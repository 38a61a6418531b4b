//! Validation of `status.devices` of a claim: the drivers' status of allocated devices (KEP-4817).

use std::collections::BTreeSet;

use dra_attrs::{BadValue, FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{AllocatedDeviceStatus, NetworkDeviceData, ResourceClaimStatus};

use super::allocation::results;
use super::context::ValidationContext;
use super::list::List;
use super::{condition, config, limits, names, network};

/// Key of a status entry: driver, pool, device and share ID.
pub(super) type Key<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

/// Returns the keys of the allocated devices.
pub(super) fn allocated(status: &ResourceClaimStatus) -> BTreeSet<Key<'_>> {
    results(Some(status))
        .iter()
        .map(|result| {
            (result.driver.as_str(), result.pool.as_str(), result.device.as_str(), result.share_id.as_deref())
        })
        .collect()
}

/// Returns the key of a status entry.
pub(super) fn key(device: &AllocatedDeviceStatus) -> Key<'_> {
    (&device.driver, &device.pool, &device.device, device.share_id.as_deref())
}

/// Checks every entry of `status.devices`.
pub(super) fn check_list(status: &ResourceClaimStatus, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let allocated = allocated(status);
    List::new(status.devices.as_ref()).keyed_by("deviceID").each_unique(
        at,
        context,
        |device| Named(key(device)),
        |device, at, context| check(device, &allocated, at, context),
    );
}

fn check(
    device: &AllocatedDeviceStatus,
    allocated: &BTreeSet<Key<'_>>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    names::driver(&device.driver, &at.child("driver"), context);
    names::pool(&device.pool, &at.child("pool"), context);
    names::label(&device.device, &at.child("device"), context);
    if let Some(share) = &device.share_id {
        names::uuid(share, &at.child("shareID"), context);
    }
    if !allocated.contains(&key(device)) {
        context.push(FieldError::invalid(at, Named(key(device)), "must be an allocated device in the claim"));
    }
    condition::check_list(device.conditions.as_ref(), &at.child("conditions"), context);
    if let Some(data) = &device.data {
        config::check_object(data, limits::DEVICE_DATA, &at.child("data"), context);
    }
    if let Some(data) = &device.network_data {
        check_network(data, &at.child("networkData"), context);
    }
}

fn check_network(data: &NetworkDeviceData, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let lengths = [
        ("interfaceName", &data.interface_name, limits::INTERFACE_NAME),
        ("hardwareAddress", &data.hardware_address, limits::HARDWARE_ADDRESS),
    ];
    for (field, text, max) in lengths {
        if text.as_ref().is_some_and(|text| text.len() > max) {
            context.push(FieldError::too_long(&at.child(field), max));
        }
    }
    List::new(data.ips.as_ref()).at_most(limits::IPS).each_unique(
        &at.child("ips"),
        context,
        String::as_str,
        |address, at, context| network::check_interface_address(address, at, context),
    );
}

/// Key of a status entry that prints as Kubernetes prints it, with slashes between its parts. Pool names contain
/// slashes too, so that different keys may print alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Named<'a>(Key<'a>);

impl From<Named<'_>> for BadValue {
    fn from(Named((driver, pool, device, share)): Named<'_>) -> Self {
        let parts: Vec<&str> = [driver, pool, device].into_iter().chain(share).collect();
        parts.join("/").into()
    }
}
