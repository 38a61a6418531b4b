//! Searches of the oracle's cases, for tests.

use dra_selector::SelectorCache;
use smallvec::SmallVec;

use super::allocate_error::AllocateError;
use super::budget::{Budget, Effort};
use super::context::{Context, FailingSelectors};
use super::elisions::Elisions;
use super::node_search::allocate_on;
use super::outcome::Outcome;
use super::pruning_rules::PruningRules;
use super::request::Plan;
use super::searched_states::SearchedStates;
use crate::cluster::expression::Compiler;
use crate::cluster::inventory::Inventory;
use crate::cluster::state::AllocatedState;
use crate::oracle::Case;
use crate::oracle::compare::{classes, numbered, state};

/// Outcome and effort of a search.
pub(super) type Searched = Result<(Outcome, Effort), AllocateError>;

/// Searches a case, whose index is given.
pub(super) fn allocate(
    case: &Case,
    inventory: &Inventory,
    pruning: PruningRules,
    like: Option<&SearchedStates>,
    budget: Budget<'_>,
) -> Searched {
    allocate_beside(case, inventory, &state(case), (pruning, Elisions::default()), like, budget)
}

/// Searches a case, whose index and state are given, with some of the rules and elisions.
pub(super) fn allocate_beside(
    case: &Case,
    inventory: &Inventory,
    state: &AllocatedState,
    (pruning, elisions): (PruningRules, Elisions),
    like: Option<&SearchedStates>,
    budget: Budget<'_>,
) -> Searched {
    let (classes, selectors) = (classes(case), SelectorCache::default());
    let compiler = Compiler::new(&selectors, case.profile, case.gates);
    let context = Context {
        inventory,
        classes: &classes,
        state,
        selectors: compiler,
        share_ids: &numbered,
        gates: case.gates,
        profile: case.profile,
        pruning,
        elisions,
        failing: FailingSelectors::End,
    };
    let claims: SmallVec<[_; 4]> = case.claims.iter().collect();
    allocate_on(&context, &Plan::new(&claims, &classes, case.gates, case.profile), &case.node, like, budget)
}
