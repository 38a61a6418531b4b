//! Pools of a node in search order, some of which are like an earlier one: see [`compare_pools`](super::compare_pools).

use k8s_openapi::api::resource::v1::Device;

use super::ix::{DeviceIx, IxRange, PoolIx};

/// Pools of a node in search order, each with the positions of its devices.
#[derive(Debug)]
pub(super) struct LikePools(pub(super) Vec<LikePool>);

/// Pool with the positions of its devices.
#[derive(Clone, Copy, Debug)]
pub(super) struct LikePool {
    pub(super) pool: PoolIx,
    pub(super) devices: IxRange<Device>,
    /// First device of the earlier pool whose answers are those of this one.
    pub(super) like: Option<DeviceIx>,
}

impl LikePools {
    pub(super) fn iter(&self) -> impl Iterator<Item = LikePool> {
        self.0.iter().copied()
    }
}
