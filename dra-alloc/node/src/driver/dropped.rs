//! Fields that an API server drops, since a feature gate is off, and what a driver does about it.
//!
//! A dropped field is no error to the API server. To a reader it may be one: partitions of a card without their
//! counters can be allocated together with the whole card.
//!
//! Source: `dropDisabledFields` of `pkg/registry/resource/resourceslice`.

use std::collections::BTreeSet;

use dra_attrs::{DroppedField, Gate, GateName, Profile};
use dra_device::internal::gated_fields;
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};

/// Returns the fields that were sent and that the API server did not store, by gate.
///
/// ```
/// use dra_attrs::Gate;
/// use dra_node::driver::dropped;
/// use k8s_openapi::api::resource::v1::{Device, DeviceTaint, ResourceSlice};
///
/// let mut sent = ResourceSlice::default();
/// let taint = DeviceTaint { key: "gpu.example.com/broken".to_owned(), effect: "NoSchedule".to_owned(), ..Default::default() };
/// sent.spec.devices = Some(vec![Device { name: "gpu-0".to_owned(), taints: Some(vec![taint]), ..Device::default() }]);
/// let mut stored = sent.clone();
/// stored.spec.devices.as_mut().unwrap()[0].taints = None;
///
/// let fields = dropped(&sent, &stored);
/// assert_eq!((fields[0].gate.gate, fields[0].field.as_str()), (Gate::DeviceTaints, "spec.devices[0].taints"));
/// assert_eq!(fields[0].consequence(), "an unhealthy device can be allocated");
/// ```
#[must_use]
pub fn dropped(sent: &ResourceSlice, stored: &ResourceSlice) -> Vec<DroppedField> {
    let kept: BTreeSet<(Gate, String)> = gated_fields(stored).into_iter().collect();
    let gone = gated_fields(sent).into_iter().filter(|field| !kept.contains(field));
    gone.map(|(gate, field)| DroppedField::new(GateName::new(gate, Profile::V1_37), field)).collect()
}

/// Devices that are safe to publish while gates are off.
pub(super) struct SafeDevices<'m, 'a> {
    gates: &'m BTreeSet<Gate>,
    /// Counter sets from which a published device consumes, while consumption is not stored.
    taken: BTreeSet<&'a str>,
}

impl<'m, 'a> SafeDevices<'m, 'a> {
    pub(super) const fn new(gates: &'m BTreeSet<Gate>) -> Self {
        Self { gates, taken: BTreeSet::new() }
    }

    /// Returns true if the device may be published beside those that were asked about before.
    pub(super) fn admits(&mut self, device: &'a Device) -> bool {
        let uses = |gate: Gate, is_used: bool| is_used && self.gates.contains(&gate);
        let is_set = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
        let has_taints = device.taints.as_ref().is_some_and(|taints| !taints.is_empty());
        let has_conditions = is_set(&device.binding_conditions) || is_set(&device.binding_failure_conditions);
        let has_resources = device.node_allocatable_resources.as_ref().is_some_and(|resources| !resources.is_empty());
        if uses(Gate::DeviceTaints, has_taints)
            || uses(Gate::DeviceBindingConditions, has_conditions || device.binds_to_node.is_some())
            || uses(Gate::NodeAllocatableResources, has_resources)
        {
            return false;
        }
        let consumptions = device.consumes_counters.iter().flatten();
        let has_groups = consumptions.clone().any(|consumption| is_set(&consumption.compatibility_groups));
        if !self.gates.contains(&Gate::PartitionableDevices) && !uses(Gate::DeviceCompatibilityGroups, has_groups) {
            return true;
        }
        let sets = consumptions.map(|consumption| consumption.counter_set.as_str());
        let is_first = sets.clone().all(|set| !self.taken.contains(set));
        if is_first {
            self.taken.extend(sets);
        }
        is_first
    }
}
