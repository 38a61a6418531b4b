//! Input of an allocation apart from the claims and the node: inventory, classes, allocated devices and gates.

use dra_attrs::{GateSet, Profile};

use super::elisions::Elisions;
use super::pruning_rules::PruningRules;
use super::share::ShareIds;
use crate::cluster::classes::Classes;
use crate::cluster::expression::Compiler;
use crate::cluster::inventory::Inventory;
use crate::cluster::state::AllocatedState;

/// Input of a search or an explanation. A what-if question uses a copy with one field changed.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) classes: &'a Classes,
    pub(crate) state: &'a AllocatedState,
    pub(crate) selectors: Compiler<'a>,
    pub(crate) share_ids: &'a dyn ShareIds,
    pub(crate) gates: GateSet,
    pub(crate) profile: Profile,
    pub(crate) pruning: PruningRules,
    pub(crate) elisions: Elisions,
    pub(crate) failing: FailingSelectors,
}

/// Treatment of a device on which a selector fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FailingSelectors {
    /// The search ends with the error.
    #[default]
    End,
    /// The device is none for the request. A what-if question frees devices that nobody has looked at before.
    PassOver,
}
