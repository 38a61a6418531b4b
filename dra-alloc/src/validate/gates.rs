//! Fields of disabled features: dropped or rejected, unless the stored object already uses the feature.
//!
//! Each feature has a list of the paths of its fields. A feature is *in use* if the stored object has a value at one of
//! these paths. All fields of a feature in use are kept, new values included. For other disabled features, the
//! [`GatePolicy`] decides.

use dra_attrs::{FieldPath, GateSet, Profile};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::gate_policy::GatePolicy;
use crate::config::gates::DraGate;

/// A gate with the paths of its fields; `[*]` is every item of a list and every value of a map.
type Gated = (DraGate, &'static [&'static str]);

const SLICE: &[Gated] = &[
    (DraGate::DeviceTaints, &["spec.devices[*].taints"]),
    (
        DraGate::PartitionableDevices,
        &[
            "spec.sharedCounters",
            "spec.perDeviceNodeSelection",
            "spec.devices[*].consumesCounters",
            "spec.devices[*].nodeName",
            "spec.devices[*].nodeSelector",
            "spec.devices[*].allNodes",
        ],
    ),
    (
        DraGate::DeviceBindingConditions,
        &[
            "spec.devices[*].bindingConditions",
            "spec.devices[*].bindingFailureConditions",
            "spec.devices[*].bindsToNode",
        ],
    ),
    (
        DraGate::ConsumableCapacity,
        &["spec.devices[*].allowMultipleAllocations", "spec.devices[*].capacity[*].requestPolicy"],
    ),
    (DraGate::NodeAllocatableResources, &["spec.devices[*].nodeAllocatableResources"]),
    (
        DraGate::ListTypeAttributes,
        &[
            "spec.devices[*].attributes[*].bools",
            "spec.devices[*].attributes[*].ints",
            "spec.devices[*].attributes[*].strings",
            "spec.devices[*].attributes[*].versions",
        ],
    ),
    (DraGate::PartitionableDevicesType, &["spec.partitionTypeAttribute"]),
    (DraGate::OptionalNodeOperations, &["spec.skipNodeOperations"]),
    (DraGate::DeviceCompatibilityGroups, &["spec.devices[*].consumesCounters[*].compatibilityGroups"]),
];

const CLAIM: &[Gated] = &[
    (DraGate::PrioritizedList, &["spec.devices.requests[*].firstAvailable"]),
    (
        DraGate::AdminAccess,
        &["spec.devices.requests[*].exactly.adminAccess", "status.allocation.devices.results[*].adminAccess"],
    ),
    (DraGate::ResourceClaimDeviceStatus, &["status.devices"]),
    (
        DraGate::DeviceBindingConditions,
        &[
            "status.allocation.devices.results[*].bindingConditions",
            "status.allocation.devices.results[*].bindingFailureConditions",
            "status.allocation.allocationTimestamp",
        ],
    ),
    (
        DraGate::ConsumableCapacity,
        &[
            "spec.devices.requests[*].exactly.capacity",
            "spec.devices.requests[*].firstAvailable[*].capacity",
            "spec.devices.constraints[*].distinctAttribute",
            "status.allocation.devices.results[*].shareID",
            "status.allocation.devices.results[*].consumedCapacity",
            "status.devices[*].shareID",
        ],
    ),
    (
        DraGate::DeviceTaints,
        &[
            "spec.devices.requests[*].exactly.tolerations",
            "spec.devices.requests[*].firstAvailable[*].tolerations",
            "status.allocation.devices.results[*].tolerations",
        ],
    ),
    (DraGate::OptionalNodeOperations, &["status.allocation.devices.results[*].skipNodeOperations"]),
    (
        DraGate::DerivedAttributes,
        &[
            "spec.devices.requests[*].exactly.derivedAttributes",
            "spec.devices.requests[*].firstAvailable[*].derivedAttributes",
        ],
    ),
];

/// Kind of a written object, which determines the paths of gated fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Slice,
    Claim,
    /// A write of a claim's status, which leaves the spec unchanged.
    ClaimStatus,
    /// A template, which has the claim's spec within its own spec.
    Template,
}

impl Kind {
    fn gated(self) -> impl Iterator<Item = (DraGate, Vec<String>)> {
        let table = if self == Self::Slice { SLICE } else { CLAIM };
        table.iter().map(move |(feature, places)| {
            let of_kind = |place: &&str| match self {
                Self::Slice | Self::Claim | Self::ClaimStatus => Some((*place).to_owned()),
                Self::Template => place.starts_with("spec.").then(|| format!("spec.{place}")),
            };
            (*feature, places.iter().filter_map(of_kind).collect())
        })
    }

    fn is_written(self, place: &str) -> bool {
        self != Self::ClaimStatus || place.starts_with("status.")
    }
}

/// An object after fields of disabled features were dropped, with the paths of the dropped fields.
#[derive(Debug)]
pub(super) struct Remaining<T> {
    pub(super) object: T,
    pub(super) dropped: Vec<String>,
}

/// Drops the fields of features that are disabled and not in use in `old`.
pub(super) fn drop_disabled<T: Clone + Serialize + DeserializeOwned>(
    kind: Kind,
    new: T,
    old: Option<&T>,
    gates: GateSet<DraGate>,
    profile: Profile,
) -> Remaining<T> {
    let is_dropped =
        |feature: DraGate| !gates.has(feature) && GatePolicy::for_gate(feature, profile) == GatePolicy::Drop;
    let (mut dropped, mut cleared) = (Vec::new(), false);
    let Ok(mut json) = serde_json::to_value(&new) else { return Remaining { object: new, dropped } };
    let mut stored = old.and_then(|old| serde_json::to_value(old).ok());
    for (feature, places) in kind.gated().filter(|(feature, _)| is_dropped(*feature)) {
        if stored.as_mut().is_some_and(|stored| is_in_use(stored, feature, &places)) {
            continue;
        }
        for place in places.iter().filter(|place| kind.is_written(place)) {
            visit(&mut json, place, &FieldPath::root(), &mut |value, at| {
                if is_set(value, feature, place) {
                    dropped.push(at.to_string());
                }
                cleared |= !value.take().is_null();
            });
        }
    }
    let object = if cleared { serde_json::from_value(json).unwrap_or(new) } else { new };
    Remaining { object, dropped }
}

/// Gated fields that are maps.
const MAPS: [&str; 2] = [".nodeAllocatableResources", ".consumedCapacity"];

fn is_in_use(stored: &mut Value, feature: DraGate, places: &[String]) -> bool {
    let mut found = false;
    for place in places {
        visit(stored, place, &FieldPath::root(), &mut |value, _| found |= is_set(value, feature, place));
    }
    found
}

/// Returns true if a field of a gated feature counts as set. An empty map or list counts only if it is a list
/// attribute; any other empty object counts.
fn is_set(value: &Value, feature: DraGate, place: &str) -> bool {
    match value {
        Value::Object(entries) if MAPS.iter().any(|map| place.ends_with(map)) => !entries.is_empty(),
        Value::Null => false,
        Value::Array(items) => !items.is_empty() || feature == DraGate::ListTypeAttributes,
        _ => true,
    }
}

/// Calls `act` for every value at the path `place` below `value`.
fn visit(value: &mut Value, place: &str, at: &FieldPath<'_>, act: &mut dyn FnMut(&mut Value, &FieldPath<'_>)) {
    if let Some(rest) = place.strip_prefix("[*]") {
        let rest = rest.strip_prefix('.').unwrap_or(rest);
        match value {
            Value::Array(items) => {
                items.iter_mut().enumerate().for_each(|(index, item)| visit(item, rest, &at.index(index), act));
            }
            Value::Object(entries) => entries.iter_mut().for_each(|(key, entry)| visit(entry, rest, &at.key(key), act)),
            _ => {}
        }
        return;
    }
    if place.is_empty() {
        return act(value, at);
    }
    let end = place.find(['.', '[']).unwrap_or(place.len());
    let (name, rest) = place.split_at(end);
    if let Some(value) = value.get_mut(name) {
        visit(value, rest.strip_prefix('.').unwrap_or(rest), &at.child(name), act);
    }
}
