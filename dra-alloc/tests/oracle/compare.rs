//! Cases as the input of the allocator, and its answers in the oracle's terms.

use std::sync::Arc;

use dra_alloc::{AllocateError, AllocatedState, Classes, Inventory, Outcome, Share};
use serde_json::{Value, json};

use super::{Answer, Case, DeviceId};

fn device_id(id: &DeviceId) -> dra_alloc::DeviceId {
    dra_alloc::DeviceId::new(&id.driver, &id.pool, &id.device)
}

pub fn state(case: &Case) -> AllocatedState {
    let mut state = AllocatedState::default();
    case.allocated.devices.iter().for_each(|id| state.hold(&device_id(id)));
    case.allocated.shared.iter().for_each(|(id, share)| state.share(&device_id(id), share));
    for (id, amounts) in &case.allocated.capacity {
        for (name, amount) in amounts {
            state.consume(&device_id(id), name, *amount);
        }
    }
    state
}

/// Returns the number of a share in the form of a UUID: the oracle gives the same.
pub fn numbered(share: Share<'_>) -> String {
    format!("00000000-0000-0000-0000-{:012x}", share.number)
}

pub fn inventory(case: &Case) -> Inventory {
    let rules = case.taint_rules.iter().cloned().map(Arc::new);
    Inventory::new(case.slices.iter().cloned()).with_taint_rules(rules)
}

pub fn classes(case: &Case) -> Classes {
    Classes::new(case.classes.iter().cloned())
}

/// Returns the answer in the oracle's terms. Texts of reasons may differ.
pub fn answer(outcome: Result<Outcome, AllocateError>) -> (&'static str, Value) {
    match outcome {
        Err(_) => ("failed", Value::Null),
        Ok(Outcome::Allocated(results)) => ("allocated", json!(results)),
        Ok(Outcome::FailedOnNode(_)) => ("failed on node", Value::Null),
        Ok(Outcome::Stopped(_)) => ("stopped", Value::Null),
        Ok(_) => ("unsatisfied", Value::Null),
    }
}

/// Returns the oracle's answer in the same form.
pub fn expected(answer: Answer) -> (&'static str, Value) {
    match answer {
        Answer::Allocated(results) => ("allocated", json!(results)),
        Answer::Unsatisfied => ("unsatisfied", Value::Null),
        Answer::FailedOnNode(_) => ("failed on node", Value::Null),
        Answer::Failed(_) => ("failed", Value::Null),
        Answer::Stopped => ("stopped", Value::Null),
    }
}
