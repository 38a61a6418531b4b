//! Decisions of a DRA driver.

mod due;
mod equality;
mod laws;
mod names;
mod partitions;
mod plan;
mod publisher;
mod reconcile;
