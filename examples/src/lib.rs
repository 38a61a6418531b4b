//! Shared parts of the example programs.
pub mod gates;
pub mod instant;
pub mod kubelet;
pub mod machine;
pub mod manifest;
pub mod node_agent;
pub mod output;
pub mod pool_status;
pub mod replay;
pub mod scheduler;
pub mod sysfs;
pub mod tour;

/// The README's examples, so that they are tested.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The programs of docs/embedding.md, so that they are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
pub struct Embedding;
