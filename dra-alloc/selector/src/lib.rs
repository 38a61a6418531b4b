//! CEL selectors over one device, in the environment of Kubernetes 1.37: the same language, types, values, errors and
//! costs.
//!
//! An expression reads the variable `device`: `device.driver`, `device.allowMultipleAllocations`,
//! `device.attributes[domain][id]` and `device.capacity[domain][id]`. A name in the device without a domain belongs to
//! the domain of the driver. An unknown domain is an empty map; an unknown id is an error, unless the expression asks
//! with `has()`, `in`, `.?` or `[?]`.
//!
//! # Stages
//! A text becomes tokens and a tree (`syntax`), every part of which gets a type (`check`, with the names of
//! `declarations`); what an evaluation can cost is estimated (`cost`); a list of small operations is planned and run on
//! a device (`program`, with `value` and `functions`). Common forms are evaluated directly (`direct`).
//!
//! # Bounds
//! Expressions are not trusted. No stage recurses with the depth of an expression. Besides the limit on the cost, which
//! is Kubernetes', an evaluation has a bound on its work (about 50 ms) and on the memory that it makes (40 MiB), for what
//! Kubernetes does not price. Either is an error even where `||` or `&&` would have absorbed it. Patterns
//! are compiled when they are first searched for, which counts as work of each evaluation; an expression whose patterns
//! have more than 2 MiB is refused.
//!
//! # Order
//! Loops over maps use the sorted keys; in Kubernetes their order is random.
//!
//! Source: `dynamic-resource-allocation/cel` of Kubernetes 1.37, with cel-go 0.27.
//!
//! Tests: `tests/it`, `tests/naive`.
#![expect(clippy::unnecessary_box_returns, reason = "answers hold faults boxed, to be small")]
#![expect(clippy::match_same_arms, reason = "tables have a row for each")]

mod cache;
mod check;
mod cost;
mod declarations;
mod device;
mod direct;
mod error;
mod facts;
mod fault;
mod functions;
mod input;
#[doc(hidden)]
pub mod internal;
mod list_memory;
mod meter;
mod options;
mod position;
mod program;
mod result;
mod scalar;
mod searched;
mod selector;
mod survey;
mod syntax;
mod types;
mod value;

pub use cache::SelectorCache;
pub use cost::too_complex::TooComplex;
pub use error::{CompileError, EvaluationError, Report};
pub use input::SelectorInput;
pub use options::Options;
pub use result::{Evaluation, Value};
pub use selector::Selector;
pub use survey::{TermSurvey, ValueSurvey};

#[cfg(test)]
mod tests;
