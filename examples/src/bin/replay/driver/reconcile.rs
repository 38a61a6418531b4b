//! The operation `driver.reconcile`: one pass over one pool, sent to an imagined API server.

use std::collections::BTreeSet;

use dra_alloc::driver::{
    Memory, NextStep, NodeChoice, PoolPlan, PoolScope, ReconcileError, ReconcileOptions, SlicePlan, SliceWrite,
    SyncPlan, WriteResponse, dropped, reconcile as plan_pass,
};
use k8s_openapi::api::resource::v1::{CounterSet, Device, ResourceSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::gates::{gates, names};
use super::imagined_server::{ImaginedServer, ServerInput};
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
    let mut server = ImaginedServer::new(&input.server, input.stored.clone())?;
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

fn kinds(kind: &str, slices: &[String]) -> Vec<Value> {
    slices.iter().map(|slice| json!({"kind": kind, "slice": slice})).collect()
}
