//! Counter sets of a slice, and what devices consume of them (KEP-4815).
//!
//! Whether a set that a device names exists is checked by nobody: it is in another slice.

use dra_attrs::dns::MAX_LABEL_LEN;
use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{Counter, CounterSet, Device, DeviceCounterConsumption, ResourceSliceSpec};
use std::collections::BTreeMap;

use super::equality::same;
use super::findings::Findings;
use super::list::{List, Origin, each_entry};
use super::{limits, names, quantity};

/// Whether the device consumes counters.
pub(super) fn consumes(device: &Device) -> bool {
    device.consumes_counters.as_ref().is_some_and(|counters| !counters.is_empty())
}

/// Checks the counter sets of a slice.
pub(super) fn check_sets(
    new: &ResourceSliceSpec,
    old: Option<&ResourceSliceSpec>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    let old_sets = old.and_then(|old| old.shared_counters.as_ref());
    let unchanged = old_sets.is_some() && same(&new.shared_counters.as_ref(), &old_sets);
    findings.settled_if(unchanged, |findings| {
        List::new(new.shared_counters.as_ref()).at_most(limits::COUNTER_SETS, Origin::Declared).each_unique(
            at,
            findings,
            |set| set.name.as_str(),
            |set, at, findings| {
                let old = old_sets.and_then(|old| old.iter().find(|old| old.name == set.name));
                let unchanged = old.is_some_and(|old| same(set, old));
                findings.settled_if(unchanged, |findings| check_set(set, at, findings));
            },
        );
    });
}

/// Checks what a device consumes.
pub(super) fn check_consumptions(device: &Device, at: &FieldPath<'_>, findings: &mut Findings) {
    List::new(device.consumes_counters.as_ref()).at_most(limits::CONSUMPTIONS, Origin::Declared).each_unique(
        at,
        findings,
        |consumption| consumption.counter_set.as_str(),
        check_consumption,
    );
}

fn check_set(set: &CounterSet, at: &FieldPath<'_>, findings: &mut Findings) {
    check_set_name(&set.name, &at.child("name"), findings);
    check_counters(&set.counters, limits::COUNTERS_PER_SET, &at.child("counters"), findings);
}

fn check_consumption(consumption: &DeviceCounterConsumption, at: &FieldPath<'_>, findings: &mut Findings) {
    check_set_name(&consumption.counter_set, &at.child("counterSet"), findings);
    check_counters(&consumption.counters, limits::COUNTERS_PER_CONSUMPTION, &at.child("counters"), findings);
    List::new(consumption.compatibility_groups.as_ref())
        .at_most(limits::COMPATIBILITY_GROUPS, Origin::Declared)
        .each_unique(&at.child("compatibilityGroups"), findings, String::as_str, |_, _, _| {});
}

fn check_set_name(name: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    findings.declared(|findings| {
        if name.is_empty() {
            findings.push(FieldError::required(at, ""));
        } else {
            names::label(name, at, findings);
        }
    });
}

fn check_counters(counters: &BTreeMap<String, Counter>, max: usize, at: &FieldPath<'_>, findings: &mut Findings) {
    if counters.is_empty() {
        return findings.declared(|findings| findings.push(FieldError::required(at, "")));
    }
    if counters.len() > max {
        return findings.push(FieldError::too_many(at, counters.len(), max));
    }
    let check_key = |key: &str, at: &FieldPath<'_>, findings: &mut Findings| {
        findings.declared(|findings| names::label(key, at, findings));
    };
    // Any amount will do, also one below zero.
    each_entry(counters, MAX_LABEL_LEN, at, findings, check_key, |counter, at, findings| {
        quantity::read(&counter.value, &at.child("value"), findings);
    });
}
