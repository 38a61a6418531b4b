//! Commands of the tracker to its caller, merging of status writes, and the number of API requests.

mod command;
mod cost;
mod patch;

pub use command::{Command, NoPatchReason};
pub use cost::{ApiCalls, MissedObjective, SchedulerObjectives, SchedulingMeasurement};
pub use patch::{ConditionChange, PatchDecision, PatchQueue, PodStatusFields, StatusPatch, decide_patch};
