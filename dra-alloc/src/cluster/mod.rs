//! Objects of a cluster, indexed: slices, taint rules, classes and allocated devices. Imports only `selector`, `device`
//! and `config`.

pub(crate) mod bits;
pub(crate) mod classes;
mod extended_resources;
pub(crate) mod inventory;
pub(crate) mod stamp;
pub(crate) mod state;
pub(crate) mod trie;
pub mod version;
