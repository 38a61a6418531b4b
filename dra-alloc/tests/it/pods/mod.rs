//! Decisions of a scheduler about pods with claims.

mod api_server;
mod binding;
mod binding_exploration;
mod binding_histories;
mod binding_history;
mod binding_order;
mod cluster;
mod cycle;
mod entries;
mod explanation;
mod exploration;
mod extended;
mod gang;
mod histories;
mod node_allocatable;
mod tracker;
mod world;
