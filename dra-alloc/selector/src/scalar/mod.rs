//! Data of values that have no parts: read and shown as Go and Kubernetes do, without anything of an evaluation.
//!
//! Tests: `tests/it/values.rs`, `tests/it/net.rs`.

pub(super) mod address;
pub(super) mod amount;
mod decimal;
pub(super) mod digits;
pub(super) mod double;
pub(super) mod format;
pub(super) mod network;
pub(super) mod time;
pub(super) mod url;
