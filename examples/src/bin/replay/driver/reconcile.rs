//! The operation `driver.reconcile`: one pass over one pool, sent to an imagined API server.

use std::collections::BTreeSet;

use dra_alloc::driver::{
    Memory, NextStep, NodeChoice, PoolPlan, PoolScope, ReconcileError, ReconcileOptions, SlicePlan, SliceWrite,
    SyncPlan, WriteFailure, WriteResponse, dropped, reconcile as plan_pass,
};
use dra_alloc::{Gate, GateSet, Profile};
use k8s_openapi::api::resource::v1::{CounterSet, Device, ResourceSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::plan::Pool;
use super::pool_check::finding;
use crate::operation::Operation;
use crate::refusal::Refusal;

/// Contents of one wanted slice.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WantedSlice {
    devices: Option<Vec<Device>>,
    #[serde(default)]
    shared_counters: Vec<CounterSet>,
    per_device_node_selection: Option<bool>,
    partition_type_attribute: Option<String>,
}

impl WantedSlice {
    fn plan(&self) -> SlicePlan<'_> {
        SlicePlan {
            devices: self.devices.as_ref().map(|devices| devices.iter().collect()),
            counter_sets: self.shared_counters.iter().collect(),
            partition_type_attribute: self.partition_type_attribute.as_deref(),
            per_device_node_selection: self.per_device_node_selection,
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum RuleName {
    #[default]
    Strict,
    Upstream,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum NamesName {
    #[default]
    Fixed,
    Generated,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum OrderName {
    #[default]
    DeletesFirst,
    DeletesLast,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum OnDroppedName {
    #[default]
    Withdraw,
    Report,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MemoryInput {
    generation_floor: i64,
    dropped_gates: Vec<String>,
}

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
struct ServerInput {
    gates_off: Vec<String>,
    time_added: Option<Timestamp>,
    fail_write: Option<FailWrite>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReconcileInput {
    driver: String,
    pool: Pool,
    owner: Option<OwnerReference>,
    #[serde(default)]
    single_pool: bool,
    #[serde(default)]
    stored: Vec<ResourceSlice>,
    #[serde(default)]
    desired: Vec<WantedSlice>,
    #[serde(default)]
    generation_rule: RuleName,
    #[serde(default)]
    names: NamesName,
    #[serde(default)]
    order: OrderName,
    driver_generation: Option<i64>,
    #[serde(default)]
    memory: MemoryInput,
    #[serde(default)]
    on_dropped: OnDroppedName,
    #[serde(default)]
    server: ServerInput,
    cache_ttl_seconds: Option<i64>,
    #[serde(default)]
    second_pass: bool,
}

pub(crate) fn reconcile(input: Value) -> Result<Operation, Refusal> {
    super::operation(input, answer)
}

/// API server that keeps what it is sent, apart from the fields of its gates.
struct ImaginedServer {
    slices: Vec<ResourceSlice>,
    gates_off: BTreeSet<Gate>,
    time_added: Option<Timestamp>,
    fail_write: Option<(usize, WriteFailure, String)>,
    writes: usize,
}

impl ImaginedServer {
    /// Takes a write, and returns the stored slice, or the failure with its reason.
    fn send(&mut self, write: &SliceWrite) -> Result<Option<ResourceSlice>, (WriteFailure, String)> {
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

/// Outcome of the writes of one pass.
#[derive(Default)]
struct Sent {
    ops: Vec<Value>,
    is_aborted: bool,
    has_created: bool,
    dropped: BTreeSet<(usize, &'static str)>,
}

fn answer(input: &ReconcileInput) -> Result<Value, Refusal> {
    let node_name = input.pool.node_name.as_deref().filter(|_| !input.single_pool);
    let scope = PoolScope { driver: &input.driver, pool: &input.pool.name, node_name, owner: input.owner.as_ref() };
    let options = options(input);
    let plan = desired(input);
    let mut memory = Memory::default()
        .with_generation_floor(input.memory.generation_floor)
        .with_gates_off(gates("memory.droppedGates", &input.memory.dropped_gates)?);
    let pass = match plan_pass(&scope, &input.stored, Some(&plan), &mut memory, &options) {
        Ok(pass) => pass,
        Err(ReconcileError::Invalid { findings }) => {
            return Ok(json!({"ops": [], "error": findings.first().map(finding)}));
        }
        Err(error) => return Err(Refusal::new("Reconcile", error.to_string())),
    };
    let mut server = ImaginedServer {
        slices: input.stored.clone(),
        gates_off: gates("server.gatesOff", &input.server.gates_off)?.into_iter().collect(),
        time_added: input.server.time_added,
        fail_write: failing(&input.server)?,
        writes: 0,
    };
    let sent = send(&pass, &mut server, &mut memory);
    let second = if input.second_pass {
        let second = plan_pass(&scope, &server.slices, Some(&plan), &mut memory, &options);
        Some(second.map_or(0, |pass| pass.writes.len()))
    } else {
        None
    };
    Ok(json!({
        "ops": sent.ops,
        "aborted": sent.is_aborted,
        "resyncAfterSeconds": input.cache_ttl_seconds.filter(|_| sent.has_created),
        "secondPassWrites": second,
        "dropped": sent.dropped.iter().map(|(slice, gate)| json!({"slice": slice, "gate": gate})).collect::<Vec<_>>(),
        "sameButDropped": names(&pass.same_but_dropped),
        "problems": kinds("PoolNameClash", &pass.clashes),
        "wait": kinds("Terminating", &pass.terminating),
        "withheld": pass.withheld,
    }))
}

fn options(input: &ReconcileInput) -> ReconcileOptions {
    ReconcileOptions {
        keeps_generation: matches!(input.generation_rule, RuleName::Upstream),
        generates_names: matches!(input.names, NamesName::Generated),
        deletes_last: matches!(input.order, OrderName::DeletesLast),
        sends_dropped_fields: matches!(input.on_dropped, OnDroppedName::Report),
    }
}

fn desired(input: &ReconcileInput) -> PoolPlan<'_> {
    let node = match input.pool.nodes() {
        NodeChoice::Node(_) if input.single_pool => NodeChoice::All,
        node => node,
    };
    let mut plan = PoolPlan::new(node, input.desired.iter().map(WantedSlice::plan).collect());
    plan.generation = input.driver_generation;
    plan
}

/// Sends the writes of a pass until one stops it.
fn send(pass: &SyncPlan, server: &mut ImaginedServer, memory: &mut Memory) -> Sent {
    let mut sent = Sent::default();
    for write in &pass.writes {
        let mut op = shown(write);
        let outcome = server.send(write);
        let answer = match &outcome {
            Ok(None) => WriteResponse::Deleted,
            Ok(Some(stored)) => WriteResponse::Stored(stored),
            Err((failure, reason)) => {
                op.as_object_mut().map(|fields| fields.insert("fails".to_owned(), json!(reason)));
                WriteResponse::Failed(*failure)
            }
        };
        let answered = memory.answered(write, answer, Timestamp::UNIX_EPOCH);
        sent.has_created |= outcome.is_ok() && matches!(write, SliceWrite::Create { .. });
        // Also fields of gates that the memory knew to be off.
        let lost = write.slice().zip(outcome.as_ref().ok().and_then(Option::as_ref));
        let lost = lost.map(|(wanted, stored)| dropped(wanted, stored)).unwrap_or_default();
        sent.dropped.extend(lost.iter().map(|field| (index(write), field.gate.name)));
        sent.ops.push(op);
        if outcome.is_err() && answered.next != NextStep::Continue {
            sent.is_aborted = true;
            break;
        }
    }
    sent
}

fn index(write: &SliceWrite) -> usize {
    match write {
        SliceWrite::Update { index, .. } | SliceWrite::Create { index, .. } => (*index).into(),
        _ => 0,
    }
}

fn shown(write: &SliceWrite) -> Value {
    match write {
        SliceWrite::Delete { name, uid, resource_version } => {
            json!({"op": "delete", "name": name, "uid": uid, "resourceVersion": resource_version})
        }
        SliceWrite::Update { slice, .. } => json!({"op": "update", "slice": slice}),
        SliceWrite::Create { slice, .. } => json!({"op": "create", "slice": slice}),
        _ => Value::Null,
    }
}

fn failing(server: &ServerInput) -> Result<Option<(usize, WriteFailure, String)>, Refusal> {
    let Some(fail) = &server.fail_write else { return Ok(None) };
    let reason: Reason = serde_json::from_value(Value::String(fail.reason.clone()))
        .map_err(|error| Refusal::field("server.failWrite.reason", error.to_string()))?;
    Ok(Some((fail.number, reason.into(), fail.reason.clone())))
}

fn gates(field: &str, names: &[String]) -> Result<Vec<Gate>, Refusal> {
    let gate = |name: &String| {
        let found = GateSet::find(name, Profile::V1_37).map_err(|error| Refusal::field(field, error.to_string()));
        found.map(Option::into_iter)
    };
    let found: Vec<_> = names.iter().map(gate).collect::<Result<_, _>>()?;
    Ok(found.into_iter().flatten().collect())
}

fn names(gates: &BTreeSet<Gate>) -> Vec<&'static str> {
    let mut names: Vec<&str> = gates.iter().map(|gate| gate.name(Profile::V1_37)).collect();
    names.sort_unstable();
    names
}

fn kinds(kind: &str, slices: &[String]) -> Vec<Value> {
    slices.iter().map(|slice| json!({"kind": kind, "slice": slice})).collect()
}
