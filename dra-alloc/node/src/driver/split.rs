//! Plan of a pool: its devices and counter sets, split into slices that an API server accepts.
//!
//! The order of the devices is the driver's preference, since kube-scheduler tries slices by name and devices by
//! position: it is never changed by sorting. Rules of the split are in `layout`.

use dra_attrs::internal::release::CounterLimits;
use k8s_openapi::api::core::v1::NodeSelector;
use k8s_openapi::api::resource::v1::{CounterSet, Device};

use crate::driver::components::components;
use crate::driver::layout::{Item, Slots};
use crate::driver::limits::SliceLimits;
use crate::driver::plan_error::PlanError;
use crate::driver::slice_plan::{SliceContents, SlicePlan};

/// Nodes that can use the devices of a pool; the same in all slices of the pool.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum NodeChoice<'a> {
    /// The node of the given name.
    Node(&'a str),
    /// Nodes that the selector matches.
    Selector(&'a NodeSelector),
    /// All nodes.
    All,
    /// Each device says it itself (`perDeviceNodeSelection`).
    PerDevice,
}

/// Contents of a pool as its driver wants them, not yet split into slices.
///
/// ```
/// use dra_attrs::Profile;
/// use dra_node::driver::{NodeChoice, PoolSpec, SliceLimits, split_into_slices};
/// use k8s_openapi::api::resource::v1::Device;
///
/// let devices: Vec<Device> =
///     (0..100).map(|number| Device { name: format!("gpu-{number}"), ..Device::default() }).collect();
/// let pool = PoolSpec::new("gpu.example.com", "node-1", NodeChoice::Node("node-1")).with_devices(&devices);
/// let plan = split_into_slices(&pool, &SliceLimits::of(Profile::V1_37), None)?;
/// let sizes: Vec<usize> = plan.slices.iter().map(|slice| slice.devices.as_ref().map_or(0, Vec::len)).collect();
/// assert_eq!(sizes, [64, 36]);
/// # Ok::<(), dra_node::driver::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoolSpec<'a> {
    /// Name of the driver.
    driver: &'a str,
    /// Name of the pool.
    pub(super) name: &'a str,
    /// Nodes that can use the devices.
    node: NodeChoice<'a>,
    /// Devices in the order of preference.
    devices: &'a [Device],
    /// Counter sets that the devices consume from.
    counter_sets: &'a [CounterSet],
    /// Attribute with the type of a partition (KEP-5677).
    partition_type_attribute: Option<&'a str>,
    /// Node operations that the devices do without (KEP-5945), the same for all slices.
    skip_node_operations: Option<&'a [String]>,
}

impl<'a> PoolSpec<'a> {
    /// Creates a pool without devices. Published, it says that the driver runs and has no device.
    #[must_use]
    pub const fn new(driver: &'a str, name: &'a str, node: NodeChoice<'a>) -> Self {
        Self {
            driver,
            name,
            node,
            devices: &[],
            counter_sets: &[],
            partition_type_attribute: None,
            skip_node_operations: None,
        }
    }

    /// Sets the devices, in the order of preference. The order must be reproducible: another order is a change.
    #[must_use]
    pub const fn with_devices(self, devices: &'a [Device]) -> Self {
        Self { devices, ..self }
    }

    /// Sets the counter sets that the devices consume from.
    #[must_use]
    pub const fn with_counter_sets(self, counter_sets: &'a [CounterSet]) -> Self {
        Self { counter_sets, ..self }
    }

    /// Sets the attribute with the type of a partition. A slice names it if a device in it consumes counters.
    #[must_use]
    pub const fn with_partition_type_attribute(self, attribute: Option<&'a str>) -> Self {
        Self { partition_type_attribute: attribute, ..self }
    }

    /// Sets the node operations that the devices do without.
    #[must_use]
    pub const fn with_skip_node_operations(self, operations: Option<&'a [String]>) -> Self {
        Self { skip_node_operations: operations, ..self }
    }
}

/// Slices of a pool, in the order of their names.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PoolPlan<'a> {
    /// Nodes that can use the devices.
    pub node: NodeChoice<'a>,
    /// Contents of the slices. Without any, the pool is withdrawn.
    pub slices: Vec<SlicePlan<'a>>,
    /// Node operations that the devices do without.
    pub skip_node_operations: Option<&'a [String]>,
    /// Generation that the driver asks for, if it is higher than that of the stored slices.
    pub generation: Option<i64>,
}

impl<'a> PoolPlan<'a> {
    /// Creates the plan of a pool whose slices were split by other means than [`split_into_slices`].
    #[must_use]
    pub const fn new(node: NodeChoice<'a>, slices: Vec<SlicePlan<'a>>) -> Self {
        Self { node, slices, skip_node_operations: None, generation: None }
    }
}

/// Splits a pool into slices that an API server with the given limits accepts.
///
/// With `stored`, the contents of the slices as they were, a device stays in its slice, so that a device that appears or
/// goes changes one slice; if more than twice the necessary slices are left, the devices are laid out anew. Without, the
/// order of the devices alone decides.
///
/// Cost: linear in devices and counter sets, apart from sorting.
///
/// # Errors
/// Only for servers before 1.35, where devices and counter sets can't be told apart; see [`PlanError`].
pub fn split_into_slices<'a>(
    pool: &PoolSpec<'a>,
    limits: &SliceLimits,
    stored: Option<&[SliceContents<'_>]>,
) -> Result<PoolPlan<'a>, PlanError> {
    let mut slices = Vec::new();
    let items = match limits.counters {
        CounterLimits::BySet { sets, .. } => {
            slices = counter_slices(pool.counter_sets, sets);
            pool.devices.iter().map(|device| Item::single(device, limits)).collect()
        }
        CounterLimits::InTotal { .. } => components(pool.devices, pool.counter_sets, limits)?,
    };
    let slots = Slots::new(items, limits, stored)?;
    slices.extend(slots.into_slices());
    if slices.is_empty() {
        slices.push(SlicePlan { devices: Some(Vec::new()), ..SlicePlan::default() });
    }
    let attribute = pool.partition_type_attribute.filter(|_| limits.has_partition_type);
    for slice in &mut slices {
        slice.partition_type_attribute = attribute.filter(|_| slice.has_partitions());
        slice.per_device_node_selection = (pool.node == NodeChoice::PerDevice).then_some(true);
    }
    let skip_node_operations = pool.skip_node_operations.filter(|_| limits.has_partition_type);
    Ok(PoolPlan { node: pool.node, slices, skip_node_operations, generation: None })
}

/// Puts counter sets into slices of their own, in their order.
fn counter_slices(sets: &[CounterSet], most: usize) -> Vec<SlicePlan<'_>> {
    let slices = sets.chunks(most.max(1));
    slices.map(|sets| SlicePlan { counter_sets: sets.iter().collect(), ..SlicePlan::default() }).collect()
}
