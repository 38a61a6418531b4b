//! Context of one allocation: its inputs other than the claims and the node.

use dra_attrs::{GateSet, Profile};

use crate::class::Classes;
use crate::gates::DraGate;
use crate::inventory::Inventory;
use crate::search::PruningRules;
use crate::selector::SelectorCache;
use crate::share::ShareIds;
use crate::state::AllocatedState;

/// Inputs of a search and of an explanation. A what-if question is a copy with one field changed.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) classes: &'a Classes<'a>,
    pub(crate) state: &'a AllocatedState,
    pub(crate) selectors: &'a SelectorCache,
    pub(crate) share_ids: Option<&'a dyn ShareIds>,
    pub(crate) gates: GateSet<DraGate>,
    pub(crate) profile: Profile,
    pub(crate) pruning: PruningRules,
}
