//! State of a node: the shapes of its pools, and what of them is free, held and how much. Nodes in one state are the same for all
//! who read no more attributes than a lens shows, and no names.
//!
//! Pools of one node are in the state by their facts. Pools that many nodes see are in it by their version and that of their use:
//! nodes that see them see the same objects.

use smallvec::SmallVec;

use super::inventory::Inventory;
use super::inventory::facts::{Fact, Facts};
use super::inventory::pool::Pool;
use super::inventory::shape::KnownLens;
use super::inventory::view::View;
use super::stamp::Stamp;
use super::state::{AllocatedState, PoolUse};

/// State of a node, as words. Each part tells where it ends, so that different states have different words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct NodeState(SmallVec<[u64; 8]>);

/// Treatment of pools that many nodes see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedUse {
    /// Their use is a part of the state.
    Compared,
    /// Their use is the same whenever states are compared.
    Known,
}

impl NodeState {
    /// Reads the state of a node; `None` if more than that matters. `first` are words about the node itself.
    pub(crate) fn read(
        first: impl IntoIterator<Item = u64>,
        inventory: &Inventory,
        view: &View<'_>,
        lens: &KnownLens,
        state: &AllocatedState,
        shared: SharedUse,
    ) -> Option<Self> {
        let mut words = Self(first.into_iter().collect());
        words.0.push(lens.id().number());
        for (position, pool) in view.pools().enumerate() {
            let used = state.pool_hashed(pool.hash(), pool.driver(), pool.name());
            if view.is_shared(position) {
                // Devices that choose nodes differ by node.
                words.0.push(pool.is_for_its_nodes().then(|| pool.stamp())?.number());
                if shared == SharedUse::Compared {
                    words.0.push(used.map_or_else(Stamp::default, PoolUse::stamp).number());
                }
                continue;
            }
            words.0.push(pool.shape(inventory.shapes(), lens)?.number());
            match used {
                None => words.0.push(u64::MAX),
                Some(used) => used.write(pool.devices(), &mut words.0),
            }
            words.taints_by_rule(inventory, pool);
        }
        Some(words)
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
