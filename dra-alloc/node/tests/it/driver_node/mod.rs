//! Tests of the node's side of a driver: claims, containers, and talks with the kubelet.

mod authority;
mod authority_table;
mod cdi;
mod claims;
mod health;
mod ledger;
mod ledger_states;
mod metadata;
mod registration;
mod status;
