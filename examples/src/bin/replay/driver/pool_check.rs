//! The operation `driver.pool_check`: mistakes in the slices of a pool.

use dra_alloc::pool::{PoolFinding, PoolMistake, validate_pool};
use k8s_openapi::api::resource::v1::ResourceSlice;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::operation::Operation;
use crate::refusal::Refusal;

#[derive(Deserialize)]
struct PoolCheckInput {
    #[serde(default)]
    slices: Vec<ResourceSlice>,
}

pub(crate) fn pool_check(input: Value) -> Result<Operation, Refusal> {
    super::operation(input, |input: &PoolCheckInput| {
        let (errors, warnings): (Vec<_>, Vec<_>) =
            validate_pool(&input.slices).into_iter().partition(|finding| finding.mistake.is_error());
        let shown = |findings: &[PoolFinding]| findings.iter().map(finding).collect::<Vec<_>>();
        Ok(json!({"errors": shown(&errors), "warnings": shown(&warnings)}))
    })
}

/// Returns a mistake with its names, and with the field that shows it.
pub(super) fn finding(finding: &PoolFinding) -> Value {
    let mut value = mistake(&finding.mistake);
    if let Value::Object(fields) = &mut value {
        fields.extend([("slice".to_owned(), json!(finding.slice)), ("field".to_owned(), json!(finding.field))]);
    }
    value
}

fn mistake(mistake: &PoolMistake) -> Value {
    match mistake {
        PoolMistake::DuplicateDevice { device, slices } => {
            json!({"kind": "DuplicateDevice", "device": device, "slices": slices})
        }
        PoolMistake::DuplicateCounterSet { counter_set, slices } => {
            json!({"kind": "DuplicateCounterSet", "counterSet": counter_set, "slices": slices})
        }
        PoolMistake::CounterSetMissing { device, counter_set } => {
            json!({"kind": "CounterSetMissing", "device": device, "counterSet": counter_set})
        }
        PoolMistake::CounterMissing { device, counter_set, counter } => {
            json!({"kind": "CounterMissing", "device": device, "counterSet": counter_set, "counter": counter})
        }
        PoolMistake::NeverAllocatable { device, counter_set, counter } => {
            json!({"kind": "NeverAllocatable", "device": device, "counterSet": counter_set, "counter": counter})
        }
        PoolMistake::CounterSetUnused { counter_set } => {
            json!({"kind": "CounterSetUnused", "counterSet": counter_set})
        }
        PoolMistake::StandardAttribute { device, attribute, reason } => {
            json!({"kind": "StandardAttribute", "device": device, "attribute": attribute, "reason": reason})
        }
        other => json!({"kind": format!("{other:?}")}),
    }
}
