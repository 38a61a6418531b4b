//! The `partitionSummary` of a pool: number of partitions of each type that could still be allocated.
//!
//! Partitions share counters, so that the allocation of one partition may exclude others. Devices are grouped by the value
//! of an attribute. Their slice names the attribute, or the request if no slice of the pool does. The number of a group is
//! computed as if no further partition of another group were allocated: the numbers are alternatives and must not be added
//! up. Taints are ignored.
//!
//! Source: the views of the pool status controller of Kubernetes 1.37.

use std::collections::BTreeMap;

use dra_attrs::{Quantity, lookup_by_name};
use dra_device::pool::{LatestGeneration, slice_devices};
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::PartitionTypeStatus;

use crate::device_counts::to_i32;
use crate::in_use::InUse;
use crate::summary_error::{MAX_PARTITION_TYPES, SummaryError};
use crate::warning::PoolWarning;

/// Names of a counter set and of one of its counters.
type Counter<'s> = (&'s str, &'s str);

/// Computes the partition summary of a pool. It is empty if neither the slices nor the request name a partition type
/// attribute.
pub(crate) fn partition_summary(
    pool: LatestGeneration<'_, &ResourceSlice>,
    in_use: &InUse<'_>,
    default_attribute: Option<&str>,
    warnings: &mut Vec<PoolWarning>,
) -> Result<Vec<PartitionTypeStatus>, SummaryError> {
    let attributes = TypeAttributes::new(pool, default_attribute);
    if !pool.slices().any(|slice| attributes.for_slice(slice).is_some() && !slice_devices(slice).is_empty()) {
        return Ok(Vec::new());
    }
    if !pool.slices().any(|slice| slice.spec.shared_counters.as_ref().is_some_and(|sets| !sets.is_empty())) {
        return Err(SummaryError::NoSharedCounters { driver: pool.driver().to_owned(), pool: pool.pool().to_owned() });
    }
    let groups = partition_groups(pool, in_use, &attributes, warnings)?;
    let left = RemainingCounters::new(pool, in_use);
    let count = groups.len();
    if count > MAX_PARTITION_TYPES {
        let (driver, pool) = (pool.driver().to_owned(), pool.pool().to_owned());
        return Err(SummaryError::TooManyPartitionTypes { driver, pool, count });
    }
    let statuses = groups.into_iter().map(|((attribute, value), group)| PartitionTypeStatus {
        attribute: attribute.to_owned(),
        type_: value.to_owned(),
        total: to_i32(group.total),
        allocatable: to_i32(left.fitting(&group)),
    });
    Ok(statuses.collect())
}

/// Attribute that holds the partition type, for each slice of a pool.
struct TypeAttributes<'q> {
    /// Attribute for every slice, as named by the request; `None` if a slice with devices names one itself.
    default: Option<&'q str>,
}

impl<'q> TypeAttributes<'q> {
    fn new(pool: LatestGeneration<'_, &ResourceSlice>, default: Option<&'q str>) -> Self {
        let is_declared = pool.slices().any(|slice| declared(slice).is_some() && !slice_devices(slice).is_empty());
        Self { default: default.filter(|attribute| !attribute.is_empty() && !is_declared) }
    }

    fn for_slice<'s>(&self, slice: &'s ResourceSlice) -> Option<&'s str>
    where
        'q: 's,
    {
        self.default.or_else(|| declared(slice))
    }
}

fn declared(slice: &ResourceSlice) -> Option<&str> {
    slice.spec.partition_type_attribute.as_deref().filter(|attribute| !attribute.is_empty())
}

/// Devices of one partition type. All of them consume the same amounts.
struct PartitionGroup<'s> {
    cost: Cost<'s>,
    total: usize,
    /// Number of devices that no claim holds.
    unclaimed: usize,
}

/// Groups the devices that consume counters by attribute and partition type.
fn partition_groups<'s>(
    pool: LatestGeneration<'_, &'s ResourceSlice>,
    in_use: &InUse<'_>,
    attributes: &TypeAttributes<'s>,
    warnings: &mut Vec<PoolWarning>,
) -> Result<BTreeMap<(&'s str, &'s str), PartitionGroup<'s>>, SummaryError> {
    let mut groups: BTreeMap<_, PartitionGroup<'s>> = BTreeMap::new();
    for slice in pool.slices() {
        let Some(attribute) = attributes.for_slice(slice) else { continue };
        for device in slice_devices(slice).iter().filter(|device| is_partition(device)) {
            let value = type_value(device, attribute, pool.driver()).ok_or_else(|| SummaryError::NoPartitionType {
                driver: pool.driver().to_owned(),
                pool: pool.pool().to_owned(),
                device: device.name.clone(),
                attribute: attribute.to_owned(),
            })?;
            let cost = Cost::from_device(device);
            let group = groups.entry((attribute, value)).or_insert_with(|| PartitionGroup {
                cost: cost.clone(),
                total: 0,
                unclaimed: 0,
            });
            if group.cost != cost {
                if group.cost.has_amounts_of(&cost) {
                    warnings.push(PoolWarning::CounterSetPerCard { partition_type: value.to_owned() });
                }
                let (driver, pool) = (pool.driver().to_owned(), pool.pool().to_owned());
                return Err(SummaryError::CostMismatch { driver, pool, partition_type: value.to_owned() });
            }
            group.total = group.total.saturating_add(1);
            group.unclaimed = group.unclaimed.saturating_add(usize::from(!in_use.contains(&device.name)));
        }
    }
    Ok(groups)
}

/// Returns true if the device consumes counters of its pool.
pub(crate) fn is_partition(device: &Device) -> bool {
    device.consumes_counters.as_ref().is_some_and(|consumed| !consumed.is_empty())
}

fn type_value<'s>(device: &'s Device, attribute: &str, driver: &str) -> Option<&'s str> {
    lookup_by_name(device.attributes.as_ref()?, attribute, driver)?.string.as_deref()
}

/// Amount of one counter that a device consumes, compared by its canonical form.
#[derive(Clone, Copy, Debug)]
enum CounterAmount<'s> {
    Quantity(Quantity),
    Unreadable(&'s str),
}

impl CounterAmount<'_> {
    /// Returns the key by which the amounts of one counter are sorted.
    const fn rank(&self) -> Option<Quantity> {
        match self {
            Self::Quantity(quantity) => Some(*quantity),
            Self::Unreadable(_) => None,
        }
    }
}

impl PartialEq for CounterAmount<'_> {
    /// Compares quantities by their canonical form: `1Gi` equals `1024Mi`, but not `1073741824`.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Quantity(one), Self::Quantity(other)) => {
                one == other && (one.format() == other.format() || one.to_string() == other.to_string())
            }
            (Self::Unreadable(one), Self::Unreadable(other)) => one == other,
            _ => false,
        }
    }
}

/// Amounts of counters that one device consumes, sorted by counter set and counter.
#[derive(Clone, Debug, PartialEq)]
struct Cost<'s>(Vec<(Counter<'s>, CounterAmount<'s>)>);

impl<'s> Cost<'s> {
    fn from_device(device: &'s Device) -> Self {
        let consumed = device.consumes_counters.iter().flatten();
        let counters =
            consumed.flat_map(|set| set.counters.iter().map(|(name, counter)| (&set.counter_set, name, counter)));
        let amounts = counters.map(|(set, name, counter)| {
            let amount = Quantity::from_kube(&counter.value);
            let amount = amount.map_or(CounterAmount::Unreadable(&counter.value.0), CounterAmount::Quantity);
            ((set.as_str(), name.as_str()), amount)
        });
        let mut cost: Vec<_> = amounts.collect();
        // A set that is named twice, which the API server refuses, gives two amounts of one counter.
        cost.sort_by_key(|(counter, amount)| (*counter, amount.rank()));
        Self(cost)
    }

    /// Returns true if both costs have equal amounts of equally named counters, even if from different counter sets.
    fn has_amounts_of(&self, other: &Self) -> bool {
        let amounts = |cost: &Self| {
            let mut amounts: Vec<_> = cost.0.iter().map(|((_, counter), amount)| (*counter, *amount)).collect();
            amounts.sort_by_key(|(counter, amount)| (*counter, amount.rank()));
            amounts
        };
        amounts(self) == amounts(other)
    }
}

/// Remaining value of each counter, in nano-units. Negative if the devices in use consume more than the pool has.
struct RemainingCounters<'s>(BTreeMap<Counter<'s>, i128>);

impl<'s> RemainingCounters<'s> {
    /// Subtracts the costs of the devices in use from the pool's counters. A counter whose value is not a valid
    /// quantity is left out.
    fn new(pool: LatestGeneration<'_, &'s ResourceSlice>, in_use: &InUse<'_>) -> Self {
        let sets = pool.slices().flat_map(|slice| slice.spec.shared_counters.iter().flatten());
        let counters = sets.flat_map(|set| set.counters.iter().map(|(name, counter)| (&set.name, name, counter)));
        let amounts = counters.filter_map(|(set, name, counter)| {
            Some(((set.as_str(), name.as_str()), Quantity::from_kube(&counter.value).ok()?.nanos()))
        });
        let mut left = Self(amounts.collect());
        for device in pool.slices().flat_map(slice_devices).filter(|device| is_partition(device)) {
            if in_use.contains(&device.name) {
                left.subtract(&Cost::from_device(device));
            }
        }
        left
    }

    fn subtract(&mut self, cost: &Cost<'s>) {
        for (counter, amount) in &cost.0 {
            if let (Some(left), CounterAmount::Quantity(amount)) = (self.0.get_mut(counter), amount) {
                *left = left.saturating_sub(amount.nanos());
            }
        }
    }

    fn has(&self, cost: &Cost<'s>) -> bool {
        cost.0.iter().all(|(counter, amount)| match (self.0.get(counter), amount) {
            (Some(left), CounterAmount::Quantity(amount)) => *left >= amount.nanos(),
            _ => false,
        })
    }

    /// Returns the number of unclaimed devices of a group that can be allocated together from the remaining counters.
    fn fitting(&self, group: &PartitionGroup<'s>) -> usize {
        let own = group.cost.0.iter().filter_map(|(counter, _)| self.0.get_key_value(counter));
        let mut left = RemainingCounters(own.map(|(counter, left)| (*counter, *left)).collect());
        let mut count: usize = 0;
        while count < group.unclaimed && left.has(&group.cost) {
            left.subtract(&group.cost);
            count = count.saturating_add(1);
        }
        count
    }
}
