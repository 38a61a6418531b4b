//! Decisions of a binding cycle: start, order of plugins, claims, and the API server's part.
//!
//! | table | entry |
//! |---|---|
//! | start of the cycle | [`BindingStart::decide`] |
//! | `PreBind` plugins that run together | [`pre_bind_groups`] |
//! | writes to pod and claims | [`announce`], [`reservation_gap`] |
//! | API server | [`apply_binding`] |

mod announce;
mod api_server;
pub(crate) mod assumed;
pub(crate) mod claims;
pub(crate) mod failed_stage;
mod pre_bind;
pub(crate) mod start;

pub use announce::announce;
pub use api_server::{BindingError, apply_binding};
pub use pre_bind::{PreBindPlugin, pre_bind_groups, reservation_gap};
pub use start::{BindingStart, PreFlightError};

pub(crate) use announce::persist;
pub(crate) use assumed::Assumed;
pub(crate) use claims::{BindingClaim, claim_writes};
pub(crate) use failed_stage::FailedStage;
