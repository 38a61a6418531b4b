//! Node views: the resource pools that a node sees, built from its slices.
//!
//! A pool depends on its slices only, so that the index keeps it, with the facts about its devices, until one of these
//! changes. Three things are kept:
//!
//! - for each node, the pools of its own slices (`nodeName`), unless slices for other nodes decide about one of them;
//! - for each set of a pool's slices that a node sees, the pool: nodes that see the same slices share it;
//! - for each set of shared slices, the list of their pools.

use std::sync::{Arc, OnceLock};

use dra_attrs::NodeSelectorError;
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};

use super::kept::SharedSet;
use super::pool::Pool;
use super::sight::Sight;

/// Pools of a node's own slices, sorted by driver and pool name.
#[derive(Clone, Debug)]
pub(crate) struct OwnPools {
    pub(super) sight: Sight,
    pub(super) pools: Box<[Pool]>,
    /// Number of devices in all pools.
    devices: usize,
}

/// Pools of the node's own slices, set on first use; `None` inside if they can't be cached.
pub(super) type CachedPools = OnceLock<Option<Arc<OwnPools>>>;

/// Resource pools that a node sees, sorted by driver and pool name.
#[derive(Clone, Debug)]
pub(crate) enum View<'i> {
    /// The pools of the node's own slices.
    Own(&'i OwnPools),
    /// The pools of a set of shared slices, which decide about all of them.
    Shared { set: Arc<SharedSet>, devices: usize },
    /// Pools of which some are shared with other nodes.
    Mixed {
        pools: Vec<PoolRef<'i>>,
        /// The set of shared slices that makes all shared pools, and whose pools are all there.
        set: Option<Arc<SharedSet>>,
        /// Number of devices in all pools.
        devices: usize,
    },
}

/// Pool of a view: of the node's own slices, or shared with other nodes.
#[derive(Clone, Debug)]
pub(crate) enum PoolRef<'i> {
    Own(&'i Pool),
    Shared(Arc<Pool>),
}

impl PoolRef<'_> {
    fn pool(&self) -> &Pool {
        match self {
            Self::Own(pool) => pool,
            Self::Shared(pool) => pool,
        }
    }
}

impl OwnPools {
    pub(super) fn new(sight: Sight, pools: Box<[Pool]>) -> Self {
        let devices = pools.iter().map(Pool::len).sum();
        Self { sight, pools, devices }
    }
}

impl<'i> View<'i> {
    pub(super) fn mixed(pools: Vec<PoolRef<'i>>, set: Option<Arc<SharedSet>>) -> Self {
        let devices = pools.iter().map(|pool| pool.pool().len()).sum();
        Self::Mixed { pools, set, devices }
    }

    /// Returns the view of a set of shared slices; `None` if other slices decide about one of the pools.
    pub(super) fn of_shared(set: Arc<SharedSet>) -> Option<Self> {
        let devices = set.devices()?;
        Some(Self::Shared { set, devices })
    }

    pub(crate) fn pools(&self) -> impl Iterator<Item = &Pool> {
        let (own, shared, mixed) = match self {
            Self::Own(own) => (&*own.pools, None, &[][..]),
            Self::Shared { set, .. } => (&[][..], Some(set), &[][..]),
            Self::Mixed { pools, .. } => (&[][..], None, &**pools),
        };
        let shared = shared.into_iter().flat_map(|set| set.known()).map(|pool| &**pool);
        own.iter().chain(shared).chain(mixed.iter().map(PoolRef::pool))
    }

    /// Returns the set of shared slices that makes all shared pools of the view, and whose pools are all there, if it is known.
    pub(crate) const fn set(&self) -> Option<&Arc<SharedSet>> {
        match self {
            Self::Own(_) => None,
            Self::Shared { set, .. } => Some(set),
            Self::Mixed { set, .. } => set.as_ref(),
        }
    }

    /// Returns the pools that no other node sees, each with its position.
    pub(crate) fn own_pools(&self) -> impl Iterator<Item = (usize, &Pool)> {
        let (own, mixed) = match self {
            Self::Own(own) => (&*own.pools, &[][..]),
            Self::Shared { .. } => (&[][..], &[][..]),
            Self::Mixed { pools, .. } => (&[][..], &**pools),
        };
        let of_mixed = mixed.iter().enumerate().filter_map(|(position, pool)| match pool {
            PoolRef::Own(pool) => Some((position, *pool)),
            PoolRef::Shared(_) => None,
        });
        own.iter().enumerate().chain(of_mixed)
    }

    /// Returns true if other nodes may see the very pool at a position.
    pub(crate) fn is_shared(&self, position: usize) -> bool {
        match self {
            Self::Own(_) => false,
            Self::Shared { .. } => true,
            Self::Mixed { pools, .. } => matches!(pools.get(position), Some(PoolRef::Shared(_))),
        }
    }

    pub(crate) fn pool(&self, position: usize) -> Option<&Pool> {
        match self {
            Self::Own(own) => own.pools.get(position),
            Self::Shared { set, .. } => set.pools.get(position)?.pool.as_deref(),
            Self::Mixed { pools, .. } => pools.get(position).map(PoolRef::pool),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Own(own) => own.pools.len(),
            Self::Shared { set, .. } => set.pools.len(),
            Self::Mixed { pools, .. } => pools.len(),
        }
    }

    /// Returns the number of devices in all pools.
    pub(crate) const fn devices(&self) -> usize {
        match self {
            Self::Own(own) => own.devices,
            Self::Shared { devices, .. } | Self::Mixed { devices, .. } => *devices,
        }
    }
}

/// Error of an invalid node selector of a slice or of one of its devices.
#[derive(Clone, Debug)]
pub(crate) struct SliceError<'i> {
    pub(crate) slice: &'i ResourceSlice,
    pub(crate) device: Option<&'i Device>,
    pub(crate) error: NodeSelectorError,
}
