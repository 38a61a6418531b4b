//! What drivers say about the devices of a claim (KEP-4817).

use std::collections::BTreeSet;

use dra_attrs::field::{BadValue, FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{AllocatedDeviceStatus, NetworkDeviceData, ResourceClaimStatus};

use super::findings::Findings;
use super::list::List;
use super::{condition, config, limits, names, network};
use crate::allocated::of_status;

/// Driver, pool, device and share.
pub(super) type Key<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

/// The devices of an allocation.
pub(super) fn allocated(status: &ResourceClaimStatus) -> BTreeSet<Key<'_>> {
    of_status(Some(status))
        .iter()
        .map(|result| {
            (result.driver.as_str(), result.pool.as_str(), result.device.as_str(), result.share_id.as_deref())
        })
        .collect()
}

/// The device that a status is about.
pub(super) fn key(device: &AllocatedDeviceStatus) -> Key<'_> {
    (&device.driver, &device.pool, &device.device, device.share_id.as_deref())
}

/// Checks what is said about each device.
pub(super) fn check_list(status: &ResourceClaimStatus, at: &FieldPath<'_>, findings: &mut Findings) {
    let allocated = allocated(status);
    List::new(status.devices.as_ref()).each_unique(
        at,
        findings,
        |device| Named(key(device)),
        |device, at, findings| check(device, &allocated, at, findings),
    );
}

fn check(device: &AllocatedDeviceStatus, allocated: &BTreeSet<Key<'_>>, at: &FieldPath<'_>, findings: &mut Findings) {
    names::driver(&device.driver, &at.child("driver"), findings);
    names::pool(&device.pool, &at.child("pool"), findings);
    names::label(&device.device, &at.child("device"), findings);
    if let Some(share) = &device.share_id {
        names::uuid(share, &at.child("shareID"), findings);
    }
    if !allocated.contains(&key(device)) {
        findings.push(FieldError::invalid(at, Named(key(device)), "must be an allocated device in the claim"));
    }
    condition::check_list(device.conditions.as_ref(), &at.child("conditions"), findings);
    if let Some(data) = &device.data {
        config::check_object(data, limits::DEVICE_DATA, &at.child("data"), findings);
    }
    if let Some(data) = &device.network_data {
        check_network(data, &at.child("networkData"), findings);
    }
}

fn check_network(data: &NetworkDeviceData, at: &FieldPath<'_>, findings: &mut Findings) {
    let lengths = [
        ("interfaceName", &data.interface_name, limits::INTERFACE_NAME),
        ("hardwareAddress", &data.hardware_address, limits::HARDWARE_ADDRESS),
    ];
    for (field, text, max) in lengths {
        if text.as_ref().is_some_and(|text| text.len() > max) {
            findings.push(FieldError::too_long(&at.child(field), max));
        }
    }
    List::new(data.ips.as_ref()).at_most(limits::IPS).each_unique(
        &at.child("ips"),
        findings,
        String::as_str,
        |address, at, findings| network::check_interface_address(address, at, findings),
    );
}

/// A device as Kubernetes writes it, with slashes between the parts. They may hold slashes: what is written alike need
/// not be the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Named<'a>(Key<'a>);

impl From<Named<'_>> for BadValue {
    fn from(Named((driver, pool, device, share)): Named<'_>) -> Self {
        let parts: Vec<&str> = [driver, pool, device].into_iter().chain(share).collect();
        parts.join("/").into()
    }
}
