//! Tests of the queue: kube-scheduler's rules, every short history, a second implementation, and events that must not be missed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test reads its table from a page")]

mod exploration;
mod histories;
mod limits;
mod missed_events;
mod model;
mod objects;
mod rules;
