//! Results that hold for all nodes in a state.

use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashTable;

use super::node_state::NodeState;
use super::trie::hash;

/// Results by the state of the node that they were found on, for any number of threads. Beyond a number of them none is kept.
#[derive(Debug)]
pub(crate) struct KnownStates<T> {
    most: usize,
    known: RwLock<HashTable<Known<T>>>,
}

#[derive(Debug)]
struct Known<T> {
    hash: u64,
    state: NodeState,
    result: Arc<T>,
}

impl<T> KnownStates<T> {
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, known: RwLock::new(HashTable::new()) }
    }

    pub(crate) fn len(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the result for a state.
    pub(crate) fn find(&self, state: &NodeState) -> Option<Arc<T>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.find(hash(state), |other| other.state == *state).map(|known| Arc::clone(&known.result))
    }

    /// Keeps the result for a state, and returns it.
    pub(crate) fn keep(&self, state: NodeState, result: T) -> Arc<T> {
        let result = Arc::new(result);
        let known = Known { hash: hash(&state), state, result: Arc::clone(&result) };
        let mut all = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() < self.most {
            let is_it = |other: &Known<T>| other.state == known.state;
            all.entry(known.hash, is_it, |other| other.hash).or_insert(known);
        }
        result
    }
}
