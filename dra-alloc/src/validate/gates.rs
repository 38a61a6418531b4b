//! What becomes of fields whose feature is off.
//!
//! Each feature has places where its fields are. A feature is *in use* where the stored object has a value at one of
//! them; then nothing happens to any, also to new values. Otherwise the policy decides.

use dra_attrs::field::FieldPath;
use dra_attrs::profile::Profile;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::features::{Feature, Features};
use crate::profile::Decisions;

/// What the API server does with the fields of a feature that is off.
///
/// ```
/// use dra_alloc::features::Feature;
/// use dra_alloc::validate::GatePolicy;
/// use dra_attrs::profile::Profile;
///
/// let skip = Feature::OptionalNodeOperations;
/// assert_eq!(GatePolicy::of(skip, Profile::Kep), GatePolicy::Reject);
/// assert_eq!(GatePolicy::of(skip, Profile::V1_37), GatePolicy::Drop);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a request is refused, or it is changed")]
pub enum GatePolicy {
    /// A value that is new is an error, one that is stored stays.
    Reject,
    /// The values are removed without a word, unless the feature is in use in the stored object.
    Drop,
}

impl GatePolicy {
    /// The policy of a feature. Only KEP-5945 rejects; what was there before it, and all that is shipped, drops.
    #[must_use]
    pub const fn of(feature: Feature, profile: Profile) -> Self {
        match feature {
            Feature::OptionalNodeOperations => Decisions::of(profile).skip_api_gate_off,
            _ => Self::Drop,
        }
    }
}

/// A feature and the paths of its fields; `[*]` is every item of a list and every value of a map.
type Gated = (Feature, &'static [&'static str]);

const SLICE: &[Gated] = &[
    (Feature::DeviceTaints, &["spec.devices[*].taints"]),
    (
        Feature::PartitionableDevices,
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
        Feature::BindingConditions,
        &[
            "spec.devices[*].bindingConditions",
            "spec.devices[*].bindingFailureConditions",
            "spec.devices[*].bindsToNode",
        ],
    ),
    (
        Feature::ConsumableCapacity,
        &["spec.devices[*].allowMultipleAllocations", "spec.devices[*].capacity[*].requestPolicy"],
    ),
    (Feature::NodeAllocatableResources, &["spec.devices[*].nodeAllocatableResources"]),
    (
        Feature::ListTypeAttributes,
        &[
            "spec.devices[*].attributes[*].bools",
            "spec.devices[*].attributes[*].ints",
            "spec.devices[*].attributes[*].strings",
            "spec.devices[*].attributes[*].versions",
        ],
    ),
    (Feature::PartitionTypes, &["spec.partitionTypeAttribute"]),
    (Feature::OptionalNodeOperations, &["spec.skipNodeOperations"]),
    (Feature::CompatibilityGroups, &["spec.devices[*].consumesCounters[*].compatibilityGroups"]),
];

const CLAIM: &[Gated] = &[
    (Feature::PrioritizedList, &["spec.devices.requests[*].firstAvailable"]),
    (
        Feature::AdminAccess,
        &["spec.devices.requests[*].exactly.adminAccess", "status.allocation.devices.results[*].adminAccess"],
    ),
    (Feature::DeviceStatus, &["status.devices"]),
    (
        Feature::BindingConditions,
        &[
            "status.allocation.devices.results[*].bindingConditions",
            "status.allocation.devices.results[*].bindingFailureConditions",
            "status.allocation.allocationTimestamp",
        ],
    ),
    (
        Feature::ConsumableCapacity,
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
        Feature::DeviceTaints,
        &[
            "spec.devices.requests[*].exactly.tolerations",
            "spec.devices.requests[*].firstAvailable[*].tolerations",
            "status.allocation.devices.results[*].tolerations",
        ],
    ),
    (Feature::OptionalNodeOperations, &["status.allocation.devices.results[*].skipNodeOperations"]),
    (
        Feature::DerivedAttributes,
        &[
            "spec.devices.requests[*].exactly.derivedAttributes",
            "spec.devices.requests[*].firstAvailable[*].derivedAttributes",
        ],
    ),
];

/// The kind of object whose fields are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Slice,
    Claim,
    /// A write of the status leaves the spec as it is.
    ClaimStatus,
    /// A template holds the spec of a claim below its own.
    Template,
}

impl Kind {
    fn gated(self) -> impl Iterator<Item = (Feature, Vec<String>)> {
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

/// An object without the fields that are dropped, and their paths.
#[derive(Debug)]
pub(super) struct Remaining<T> {
    pub(super) object: T,
    pub(super) dropped: Vec<String>,
}

/// Drops the fields of features that are off and not in use.
pub(super) fn drop_disabled<T: Clone + Serialize + DeserializeOwned>(
    kind: Kind,
    new: T,
    old: Option<&T>,
    features: Features,
    profile: Profile,
) -> Remaining<T> {
    let is_dropped = |feature: Feature| !features.has(feature) && GatePolicy::of(feature, profile) == GatePolicy::Drop;
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

/// Fields of gates that are maps.
const MAPS: [&str; 2] = [".nodeAllocatableResources", ".consumedCapacity"];

fn is_in_use(stored: &mut Value, feature: Feature, places: &[String]) -> bool {
    let mut found = false;
    for place in places {
        visit(stored, place, &FieldPath::root(), &mut |value, _| found |= is_set(value, feature, place));
    }
    found
}

/// Whether a field has a value. An empty list is none, but as the value of an attribute; an empty object is one, but an empty
/// map is none.
fn is_set(value: &Value, feature: Feature, place: &str) -> bool {
    match value {
        Value::Object(entries) if MAPS.iter().any(|map| place.ends_with(map)) => !entries.is_empty(),
        Value::Null => false,
        Value::Array(items) => !items.is_empty() || feature == Feature::ListTypeAttributes,
        _ => true,
    }
}

/// Visits what is at a place below `value`.
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
