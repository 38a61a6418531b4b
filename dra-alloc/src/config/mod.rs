//! Profiles, feature gates and limits. Imports no other module of the crate.

pub(crate) mod gate_policy;
pub(crate) mod gates;
pub(crate) mod limits;
pub(crate) mod profile;
