//! Devices as selectors read them.

pub(super) mod content;
pub(super) mod names;
pub(super) mod plain;
pub(super) mod soundness;
