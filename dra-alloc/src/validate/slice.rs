//! A `ResourceSlice`.

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{Device, ResourcePool, ResourceSlice, ResourceSliceSpec};

use super::equality::same;
use super::findings::Findings;
use super::list::List;
use super::{counters, device, immutable, limits, metadata, names, node_selection, partition_type, skip_operations};

/// Checks a slice, against the one in storage if there is one.
pub(super) fn check(new: &ResourceSlice, old: Option<&ResourceSlice>, findings: &mut Findings) {
    match old {
        None => metadata::check_name(&new.metadata, findings),
        Some(old) => metadata::check_update(&new.metadata, &old.metadata, findings),
    }
    let (new, old) = (&new.spec, old.map(|old| &old.spec));
    let at = FieldPath::new("spec");
    names::driver(&new.driver, &at.child("driver"), findings);
    check_pool(&new.pool, &at.child("pool"), findings);
    if let Some(old) = old {
        check_immutable(new, old, &at, findings);
    }
    node_selection::check_slice(new, &at, findings);
    if new.shared_counters.is_some() && new.devices.is_some() {
        let detail = "only one of `sharedCounters` or `devices` is allowed";
        findings.push(FieldError::invalid(&at, "", detail));
    }
    check_devices(new, old, &at.child("devices"), findings);
    counters::check_sets(new.shared_counters.as_ref(), &at.child("sharedCounters"), findings);
    partition_type::check(new, old, &at, findings);
    let old_skip = old.map(|old| old.skip_node_operations.as_deref().unwrap_or_default());
    let skip = new.skip_node_operations.as_deref().unwrap_or_default();
    skip_operations::check(skip, old_skip, &at.child(skip_operations::FIELD), findings);
}

fn check_pool(pool: &ResourcePool, at: &FieldPath<'_>, findings: &mut Findings) {
    names::pool(&pool.name, &at.child("name"), findings);
    if pool.resource_slice_count <= 0 {
        let path = at.child("resourceSliceCount");
        findings.push(FieldError::invalid(&path, pool.resource_slice_count, "must be greater than zero"));
    }
    if pool.generation < 0 {
        let detail = "must be greater than or equal to zero";
        findings.push(FieldError::invalid(&at.child("generation"), pool.generation, detail));
    }
}

fn check_immutable(new: &ResourceSliceSpec, old: &ResourceSliceSpec, at: &FieldPath<'_>, findings: &mut Findings) {
    immutable::check(&new.pool.name, &old.pool.name, &at.child("pool").child("name"), findings);
    immutable::check(&new.driver, &old.driver, &at.child("driver"), findings);
    immutable::check(&new.node_name, &old.node_name, &at.child("nodeName"), findings);
}

fn check_devices(
    new: &ResourceSliceSpec,
    old: Option<&ResourceSliceSpec>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    let devices = new.devices.as_deref().unwrap_or_default();
    let max = if devices.iter().any(is_advanced) { limits::DEVICES_WITH_ADVANCED_FEATURES } else { limits::DEVICES };
    let old_devices = old.and_then(|old| old.devices.as_ref());
    let unchanged = old_devices.is_some() && same(&new.devices.as_ref(), &old_devices);
    findings.settled_if(unchanged, |findings| {
        let devices = List::new(new.devices.as_ref()).at_most(max);
        devices.each_unique(
            at,
            findings,
            |device| device.name.as_str(),
            |device, at, findings| {
                let old = old_devices.and_then(|old| old.iter().find(|old| old.name == device.name));
                device::check(device, old, new.per_device_node_selection, at, findings);
            },
        );
    });
}

/// Whether a device lowers the number of devices that the slice may have.
fn is_advanced(device: &Device) -> bool {
    let lists = device.attributes.iter().flatten().any(|(_, attribute)| super::attribute::is_list(attribute));
    let taints = device.taints.as_ref().is_some_and(|taints| !taints.is_empty());
    lists || taints || counters::consumes(device)
}
