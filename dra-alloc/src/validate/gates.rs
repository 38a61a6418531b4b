//! Preparation of a written object: defaults filled in, and fields of disabled features dropped or rejected, unless the
//! stored object already uses the feature.
//!
//! Each feature has a list of the paths of its fields. A feature is *in use* if the stored object has a value at one of
//! these paths. All fields of a feature in use are kept, new values included. For other disabled features, the
//! [`GatePolicy`] decides.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use dra_attrs::{FieldPath, GateSet, Profile};
use k8s_openapi::api::resource::v1::ResourceSlice;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::dropped_field::DroppedField;
use super::places::{Place, Places};
use super::stored;
use crate::config::gate_policy::GatePolicy;
use crate::config::gates::{DraGate, GateName};

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
        &["spec.devices.requests[*].exactly.tolerations", "spec.devices.requests[*].firstAvailable[*].tolerations"],
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

static SLICE_PLACES: LazyLock<Places<DraGate>> = LazyLock::new(|| places(SLICE));
static CLAIM_PLACES: LazyLock<Places<DraGate>> = LazyLock::new(|| places(CLAIM));
static NO_PLACES: Places<DraGate> = Places::NONE;

fn places(gated: &[Gated]) -> Places<DraGate> {
    Places::new(gated.iter().flat_map(|(feature, places)| places.iter().map(|place| (*place, *feature))))
}

/// Kind of a written object, which determines the paths of gated fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Slice,
    Claim,
    /// A write of a claim's status, which leaves the spec unchanged.
    ClaimStatus,
    /// A template, which has the claim's spec within its own spec.
    Template,
    /// A taint rule, which has no gated fields.
    TaintRule,
}

impl Kind {
    fn gated(self) -> &'static Places<DraGate> {
        match self {
            Self::Slice => &SLICE_PLACES,
            Self::Claim | Self::ClaimStatus | Self::Template => &CLAIM_PLACES,
            Self::TaintRule => &NO_PLACES,
        }
    }

    /// Returns the object that has the claim's spec, with its path.
    fn object_of_spec(self, json: &mut Value) -> Option<(&mut Value, FieldPath<'static>)> {
        match self {
            Self::Template => json.get_mut("spec").map(|spec| (spec, FieldPath::new("spec"))),
            _ => Some((json, FieldPath::root())),
        }
    }

    /// Returns true if the fields of a feature stay. In slices a feature also needs the gates that it requires; claims
    /// go by its own gate.
    fn keeps(self, feature: DraGate, gates: GateSet<DraGate>) -> bool {
        if self == Self::Slice { gates.has(feature) } else { gates.is_on(feature) }
    }

    /// Returns true if a write of this kind has the field. A template has no status.
    fn is_written(self, place: &str) -> bool {
        match self {
            Self::ClaimStatus => place.starts_with("status."),
            Self::Template => place.starts_with("spec."),
            Self::Slice | Self::Claim | Self::TaintRule => true,
        }
    }
}

/// An object as it is validated and stored, with the dropped fields.
#[derive(Debug)]
pub(super) struct Prepared<T> {
    pub(super) object: T,
    pub(super) dropped: Vec<DroppedField>,
}

/// Settings of a server that decide what it makes of an object before it validates it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preparation {
    pub(super) gates: GateSet<DraGate>,
    pub(super) profile: Profile,
    pub(super) now: Option<Timestamp>,
}

impl Preparation {
    /// Fills in defaults, and drops the fields of features that are disabled and not in use in `old`.
    pub(super) fn prepare<T: Clone + Serialize + DeserializeOwned>(
        self,
        kind: Kind,
        new: T,
        old: Option<&T>,
    ) -> Prepared<T> {
        let Ok(mut json) = serde_json::to_value(&new) else { return Prepared { object: new, dropped: Vec::new() } };
        let mut changed = false;
        let mut stored = old.and_then(|old| serde_json::to_value(old).ok());
        let mut stored = stored.as_mut().and_then(|stored| kind.object_of_spec(stored));
        let in_use = stored.as_mut().map(|(stored, _)| set_fields(kind.gated(), stored)).unwrap_or_default();
        let in_use: BTreeSet<DraGate> = in_use.into_iter().map(|(feature, _)| feature).collect();
        let is_kept = |place: &Place<DraGate>| {
            !kind.is_written(place.path) || !self.drops(kind, place.rule) || in_use.contains(&place.rule)
        };
        let mut dropped = Vec::new();
        if let Some((object, root)) = kind.object_of_spec(&mut json) {
            changed |= stored::fill_in(object, self.now);
            kind.gated().visit(object, &root, &mut |place, value, at| {
                if is_kept(place) {
                    return;
                }
                if is_set(value, place) {
                    let gate = GateName::new(place.rule, self.profile);
                    dropped.push((place.number, DroppedField { gate, field: at.to_string() }));
                }
                changed |= !value.take().is_null();
            });
        }
        let object = if changed { serde_json::from_value(json).unwrap_or(new) } else { new };
        Prepared { object, dropped: in_order(dropped) }
    }

    /// Fills in an object as the API server does when it reads it, from a request or from its store: a taint without a
    /// time was added now.
    pub(super) fn filled_in<T: Clone + Serialize + DeserializeOwned>(self, kind: Kind, object: &T) -> T {
        let Ok(mut json) = serde_json::to_value(object) else { return object.clone() };
        if let Some((object, _)) = kind.object_of_spec(&mut json) {
            stored::fill_in(object, self.now);
        }
        serde_json::from_value(json).unwrap_or_else(|_| object.clone())
    }

    fn drops(self, kind: Kind, feature: DraGate) -> bool {
        !kind.keeps(feature, self.gates) && GatePolicy::for_gate(feature, self.profile) == GatePolicy::Drop
    }
}

/// Returns the fields of a slice that a gate governs and that are set, with their paths.
pub(crate) fn gated_fields(slice: &ResourceSlice) -> Vec<(DraGate, String)> {
    serde_json::to_value(slice).map(|mut json| set_fields(&SLICE_PLACES, &mut json)).unwrap_or_default()
}

/// Returns the slice without the fields that the gates govern.
pub(crate) fn without_fields(slice: &ResourceSlice, gates: &BTreeSet<DraGate>) -> ResourceSlice {
    let Ok(mut json) = serde_json::to_value(slice) else { return slice.clone() };
    SLICE_PLACES.visit(&mut json, &FieldPath::root(), &mut |place, value, _| {
        if gates.contains(&place.rule) {
            value.take();
        }
    });
    serde_json::from_value(json).unwrap_or_else(|_| slice.clone())
}

/// Returns the gated fields of an object that are set, with their paths.
fn set_fields(places: &Places<DraGate>, object: &mut Value) -> Vec<(DraGate, String)> {
    let mut fields = Vec::new();
    places.visit(object, &FieldPath::root(), &mut |place, value, at| {
        if is_set(value, place) {
            fields.push((place.number, (place.rule, at.to_string())));
        }
    });
    in_order(fields)
}

/// Sorts what was found at places by the number of the place.
fn in_order<T>(mut found: Vec<(usize, T)>) -> Vec<T> {
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, found)| found).collect()
}

/// Gated fields that are maps.
const MAPS: [&str; 2] = [".nodeAllocatableResources", ".consumedCapacity"];

/// Returns true if a field of a gated feature counts as set. An empty map or list counts only if it is a list
/// attribute; any other empty object counts.
fn is_set(value: &Value, place: &Place<DraGate>) -> bool {
    match value {
        Value::Object(entries) if MAPS.iter().any(|map| place.path.ends_with(map)) => !entries.is_empty(),
        Value::Null => false,
        Value::Array(items) => !items.is_empty() || place.rule == DraGate::ListTypeAttributes,
        _ => true,
    }
}
