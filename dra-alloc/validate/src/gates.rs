//! Preparation of a written object: defaults filled in, and fields of disabled features dropped or rejected, unless the
//! stored object already uses the feature.
//!
//! Each feature has a list of the paths of its fields. A feature is *in use* if the stored object has a value at one of
//! these paths. All fields of a feature in use are kept, new values included. For other disabled features, the
//! release decides ([`SentWhileOff`]).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use dra_attrs::internal::release::SentWhileOff;
use dra_attrs::{DroppedField, FieldPath, Gate, GateName, GateSet, Profile};
use dra_device::internal::{Place, Places};
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::stored;
use crate::Write;

/// Gates with the paths of their fields; `[*]` is every item of a list and every value of a map.
const CLAIM: &[(Gate, &[&str])] = &[
    (Gate::PrioritizedList, &["spec.devices.requests[*].firstAvailable"]),
    (
        Gate::AdminAccess,
        &["spec.devices.requests[*].exactly.adminAccess", "status.allocation.devices.results[*].adminAccess"],
    ),
    (Gate::ResourceClaimDeviceStatus, &["status.devices"]),
    (
        Gate::DeviceBindingConditions,
        &[
            "status.allocation.devices.results[*].bindingConditions",
            "status.allocation.devices.results[*].bindingFailureConditions",
            ALLOCATION_TIME,
        ],
    ),
    (
        Gate::ConsumableCapacity,
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
        Gate::DeviceTaints,
        &["spec.devices.requests[*].exactly.tolerations", "spec.devices.requests[*].firstAvailable[*].tolerations"],
    ),
    (Gate::OptionalNodeOperations, &["status.allocation.devices.results[*].skipNodeOperations"]),
    (
        Gate::DerivedAttributes,
        &[
            "spec.devices.requests[*].exactly.derivedAttributes",
            "spec.devices.requests[*].firstAvailable[*].derivedAttributes",
        ],
    ),
];

/// Set with any allocation, and dropped in the oldest release while binding conditions are off.
const ALLOCATION_TIME: &str = "status.allocation.allocationTimestamp";

const CLASS: &[(Gate, &[&str])] = &[(Gate::ExtendedResource, &["spec.extendedResourceName"])];

static CLAIM_PLACES: LazyLock<Places<Gate>> = LazyLock::new(|| Places::gated(CLAIM));
static CLASS_PLACES: LazyLock<Places<Gate>> = LazyLock::new(|| Places::gated(CLASS));
static NO_PLACES: Places<Gate> = Places::NONE;

/// Kind of a written object, which determines the paths of gated fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Slice,
    Claim,
    /// A write of a claim's status, which leaves the spec unchanged.
    ClaimStatus,
    /// A template, which has the claim's spec within its own spec.
    Template,
    Class,
    /// A taint rule, which has no gated fields.
    TaintRule,
}

impl Kind {
    pub(super) fn gated(self) -> &'static Places<Gate> {
        match self {
            Self::Slice => Places::of_slice(),
            Self::Claim | Self::ClaimStatus | Self::Template => &CLAIM_PLACES,
            Self::Class => &CLASS_PLACES,
            Self::TaintRule => &NO_PLACES,
        }
    }

    /// Returns the object that has the claim's spec, with its path.
    pub(super) fn object_of_spec(self, json: &mut Value) -> Option<(&mut Value, FieldPath<'static>)> {
        match self {
            Self::Template => json.get_mut("spec").map(|spec| (spec, FieldPath::new("spec"))),
            _ => Some((json, FieldPath::root())),
        }
    }

    /// Returns true if the fields of a feature stay. In slices a feature also needs the gates that it requires; claims
    /// go by its own gate.
    fn keeps(self, feature: Gate, gates: GateSet) -> bool {
        if self == Self::Slice { gates.has(feature) } else { gates.is_on(feature) }
    }

    /// Returns true if a write of this kind has the field. A template has no status.
    fn is_written(self, place: &str) -> bool {
        match self {
            Self::ClaimStatus => place.starts_with("status."),
            Self::Template => place.starts_with("spec."),
            Self::Slice | Self::Claim | Self::Class | Self::TaintRule => true,
        }
    }
}

/// Gated fields that a stored object has: they stay without their gate.
#[derive(Debug, Default)]
struct InUse {
    /// Gates of which it has a field. The time of an allocation is no sign of its gate.
    gates: BTreeSet<Gate>,
    /// True if it has the time of its allocation.
    has_time: bool,
}

impl InUse {
    fn has(&self, place: &Place<Gate>) -> bool {
        self.gates.contains(&place.rule) || (self.has_time && place.path == ALLOCATION_TIME)
    }
}

/// An object as it is validated and stored, with the dropped fields.
#[derive(Debug)]
pub(super) struct Prepared<T> {
    pub(super) object: T,
    pub(super) dropped: Vec<DroppedField>,
}

/// Objects of a write as a release reads them, with the fields of the new one that it does not know.
#[derive(Debug)]
pub(super) struct Known<'a, T: Clone> {
    old: Option<Cow<'a, T>>,
    new: Cow<'a, T>,
    pub(super) unknown: Vec<DroppedField>,
}

impl<T: Clone> Known<'_, T> {
    pub(super) fn write(&self) -> Write<'_, T> {
        Write { old: self.old.as_deref(), new: &self.new }
    }
}

/// Settings of a server that decide what it makes of an object before it validates it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preparation {
    pub(super) gates: GateSet,
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
        let in_use = old.map(|old| Self::in_use(kind, old)).unwrap_or_default();
        let is_dropped =
            |place: &Place<Gate>| kind.is_written(place.path) && self.drops(kind, place) && !in_use.has(place);
        let mut dropped = Vec::new();
        if let Some((object, root)) = kind.object_of_spec(&mut json) {
            changed |= stored::fill_in(object, self.now);
            kind.gated().visit(object, &root, &mut |place, value, at| {
                if !is_dropped(place) {
                    return;
                }
                if place.is_set(value) {
                    let gate = GateName::new(place.rule, self.profile);
                    dropped.push((place.number, DroppedField::new(gate, at.to_string())));
                }
                changed |= !value.take().is_null();
            });
        }
        let object = if changed { serde_json::from_value(json).unwrap_or(new) } else { new };
        dropped.sort_by_key(|(number, _)| *number);
        Prepared { object, dropped: dropped.into_iter().map(|(_, field)| field).collect() }
    }

    /// Returns the gated fields that the stored object has.
    fn in_use<T: Serialize>(kind: Kind, stored: &T) -> InUse {
        let mut in_use = InUse::default();
        let Ok(mut json) = serde_json::to_value(stored) else { return in_use };
        if let Some((object, root)) = kind.object_of_spec(&mut json) {
            kind.gated().visit(object, &root, &mut |place, value, _| {
                if place.is_set(value) && place.path == ALLOCATION_TIME {
                    in_use.has_time = true;
                } else if place.is_set(value) {
                    in_use.gates.insert(place.rule);
                }
            });
        }
        in_use
    }

    /// Returns the objects of a write without the fields that the release does not know.
    pub(super) fn known<T: Clone + Serialize + DeserializeOwned>(
        self,
        kind: Kind,
        write: Write<'_, T>,
    ) -> Known<'_, T> {
        let mut unknown = Vec::new();
        let old = write.old.map(|old| self.without_unknown(kind, old, &mut Vec::new()));
        Known { old, new: self.without_unknown(kind, write.new, &mut unknown), unknown }
    }

    fn without_unknown<'a, T: Clone + Serialize + DeserializeOwned>(
        self,
        kind: Kind,
        object: &'a T,
        unknown: &mut Vec<DroppedField>,
    ) -> Cow<'a, T> {
        if Gate::ALL.iter().all(|gate| gate.stage(self.profile).exists()) {
            return Cow::Borrowed(object);
        }
        let Ok(mut json) = serde_json::to_value(object) else { return Cow::Borrowed(object) };
        let mut found = Vec::new();
        if let Some((object, root)) = kind.object_of_spec(&mut json) {
            kind.gated().visit(object, &root, &mut |place, value, at| {
                if !place.rule.stage(self.profile).exists() && !value.take().is_null() {
                    let gate = GateName::new(place.rule, self.profile);
                    found.push((place.number, DroppedField::unknown(gate, at.to_string())));
                }
            });
        }
        if found.is_empty() {
            return Cow::Borrowed(object);
        }
        found.sort_by_key(|(number, _)| *number);
        unknown.extend(found.into_iter().map(|(_, field)| field));
        serde_json::from_value(json).map_or(Cow::Borrowed(object), Cow::Owned)
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

    fn drops(self, kind: Kind, place: &Place<Gate>) -> bool {
        !kind.keeps(place.rule, self.gates) && !self.stays(place) && !self.refuses(place.rule)
    }

    /// Returns true if a field is refused instead of dropped while its gate is off: the rule of one KEP.
    fn refuses(self, gate: Gate) -> bool {
        match self.profile.rules().skip.sent_while_off {
            SentWhileOff::Refused => gate == Gate::OptionalNodeOperations,
            SentWhileOff::Dropped => false,
        }
    }

    /// Returns true if a field is stored although its gate is off.
    fn stays(self, place: &Place<Gate>) -> bool {
        self.profile.rules().validation.kept_while_off.contains(&place.path)
    }
}
