//! Decisions of a scheduling cycle: order of nodes, result, preemption, failure, pod groups and requeueing.
//!
//! | table | entry |
//! |---|---|
//! | node that is tried first | [`CycleStart::evaluate`] |
//! | nomination after a cycle | [`decide_cycle`], [`combine_post_filters`] |
//! | preemption | [`may_preempt`], [`clear_lower_nominations`] |
//! | writes and queue after a failure | [`FailedCycle::decide`] |
//! | pods that an event requeues | [`decide_requeue`] |
//! | members of pod groups | [`decide_member`], [`decide_waiting_member`] |
//!
//! Only [`FailedCycle`] reads a feature gate: nominations by preemption are older than KEP-5278.

mod candidate;
pub(crate) mod cycle_result;
mod failure;
mod group;
mod preemption;
mod requeue;

pub use candidate::{
    CandidateResult, CycleStart, FeasibleNodes, HintAfterNomination, NodeEvaluation, PreFilterResult, filter_rounds,
};
pub use cycle_result::{CycleStatusClass, PostFilterStatus, combine_post_filters, decide_cycle};
pub use failure::{FailedCycle, FailureDecision, MemoryUpdate, QueueAction};
pub use group::{GroupMemberResult, PodGroupResult, decide_member, decide_waiting_member, restored_nomination};
pub use preemption::{NominatedNodeStatus, clear_lower_nominations, may_preempt};
pub use requeue::{PodRequeueEvent, decide_requeue};
