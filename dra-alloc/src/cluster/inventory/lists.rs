//! Index of slices by node, pool or name. It reads the names from the slices instead of storing copies.

use std::sync::Arc;

use hashbrown::HashTable;
use k8s_openapi::api::resource::v1::ResourceSlice;
use smallvec::SmallVec;

use crate::cluster::trie::hash;

/// Position of a slice in the inventory, in the order of the input. A changed slice keeps its position.
pub(super) type SliceIndex = usize;

/// Field of a slice that serves as the key of an index.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key {
    /// Node name (`spec.nodeName`) of node-local slices.
    Node,
    /// Driver and pool name of a slice (`spec.driver` and `spec.pool.name`).
    Pool,
    /// Name of the slice (`metadata.name`).
    Name,
}

/// Key of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Name<'s> {
    Node(&'s str),
    Pool { driver: &'s str, pool: &'s str },
    Slice(&'s str),
}

impl Key {
    fn name(self, slice: &ResourceSlice) -> Name<'_> {
        match self {
            Self::Node => Name::Node(slice.spec.node_name.as_deref().unwrap_or_default()),
            Self::Pool => Name::Pool { driver: &slice.spec.driver, pool: &slice.spec.pool.name },
            Self::Name => Name::Slice(slice.metadata.name.as_deref().unwrap_or_default()),
        }
    }
}

/// All slices, with gaps where slices were deleted.
type Slices = [Option<Arc<ResourceSlice>>];

/// Positions of the slices with one key, ascending, with a cached value about these slices.
#[derive(Clone, Debug, Default)]
pub(super) struct List<T> {
    /// Hash of the key.
    hash: u64,
    positions: Positions,
    cached: T,
}

/// Positions of slices in the inventory, ascending.
pub(super) type Positions = SmallVec<[SliceIndex; 2]>;

/// Hash table of lists of slices, by key. It stores no keys and is never iterated, so that hash order has no effect.
#[derive(Clone, Debug)]
pub(super) struct Lists<T = ()> {
    key: Key,
    table: HashTable<List<T>>,
}

impl<T: Default> Lists<T> {
    /// Creates an empty index with room for a number of lists.
    pub(super) fn with_capacity(key: Key, lists: usize) -> Self {
        Self { key, table: HashTable::with_capacity(lists) }
    }

    pub(super) fn from_slices(key: Key, slices: &Slices) -> Self {
        let mut lists = Self::with_capacity(key, slices.len());
        for (index, _) in slices.iter().enumerate().filter(|(_, slice)| slice.is_some()) {
            lists.insert(slices, index);
        }
        lists
    }

    /// Returns the list of the slices whose key is `name`.
    pub(super) fn get(&self, slices: &Slices, name: Name<'_>) -> Option<&List<T>> {
        let hash = hash(name);
        self.table.find(hash, |list| list.is_named(hash, name, self.key, slices))
    }

    pub(super) fn insert(&mut self, slices: &Slices, index: SliceIndex) {
        let key = self.key;
        let Some(name) = slice_at(slices, index).map(|slice| key.name(slice)) else { return };
        let hash = hash(name);
        let entry = self.table.entry(hash, |list| list.is_named(hash, name, key, slices), |list| list.hash);
        let list = entry.or_insert_with(|| List { hash, ..List::default() }).into_mut();
        insert_sorted(&mut list.positions, index);
        list.cached = T::default();
    }

    /// Removes a slice from its list. The slice must still be at its position.
    pub(super) fn remove(&mut self, slices: &Slices, index: SliceIndex) {
        let key = self.key;
        let Some(name) = slice_at(slices, index).map(|slice| key.name(slice)) else { return };
        let hash = hash(name);
        let Ok(mut entry) = self.table.find_entry(hash, |list| list.is_named(hash, name, key, slices)) else { return };
        let list = entry.get_mut();
        list.positions.retain(|other| *other != index);
        list.cached = T::default();
        if list.positions.is_empty() {
            entry.remove();
        }
    }
}

impl<T: Default> List<T> {
    pub(super) fn new(positions: Positions) -> Self {
        Self { positions, ..Self::default() }
    }
}

impl<T> List<T> {
    pub(super) fn positions(&self) -> &[SliceIndex] {
        &self.positions
    }

    /// Returns the cached value about the slices, which is cleared when the list changes.
    pub(super) const fn cached(&self) -> &T {
        &self.cached
    }

    fn is_named(&self, hash: u64, name: Name<'_>, key: Key, slices: &Slices) -> bool {
        let slice = || slice_at(slices, *self.positions.first()?);
        self.hash == hash && slice().is_some_and(|slice| key.name(slice) == name)
    }
}

fn slice_at(slices: &Slices, index: SliceIndex) -> Option<&ResourceSlice> {
    slices.get(index)?.as_deref()
}

pub(super) fn insert_sorted(positions: &mut Positions, index: SliceIndex) {
    let place = positions.partition_point(|other| *other < index);
    positions.insert(place, index);
}
