//! Counter sets of a slice, and what devices consume of them (KEP-4815).
//!
//! Whether a set that a device names exists is checked by nobody: it is in another slice.

use dra_attrs::dns::MAX_LABEL_LEN;
use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{Counter, CounterSet, Device, DeviceCounterConsumption};
use std::collections::BTreeMap;

use super::findings::Findings;
use super::list::{List, each_entry};
use super::{limits, names, quantity};

/// Whether the device consumes counters.
pub(super) fn consumes(device: &Device) -> bool {
    device.consumes_counters.as_ref().is_some_and(|counters| !counters.is_empty())
}

/// Checks the counter sets of a slice.
pub(super) fn check_sets(sets: Option<&Vec<CounterSet>>, at: &FieldPath<'_>, findings: &mut Findings) {
    let sets = List::new(sets).at_most(limits::COUNTER_SETS);
    sets.each_unique(at, findings, |set| set.name.as_str(), check_set);
}

/// Checks what a device consumes.
pub(super) fn check_consumptions(device: &Device, at: &FieldPath<'_>, findings: &mut Findings) {
    let consumptions = List::new(device.consumes_counters.as_ref()).at_most(limits::CONSUMPTIONS);
    consumptions.each_unique(at, findings, |consumption| consumption.counter_set.as_str(), check_consumption);
}

fn check_set(set: &CounterSet, at: &FieldPath<'_>, findings: &mut Findings) {
    check_set_name(&set.name, &at.child("name"), findings);
    check_counters(&set.counters, limits::COUNTERS_PER_SET, &at.child("counters"), findings);
}

fn check_consumption(consumption: &DeviceCounterConsumption, at: &FieldPath<'_>, findings: &mut Findings) {
    check_set_name(&consumption.counter_set, &at.child("counterSet"), findings);
    check_counters(&consumption.counters, limits::COUNTERS_PER_CONSUMPTION, &at.child("counters"), findings);
    let at = at.child("compatibilityGroups");
    let groups = List::new(consumption.compatibility_groups.as_ref()).at_most(limits::COMPATIBILITY_GROUPS);
    findings.declared(|findings| {
        groups.each_unique(&at, findings, String::as_str, |group, at, findings| names::label(group, at, findings));
    });
}

fn check_set_name(name: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    if name.is_empty() {
        findings.push(FieldError::required(at, ""));
    } else {
        names::label(name, at, findings);
    }
}

fn check_counters(counters: &BTreeMap<String, Counter>, max: usize, at: &FieldPath<'_>, findings: &mut Findings) {
    if counters.is_empty() {
        return findings.push(FieldError::required(at, ""));
    }
    if counters.len() > max {
        return findings.push(FieldError::too_many(at, counters.len(), max));
    }
    // Any amount will do, also one below zero.
    each_entry(counters, MAX_LABEL_LEN, at, findings, names::label, |counter, at, findings| {
        quantity::read(&counter.value, &at.child("value"), findings);
    });
}
