//! Tests of the decision tables, of known races, and of invariants over random and over all small histories.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::items_after_statements,
    clippy::needless_pass_by_value,
    clippy::default_trait_access,
    clippy::needless_for_each,
    clippy::large_enum_variant,
    clippy::format_collect,
    clippy::type_complexity,
    missing_docs,
    reason = "a test fails by panicking, and imports what it names where it names it"
)]

mod common;

mod api_server;
mod binding;
mod candidate;
mod cost;
mod cycle;
mod explore;
mod external;
mod gated;
mod group;
mod invariants;
mod memory;
mod nominator;
mod races;
mod reservation;
mod sim;
mod upstream;
mod vectors;
mod view;
