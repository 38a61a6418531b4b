//! Fields that feature gates govern: tables of their paths, and which of them an object has.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use dra_attrs::{FieldPath, Gate};
use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::Value;

use crate::places::{Place, Places};

/// A gate with the paths of its fields; `[*]` is every item of a list and every value of a map.
type Gated = (Gate, &'static [&'static str]);

const SLICE: &[Gated] = &[
    (Gate::DeviceTaints, &["spec.devices[*].taints"]),
    (
        Gate::PartitionableDevices,
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
        Gate::DeviceBindingConditions,
        &[
            "spec.devices[*].bindingConditions",
            "spec.devices[*].bindingFailureConditions",
            "spec.devices[*].bindsToNode",
        ],
    ),
    (
        Gate::ConsumableCapacity,
        &["spec.devices[*].allowMultipleAllocations", "spec.devices[*].capacity[*].requestPolicy"],
    ),
    (Gate::NodeAllocatableResources, &["spec.devices[*].nodeAllocatableResources"]),
    (
        Gate::ListTypeAttributes,
        &[
            "spec.devices[*].attributes[*].bools",
            "spec.devices[*].attributes[*].ints",
            "spec.devices[*].attributes[*].strings",
            "spec.devices[*].attributes[*].versions",
        ],
    ),
    (Gate::PartitionableDevicesType, &["spec.partitionTypeAttribute"]),
    (Gate::OptionalNodeOperations, &["spec.skipNodeOperations"]),
    (Gate::DeviceCompatibilityGroups, &["spec.devices[*].consumesCounters[*].compatibilityGroups"]),
];

static SLICE_PLACES: LazyLock<Places<Gate>> = LazyLock::new(|| Places::gated(SLICE));

impl Places<Gate> {
    /// Returns the places of the gated fields of a slice.
    #[must_use]
    pub fn of_slice() -> &'static Self {
        &SLICE_PLACES
    }

    /// Returns the gates that govern fields of a slice.
    pub fn gates_of_slice() -> impl Iterator<Item = Gate> {
        SLICE.iter().map(|(gate, _)| *gate)
    }

    /// Creates the places of a table.
    #[must_use]
    pub fn gated(table: &[Gated]) -> Self {
        Self::new(table.iter().flat_map(|(gate, places)| places.iter().map(|place| (*place, *gate))))
    }

    /// Returns the fields of an object that are set, each with its gate, in the order of the table.
    pub fn set_fields(&self, object: &mut Value) -> Vec<(Gate, String)> {
        let mut fields = Vec::new();
        self.visit(object, &FieldPath::root(), &mut |place, value, at| {
            if place.is_set(value) {
                fields.push((place.number, (place.rule, at.to_string())));
            }
        });
        fields.sort_by_key(|(number, _)| *number);
        fields.into_iter().map(|(_, field)| field).collect()
    }
}

impl Place<Gate> {
    /// Returns true if a field of a gated feature counts as set. An empty map or list counts only if it is a list
    /// attribute; any other empty object counts.
    #[must_use]
    pub fn is_set(&self, value: &Value) -> bool {
        match value {
            Value::Object(entries) if MAPS.iter().any(|map| self.path.ends_with(map)) => !entries.is_empty(),
            Value::Null => false,
            Value::Array(items) => !items.is_empty() || self.rule == Gate::ListTypeAttributes,
            _ => true,
        }
    }
}

/// Gated fields that are maps.
const MAPS: [&str; 2] = [".nodeAllocatableResources", ".consumedCapacity"];

/// Returns the fields of a slice that a gate governs and that are set, with their paths.
#[must_use]
pub fn gated_fields(slice: &ResourceSlice) -> Vec<(Gate, String)> {
    serde_json::to_value(slice).map(|mut json| SLICE_PLACES.set_fields(&mut json)).unwrap_or_default()
}

/// Returns the slice without the fields that the gates govern.
#[must_use]
pub fn without_fields(slice: &ResourceSlice, gates: &BTreeSet<Gate>) -> ResourceSlice {
    let Ok(mut json) = serde_json::to_value(slice) else { return slice.clone() };
    SLICE_PLACES.visit(&mut json, &FieldPath::root(), &mut |place, value, _| {
        if gates.contains(&place.rule) {
            value.take();
        }
    });
    serde_json::from_value(json).unwrap_or_else(|_| slice.clone())
}
