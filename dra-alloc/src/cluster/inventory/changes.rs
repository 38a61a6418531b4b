//! Latest changes of slices, for a reader that asks what has changed since it looked.

use std::collections::VecDeque;
use std::fmt;

use k8s_openapi::api::resource::v1::ResourceSlice;

use super::lists::Name;
use crate::cluster::stamp::Stamp;
use crate::cluster::trie::hash;

/// Number of changes that are kept. Who has seen fewer of them than that looks at everything again.
const KEPT: usize = 1024;

/// Latest changes of slices, the oldest first.
#[derive(Clone, Default)]
pub(super) struct Changes {
    /// Mark of the time before the oldest change.
    begin: Stamp,
    latest: VecDeque<(Stamp, Changed)>,
}

/// Nodes whose view a change of a slice may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// All nodes.
    Everywhere,
    /// The node of the slice, and nodes with slices of its pool, by the hashes of these ([`node_key`], [`pool_key`]).
    Local { node: u64, pool: u64 },
}

/// Hash of a node's name, on which the node's view depends.
pub(crate) fn node_key(name: &str) -> u64 {
    hash(Name::Node(name))
}

/// Hash of driver and name of a pool, on which the views of nodes with slices of the pool depend.
pub(crate) fn pool_key(slice: &ResourceSlice) -> u64 {
    hash([&*slice.spec.driver, &*slice.spec.pool.name])
}

impl Changes {
    /// Begins a history of its own.
    pub(super) fn begin() -> Self {
        Self { begin: Stamp::next(), latest: VecDeque::new() }
    }

    /// Returns the mark of the latest change.
    pub(super) fn mark(&self) -> Stamp {
        self.latest.back().map_or(self.begin, |(stamp, _)| *stamp)
    }

    /// Notes that a slice has come or gone. `is_local` is true if one node sees it, and no other slice of its pool is shared.
    pub(super) fn add(&mut self, slice: &ResourceSlice, is_local: bool) {
        let node = slice.spec.node_name.as_deref().unwrap_or_default();
        let local = || Changed::Local { node: node_key(node), pool: pool_key(slice) };
        self.latest.push_back((Stamp::next(), if is_local { local() } else { Changed::Everywhere }));
        if self.latest.len() > KEPT
            && let Some((stamp, _)) = self.latest.pop_front()
        {
            self.begin = stamp;
        }
    }

    /// Returns the changes after a mark; `None` if they are not known, because the mark is old or that of another inventory.
    pub(super) fn since(&self, mark: Stamp) -> Option<impl Iterator<Item = Changed>> {
        let known =
            if mark == self.begin { 0 } else { self.latest.binary_search_by_key(&mark, |(stamp, _)| *stamp).ok()? + 1 };
        Some(self.latest.range(known..).map(|(_, changed)| *changed))
    }
}

/// The changes are of hashes and tell nothing to a reader: their number does.
impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("latest", &self.latest.len()).finish_non_exhaustive()
    }
}
