//! Room for a pod whose devices others hold: who would have to go, in words and as data.
//!
//! No release preempts a pod for its devices; KEP-5690 will. The decisions are those of [`dra_alloc::preemption`].

mod priority;
mod who;

pub use priority::Priorities;
pub use who::{HarmSaid, MadeRoom, Rule, RuledRoom, Victim, Who, WhoGoes};
