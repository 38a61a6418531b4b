//! Persistent hash table: a clone shares all entries with the original, and a change copies only the path to its entry.
//!
//! A table that shares nothing is changed in place. The nodes of the tree are numbered by four bits of the hash a level;
//! entries of equal hashes share the deepest leaf. The order of entries depends on hashes and on history, so that
//! callers sort what they show.
//!
//! A leaf is copied with its values: those that are dear to copy are in an `Arc`.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

/// Number of children of a branch.
const WIDTH: usize = 16;
/// Bits of the hash that select a child.
const BITS: u32 = WIDTH.ilog2();
/// Number of levels below which a leaf is not split, because the hash has no more bits.
const LEVELS: u32 = u64::BITS / BITS;
/// Number of entries from which a leaf is split.
const LEAF: usize = 16;

/// Persistent hash table of values that know their keys.
#[derive(Debug)]
pub(crate) struct Trie<T> {
    root: Option<Arc<Node<T>>>,
    len: usize,
}

#[derive(Clone, Debug)]
enum Node<T> {
    Leaf(Vec<Entry<T>>),
    Branch([Option<Arc<Self>>; WIDTH]),
}

#[derive(Clone, Debug)]
struct Entry<T> {
    hash: u64,
    value: T,
}

/// Hashes a key with a fixed seed, so that equal input takes equal time.
pub(crate) fn hash(key: impl Hash) -> u64 {
    FixedState::default().hash_one(key)
}

impl<T> Default for Trie<T> {
    fn default() -> Self {
        Self { root: None, len: 0 }
    }
}

impl<T> Clone for Trie<T> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), len: self.len }
    }
}

impl<T> Trie<T> {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the first value with a hash that `is_it` accepts.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&T> {
        let (mut node, mut level) = (self.root.as_deref()?, 0);
        loop {
            match node {
                Node::Leaf(entries) => return entries.iter().find(|entry| entry.is(hash, &is_it)).map(|it| &it.value),
                Node::Branch(children) => node = children.get(slot(hash, level))?.as_deref()?,
            }
            level += 1;
        }
    }

    /// Returns all values, in no order that a caller may rely on.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        entries(self.root.as_deref()).map(|entry| &entry.value)
    }
}

impl<T: Clone> Trie<T> {
    /// Removes the first value with a hash that `is_it` accepts, and returns it.
    pub(crate) fn remove(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<T> {
        // A search first, so that nothing is copied when there is nothing to remove.
        self.find(hash, &is_it)?;
        let removed = remove(self.root.as_mut()?, 0, hash, &is_it);
        debug_assert!(removed.is_some(), "a value that was found is removed");
        self.len -= usize::from(removed.is_some());
        if self.len == 0 {
            self.root = None;
        }
        removed
    }

    /// Adds a value without looking for one with the same key.
    pub(crate) fn insert(&mut self, hash: u64, value: T) {
        let entries = leaf(self.root.get_or_insert_with(empty), hash, |_| false);
        entries.push(Entry { hash, value });
        self.len += 1;
    }

    /// Returns the first value with a hash that `is_it` accepts, to be changed.
    pub(crate) fn find_mut(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&mut T> {
        // A search first, so that nothing is copied when there is nothing to change.
        self.find(hash, &is_it)?;
        let entries = leaf(self.root.as_mut()?, hash, &is_it);
        let found = entries.iter_mut().find(|entry| entry.is(hash, &is_it))?;
        Some(&mut found.value)
    }

    /// Returns the first value with a hash that `is_it` accepts, to be changed; adds one if there is none.
    pub(crate) fn entry(&mut self, hash: u64, is_it: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> &mut T {
        let entries = leaf(self.root.get_or_insert_with(empty), hash, &is_it);
        let known = entries.iter().position(|entry| entry.is(hash, &is_it));
        let position = known.unwrap_or_else(|| {
            entries.push(Entry { hash, value: make() });
            self.len += 1;
            entries.len() - 1
        });
        #[expect(
            clippy::indexing_slicing,
            reason = "the position was found in this list, or is that of its last entry"
        )]
        &mut entries[position].value
    }
}

impl<V> Trie<Arc<V>> {
    /// Returns the values that only one of two tables has, with those that were changed in one of them, each with its hash. What
    /// the tables share is not looked at.
    pub(crate) fn differences<'t>(&'t self, other: &'t Self) -> Vec<(u64, &'t V)> {
        let mut found = Vec::new();
        let mut rest = vec![(self.root.as_ref(), other.root.as_ref())];
        while let Some((left, right)) = rest.pop() {
            if left.zip(right).is_some_and(|(left, right)| Arc::ptr_eq(left, right)) {
                continue;
            }
            match (left.map(|node| &**node), right.map(|node| &**node)) {
                (Some(Node::Branch(left)), Some(Node::Branch(right))) => {
                    rest.extend(left.iter().map(Option::as_ref).zip(right.iter().map(Option::as_ref)));
                }
                (left, right) => found.extend(only_in(left, right).chain(only_in(right, left))),
            }
        }
        found
    }
}

/// Returns the entries of a subtree.
fn entries<T>(root: Option<&Node<T>>) -> impl Iterator<Item = &Entry<T>> {
    let mut rest: SmallVec<[&Node<T>; 1]> = root.into_iter().collect();
    let leaves = std::iter::from_fn(move || {
        loop {
            match rest.pop()? {
                Node::Leaf(entries) => return Some(entries),
                Node::Branch(children) => rest.extend(children.iter().flatten().map(|child| &**child)),
            }
        }
    });
    leaves.flatten()
}

/// Returns the entries of a subtree whose very values another subtree does not have. One of the two is a leaf.
fn only_in<'t, V>(
    one: Option<&'t Node<Arc<V>>>,
    other: Option<&'t Node<Arc<V>>>,
) -> impl Iterator<Item = (u64, &'t V)> {
    let is_in = move |entry: &&Entry<Arc<V>>| entries(other).any(|known| Arc::ptr_eq(&known.value, &entry.value));
    entries(one).filter(move |entry| !is_in(entry)).map(|entry| (entry.hash, &*entry.value))
}

impl<T> Entry<T> {
    fn is(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> bool {
        self.hash == hash && is_it(&self.value)
    }
}

fn empty<T>() -> Arc<Node<T>> {
    Arc::new(Node::Leaf(Vec::new()))
}

/// Returns the number of the child for a hash.
fn slot(hash: u64, level: u32) -> usize {
    let [low, ..] = (hash >> (level * BITS)).to_le_bytes();
    usize::from(low) % WIDTH
}

/// Returns the leaf for a hash, after copying what is shared of the path to it. A full leaf is split unless it has the
/// value.
#[expect(clippy::indexing_slicing, reason = "a slot is below the number of children")]
#[expect(clippy::needless_pass_by_ref_mut, reason = "the path to the leaf is changed")]
fn leaf<T: Clone>(root: &mut Arc<Node<T>>, hash: u64, is_it: impl Fn(&T) -> bool) -> &mut Vec<Entry<T>> {
    let (mut node, mut level) = (root, 0);
    loop {
        let here = Arc::make_mut(node);
        if let Node::Leaf(entries) = here
            && entries.len() >= LEAF
            && level < LEVELS
            && !entries.iter().any(|entry| entry.is(hash, &is_it))
        {
            *here = split(std::mem::take(entries), level);
        }
        match here {
            Node::Leaf(entries) => return entries,
            Node::Branch(children) => node = children[slot(hash, level)].get_or_insert_with(empty),
        }
        level += 1;
    }
}

#[expect(clippy::indexing_slicing, reason = "a slot is below the number of children")]
fn split<T>(entries: Vec<Entry<T>>, level: u32) -> Node<T> {
    let mut parts: [Vec<Entry<T>>; WIDTH] = std::array::from_fn(|_| Vec::new());
    for entry in entries {
        parts[slot(entry.hash, level)].push(entry);
    }
    Node::Branch(parts.map(|part| if part.is_empty() { None } else { Some(Arc::new(Node::Leaf(part))) }))
}

/// Removes a value from a subtree. Branches without children become leaves. The depth of the recursion is at most
/// [`LEVELS`].
fn remove<T: Clone>(node: &mut Arc<Node<T>>, level: u32, hash: u64, is_it: &impl Fn(&T) -> bool) -> Option<T> {
    let here = Arc::make_mut(node);
    match here {
        Node::Leaf(entries) => {
            let position = entries.iter().position(|entry| entry.is(hash, is_it))?;
            Some(entries.remove(position).value)
        }
        Node::Branch(children) => {
            let child = children.get_mut(slot(hash, level))?;
            let removed = remove(child.as_mut()?, level + 1, hash, is_it);
            if child.as_deref().is_some_and(|child| matches!(child, Node::Leaf(entries) if entries.is_empty())) {
                *child = None;
            }
            if children.iter().all(Option::is_none) {
                *here = Node::Leaf(Vec::new());
            }
            removed
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Pair = (u16, u8);

    /// Few different hashes, also below the number of bits that one level uses, so that leaves grow deep.
    fn crowded(key: u16) -> u64 {
        u64::from(key % 7) << (4 * (key % 16))
    }

    fn contents(trie: &Trie<Pair>) -> BTreeMap<u16, u8> {
        trie.iter().copied().collect()
    }

    fn apply(trie: &mut Trie<Pair>, model: &mut BTreeMap<u16, u8>, (key, value): (u16, Option<u8>)) {
        let is_it = |pair: &Pair| pair.0 == key;
        if let Some(value) = value {
            trie.entry(crowded(key), is_it, || (key, 0)).1 = value;
            model.insert(key, value);
        } else {
            let removed = trie.remove(crowded(key), is_it).map(|pair| pair.1);
            assert_eq!(removed, model.remove(&key));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_table_is_a_map_and_its_clones_stay(
            before in prop::collection::vec((0..200u16, prop::option::weighted(0.7, any::<u8>())), 0..200),
            after in prop::collection::vec((0..200u16, prop::option::weighted(0.4, any::<u8>())), 0..200),
        ) {
            let (mut trie, mut model) = (Trie::default(), BTreeMap::new());
            for change in before {
                apply(&mut trie, &mut model, change);
            }
            let (kept, expected) = (trie.clone(), model.clone());
            for change in after {
                apply(&mut trie, &mut model, change);
            }
            prop_assert_eq!(&contents(&trie), &model);
            prop_assert_eq!(trie.len(), model.len());
            for key in 0..200 {
                prop_assert_eq!(trie.find(crowded(key), |pair| pair.0 == key).map(|pair| pair.1), model.get(&key).copied());
            }
            prop_assert_eq!(contents(&kept), expected);
        }
    }

    #[test]
    fn an_empty_table_has_no_nodes() {
        let mut trie = Trie::default();
        for key in 0..100 {
            trie.insert(crowded(key), (key, 0));
        }
        for key in 0..100 {
            assert!(trie.remove(crowded(key), |pair: &Pair| pair.0 == key).is_some());
        }
        assert!(trie.is_empty() && trie.root.is_none());
    }
}
