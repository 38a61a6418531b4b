//! Objectives: which of all solutions is the best, not only the first one.
//!
//! kube-scheduler takes the first devices that fit. An [`Objective`] says which devices are better, and
//! [`Allocator::with_objective`](crate::Allocator::with_objective) finds the best: a branch-and-bound search over the same
//! solutions, in the same order, with a budget of its own.
//!
//! - data: [`Objective`], [`Term`] and what they are made of; [`ObjectiveError`]
//! - answers: [`Score`] with its [`Proof`], [`node_scores`]
//!
//! Tests: `tests/it/objective`.

mod alike;
mod alternative;
mod best;
mod check;
mod displaced;
mod error;
mod ground;
mod groups;
mod known;
mod levels;
mod measure;
mod measures;
mod node_scores;
mod outlook;
mod pair_costs;
mod pairing;
mod partial;
mod per_device;
mod presets;
mod read;
mod reason;
mod score;
mod shown;
mod supply;
mod term;
mod tree;

pub use error::ObjectiveError;
pub use levels::{Alternatives, Objective};
pub use node_scores::{NodeScale, node_scores};
pub use reason::ChoiceReason;
pub use score::{Proof, Score};
pub use term::{GroupBy, PairCost, PairScope, Pairs, Term, Unit, Weighted};

pub(crate) use best::{Question, best_on};
pub(crate) use displaced::Vacated;
pub(crate) use known::KnownSearches;
