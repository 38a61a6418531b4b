//! What one pool is worth: counts, views, and what is odd about it.

use dra_alloc::inventory::pool::{Newest, devices_of};
use dra_attrs::field::Quoted;
use dra_attrs::quantity::Quantity;
use k8s_openapi::api::resource::v1::{Device, DeviceRequestAllocationResult, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::{PartitionTypeStatus, ShareableSummaryStatus};

use crate::in_use::InUse;
use crate::lint::Finding;
use crate::taint::PoolTaints;
use crate::{partition, shareable};

/// Why a view of a complete pool can't be computed. The counts stand all the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// An attribute groups the devices, but there are no counters. Every plain pool has this problem if the request names
    /// an attribute.
    #[error(
        "PartitionTypeMissing: pool {driver}/{pool} declares partitionTypeAttribute but publishes no sharedCounters"
    )]
    NoSharedCounters {
        /// The driver.
        driver: String,
        /// The pool.
        pool: String,
    },
    /// A device that consumes counters has no type.
    #[error(
        "PartitionTypeMissing: device {} in pool {driver}/{pool} does not carry partition type attribute {}",
        Quoted(device),
        Quoted(attribute)
    )]
    NoPartitionType {
        /// The driver.
        driver: String,
        /// The pool.
        pool: String,
        /// The device.
        device: String,
        /// The attribute.
        attribute: String,
    },
    /// Devices of one type consume different amounts, or from different counter sets.
    #[error(
        "PartitionCostMismatch: devices of partition type {} in pool {driver}/{pool} consume different counters",
        Quoted(partition_type)
    )]
    CostMismatch {
        /// The driver.
        driver: String,
        /// The pool.
        pool: String,
        /// The type.
        partition_type: String,
    },
    /// There are too many types.
    #[error(
        "PartitionSummaryOverCap: pool {driver}/{pool} has {count} partition types, exceeding the maximum of {}",
        partition::MAX_TYPES
    )]
    TooManyPartitionTypes {
        /// The driver.
        driver: String,
        /// The pool.
        pool: String,
        /// How many types.
        count: usize,
    },
    /// There are too many capacities.
    #[error(
        "ShareableSummaryOverCap: pool {driver}/{pool} has {count} shareable capacity keys, exceeding the maximum of {}",
        shareable::MAX_CAPACITIES
    )]
    TooManyCapacities {
        /// The driver.
        driver: String,
        /// The pool.
        pool: String,
        /// How many capacities.
        count: usize,
    },
}

/// Numbers of devices. Both forms of the status are made from these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Devices of the newest generation as they are listed; a name that is listed twice counts twice.
    pub total: usize,
    /// Names of devices that claims hold, each once, whether or not the pool has such a device.
    pub named: usize,
    /// Those of them that the pool has.
    pub allocated: usize,
    /// Listed devices with a taint of effect `NoSchedule` or `NoExecute`.
    pub tainted: usize,
    /// Those of them that no claim holds.
    pub unavailable: usize,
}

/// The counts as a status shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shown {
    /// `totalDevices`
    pub total: i32,
    /// `allocatedDevices`
    pub allocated: i32,
    /// `availableDevices`
    pub available: i32,
    /// `unavailableDevices`
    pub unavailable: i32,
}

impl Counts {
    /// As in the KEP's status: about the pool's own devices, so that the numbers add up.
    #[must_use]
    pub fn kep(self) -> Shown {
        Shown::of(self.total, self.allocated, self.unavailable)
    }

    /// As in the shipped status: every name in a claim is allocated, every tainted device is unavailable, and a device
    /// that is both counts twice.
    #[must_use]
    pub fn shipped(self) -> Shown {
        Shown::of(self.total, self.named, self.tainted)
    }

    fn of<'s>(devices: impl Iterator<Item = &'s Device>, in_use: &InUse<'_>, taints: &PoolTaints<'_>) -> Self {
        let mut counts = Self { named: in_use.len(), ..Self::default() };
        let mut found = vec![false; in_use.len()];
        for device in devices {
            let held = in_use.position(&device.name);
            if let Some(found) = held.and_then(|position| found.get_mut(position)) {
                *found = true;
            }
            let tainted = taints.keep(device);
            counts.total = counts.total.saturating_add(1);
            counts.tainted = counts.tainted.saturating_add(usize::from(tainted));
            counts.unavailable = counts.unavailable.saturating_add(usize::from(tainted && held.is_none()));
        }
        counts.allocated = found.into_iter().filter(|found| *found).count();
        counts
    }
}

impl Shown {
    fn of(total: usize, allocated: usize, unavailable: usize) -> Self {
        let available = total.saturating_sub(allocated).saturating_sub(unavailable);
        Self {
            total: count(total),
            allocated: count(allocated),
            available: count(available),
            unavailable: count(unavailable),
        }
    }
}

/// A number as the API has it.
pub(crate) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// One pool.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PoolReport {
    /// The driver.
    pub driver: String,
    /// The name of the pool.
    pub pool: String,
    /// The node that has the pool: the one that all slices name.
    pub node: Option<String>,
    /// The newest generation. Slices of older ones count for nothing.
    pub generation: i64,
    /// Slices of the newest generation that are there.
    pub slices: usize,
    /// How many there should be, as the first of them by name says.
    pub announced: i64,
    /// Numbers of devices.
    pub counts: Counts,
    /// How many partitions of each type could still be allocated, by attribute and type.
    pub partitions: Result<Vec<PartitionTypeStatus>, ViewError>,
    /// What is left of shareable devices, if the pool has any.
    pub shareable: Result<Option<ShareableSummaryStatus>, ViewError>,
    /// What is odd.
    pub findings: Vec<Finding>,
    /// Whether the summary of partitions has every device that shares counters.
    pub(crate) partitions_are_summarised: bool,
}

impl PoolReport {
    /// Looks at every device and every result once, apart from sorting.
    pub(crate) fn of(
        pool: Newest<'_, &ResourceSlice>,
        results: &[&DeviceRequestAllocationResult],
        taints: &PoolTaints<'_>,
        default_attribute: Option<&str>,
    ) -> Self {
        let in_use = InUse::of(results);
        let devices = || pool.slices().flat_map(devices_of);
        let counts = Counts::of(devices(), &in_use, taints);
        let mut findings = slice_findings(pool);
        findings.extend(device_findings(pool, counts, &in_use));
        let sharing = devices().filter(|device| partition::is_partition(device)).count();
        if sharing > 0 {
            findings.push(Finding::PartitionsAsListed);
        }
        let (mut partitions, mut shareable) = (Ok(Vec::new()), Ok(None));
        if !is_incomplete(pool) {
            findings.extend(pool.counter_problem().map(Finding::Counters));
            partitions = partition::summary(pool, &in_use, default_attribute, &mut findings);
            shareable = shareable::summary(pool, &in_use);
        }
        let in_summary = |types: &Vec<PartitionTypeStatus>| types.iter().map(|of_type| i64::from(of_type.total)).sum();
        let summarised: i64 = partitions.as_ref().map_or(0, in_summary);
        Self {
            driver: pool.driver().to_owned(),
            pool: pool.pool().to_owned(),
            node: node(pool).map(str::to_owned),
            generation: pool.generation(),
            slices: pool.count(),
            announced: pool.announced(),
            counts,
            partitions,
            shareable,
            findings,
            partitions_are_summarised: usize::try_from(summarised) == Ok(sharing),
        }
    }

    /// Whether slices are missing. There are no views then, and the counts are those of the slices that are there.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.findings.iter().any(|finding| matches!(finding, Finding::MissingSlices { .. }))
    }

    /// Why a view is missing: that of partitions first.
    #[must_use]
    pub fn view_error(&self) -> Option<&ViewError> {
        self.partitions.as_ref().err().or_else(|| self.shareable.as_ref().err())
    }
}

/// Whether there are fewer slices than announced. More of them are no reason, other than for kube-scheduler.
fn is_incomplete(pool: Newest<'_, &ResourceSlice>) -> bool {
    i64::try_from(pool.count()).is_ok_and(|count| count < pool.announced())
}

/// The node of every slice, as far as it is one.
fn node<'s>(pool: Newest<'_, &'s ResourceSlice>) -> Option<&'s str> {
    let mut nodes = nodes(pool);
    let first = nodes.next()?;
    (!first.is_empty() && nodes.all(|node| node == first)).then_some(first)
}

fn nodes<'s>(pool: Newest<'_, &'s ResourceSlice>) -> impl Iterator<Item = &'s str> {
    pool.slices().map(|slice| slice.spec.node_name.as_deref().unwrap_or_default())
}

fn slice_findings(pool: Newest<'_, &ResourceSlice>) -> Vec<Finding> {
    let mut findings = duplicates(pool);
    let (observed, announced, generation) = (pool.count(), pool.announced(), pool.generation());
    if is_incomplete(pool) {
        findings.push(Finding::MissingSlices { observed, announced, generation });
    } else if !pool.is_complete() {
        findings.push(Finding::SurplusSlices { observed, announced });
    }
    if pool.slices().any(|slice| slice.spec.pool.resource_slice_count != announced) {
        let mut announced: Vec<i64> = pool.slices().map(|slice| slice.spec.pool.resource_slice_count).collect();
        announced.sort_unstable();
        announced.dedup();
        findings.push(Finding::DisagreeingCounts { announced });
    }
    let mut names = nodes(pool);
    if names.next().is_some_and(|first| names.any(|node| node != first)) {
        findings.push(Finding::DisagreeingNodes);
    }
    if generation <= 0 {
        findings.push(Finding::Generation { generation });
    }
    findings
}

/// Names that are listed several times, by name.
fn duplicates(pool: Newest<'_, &ResourceSlice>) -> Vec<Finding> {
    let names = || pool.slices().flat_map(devices_of).map(|device| device.name.as_str());
    // Then there is nothing to sort.
    if names().is_sorted_by(|left, right| left < right) {
        return Vec::new();
    }
    let slices = pool.slices().enumerate();
    let mut places: Vec<(&str, usize)> = slices
        .flat_map(|(index, slice)| devices_of(slice).iter().map(move |device| (device.name.as_str(), index)))
        .collect();
    places.sort_unstable();
    let mut findings = Vec::new();
    for places in places.chunk_by(|(left, _), (right, _)| left == right) {
        let (Some((device, first)), Some((_, last))) = (places.first(), places.last()) else { continue };
        let device = (*device).to_owned();
        if first != last {
            findings.push(Finding::DuplicateDevice { device });
        } else if places.len() > 1 {
            findings.push(Finding::DuplicateInSlice { device });
        }
    }
    findings
}

fn device_findings(
    pool: Newest<'_, &ResourceSlice>,
    counts: Counts,
    in_use: &InUse<'_>,
) -> impl Iterator<Item = Finding> {
    let some = |count: usize| (count > 0).then_some(count);
    let unknown = some(counts.named.saturating_sub(counts.allocated));
    let both = some(counts.tainted.saturating_sub(counts.unavailable));
    let unreadable = some(unreadable(pool));
    let consumption = some(in_use.unreadable);
    [
        unknown.map(|count| Finding::UnknownDevices { count }),
        both.map(|count| Finding::AllocatedAndTainted { count }),
        unreadable.map(|count| Finding::UnreadableQuantities { count }),
        consumption.map(|count| Finding::UnreadableConsumption { count }),
    ]
    .into_iter()
    .flatten()
}

/// Quantities that the views read and can't.
fn unreadable(pool: Newest<'_, &ResourceSlice>) -> usize {
    let sets = pool.slices().flat_map(|slice| slice.spec.shared_counters.iter().flatten());
    let published = sets.flat_map(|set| set.counters.values()).map(|counter| &counter.value);
    let devices = || pool.slices().flat_map(devices_of);
    let consumed = devices().flat_map(|device| device.consumes_counters.iter().flatten());
    let consumed = consumed.flat_map(|set| set.counters.values()).map(|counter| &counter.value);
    let shared = devices().filter(|device| shareable::is_shareable(device));
    let shared = shared.flat_map(|device| device.capacity.iter().flatten()).map(|(_, capacity)| &capacity.value);
    published.chain(consumed).chain(shared).filter(|quantity| Quantity::from_kube(quantity).is_err()).count()
}
