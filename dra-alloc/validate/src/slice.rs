//! Validation of a `ResourceSlice`.

use dra_attrs::{FieldError, FieldPath};
use dra_device::internal::{TaintTimes, has_list, is_advanced, same_or_empty};
use k8s_openapi::api::resource::v1::{ResourcePool, ResourceSlice, ResourceSliceSpec};

use super::context::ValidationContext;
use super::list::List;
use super::{counters, device, immutable, limits, metadata, names, node_selection, partition_type, skip_operations};

/// Checks a create of a slice, or an update of the stored slice `old`.
pub(super) fn check(new: &ResourceSlice, old: Option<&ResourceSlice>, context: &mut ValidationContext) {
    match old {
        None => metadata::check_name(&new.metadata, context),
        Some(old) => metadata::check_update(&new.metadata, &old.metadata, context),
    }
    let (new, old) = (&new.spec, old.map(|old| &old.spec));
    let at = FieldPath::new("spec");
    names::driver(&new.driver, &at.child("driver"), context);
    check_pool(&new.pool, &at.child("pool"), context);
    if let Some(old) = old {
        check_immutable(new, old, &at, context);
    }
    node_selection::check_slice(new, &at, context);
    counters::check_place(new, &at, context);
    check_devices(new, old, &at.child("devices"), context);
    counters::check_sets(new, &at, context);
    partition_type::check(new, old, &at, context);
    let old_skip = old.map(|old| old.skip_node_operations.as_deref().unwrap_or_default());
    let skip = new.skip_node_operations.as_deref().unwrap_or_default();
    skip_operations::check(skip, old_skip, &at.child(skip_operations::FIELD), context);
}

fn check_pool(pool: &ResourcePool, at: &FieldPath<'_>, context: &mut ValidationContext) {
    names::pool(&pool.name, &at.child("name"), context);
    if pool.resource_slice_count <= 0 {
        let path = at.child("resourceSliceCount");
        context.push(FieldError::invalid(&path, pool.resource_slice_count, "must be greater than zero"));
    }
    if pool.generation < 0 {
        let detail = "must be greater than or equal to zero";
        context.push(FieldError::invalid(&at.child("generation"), pool.generation, detail));
    }
}

fn check_immutable(
    new: &ResourceSliceSpec,
    old: &ResourceSliceSpec,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    immutable::check(&new.pool.name, &old.pool.name, &at.child("pool").child("name"), context);
    immutable::check(&new.driver, &old.driver, &at.child("driver"), context);
    immutable::check(&new.node_name, &old.node_name, &at.child("nodeName"), context);
}

fn check_devices(
    new: &ResourceSliceSpec,
    old: Option<&ResourceSliceSpec>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let devices = new.devices.as_deref().unwrap_or_default();
    let max = if devices.iter().any(|device| is_advanced(device) || has_list(device)) {
        context.rules.limits.advanced_devices
    } else {
        limits::DEVICES
    };
    let old_devices = old.and_then(|old| old.devices.as_ref());
    let unchanged = old_devices.is_some() && same_or_empty(new.devices.as_ref(), old_devices, TaintTimes::Exact);
    let sets = counters::Sets::of(new);
    context.ratchet(unchanged, |context| {
        let devices = List::new(new.devices.as_ref()).at_most(max).keyed_by("name");
        devices.each_unique(
            at,
            context,
            |device| device.name.as_str(),
            |device, at, context| {
                let old = old_devices.and_then(|old| old.iter().find(|old| old.name == device.name));
                device::check(device, old, &sets, new.per_device_node_selection, at, context);
            },
        );
    });
}
