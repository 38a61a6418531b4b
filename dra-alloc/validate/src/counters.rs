//! Validation of the counter sets of a slice and of the counters that devices consume (KEP-4815).
//!
//! A device may name a counter set that does not exist: the sets are in other slices, which the API server does not
//! read.

use std::collections::BTreeMap;

use dra_attrs::{FieldError, FieldPath, NameFormat};
use k8s_openapi::api::resource::v1::{Counter, CounterSet, Device, DeviceCounterConsumption};

use super::context::ValidationContext;
use super::list::{List, each_entry};
use super::{limits, names, quantity};

/// Checks the counter sets of a slice.
pub(super) fn check_sets(sets: Option<&Vec<CounterSet>>, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let sets = List::new(sets).at_most(limits::COUNTER_SETS);
    sets.each_unique(at, context, |set| set.name.as_str(), check_set);
}

/// Checks the counters that a device consumes.
pub(super) fn check_consumptions(device: &Device, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let consumptions = List::new(device.consumes_counters.as_ref()).at_most(limits::CONSUMPTIONS);
    consumptions.each_unique(at, context, |consumption| consumption.counter_set.as_str(), check_consumption);
}

fn check_set(set: &CounterSet, at: &FieldPath<'_>, context: &mut ValidationContext) {
    check_set_name(&set.name, &at.child("name"), context);
    check_counters(&set.counters, limits::COUNTERS_PER_SET, &at.child("counters"), context);
}

fn check_consumption(consumption: &DeviceCounterConsumption, at: &FieldPath<'_>, context: &mut ValidationContext) {
    check_set_name(&consumption.counter_set, &at.child("counterSet"), context);
    check_counters(&consumption.counters, limits::COUNTERS_PER_CONSUMPTION, &at.child("counters"), context);
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
