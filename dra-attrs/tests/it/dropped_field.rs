//! Consequences of fields that a server does not store.

use std::collections::BTreeSet;

use dra_attrs::{DroppedField, Gate, GateName, Profile};

fn dropped(gate: Gate) -> DroppedField {
    DroppedField::new(GateName::new(gate, Profile::V1_37), String::new())
}

#[test]
fn devices_are_misused_without_these_gates() {
    let unsafe_gates: Vec<Gate> = Gate::ALL.into_iter().filter(|gate| dropped(*gate).is_unsafe()).collect();
    let mut expected = [
        Gate::DeviceTaints,
        Gate::PartitionableDevices,
        Gate::DeviceBindingConditions,
        Gate::NodeAllocatableResources,
        Gate::DeviceCompatibilityGroups,
    ];
    expected.sort_by_key(|gate| Gate::ALL.iter().position(|other| other == gate));
    assert_eq!(unsafe_gates, expected);
}

#[test]
fn each_gate_of_a_field_has_a_consequence_of_its_own() {
    let texts: Vec<&str> = Gate::ALL.into_iter().map(|gate| dropped(gate).consequence()).collect();
    let told: Vec<&str> = texts.iter().copied().filter(|text| *text != "none").collect();
    assert_eq!(told.iter().collect::<BTreeSet<_>>().len(), told.len());
    assert_eq!(dropped(Gate::ConsumableCapacity).consequence(), "a shareable device is allocated as a whole");
    assert_eq!(dropped(Gate::DeviceTaintRules).consequence(), "none");
}
