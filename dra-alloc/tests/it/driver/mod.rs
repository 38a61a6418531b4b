//! Decisions of a DRA driver.

mod laws;
mod partitions;
mod plan;
mod pool_check;
mod reconcile;
