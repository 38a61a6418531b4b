//! Nodes by what their views depend on, so that a change leads to the nodes that it concerns.

use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::cluster::inventory::Inventory;
use crate::cluster::inventory::changes::Changed;
use crate::cluster::stamp::Stamp;
use crate::cluster::state::{AllocatedState, PoolUses};

/// Positions of nodes, by the keys of what their views depend on: hashes of nodes and pools.
#[derive(Clone, Debug, Default)]
pub(super) struct Dependents(HashTable<OfKey>);

#[derive(Clone, Debug)]
struct OfKey {
    key: u64,
    /// Positions, ascending.
    nodes: SmallVec<[usize; 2]>,
}

/// State and slices that were followed last.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    uses: PoolUses,
    slices: Stamp,
    rules: Stamp,
}

impl Dependents {
    /// Returns the nodes with a key, ascending.
    pub(super) fn of(&self, key: u64) -> &[usize] {
        self.0.find(key, |listed| listed.key == key).map_or(&[], |listed| &*listed.nodes)
    }

    /// Lists a node under its keys, each of them once.
    pub(super) fn add(&mut self, node: usize, keys: &[u64]) {
        for &key in keys {
            let entry = self.0.entry(key, |listed| listed.key == key, |listed| listed.key);
            let listed = entry.or_insert_with(|| OfKey { key, nodes: SmallVec::new() }).into_mut();
            let place = listed.nodes.partition_point(|other| *other < node);
            debug_assert_ne!(listed.nodes.get(place), Some(&node), "a node is listed once under a key");
            listed.nodes.insert(place, node);
        }
    }

    /// Removes a node from the lists of its keys.
    pub(super) fn remove(&mut self, node: usize, keys: &[u64]) {
        for &key in keys {
            let entry = self.0.find_entry(key, |listed| listed.key == key);
            debug_assert!(entry.is_ok(), "a node is listed under its keys");
            let Ok(mut entry) = entry else { continue };
            let listed = &mut entry.get_mut().nodes;
            if let Ok(place) = listed.binary_search(&node) {
                listed.remove(place);
            }
            if listed.is_empty() {
                entry.remove();
            }
        }
    }
}

impl Seen {
    pub(super) fn new(inventory: &Inventory, state: &AllocatedState) -> Self {
        Self { uses: state.uses(), slices: inventory.slices_stamp(), rules: inventory.rules_stamp() }
    }

    /// Returns the keys of what has changed up to now, some of them twice; `None` if that is not known.
    pub(super) fn changed_keys(&self, now: &Self, inventory: &Inventory) -> Option<Vec<u64>> {
        if now.rules != self.rules {
            return None;
        }
        let mut keys = now.uses.differences(&self.uses);
        for changed in inventory.changes_since(self.slices)? {
            match changed {
                Changed::Everywhere => return None,
                Changed::Local { node, pool } => keys.extend([node, pool]),
            }
        }
        Some(keys)
    }
}
