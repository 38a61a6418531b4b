//! Pools and lists of pools that an inventory keeps for nodes that see shared slices.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use hashbrown::HashTable;

use super::lists::Positions;
use super::pool::Pool;
use super::sight::Sight;
use crate::cluster::stamp::Stamp;
use crate::cluster::trie::hash;

/// Pools by the slices that make them, and lists of pools by the shared slices that a node sees. Hash tables are never
/// iterated, so that hash order has no effect.
#[derive(Debug, Default)]
pub(super) struct Kept(RwLock<Tables>);

#[derive(Clone, Debug, Default)]
struct Tables {
    pools: HashTable<KeptPools>,
    sets: HashTable<Arc<SharedSet>>,
}

/// Views of one pool.
#[derive(Clone, Debug)]
struct KeptPools {
    hash: u64,
    pools: Vec<KeptPool>,
}

/// One view of a pool: that of the nodes that see certain slices.
#[derive(Clone, Debug)]
struct KeptPool {
    sight: Sight,
    positions: Positions,
    /// The pool; `None` if nodes that see these slices have no such pool.
    pool: Option<Arc<Pool>>,
}

/// Pools of a set of shared slices, sorted by driver and name.
#[derive(Clone, Debug)]
pub(crate) struct SharedSet {
    pub(super) sight: Sight,
    /// The slices beside those for all nodes.
    beside: Positions,
    pub(super) pools: Vec<SharedPool>,
    /// Number of devices in all pools; `None` if slices that are not in the set decide about one of them.
    devices: Option<usize>,
    /// Mark that no other set, and nothing else, has.
    stamp: Stamp,
    /// True if no device of the pools chooses nodes.
    is_for_its_nodes: OnceLock<bool>,
}

/// One pool of a set of shared slices.
#[derive(Clone, Debug)]
pub(super) struct SharedPool {
    /// The slices of the set that belong to the pool.
    pub(super) positions: Positions,
    /// The pool; `None` if slices that are not in the set decide about it.
    pub(super) pool: Option<Arc<Pool>>,
}

impl SharedSet {
    pub(super) fn new(sight: Sight, beside: Positions, pools: Vec<SharedPool>) -> Self {
        let devices = pools.iter().map(|shared| shared.pool.as_ref().map(|pool| pool.len())).sum();
        Self { sight, beside, pools, devices, stamp: Stamp::next(), is_for_its_nodes: OnceLock::new() }
    }

    /// Returns the mark of the set.
    pub(crate) const fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Returns true if the slices choose the nodes of all pools, and no device does.
    pub(crate) fn is_for_its_nodes(&self) -> bool {
        *self.is_for_its_nodes.get_or_init(|| self.known().all(|pool| pool.is_for_its_nodes()))
    }

    /// Returns the number of devices in all pools; `None` if slices that are not in the set decide about one of them.
    pub(super) const fn devices(&self) -> Option<usize> {
        self.devices
    }

    /// Returns the pools that the slices of the set decide about.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.pools.iter().filter_map(|shared| shared.pool.as_ref())
    }
}

/// Number of sets from which all are forgotten, since labels of nodes may change without end.
const MOST_SETS: usize = 100_000;

impl Clone for Kept {
    fn clone(&self) -> Self {
        Self(RwLock::new(self.0.read().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl Kept {
    /// Returns the set of shared slices, made when it is first asked for.
    pub(super) fn set(&self, beside: &Positions, sight: Sight, make: impl FnOnce() -> SharedSet) -> Arc<SharedSet> {
        let key = hash((&**beside, sight));
        let is_it = |set: &Arc<SharedSet>| set.beside == *beside && set.sight == sight;
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).sets.find(key, is_it) {
            return Arc::clone(known);
        }
        let built = Arc::new(make());
        let mut tables = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if tables.sets.len() >= MOST_SETS {
            tables.sets.clear();
        }
        tables.sets.entry(key, is_it, |set| hash((&*set.beside, set.sight))).or_insert_with(|| Arc::clone(&built));
        built
    }

    /// Returns the pool that slices make, made when it is first asked for. `key` is the hash of driver and pool name.
    pub(super) fn pool(
        &self,
        key: u64,
        positions: &Positions,
        sight: Sight,
        make: impl FnOnce() -> Option<Pool>,
    ) -> Option<Arc<Pool>> {
        let is_it = |pool: &&KeptPool| pool.sight == sight && pool.positions == *positions;
        let tables = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let known = tables.pools.find(key, |pools| pools.hash == key).and_then(|pools| pools.pools.iter().find(is_it));
        if let Some(known) = known {
            return known.pool.clone();
        }
        drop(tables);
        let built = make().map(Arc::new);
        let kept = KeptPool { sight, positions: positions.clone(), pool: built.clone() };
        let mut tables = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let entry = tables.pools.entry(key, |pools| pools.hash == key, |pools| pools.hash);
        entry.or_insert_with(|| KeptPools { hash: key, pools: Vec::new() }).into_mut().pools.push(kept);
        built
    }

    /// Forgets the views of a pool, one of whose slices changes.
    pub(super) fn forget_pool(&mut self, driver: &str, pool: &str) {
        let tables = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if tables.pools.is_empty() {
            return;
        }
        let key = hash([driver, pool]);
        if let Ok(entry) = tables.pools.find_entry(key, |pools| pools.hash == key) {
            entry.remove();
        }
    }

    /// Forgets all sets, since a shared slice changes. The pools of other slices stay.
    pub(super) fn forget_sets(&mut self) {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).sets.clear();
    }
}
