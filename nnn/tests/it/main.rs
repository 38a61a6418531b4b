//! Decisions around `nominatedNodeName`: the tables, the races, invariants over random and over all small histories.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

mod amount;
mod api_server;
mod binding;
mod candidate;
mod cost;
mod cycle;
mod external;
mod group;
mod nominator;
mod races;
mod reservation;
mod sim;
mod state;
mod upstream;
mod vectors;
mod view;
