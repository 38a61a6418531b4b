//! Validation of the counter sets of a slice and of the counters that devices consume (KEP-4815).
//!
//! A device may name a counter set that does not exist: the sets are in other slices, which the API server does not
//! read. In older releases sets and devices are in one slice.

use std::collections::BTreeMap;

use dra_attrs::internal::release::{CounterLimits, CounterSets};
use dra_attrs::{FieldError, FieldPath, NameFormat};
use k8s_openapi::api::resource::v1::{Counter, CounterSet, Device, DeviceCounterConsumption, ResourceSliceSpec};

use super::context::ValidationContext;
use super::list::{List, each_entry};
use super::{limits, names, quantity};

/// Checks that a slice has sets or devices, and not both, where sets are in slices of their own.
pub(super) fn check_place(spec: &ResourceSliceSpec, at: &FieldPath<'_>, context: &mut ValidationContext) {
    match context.rules.validation.counter_sets {
        CounterSets::Apart if spec.shared_counters.is_some() && spec.devices.is_some() => {
            let detail = "only one of `sharedCounters` or `devices` is allowed";
            context.push(FieldError::invalid(at, "", detail));
        }
        CounterSets::Apart | CounterSets::WithDevices => {}
    }
}

/// Checks the counter sets of a slice, and the number of counters that its devices consume.
pub(super) fn check_sets(spec: &ResourceSliceSpec, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let at_sets = at.child("sharedCounters");
    let (max_sets, max_counters) = match context.rules.limits.counters {
        CounterLimits::BySet { sets, counters, .. } => (sets, counters),
        CounterLimits::InTotal { .. } => (usize::MAX, usize::MAX),
    };
    let sets = List::new(spec.shared_counters.as_ref()).at_most(max_sets).keyed_by("name");
    sets.each_unique(
        &at_sets,
        context,
        |set| set.name.as_str(),
        |set, at, context| check_set(set, max_counters, at, context),
    );
    let CounterLimits::InTotal { shared, consumed, .. } = context.rules.limits.counters else { return };
    let total = spec.shared_counters.iter().flatten().map(|set| set.counters.len()).sum();
    check_total(total, shared, "shared counters", &at_sets, context);
    let total = spec.devices.iter().flatten().map(consumed_counters).sum();
    check_total(total, consumed, "counters in devices", &at.child("devices"), context);
}

/// Checks the counters that a device consumes; `sets` are those of its slice.
pub(super) fn check_consumptions(
    device: &Device,
    sets: &Sets<'_>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let at_consumptions = at.child("consumesCounters");
    let (max_sets, max_counters) = match context.rules.limits.counters {
        CounterLimits::BySet { of_device, counters, .. } => (of_device, counters),
        CounterLimits::InTotal { of_device, .. } => {
            check_total(consumed_counters(device), of_device, "counters", at, context);
            (usize::MAX, usize::MAX)
        }
    };
    List::new(device.consumes_counters.as_ref()).at_most(max_sets).keyed_by("counterSet").each_unique(
        &at_consumptions,
        context,
        |consumption| consumption.counter_set.as_str(),
        |consumption, at, context| check_consumption(consumption, max_counters, at, context),
    );
    match context.rules.validation.counter_sets {
        CounterSets::Apart => {}
        CounterSets::WithDevices => sets.check(device, &at_consumptions, context),
    }
}

/// Names of the counters in each counter set of a slice.
#[derive(Debug)]
pub(super) struct Sets<'a>(BTreeMap<&'a str, &'a BTreeMap<String, Counter>>);

impl<'a> Sets<'a> {
    pub(super) fn of(spec: &'a ResourceSliceSpec) -> Self {
        Self(spec.shared_counters.iter().flatten().map(|set| (set.name.as_str(), &set.counters)).collect())
    }

    /// Checks that a device consumes counters of these sets alone.
    fn check(&self, device: &Device, at: &FieldPath<'_>, context: &mut ValidationContext) {
        for (index, consumption) in device.consumes_counters.iter().flatten().enumerate() {
            let at = at.index(index);
            let Some(counters) = self.0.get(consumption.counter_set.as_str()) else {
                let detail = "must reference a counterSet defined in the ResourceSlice sharedCounters";
                context.push(FieldError::invalid(&at.child("counterSet"), &consumption.counter_set, detail));
                continue;
            };
            for name in consumption.counters.keys().filter(|name| !counters.contains_key(*name)) {
                let detail = "must reference a counter defined in the ResourceSlice sharedCounters";
                context.push(FieldError::invalid(&at.child("counters"), name, detail));
            }
        }
    }
}

fn consumed_counters(device: &Device) -> usize {
    device.consumes_counters.iter().flatten().map(|consumption| consumption.counters.len()).sum()
}

fn check_total(total: usize, max: usize, what: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if total > max {
        let detail = format!("the total number of {what} must not exceed {max}");
        context.push(FieldError::invalid(at, total, detail));
    }
}

fn check_set(set: &CounterSet, max: usize, at: &FieldPath<'_>, context: &mut ValidationContext) {
    check_set_name(&set.name, &at.child("name"), context);
    check_counters(&set.counters, max, &at.child("counters"), context);
}

fn check_consumption(
    consumption: &DeviceCounterConsumption,
    max: usize,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let at_set = at.child("counterSet");
    match context.rules.validation.counter_sets {
        CounterSets::Apart => check_set_name(&consumption.counter_set, &at_set, context),
        // The name is one of the slice's sets, or an error.
        CounterSets::WithDevices if consumption.counter_set.is_empty() => {
            context.push(FieldError::required(&at_set, ""));
        }
        CounterSets::WithDevices => {}
    }
    check_counters(&consumption.counters, max, &at.child("counters"), context);
    let at = at.child("compatibilityGroups");
    let groups = List::new(consumption.compatibility_groups.as_ref()).at_most(limits::COMPATIBILITY_GROUPS);
    context.declarative(|context| {
        groups.each_unique(&at, context, String::as_str, |group, at, context| names::label(group, at, context));
    });
}

fn check_set_name(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if name.is_empty() {
        context.push(FieldError::required(at, ""));
    } else {
        names::declared_label(name, at, context);
    }
}

fn check_counters(
    counters: &BTreeMap<String, Counter>,
    max: usize,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    if counters.is_empty() {
        return context.push(FieldError::required(at, ""));
    }
    if counters.len() > max {
        return context.push(FieldError::too_many(at, counters.len(), max));
    }
    // Every quantity is accepted, also a negative one.
    each_entry(counters, NameFormat::MAX_LABEL_LEN, at, context, names::declared_label, |counter, at, context| {
        quantity::read(&counter.value, &at.child("value"), context);
    });
}
