//! Replay door: one JSON document per line in, one per line out. `docs/replay.md` describes it.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::operation::Operation;
use crate::refusal::{self, Refusal};
use crate::scheduling::{
    autoscaler, claims, controller, cycle, eligibility, eviction, extended, node_allocatable, preemption, rules,
};
use crate::steps::{StepOperation, StepWriter};
use crate::stopwatch::{Stopwatch, Timing};
use crate::{alloc, attrs, declared_features, driver, kubelet, nnn, poolstatus, readiness, selector, skip, validate};

/// Time after which an operation is not repeated once more.
const MOST_REPEATING: Duration = Duration::from_secs(10);

/// Function that reads the input of an operation.
type Reader = fn(Value) -> Result<Operation, Refusal>;

/// Function that reads the input of an operation with steps.
type StepReader = fn(Value) -> Result<StepOperation, Refusal>;

/// Operations with steps, by name.
const OPERATIONS_WITH_STEPS: &[(&str, StepReader)] =
    &[("alloc.kubelet", kubelet::kubelet), ("nnn.run", nnn::run), ("readiness.step", readiness::steps)];

/// All other operations by name.
const OPERATIONS: &[(&str, Reader)] = &[
    ("attrs.numa_node", attrs::numa_node),
    ("attrs.numa_node_sysfs", attrs::numa_node_sysfs),
    ("attrs.pcie_root", attrs::pcie_root),
    ("attrs.match", attrs::matching),
    ("attrs.quantity", attrs::quantity),
    ("alloc.allocate", alloc::allocate),
    ("alloc.node_scores", alloc::scores_of_nodes),
    ("alloc.selector", selector::evaluate),
    ("alloc.validate_slice", validate::slice),
    ("alloc.validate_claim", validate::claim),
    ("alloc.validate_claim_status", validate::claim_status),
    ("alloc.validate_claim_template", validate::claim_template),
    ("alloc.validate_class", validate::class),
    ("alloc.validate_taint_rule", validate::taint_rule),
    ("alloc.aggregate_skip", skip::aggregate_skip),
    ("alloc.required_features", declared_features::required_features),
    ("alloc.match_features", declared_features::match_features),
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
    ("nnn.nominator_update", nnn::table::nominator_update),
    ("nnn.binding_start", nnn::table::binding_start),
    ("nnn.cycle_result", nnn::table::cycle_result),
    ("nnn.prebind_groups", nnn::table::prebind_groups),
    ("nnn.needs_patch", nnn::table::needs_patch),
    ("readiness.filter", readiness::filter_node),
    ("readiness.validate", readiness::validate_gates),
    ("poolstatus.compute", poolstatus::compute),
    ("scheduling.name", claims::name),
    ("scheduling.group_name", claims::group_name),
    ("scheduling.bind_to", claims::bind_to),
    ("scheduling.is_for_pod", rules::is_for_pod),
    ("scheduling.is_for_group", rules::is_for_group),
    ("scheduling.is_reserved", rules::is_reserved),
    ("scheduling.can_reserve", rules::can_reserve_claim),
    ("scheduling.cycle", cycle::cycle),
    ("scheduling.class_cache", extended::class_cache),
    ("scheduling.requests", extended::requests),
    ("scheduling.node_allocatable", node_allocatable::node_allocatable),
    ("scheduling.binding", rules::binding),
    ("scheduling.score", rules::score),
    ("scheduling.normalize", rules::normalize),
    ("scheduling.claim_hint", rules::claim_hint),
    ("scheduling.pod_hint", rules::pod_hint),
    ("scheduling.controller", controller::controller),
    ("scheduling.evict", eviction::evict),
    ("scheduling.preempt", preemption::preempt),
    ("scheduling.may_preempt", eligibility::may_preempt),
    ("scheduling.ready", autoscaler::ready),
    ("scheduling.utilization", autoscaler::utilization),
    ("scheduling.template", autoscaler::template),
];

#[derive(Deserialize)]
struct Request {
    op: Option<String>,
    input: Option<Value>,
    repeat: Option<u32>,
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timing: Option<Timing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

/// Operation as it was read.
enum ReadOperation {
    /// The answer is one value.
    Whole(Operation),
    /// The answer is a list of steps.
    Steps(StepOperation),
}

/// Operation of a line, with the number of times that it runs.
struct Asked {
    operation: ReadOperation,
    repeat: Option<u32>,
}

/// Writes the answer to one line, with a line feed.
///
/// # Errors
/// The answer can't be written.
pub(crate) fn answer(line: &[u8], output: &mut impl Write) -> io::Result<()> {
    // Some editors begin a file with a mark of its byte order.
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    let (id, asked) = match serde_json::from_slice::<Value>(line) {
        Ok(mut document) => {
            let id = document.as_object_mut().and_then(|fields| fields.remove("id")).unwrap_or_default();
            drop_nulls(&mut document);
            (id, read(document))
        }
        Err(_) if str::from_utf8(line).is_err() => (Value::Null, Err(Refusal::new("BadJson", "not UTF-8"))),
        Err(error) => (Value::Null, Err(Refusal::new("BadJson", error.to_string()))),
    };
    let answered = match asked {
        Ok(Asked { operation: ReadOperation::Steps(operation), repeat }) => {
            return write_steps(&id, &operation, repeat, output);
        }
        Ok(Asked { operation: ReadOperation::Whole(operation), repeat }) => {
            repeated(repeat, |stopwatch, _| operation(stopwatch))
        }
        Err(refusal) => Err(refusal),
    };
    write_line(&id, answered, output)
}

/// Writes the answer to a line that can't be read to its end.
///
/// # Errors
/// The answer can't be written.
pub(crate) fn refuse_line(reason: &str, output: &mut impl Write) -> io::Result<()> {
    write_line(&Value::Null, Err(Refusal::new("BadJson", reason)), output)
}

fn read(document: Value) -> Result<Asked, Refusal> {
    let request: Request = refusal::read(document)?;
    let op = request.op.ok_or_else(|| Refusal::field("op", "an operation must be named"))?;
    let input = request.input.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let operation = if let Some((_, read)) = OPERATIONS.iter().find(|(name, _)| *name == op) {
        ReadOperation::Whole(read(input)?)
    } else if let Some((_, read)) = OPERATIONS_WITH_STEPS.iter().find(|(name, _)| *name == op) {
        ReadOperation::Steps(read(input)?)
    } else {
        return Err(Refusal::new("UnknownOp", format!("no operation {op:?}")));
    };
    Ok(Asked { operation, repeat: request.repeat })
}

/// Runs an operation as often as asked, but begins no repetition after [`MOST_REPEATING`]. The result is that of the last
/// run, which is told that it is the last.
fn repeated<T, E>(
    repeat: Option<u32>,
    mut run: impl FnMut(&mut Stopwatch, bool) -> Result<T, E>,
) -> Result<(T, Option<Timing>), E> {
    let (mut stopwatch, begin) = (Stopwatch::default(), Instant::now());
    for _ in 1..repeat.unwrap_or(1) {
        if begin.elapsed() >= MOST_REPEATING {
            break;
        }
        run(&mut stopwatch, false)?;
        stopwatch.end();
    }
    stopwatch.ask();
    let ok = run(&mut stopwatch, true)?;
    stopwatch.end();
    Ok((ok, repeat.map(|_| stopwatch.minima())))
}

fn write_line(
    id: &Value,
    answered: Result<(Value, Option<Timing>), Refusal>,
    output: &mut impl Write,
) -> io::Result<()> {
    let answer = match answered {
        Ok((ok, timing)) => Answer { id, ok: Some(ok), timing, error: None },
        Err(error) => Answer { id, ok: None, timing: None, error: Some(error) },
    };
    serde_json::to_writer(&mut *output, &answer)?;
    output.write_all(b"\n")
}

/// Writes the same as [`write_line`], but each step as it is made.
fn write_steps(id: &Value, operation: &StepOperation, repeat: Option<u32>, output: &mut impl Write) -> io::Result<()> {
    write!(output, "{{\"id\":{id},\"ok\":{{\"steps\":[")?;
    let ((), timing) = repeated(repeat, |stopwatch, is_last| {
        let mut steps = if is_last { StepWriter::new(output) } else { StepWriter::none() };
        operation(stopwatch, &mut steps)
    })?;
    output.write_all(b"]}")?;
    if let Some(timing) = timing {
        output.write_all(b",\"timing\":")?;
        serde_json::to_writer(&mut *output, &timing)?;
    }
    output.write_all(b"}\n")
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
