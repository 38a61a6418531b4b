//! Commands of the tracker to its caller.

mod command;

pub use command::{Command, NoPatchReason};
