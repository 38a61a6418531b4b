//! Tests of the public API, one module per concept.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "values made in place read better without a borrow")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test has threads of its own")]

mod allocate;
mod allocate_corners;
mod attempts;
mod autoscaler;
mod budget;
mod capacity;
mod claim_controller;
mod cluster;
mod eviction;
mod explain;
mod explain_laws;
mod fit;
mod headlines;
mod inventory;
mod kept_devices;
mod look_ups;
mod max_state;
mod node_verdicts;
mod nodes;
mod numa;
mod objective;
#[path = "../oracle/mod.rs"]
mod oracle;
mod oracle_laws;
mod packages;
mod pods;
mod preemption;
mod preemption_gang_rules;
mod preemption_gangs;
mod preemption_rules;
mod releases;
mod scale_down;
mod scale_up;
mod search_random;
mod search_steps;
mod skip_allocation;
mod state;
mod versions;
