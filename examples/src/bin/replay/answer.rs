//! Replay door: one JSON document per line in, one per line out. `docs/replay.md` describes it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::operation::Operation;
use crate::refusal::{self, Refusal};
use crate::stopwatch::{Stopwatch, Timing};
use crate::{alloc, attrs, driver, kubelet, nnn, poolstatus, readiness, selector, validate};

/// Function that reads the input of an operation.
type Reader = fn(Value) -> Result<Operation, Refusal>;

/// All operations by name.
const OPERATIONS: &[(&str, Reader)] = &[
    ("attrs.numa_node", attrs::numa_node),
    ("attrs.numa_node_sysfs", attrs::numa_node_sysfs),
    ("attrs.pcie_root", attrs::pcie_root),
    ("attrs.match", attrs::matching),
    ("attrs.quantity", attrs::quantity),
    ("alloc.allocate", alloc::allocate),
    ("alloc.selector", selector::evaluate),
    ("alloc.validate_slice", validate::slice),
    ("alloc.validate_claim", validate::claim),
    ("alloc.validate_claim_status", validate::claim_status),
    ("alloc.validate_claim_template", validate::claim_template),
    ("alloc.validate_class", validate::class),
    ("alloc.validate_taint_rule", validate::taint_rule),
    ("alloc.aggregate_skip", kubelet::aggregate_skip),
    ("alloc.required_features", kubelet::required_features),
    ("alloc.match_features", kubelet::match_features),
    ("alloc.kubelet", kubelet::kubelet),
    ("driver.plan", driver::plan),
    ("driver.names", driver::names),
    ("driver.configs", driver::configs),
    ("driver.ledger", driver::ledger),
    ("driver.status", driver::status),
    ("driver.metadata", driver::metadata),
    ("driver.health", driver::health),
    ("driver.h2", driver::h2),
    ("driver.reconcile", driver::reconcile),
    ("driver.equal", driver::equal),
    ("driver.due", driver::due),
    ("driver.pool_check", driver::pool_check),
    ("nnn.run", nnn::run),
    ("nnn.nominator_update", nnn::table::nominator_update),
    ("nnn.binding_start", nnn::table::binding_start),
    ("nnn.cycle_result", nnn::table::cycle_result),
    ("nnn.prebind_groups", nnn::table::prebind_groups),
    ("nnn.needs_patch", nnn::table::needs_patch),
    ("readiness.filter", readiness::filter_node),
    ("readiness.step", readiness::steps),
    ("readiness.validate", readiness::validate_gates),
    ("poolstatus.compute", poolstatus::compute),
];

#[derive(Deserialize)]
struct Request {
    op: Option<String>,
    input: Option<Value>,
    repeat: Option<u32>,
}

#[derive(Serialize)]
struct Answer {
    id: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timing: Option<Timing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

/// Returns the answer to one line, without a line feed.
pub(crate) fn answer(line: &[u8]) -> String {
    let (id, outcome) = match serde_json::from_slice::<Value>(line) {
        Ok(mut document) => {
            let id = document.as_object_mut().and_then(|fields| fields.remove("id")).unwrap_or_default();
            drop_nulls(&mut document);
            (id, run(document))
        }
        Err(error) => (Value::Null, Err(Refusal::new("BadJson", error.to_string()))),
    };
    let answer = match outcome {
        Ok((ok, timing)) => Answer { id, ok: Some(ok), timing, error: None },
        Err(error) => Answer { id, ok: None, timing: None, error: Some(error) },
    };
    serde_json::to_string(&answer).unwrap_or_default()
}

fn run(document: Value) -> Result<(Value, Option<Timing>), Refusal> {
    let request: Request = refusal::read(document)?;
    let op = request.op.ok_or_else(|| Refusal::field("op", "an operation must be named"))?;
    let reader = OPERATIONS.iter().find(|(name, _)| *name == op).map(|(_, reader)| reader);
    let reader = reader.ok_or_else(|| Refusal::new("UnknownOp", format!("no operation {op:?}")))?;
    let operation = reader(request.input.unwrap_or_else(|| Value::Object(serde_json::Map::new())))?;
    let mut stopwatch = Stopwatch::default();
    for _ in 1..request.repeat.unwrap_or(1) {
        operation(&mut stopwatch)?;
        stopwatch.end();
    }
    stopwatch.ask();
    let ok = operation(&mut stopwatch)?;
    stopwatch.end();
    Ok((ok, request.repeat.map(|_| stopwatch.minima())))
}

/// Removes fields that are `null`, at every depth: `null` means absent.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
