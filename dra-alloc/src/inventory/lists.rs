//! Lists of slices by a name that the slices themselves have, so that no name is stored twice.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use k8s_openapi::api::resource::v1::ResourceSlice;
use smallvec::SmallVec;

use super::SliceIndex;

/// The name by which slices are listed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key {
    /// `spec.nodeName`
    Node,
    /// Driver and pool.
    Pool,
    /// `metadata.name`
    Name,
}

impl Key {
    fn of(self, slice: &ResourceSlice) -> [&str; 2] {
        match self {
            Self::Node => [slice.spec.node_name.as_deref().unwrap_or_default(), ""],
            Self::Pool => [&slice.spec.driver, &slice.spec.pool.name],
            Self::Name => [slice.metadata.name.as_deref().unwrap_or_default(), ""],
        }
    }
}

/// All slices, with gaps.
type Slices = [Option<Arc<ResourceSlice>>];

/// Slices of one name, in ascending order.
type List = SmallVec<[SliceIndex; 2]>;

/// Lists of slices. The table holds positions only and is never iterated, so that its order is nowhere to be seen.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    key: Key,
    table: HashTable<List>,
}

impl Lists {
    pub(super) const fn new(key: Key) -> Self {
        Self { key, table: HashTable::new() }
    }

    pub(super) fn of(key: Key, slices: &Slices) -> Self {
        let mut lists = Self::new(key);
        for (index, _) in slices.iter().enumerate().filter(|(_, slice)| slice.is_some()) {
            lists.insert(slices, index);
        }
        lists
    }

    /// The slices of a name.
    pub(super) fn get(&self, slices: &Slices, name: [&str; 2]) -> &[SliceIndex] {
        let is_name = |list: &List| self.name(slices, list) == Some(name);
        self.table.find(hash(name), is_name).map_or(&[], SmallVec::as_slice)
    }

    pub(super) fn insert(&mut self, slices: &Slices, index: SliceIndex) {
        let Some(name) = slice_at(slices, index).map(|slice| self.key.of(slice)) else { return };
        let key = self.key;
        let name_of = |list: &List| list.first().and_then(|index| Some(key.of(slice_at(slices, *index)?)));
        let entry =
            self.table.entry(hash(name), |list| name_of(list) == Some(name), |list| name_of(list).map_or(0, hash));
        insert_sorted(entry.or_insert_with(List::new).into_mut(), index);
    }

    /// Takes a slice out; it must still be in its place.
    pub(super) fn remove(&mut self, slices: &Slices, index: SliceIndex) {
        let Some(name) = slice_at(slices, index).map(|slice| self.key.of(slice)) else { return };
        let key = self.key;
        let name_of = |list: &List| list.first().and_then(|index| Some(key.of(slice_at(slices, *index)?)));
        let Ok(mut entry) = self.table.find_entry(hash(name), |list| name_of(list) == Some(name)) else { return };
        entry.get_mut().retain(|other| *other != index);
        if entry.get().is_empty() {
            entry.remove();
        }
    }

    fn name<'s>(&self, slices: &'s Slices, list: &List) -> Option<[&'s str; 2]> {
        list.first().and_then(|index| slice_at(slices, *index)).map(|slice| self.key.of(slice))
    }
}

fn slice_at(slices: &Slices, index: SliceIndex) -> Option<&ResourceSlice> {
    slices.get(index)?.as_deref()
}

/// With fixed keys: the same input takes the same time.
fn hash(name: [&str; 2]) -> u64 {
    FixedState::default().hash_one(name)
}

/// A list of positions that grows in ascending order.
pub(super) trait Positions: AsRef<[SliceIndex]> {
    fn insert_at(&mut self, position: usize, index: SliceIndex);
}

impl Positions for List {
    fn insert_at(&mut self, position: usize, index: SliceIndex) {
        self.insert(position, index);
    }
}

impl Positions for Vec<SliceIndex> {
    fn insert_at(&mut self, position: usize, index: SliceIndex) {
        self.insert(position, index);
    }
}

pub(super) fn insert_sorted(list: &mut impl Positions, index: SliceIndex) {
    let position = list.as_ref().partition_point(|other| *other < index);
    list.insert_at(position, index);
}
