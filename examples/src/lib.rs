//! Shared parts of the example programs.
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

/// Examples of the README, tested as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// Programs of docs/embedding.md, compiled and run as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
pub struct Embedding;
