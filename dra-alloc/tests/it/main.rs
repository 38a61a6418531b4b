//! Tests of the public API, one module per concept.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "values made in place read better without a borrow")]

mod allocate;
mod allocate_corners;
mod attempts;
mod autoscaler;
mod budget;
mod capacity;
mod claim_controller;
mod cluster;
mod declared_features;
mod diagnosis;
mod driver;
mod driver_node;
mod eviction;
mod explain;
mod explain_laws;
mod headlines;
mod inventory;
mod kubelet;
mod look_ups;
#[path = "../naive/mod.rs"]
mod naive;
mod node_verdicts;
mod numa;
#[path = "../oracle/mod.rs"]
mod oracle;
mod oracle_laws;
mod pods;
mod scale_down;
mod scale_up;
mod search_random;
mod search_steps;
mod selector;
mod selector_bounds;
mod selector_generated;
mod selector_language;
mod selector_lazy;
mod selector_naive;
mod selector_net;
mod selector_two_variables;
mod selector_values;
mod skip;
mod skip_aggregate;
mod skip_allocation;
mod state;
mod taint;
mod validate;
mod versions;
