//! UIDs of objects that were seen deleted.

use std::collections::{BTreeSet, VecDeque};

/// Largest number of UIDs that are remembered.
const MOST_UIDS: usize = 500;

/// UIDs of pods and groups that were seen deleted, the latest of them. To remember them only saves calls to the API server.
#[derive(Clone, Debug, Default)]
pub(super) struct DeletedUids {
    uids: BTreeSet<String>,
    order: VecDeque<String>,
}

impl DeletedUids {
    pub(super) fn insert(&mut self, uid: &str) {
        if uid.is_empty() || !self.uids.insert(uid.to_owned()) {
            return;
        }
        self.order.push_back(uid.to_owned());
        if self.order.len() > MOST_UIDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }
}
