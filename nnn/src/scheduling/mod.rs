//! Decisions of a scheduling cycle: order of nodes, result, preemption, failure and requeueing.
//!
//! | table | entry |
//! |---|---|
//! | node that is tried first | [`FilterInput::evaluate`] |
//! | nomination after a cycle | [`CycleOutcome::nominating_info`](crate::CycleOutcome::nominating_info) |
//! | preemption | [`PodSnapshot::preemption_refusal`](crate::PodSnapshot::preemption_refusal) |
//!
//! None reads a feature gate: nominations by preemption are older than KEP-5278.
//!
//! Tests: `tests/it/cycle.rs`, `tests/it/vectors.rs`.

pub(crate) mod cycle_result;
mod failure;
mod filter_input;
mod preemption;
mod requeue;

pub use filter_input::{CandidateResult, FeasibleNodes, FilterInput, NodeEvaluation};
pub use preemption::{NominatedNodeStatus, VictimDevices};

pub(crate) use cycle_result::CycleOutcome;
pub(crate) use failure::{FailedCycle, FailureDecision, MemoryUpdate};
pub(crate) use preemption::clear_lower_nominations;
pub(crate) use requeue::{PodRequeueEvent, decide_requeue};
