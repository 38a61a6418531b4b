//! Devices as selectors read them.
//!
//! Tests: `tests/it/matching.rs`.

pub(super) mod content;
pub(super) mod names;
pub(super) mod plain;
pub(super) mod soundness;
