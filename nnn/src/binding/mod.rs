//! Decisions of a binding cycle: start, order of plugins, claims, failure, and the API server's part.
//!
//! | table | entry |
//! |---|---|
//! | start of the cycle | [`BindingStart::decide`], [`aggregate`] |
//! | `PreBind` plugins that run together | [`groups`], [`groups_with_gates`], [`delay_before`] |
//! | order of the steps | [`steps`] |
//! | writes to pod and claims | [`announce`], [`persist`], [`visible_reservation`], [`gap`] |
//! | failure | [`BindingFailurePolicy::decide`](crate::behavior::BindingFailurePolicy::decide) |
//! | API server | [`bind`] |

mod api_server;
pub(crate) mod claims;
pub(crate) mod failure;
mod prebind;
pub(crate) mod start;

pub use api_server::{BindingConflict, bind};
pub use claims::{VisibleReservation, announce, gap, persist, visible_reservation};
pub use prebind::{
    BindingStep, PreBindConcurrency, PreBindExecution, PreBindPlugin, delay_before, groups, groups_with_gates, steps,
};
pub use start::{BindingStart, PreBindWork, PreFlightError, aggregate};
