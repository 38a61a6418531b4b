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

impl Key {
    fn values(self, slice: &ResourceSlice) -> [&str; 2] {
        match self {
            Self::Node => [slice.spec.node_name.as_deref().unwrap_or_default(), ""],
            Self::Pool => [&slice.spec.driver, &slice.spec.pool.name],
            Self::Name => [slice.metadata.name.as_deref().unwrap_or_default(), ""],
        }
    }
}

/// All slices, with gaps where slices were deleted.
type Slices = [Option<Arc<ResourceSlice>>];

/// Positions of the slices with one key, ascending, with a cached value about these slices.
#[derive(Clone, Debug, Default)]
pub(super) struct List<T> {
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
    pub(super) const fn new(key: Key) -> Self {
        Self { key, table: HashTable::new() }
    }

    pub(super) fn from_slices(key: Key, slices: &Slices) -> Self {
        let mut lists = Self::new(key);
        for (index, _) in slices.iter().enumerate().filter(|(_, slice)| slice.is_some()) {
            lists.insert(slices, index);
        }
        lists
    }

    /// Returns the list of the slices whose key is `name`.
    pub(super) fn get(&self, slices: &Slices, name: [&str; 2]) -> Option<&List<T>> {
        self.table.find(hash(name), |list| list.name(self.key, slices) == Some(name))
    }

    pub(super) fn insert(&mut self, slices: &Slices, index: SliceIndex) {
        let key = self.key;
        let Some(name) = slice_at(slices, index).map(|slice| key.values(slice)) else { return };
        let is_name = |list: &List<T>| list.name(key, slices) == Some(name);
        let rehash = |list: &List<T>| list.name(key, slices).map_or(0, hash);
        let list = self.table.entry(hash(name), is_name, rehash).or_insert_with(List::default).into_mut();
        insert_sorted(&mut list.positions, index);
        list.cached = T::default();
    }

    /// Removes a slice from its list. The slice must still be at its position.
    pub(super) fn remove(&mut self, slices: &Slices, index: SliceIndex) {
        let key = self.key;
        let Some(name) = slice_at(slices, index).map(|slice| key.values(slice)) else { return };
        let is_name = |list: &List<T>| list.name(key, slices) == Some(name);
        let Ok(mut entry) = self.table.find_entry(hash(name), is_name) else { return };
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
        Self { positions, cached: T::default() }
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

    fn name<'s>(&self, key: Key, slices: &'s Slices) -> Option<[&'s str; 2]> {
        Some(key.values(slice_at(slices, *self.positions.first()?)?))
    }
}

fn slice_at(slices: &Slices, index: SliceIndex) -> Option<&ResourceSlice> {
    slices.get(index)?.as_deref()
}

pub(super) fn insert_sorted(positions: &mut Positions, index: SliceIndex) {
    let place = positions.partition_point(|other| *other < index);
    positions.insert(place, index);
}
