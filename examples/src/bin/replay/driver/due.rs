//! The operation `driver.due`: time of the next pass over a pool.

use dra_alloc::driver::Timers;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::operation::Operation;
use crate::refusal::Refusal;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DueInput {
    now: Timestamp,
    desired_changed_at: Option<Timestamp>,
    first_foreign_event_at: Option<Timestamp>,
    own_slice_vanished_at: Option<Timestamp>,
    #[serde(default)]
    quick_repair: bool,
    last_unconfirmed_write_at: Option<Timestamp>,
    #[serde(default)]
    failures: u32,
    failed_at: Option<Timestamp>,
    synced_at: Option<Timestamp>,
}

pub(crate) fn due(input: Value) -> Result<Operation, Refusal> {
    super::operation(input, |input: &DueInput| Ok(answer(input)))
}

fn answer(input: &DueInput) -> Value {
    let mut timers = Timers::default();
    timers.desired_changed_at = input.desired_changed_at;
    timers.first_foreign_event_at = input.first_foreign_event_at;
    timers.own_slice_vanished_at = input.own_slice_vanished_at;
    timers.has_quick_repair = input.quick_repair;
    timers.last_unconfirmed_write_at = input.last_unconfirmed_write_at;
    timers.failures = input.failures;
    timers.failed_at = input.failed_at;
    timers.synced_at = input.synced_at;
    match timers.due(input.now) {
        None => json!({"at": null, "reason": null}),
        Some((at, reason)) => json!({"at": at, "reason": format!("{reason:?}")}),
    }
}
