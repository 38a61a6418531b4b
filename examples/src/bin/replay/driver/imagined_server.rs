//! Imagined API server for slices: it drops the fields of gates that are off, and refuses the write that it is told to refuse.

use std::collections::BTreeSet;

use dra_alloc::Gate;
use dra_alloc::driver::{SliceWrite, WriteFailure};
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::gates::gates;
use crate::refusal::Refusal;

#[derive(Clone, Copy, Deserialize)]
enum Reason {
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
}

impl From<Reason> for WriteFailure {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Conflict => Self::Conflict,
            Reason::Forbidden => Self::Forbidden,
            Reason::Invalid => Self::Invalid,
            Reason::NotFound => Self::NotFound,
        }
    }
}

#[derive(Deserialize)]
struct FailWrite {
    number: usize,
    reason: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ServerInput {
    gates_off: Vec<String>,
    time_added: Option<Timestamp>,
    fail_write: Option<FailWrite>,
}

/// API server that keeps what it is sent, apart from the fields of its gates.
pub(super) struct ImaginedServer {
    pub(super) slices: Vec<ResourceSlice>,
    gates_off: BTreeSet<Gate>,
    time_added: Option<Timestamp>,
    fail_write: Option<(usize, WriteFailure, String)>,
    writes: usize,
}

impl ImaginedServer {
    /// Creates a server with the slices that it stores.
    pub(super) fn new(input: &ServerInput, slices: Vec<ResourceSlice>) -> Result<Self, Refusal> {
        Ok(Self {
            slices,
            gates_off: gates("server.gatesOff", &input.gates_off)?.into_iter().collect(),
            time_added: input.time_added,
            fail_write: failing(input)?,
            writes: 0,
        })
    }

    /// Takes a write, and returns the stored slice, or the failure with its reason.
    pub(super) fn send(&mut self, write: &SliceWrite) -> Result<Option<ResourceSlice>, (WriteFailure, String)> {
        self.writes = self.writes.saturating_add(1);
        if let Some((_, failure, reason)) = self.fail_write.as_ref().filter(|(number, _, _)| *number == self.writes) {
            return Err((*failure, reason.clone()));
        }
        let version = (self.writes.saturating_add(1_000_000)).to_string();
        match write {
            SliceWrite::Delete { name, .. } => {
                self.slices.retain(|slice| slice.metadata.name.as_ref() != Some(name));
                Ok(None)
            }
            SliceWrite::Update { slice, .. } => {
                let mut stored = self.kept(slice);
                stored.metadata.resource_version = Some(version);
                self.slices.retain(|old| old.metadata.name != stored.metadata.name);
                self.slices.push(stored.clone());
                Ok(Some(stored))
            }
            SliceWrite::Create { slice, .. } => {
                let mut stored = self.kept(slice);
                let generated = stored.metadata.generate_name.clone().map(|begin| format!("{begin}{:05}", self.writes));
                stored.metadata.name = stored.metadata.name.or(generated);
                stored.metadata.uid = Some(format!("created-{}", self.writes));
                stored.metadata.resource_version = Some(version);
                self.slices.push(stored.clone());
                Ok(Some(stored))
            }
            _ => Ok(None),
        }
    }

    fn kept(&self, slice: &ResourceSlice) -> ResourceSlice {
        let off = |gate: Gate| self.gates_off.contains(&gate);
        let mut slice = slice.clone();
        if off(Gate::PartitionableDevices) {
            slice.spec.shared_counters = None;
            slice.spec.per_device_node_selection = None;
        }
        if off(Gate::PartitionableDevicesType) {
            slice.spec.partition_type_attribute = None;
        }
        if off(Gate::OptionalNodeOperations) {
            slice.spec.skip_node_operations = None;
        }
        for device in slice.spec.devices.iter_mut().flatten() {
            self.drop_fields(device);
            for taint in device.taints.iter_mut().flatten().filter(|taint| taint.time_added.is_none()) {
                taint.time_added = self.time_added.map(Time);
            }
        }
        slice
    }

    fn drop_fields(&self, device: &mut Device) {
        let off = |gate: Gate| self.gates_off.contains(&gate);
        if off(Gate::DeviceTaints) {
            device.taints = None;
        }
        if off(Gate::PartitionableDevices) {
            device.consumes_counters = None;
            (device.node_name, device.node_selector, device.all_nodes) = (None, None, None);
        }
        if off(Gate::DeviceBindingConditions) {
            (device.binding_conditions, device.binding_failure_conditions, device.binds_to_node) = (None, None, None);
        }
        if off(Gate::ConsumableCapacity) {
            device.allow_multiple_allocations = None;
            let capacities = device.capacity.iter_mut().flat_map(|capacities| capacities.values_mut());
            capacities.for_each(|capacity| capacity.request_policy = None);
        }
        if off(Gate::NodeAllocatableResources) {
            device.node_allocatable_resources = None;
        }
    }
}

fn failing(server: &ServerInput) -> Result<Option<(usize, WriteFailure, String)>, Refusal> {
    let Some(fail) = &server.fail_write else { return Ok(None) };
    let reason: Reason = serde_json::from_value(Value::String(fail.reason.clone()))
        .map_err(|error| Refusal::field("server.failWrite.reason", error.to_string()))?;
    Ok(Some((fail.number, reason.into(), fail.reason.clone())))
}
