//! Fields of disabled features: dropped or rejected, unless the stored object already uses the feature.
//!
//! Each feature has a list of the paths of its fields. A feature is *in use* if the stored object has a value at one of
//! these paths. All fields of a feature in use are kept, new values included. For other disabled features, the
//! [`GatePolicy`] decides.

use dra_attrs::{FieldPath, GateSet, Profile};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::gates::DraGate;
use crate::profile::Decisions;

/// Treatment of the fields of a disabled feature by the API server.
///
/// ```
/// use dra_alloc::validate::GatePolicy;
/// use dra_alloc::DraGate;
/// use dra_attrs::Profile;
///
/// let skip = DraGate::OptionalNodeOperations;
/// assert_eq!(GatePolicy::for_gate(skip, Profile::Kep), GatePolicy::Reject);
/// assert_eq!(GatePolicy::for_gate(skip, Profile::V1_37), GatePolicy::Drop);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a request is refused, or it is changed")]
pub enum GatePolicy {
    /// A new value is an error; a stored value is kept.
    Reject,
    /// Values are removed silently, unless the stored object uses the feature.
    Drop,
}

impl GatePolicy {
    /// Returns the policy for the fields of a gate. Only KEP-5945 rejects values; all other features, and Kubernetes
    /// 1.37 in general, drop them.
    #[must_use]
    pub const fn for_gate(feature: DraGate, profile: Profile) -> Self {
        match feature {
            DraGate::OptionalNodeOperations => Decisions::from_profile(profile).skip_api_gate_off,
            _ => Self::Drop,
        }
    }
}

/// A gate and the paths of its fields; `[*]` is every item of a list and every value of a map.
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

/// Kind of a written object, which decides the paths of gated fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Slice,
    Claim,
    /// A claim whose status is written; its spec does not change.
    ClaimStatus,
    /// A template, which has the spec of the claim below its own spec.
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

/// Object without the dropped fields, and the paths of those fields.
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

/// Returns true if a field has a value. An empty list is not a value, except as a list attribute. An empty map is not a
/// value, whereas any other empty object is one.
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
