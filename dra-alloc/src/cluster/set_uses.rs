//! Uses of sets of shared pools, as marks: two states in which claims use the pools of a set in the same way have one mark.
//!
//! A call about many nodes reads the use of a set once, since the state stays the same. What-if questions about one node change the
//! state, and mostly not the use of shared pools; then the use is read again and has the mark that it had before.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::inventory::kept::SharedSet;
use super::inventory::pool::Pool;
use super::stamp::Stamp;
use super::state::{AllocatedState, PoolUse};

/// Number of readings that are kept. A use that was forgotten has a new mark, and nodes are compared in vain.
const KEPT: usize = 8;

/// Marks of the uses that were read last.
#[derive(Debug, Default)]
pub(crate) struct SetUses(Mutex<VecDeque<SetUse>>);

/// Use of a set of shared pools in a state.
#[derive(Debug)]
struct SetUse {
    set: Stamp,
    state: Stamp,
    /// Last change of each pool's use.
    uses: Arc<[u64]>,
    id: Stamp,
}

impl SetUses {
    /// Returns the mark of the use of a set's pools in a state.
    pub(crate) fn id(&self, set: &SharedSet, state: &AllocatedState) -> Stamp {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_set = known.iter().rev().filter(|known| known.set == set.stamp());
        if let Some(known) = of_set.clone().find(|known| known.state == state.stamp()) {
            return known.id;
        }
        let uses: Arc<[u64]> = set.known().map(|pool| use_of(pool, state)).collect();
        let equal = of_set.find(|known| known.uses == uses);
        let (id, uses) = equal.map_or_else(|| (Stamp::next(), uses), |known| (known.id, Arc::clone(&known.uses)));
        if known.len() >= KEPT {
            known.pop_front();
        }
        known.push_back(SetUse { set: set.stamp(), state: state.stamp(), uses, id });
        id
    }
}

/// Returns the last change of a pool's use, as a number that no other use has.
pub(super) fn use_of(pool: &Pool, state: &AllocatedState) -> u64 {
    let used = state.pool_hashed(pool.hash(), pool.driver(), pool.name());
    used.map_or_else(Stamp::default, PoolUse::stamp).number()
}
