//! The scheduling cycle: which node is tried first, what its result means for the nomination, what a failure writes, whom
//! a preemption clears, whom an event wakes, what groups of pods do.
//!
//! | table | where |
//! |---|---|
//! | DT-1, first node | [`candidate`] |
//! | DT-3, result of a cycle | [`cycle`] |
//! | DT-3b and DT-6, preemption | [`preemption`] |
//! | DT-5, failure | [`failure`] |
//! | DT-7, events | [`wake`] |
//! | DT-8, pod groups | [`group`] |
//!
//! None of them looks at a gate but the ones that name it: nominations by preemption are older than KEP-5278.

pub mod candidate;
pub mod cycle;
pub mod failure;
pub mod group;
pub mod preemption;
pub mod wake;
