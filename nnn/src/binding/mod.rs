//! Decisions of a binding cycle: start, order of plugins, claims, and the API server's part.
//!
//! | table | entry |
//! |---|---|
//! | start of the cycle | [`BindingStart::no_patch_reason`] |
//! | `PreBind` plugins that run together | [`PreBindPlugin::group`] |
//! | writes to pod and claims | [`Assumed::announce`](crate::Assumed::announce), [`PreBindPlugin::reservation_gap`] |
//! | API server | [`apply_binding`] |
//!
//! Tests: `tests/it/binding.rs`, `tests/it/api_server.rs`.

mod announce;
mod api_server;
pub(crate) mod assumed;
pub(crate) mod claims;
pub(crate) mod failed_stage;
mod pre_bind;
pub(crate) mod start;

pub use api_server::{BindingError, apply_binding};
pub use pre_bind::PreBindPlugin;
pub use start::{BindingStart, PreFlightError};

pub(crate) use announce::persist;
pub(crate) use assumed::Assumed;
pub(crate) use claims::{BindingClaim, claim_writes};
pub(crate) use failed_stage::FailedStage;
