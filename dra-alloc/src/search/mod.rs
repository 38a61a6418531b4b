//! Allocation on one node, in four steps: read pools, collect the devices of `allocationMode: All` requests, search,
//! build the allocation results.
//!
//! - [`request`] the claims, read once for any number of nodes
//! - [`node_search`] the search on one node, from pools to results; [`all_devices`] the requests for all devices;
//!   [`too_few`] the nodes that need no search; [`searched_states`] those that need none of their own
//! - [`table`] facts about the node's devices that no decision changes; [`selection`] by selectors, and [`known_results`] of
//!   them
//! - [`partial_assignment`] the partial assignment
//! - [`walk`] the backtracking search, which ends with a [`solution`]
//! - [`prune`] rules that cut branches without a solution, of three kinds: [`bounds`], [`kinds`] of devices that can be
//!   exchanged, and [`failed_states`]; they read [`domains`], [`column_values`], [`demand`] and [`risk`];
//!   [`compare_pools`] are looked at once
//! - [`ix`] typed positions of all these
//!
//! Tests: `tests/it/search_random.rs`, `tests/it/search_steps.rs`, `src/search/oracle_case.rs`.

pub(crate) mod all_devices;
pub(crate) mod allocate_error;
mod bounds;
pub(crate) mod budget;
pub(crate) mod candidates;
pub(crate) mod capacity_check;
mod column_values;
mod compare_pools;
pub(crate) mod context;
pub(crate) mod counters;
mod demand;
pub(crate) mod device_set;
mod distinct_memory;
pub(crate) mod domains;
mod elisions;
mod failed_states;
mod grid;
pub(crate) mod ix;
mod kinds;
mod known_results;
mod like_pools;
pub(crate) mod node_search;
#[cfg(test)]
mod oracle_case;
pub(crate) mod ordered;
pub(crate) mod outcome;
pub(crate) mod partial_assignment;
mod prune;
mod pruning_rules;
mod refused_before;
pub(crate) mod request;
pub(crate) mod results;
mod risk;
mod searched_states;
mod selection;
pub(crate) mod share;
pub(crate) mod solution;
pub(crate) mod stopped;
pub(crate) mod table;
mod too_few;
pub(crate) mod walk;

pub(crate) use capacity_check::{CapacityCheck, CapacityMiss};
pub(crate) use elisions::{Elision, Elisions};
pub(crate) use node_search::{allocate_on, fits_within, is_possible, own_words, with_table};
pub(crate) use partial_assignment::{Insufficient, PartialAssignment, Refusal, Rejection};
pub(crate) use pruning_rules::PruningRules;
pub(crate) use searched_states::{SearchedStates, lens_of};
pub(crate) use table::{Selection, Table};
