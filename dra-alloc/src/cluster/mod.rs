//! Objects of a cluster, indexed: slices, taint rules, classes and allocated devices. Imports nothing of this crate.
//!
//! Tests: `tests/it/inventory.rs`, `tests/it/state.rs`, `tests/it/cluster.rs`.

pub(crate) mod bits;
pub mod capacity;
pub(crate) mod classes;
pub(crate) mod expression;
mod extended_resources;
pub(crate) mod inventory;
pub(crate) mod known_states;
pub(crate) mod node_state;
pub(crate) mod scope;
pub(crate) mod set_uses;
pub(crate) mod stamp;
pub(crate) mod state;
pub(crate) mod trie;
