//! Nominations: states of a pod, the cache of nominations by node, and the node resources that they reserve.
//!
//! Tests: `tests/it/nominator.rs`, `tests/it/reservation.rs`.

mod field_writes;
mod nominating_info;
mod nominator;
mod reservation;
mod state;

pub(crate) use field_writes::FieldWrites;
pub use nominating_info::NominatingInfo;
pub use nominator::{Nomination, Nominator};
pub use reservation::NodeFit;
pub(crate) use state::NominationEvent;
pub use state::{NominationState, TransitionError};
