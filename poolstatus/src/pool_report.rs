//! Report on one pool: device numbers, summaries and warnings.

use dra_attrs::{Profile, Quantity};
use dra_device::pool::{LatestGeneration, PoolMistake, PoolProblem, slice_devices, validate_pool};
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::{PartitionTypeStatus, ShareableSummaryStatus};

use crate::device_counts::{DeviceCounts, DeviceTally};
use crate::in_use::InUse;
use crate::partition_summary::{is_partition, partition_summary};
use crate::shareable_summary::{is_shareable, shareable_summary};
use crate::summary_error::SummaryError;
use crate::taint::PoolTaints;
use crate::warning::PoolWarning;

/// Report on one pool, with every number that the status of the KEP or of Kubernetes 1.37 needs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PoolReport {
    /// Name of the driver.
    pub driver: String,
    /// Name of the pool.
    pub pool: String,
    /// Name of the pool's node, if all slices name the same one.
    pub node: Option<String>,
    /// Latest generation of the pool. Slices of older generations are ignored.
    pub generation: i64,
    /// Number of slices of the latest generation.
    pub slice_count: usize,
    /// `resourceSliceCount` of the first slice by name: the number of slices that the pool should have.
    pub expected_slice_count: i64,
    /// Numbers of devices: total, in claims, tainted.
    pub(crate) tally: DeviceTally,
    /// Partition summary: the number of partitions of each type that could still be allocated, sorted by attribute and
    /// type.
    pub partitions: Result<Vec<PartitionTypeStatus>, SummaryError>,
    /// Shareable summary: remaining capacity of devices that several claims may share, if the pool has any.
    pub shareable: Result<Option<ShareableSummaryStatus>, SummaryError>,
    /// Problems of the pool's slices, devices, claims and taints.
    pub warnings: Vec<PoolWarning>,
    /// True if the partition summary counts every device that shares counters.
    pub(crate) is_summary_exhaustive: bool,
}

impl PoolReport {
    /// Returns the counts of devices that a status reports under `profile`.
    ///
    /// [`Profile::Kep`] counts the pool's own devices, so that the numbers add up. [`Profile::V1_37`] counts every name in
    /// a claim as allocated and every tainted device as unavailable, so that a device that is both counts twice.
    #[must_use]
    pub fn counts(&self, profile: Profile) -> DeviceCounts {
        self.tally.counts(profile)
    }

    /// Computes the report from the slices of the latest generation and the allocation results for the pool.
    ///
    /// Reads every device and every result once, apart from sorting.
    pub(crate) fn new(
        pool: LatestGeneration<'_, &ResourceSlice>,
        results: &[&DeviceRequestAllocationResult],
        taints: &PoolTaints<'_>,
        default_attribute: Option<&str>,
    ) -> Self {
        let in_use = InUse::from_results(results);
        let devices = || pool.slices().flat_map(slice_devices);
        let tally = DeviceTally::new(devices(), &in_use, taints);
        let mistakes: Vec<PoolMistake> =
            validate_pool(pool.slices()).into_iter().map(|finding| finding.mistake).collect();
        let mut warnings = slice_warnings(pool, &mistakes);
        warnings.extend(device_warnings(pool, tally, &in_use));
        let sharing = devices().filter(|device| is_partition(device)).count();
        if sharing > 0 {
            warnings.push(PoolWarning::PartitionsAsListed);
        }
        let (mut partitions, mut shareable) = (Ok(Vec::new()), Ok(None));
        if !has_missing_slices(pool) {
            warnings.extend(mistakes.iter().find_map(counter_problem).map(PoolWarning::Counters));
            partitions = partition_summary(pool, &in_use, default_attribute, &mut warnings);
            shareable = shareable_summary(pool, &in_use);
        }
        let sum_totals = |types: &Vec<PartitionTypeStatus>| types.iter().map(|entry| i64::from(entry.total)).sum();
        let summarised: i64 = partitions.as_ref().map_or(0, sum_totals);
        Self {
            driver: pool.driver().to_owned(),
            pool: pool.pool().to_owned(),
            node: common_node(pool).map(str::to_owned),
            generation: pool.generation(),
            slice_count: pool.count(),
            expected_slice_count: pool.expected_slice_count(),
            tally,
            partitions,
            shareable,
            warnings,
            is_summary_exhaustive: usize::try_from(summarised) == Ok(sharing),
        }
    }

    /// Returns true if slices of the pool are missing. The report then has no summaries, and its numbers count only the
    /// present slices.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.warnings.iter().any(|warning| matches!(warning, PoolWarning::MissingSlices { .. }))
    }

    /// Returns the error of the partition summary; if there is none, that of the shareable summary.
    #[must_use]
    pub fn summary_error(&self) -> Option<&SummaryError> {
        self.partitions.as_ref().err().or_else(|| self.shareable.as_ref().err())
    }
}

/// Returns true if the pool has fewer slices than `resourceSliceCount`. kube-scheduler also treats a pool with more
/// slices as incomplete.
fn has_missing_slices(pool: LatestGeneration<'_, &ResourceSlice>) -> bool {
    i64::try_from(pool.count()).is_ok_and(|count| count < pool.expected_slice_count())
}

/// Returns the name of the pool's node, if all slices name the same node.
fn common_node<'s>(pool: LatestGeneration<'_, &'s ResourceSlice>) -> Option<&'s str> {
    let mut nodes = node_names(pool);
    let first = nodes.next()?;
    (!first.is_empty() && nodes.all(|node| node == first)).then_some(first)
}

/// Returns the node name of each slice, empty for a slice that names no node.
fn node_names<'s>(pool: LatestGeneration<'_, &'s ResourceSlice>) -> impl Iterator<Item = &'s str> {
    pool.slices().map(|slice| slice.spec.node_name.as_deref().unwrap_or_default())
}

/// Finds problems of a pool's slices: duplicate devices, slice counts, node names, the generation.
fn slice_warnings(pool: LatestGeneration<'_, &ResourceSlice>, mistakes: &[PoolMistake]) -> Vec<PoolWarning> {
    let mut warnings = duplicate_warnings(mistakes);
    let (observed, expected_slice_count, generation) = (pool.count(), pool.expected_slice_count(), pool.generation());
    if has_missing_slices(pool) {
        warnings.push(PoolWarning::MissingSlices { observed, expected_slice_count, generation });
    } else if !pool.is_complete() {
        warnings.push(PoolWarning::SurplusSlices { observed, expected_slice_count });
    }
    if mistakes.contains(&PoolMistake::CountsDiffer) {
        let mut expected_slice_counts: Vec<i64> =
            pool.slices().map(|slice| slice.spec.pool.resource_slice_count).collect();
        expected_slice_counts.sort_unstable();
        expected_slice_counts.dedup();
        warnings.push(PoolWarning::DisagreeingCounts { expected_slice_counts });
    }
    if mistakes.contains(&PoolMistake::NodesDiffer) {
        warnings.push(PoolWarning::DisagreeingNodes);
    }
    if generation <= 0 {
        warnings.push(PoolWarning::Generation { generation });
    }
    warnings
}

/// Returns a warning for each device name that a pool lists several times, sorted by name.
fn duplicate_warnings(mistakes: &[PoolMistake]) -> Vec<PoolWarning> {
    let mut duplicates: Vec<(&String, bool)> = mistakes
        .iter()
        .filter_map(|mistake| match mistake {
            PoolMistake::DuplicateDevice { device, slices } => Some((device, slices.len() > 1)),
            _ => None,
        })
        .collect();
    duplicates.sort_unstable();
    let warning = |(device, is_in_several): (&String, bool)| {
        let device = device.clone();
        if is_in_several { PoolWarning::DuplicateDevice { device } } else { PoolWarning::DuplicateInSlice { device } }
    };
    duplicates.into_iter().map(warning).collect()
}

/// Returns a mistake about counters as kube-scheduler words it.
fn counter_problem(mistake: &PoolMistake) -> Option<PoolProblem> {
    Some(match mistake.clone() {
        PoolMistake::DuplicateCounterSet { counter_set, .. } => PoolProblem::DuplicateCounterSet { counter_set },
        PoolMistake::CounterSetMissing { device, counter_set } => {
            PoolProblem::UnknownCounterSet { device, counter_set }
        }
        PoolMistake::CounterMissing { device, counter_set, counter } => {
            PoolProblem::UnknownCounter { device, counter_set, counter }
        }
        _ => return None,
    })
}

/// Finds problems of a pool's devices, of the claims that hold them, and of quantities.
fn device_warnings(
    pool: LatestGeneration<'_, &ResourceSlice>,
    tally: DeviceTally,
    in_use: &InUse<'_>,
) -> impl Iterator<Item = PoolWarning> {
    let some = |count: usize| (count > 0).then_some(count);
    let unknown = some(tally.claimed.saturating_sub(tally.allocated));
    let both = some(tally.tainted.saturating_sub(tally.unavailable));
    let shared = pool.slices().flat_map(slice_devices).filter(|device| is_shareable(device));
    let shared = some(shared.filter(|device| in_use.contains(&device.name)).count());
    let unreadable = some(unreadable_quantities(pool));
    let consumption = some(in_use.unreadable);
    [
        unknown.map(|count| PoolWarning::UnknownDevices { count }),
        both.map(|count| PoolWarning::AllocatedAndTainted { count }),
        shared.map(|count| PoolWarning::ShareableInUse { count }),
        unreadable.map(|count| PoolWarning::UnreadableQuantities { count }),
        consumption.map(|count| PoolWarning::UnreadableConsumption { count }),
    ]
    .into_iter()
    .flatten()
}

/// Counts the values in slices that the summaries would use, but that are not valid quantities.
fn unreadable_quantities(pool: LatestGeneration<'_, &ResourceSlice>) -> usize {
    let sets = pool.slices().flat_map(|slice| slice.spec.shared_counters.iter().flatten());
    let published = sets.flat_map(|set| set.counters.values()).map(|counter| &counter.value);
    let devices = || pool.slices().flat_map(slice_devices);
    let consumed = devices().flat_map(|device| device.consumes_counters.iter().flatten());
    let consumed = consumed.flat_map(|set| set.counters.values()).map(|counter| &counter.value);
    let shared = devices().filter(|device| is_shareable(device));
    let shared = shared.flat_map(|device| device.capacity.iter().flatten()).map(|(_, capacity)| &capacity.value);
    published.chain(consumed).chain(shared).filter(|quantity| Quantity::from_kube(quantity).is_err()).count()
}
