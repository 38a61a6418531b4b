//! Parts that two or more of the example programs share, or that a fuzz target calls. What belongs to one program alone
//! stands beside its `main.rs`.

pub mod candidates;
pub mod claim_store;
pub mod cluster_args;
pub mod durable;
pub mod eviction_preview;
pub mod feature_gates;
#[cfg(feature = "grpc")]
pub mod grpc_api;
pub mod instant;
#[cfg(feature = "live")]
pub mod live;
pub mod machine;
pub mod manifest;
pub mod nominate;
pub mod objects;
pub mod output;
pub mod placing;
pub mod pool_question;
pub mod pool_table;
pub mod sysfs;

/// Examples of the README, tested as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// Programs of docs/embedding.md, compiled and run as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
pub struct Embedding;
