//! State of a node: the shapes of its pools, and what of them is free, held and how much. Nodes in one state are the same for all
//! who read no more attributes than a lens shows, and no names.
//!
//! Pools of one node are in the state by their facts. Pools that many nodes see are in it by their version and that of their use:
//! nodes that see them see the same objects.

use smallvec::SmallVec;

use super::inventory::Inventory;
use super::inventory::facts::{Fact, Facts};
use super::inventory::kept::SharedSet;
use super::inventory::pool::Pool;
use super::inventory::shape::KnownLens;
use super::inventory::view::View;
use super::set_uses::{SetUses, use_of};
use super::stamp::Stamp;
use super::state::AllocatedState;

/// State of a node, as words. Each part tells where it ends, so that different states have different words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct NodeState(SmallVec<[u64; 8]>);

/// Treatment of pools that many nodes see.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SharedUse<'u> {
    /// Their use is a part of the state.
    Compared(&'u SetUses),
    /// Their use is the same whenever states are compared.
    Known,
}

impl NodeState {
    /// Reads the state of a node; `None` if more than that matters. `first` are words about the node itself.
    ///
    /// The pools of a set of shared slices are one word for all nodes that see them, with one more for their use, and each other
    /// pool has its position between them: a set is read once, whatever the number of nodes.
    pub(crate) fn read(
        first: impl IntoIterator<Item = u64>,
        inventory: &Inventory,
        view: &View<'_>,
        lens: &KnownLens,
        state: &AllocatedState,
        shared: SharedUse<'_>,
    ) -> Option<Self> {
        let mut words = Self(first.into_iter().collect());
        words.0.push(lens.id().number());
        if let Some(set) = view.set() {
            words.set(set, state, shared)?;
        } else {
            words.shared_pools(view, state, shared)?;
        }
        for (position, pool) in view.own_pools() {
            words.0.push(u64::try_from(position).ok()?);
            words.0.push(pool.shape(inventory.shapes(), lens)?.number());
            match state.pool_hashed(pool.hash(), pool.driver(), pool.name()) {
                None => words.0.push(u64::MAX),
                Some(used) => used.write(pool.devices(), &mut words.0),
            }
            words.taints_by_rule(inventory, pool);
        }
        Some(words)
    }

    /// Writes the pools of a set of shared slices.
    fn set(&mut self, set: &SharedSet, state: &AllocatedState, shared: SharedUse<'_>) -> Option<()> {
        // No view has so many pools.
        self.0.push(u64::MAX);
        // Devices that choose nodes differ by node.
        self.0.push(set.is_for_its_nodes().then(|| set.stamp())?.number());
        if let SharedUse::Compared(uses) = shared {
            self.0.push(uses.id(set, state).number());
        }
        Some(())
    }

    /// Writes the pools that other nodes see, too.
    fn shared_pools(&mut self, view: &View<'_>, state: &AllocatedState, shared: SharedUse<'_>) -> Option<()> {
        self.0.push(u64::try_from(view.len() - view.own_pools().count()).ok()?);
        for (position, pool) in view.pools().enumerate().filter(|(position, _)| view.is_shared(*position)) {
            self.0.push(u64::try_from(position).ok()?);
            self.0.push(pool.is_for_its_nodes().then(|| pool.stamp())?.number());
            if let SharedUse::Compared(_) = shared {
                self.0.push(use_of(pool, state));
            }
        }
        Some(())
    }

    /// Writes the taints that rules add to the devices of a pool.
    fn taints_by_rule(&mut self, inventory: &Inventory, pool: &Pool) {
        if !inventory.has_rule_for(pool.driver(), pool.name()) {
            return;
        }
        let mut facts = Facts::default();
        for device in pool.devices().iter() {
            inventory.taints_by_rule(pool.driver(), pool.name(), device).collect::<Vec<_>>().write(&mut facts);
        }
        // No shape has this number.
        self.0.extend([Stamp::default().number(), u64::try_from(facts.bytes().len()).unwrap_or(u64::MAX)]);
        let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.0.extend(facts.bytes().chunks(8).map(word));
    }
}
