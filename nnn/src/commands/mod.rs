//! Commands of the tracker to its caller, and the decision to write a status.

mod command;
mod patch;

pub use command::{Command, NoPatchReason};
