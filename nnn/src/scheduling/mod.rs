//! The scheduling cycle: which node is tried first, what its result means for the nomination, what a failure writes, whom
//! a preemption clears, whom an event wakes, what groups of pods do.
//!
//! | table | where |
//! |---|---|
//! | first node | [`candidate`] |
//! | result of a cycle | [`cycle`] |
//! | preemption | [`preemption`] |
//! | failure | [`failure`] |
//! | events | [`wake`] |
//! | pod groups | [`group`] |
//!
//! None of them looks at a gate but the ones that name it: nominations by preemption are older than KEP-5278.

pub mod candidate;
pub mod cycle;
pub mod failure;
pub mod group;
pub mod preemption;
pub mod wake;
