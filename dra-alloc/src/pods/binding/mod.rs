//! The binding of one pod: everything that is written for it, in its order.
//!
//! Tests: `tests/it/pods/binding.rs`, `tests/it/pods/binding_exploration.rs`, `tests/it/pods/binding_histories.rs`.

mod call;
mod cycle;
mod memory;
mod pod_binding;
mod repetition;
mod rival;
mod step;
mod taking_back;

pub use call::{BindingCall, BindingRequest};
pub use memory::BindingMemory;
pub use pod_binding::Binding;
pub use step::{BindingStep, BindingWait, UnboundError};
