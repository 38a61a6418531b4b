//! Places of fields in the JSON of an object.

use std::collections::BTreeMap;

use dra_attrs::FieldPath;
use serde_json::Value;

/// Places with a rule each, as a tree of names, so that an object with many devices is walked once for all of them.
///
/// A place is a path such as `spec.devices[*].taints`; `[*]` is every item of a list and every value of a map.
#[derive(Debug)]
pub(super) struct Places<R> {
    here: Vec<Place<R>>,
    each: Option<Box<Self>>,
    fields: BTreeMap<&'static str, Self>,
}

/// One place with its rule.
#[derive(Debug)]
pub(super) struct Place<R> {
    /// Position among all places.
    pub(super) number: usize,
    pub(super) path: &'static str,
    pub(super) rule: R,
}

impl<R> Places<R> {
    /// No place.
    pub(super) const NONE: Self = Self { here: Vec::new(), each: None, fields: BTreeMap::new() };

    pub(super) fn new(places: impl IntoIterator<Item = (&'static str, R)>) -> Self {
        let mut all = Self::NONE;
        for (number, (path, rule)) in places.into_iter().enumerate() {
            all.below(path).here.push(Place { number, path, rule });
        }
        all
    }

    /// Returns the node at the end of a path, made if it is not there.
    fn below(&mut self, path: &'static str) -> &mut Self {
        let path = path.strip_prefix('.').unwrap_or(path);
        if path.is_empty() {
            return self;
        }
        if let Some(rest) = path.strip_prefix("[*]") {
            return self.each.get_or_insert_with(|| Box::new(Self::NONE)).below(rest);
        }
        let (name, rest) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
        self.fields.entry(name).or_insert(Self::NONE).below(rest)
    }

    /// Calls `act` for every value of an object that is at a place, from the outside in. A place that the object does not
    /// have is skipped.
    pub(super) fn visit(
        &self,
        value: &mut Value,
        at: &FieldPath<'_>,
        act: &mut dyn FnMut(&Place<R>, &mut Value, &FieldPath<'_>),
    ) {
        self.here.iter().for_each(|place| act(place, value, at));
        if let Some(each) = &self.each {
            match value {
                Value::Array(items) => {
                    items.iter_mut().enumerate().for_each(|(index, item)| each.visit(item, &at.index(index), act));
                }
                Value::Object(entries) => {
                    entries.iter_mut().for_each(|(key, entry)| each.visit(entry, &at.key(key), act));
                }
                _ => {}
            }
        }
        if let Value::Object(fields) = value {
            for (name, below) in &self.fields {
                if let Some(value) = fields.get_mut(*name) {
                    below.visit(value, &at.child(name), act);
                }
            }
        }
    }
}

/// Amounts that are zero when absent.
pub(super) const AMOUNTS: &[&str] = &[
    "spec.sharedCounters[*].counters[*].value",
    "spec.devices[*].capacity[*].value",
    "spec.devices[*].consumesCounters[*].counters[*].value",
    "spec.devices.requests[*].exactly.capacity.requests[*]",
    "spec.devices.requests[*].firstAvailable[*].capacity.requests[*]",
    "status.allocation.devices.results[*].consumedCapacity[*]",
];

/// Amounts that may be absent.
pub(super) const OPTIONAL_AMOUNTS: &[&str] = &[
    "spec.devices[*].capacity[*].requestPolicy.default",
    "spec.devices[*].capacity[*].requestPolicy.validValues[*]",
    "spec.devices[*].capacity[*].requestPolicy.validRange.min",
    "spec.devices[*].capacity[*].requestPolicy.validRange.max",
    "spec.devices[*].capacity[*].requestPolicy.validRange.step",
    "spec.devices[*].nodeAllocatableResources[*].mapping.capacityMultiplier",
    "spec.devices[*].nodeAllocatableResources[*].mapping.deviceMultiplier",
    "spec.devices[*].nodeAllocatableResources[*].overhead.perPod",
    "spec.devices[*].nodeAllocatableResources[*].overhead.perContainer",
];

/// Requests with an allocation mode and a count.
pub(super) const REQUESTS: &[&str] =
    &["spec.devices.requests[*].exactly", "spec.devices.requests[*].firstAvailable[*]"];

pub(super) const TOLERATIONS: &[&str] = &[
    "spec.devices.requests[*].exactly.tolerations[*]",
    "spec.devices.requests[*].firstAvailable[*].tolerations[*]",
    "status.allocation.devices.results[*].tolerations[*]",
];

pub(super) const TAINTS: &[&str] = &["spec.devices[*].taints[*]", "spec.taint"];

/// Conditions, which have the time of their last transition.
pub(super) const CONDITIONS: &[&str] = &["status.conditions[*]", "status.devices[*].conditions[*]"];

/// Times of an object.
pub(super) const TIMES: &[&str] = &[
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "spec.devices[*].taints[*].timeAdded",
    "spec.taint.timeAdded",
    "status.allocation.allocationTimestamp",
    "status.conditions[*].lastTransitionTime",
    "status.devices[*].conditions[*].lastTransitionTime",
];
