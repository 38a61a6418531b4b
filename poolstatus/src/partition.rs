//! How many partitions of each type could still be allocated.
//!
//! Partitions share counters: taking one makes others impossible. Devices are grouped by an attribute that their slice (or,
//! if no slice of the pool does, the request) names. Each group is counted as if the others stayed as they are: the
//! numbers are alternatives, not to be summed. Taints play no part.
//!
//! Source: the views of the pool status controller of Kubernetes 1.37.

use std::collections::BTreeMap;

use dra_alloc::inventory::pool::{Newest, devices_of};
use dra_attrs::name::lookup;
use dra_attrs::quantity::Quantity;
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::PartitionTypeStatus;

use crate::in_use::InUse;
use crate::lint::Finding;
use crate::pool::ViewError;

/// The most partition types of a pool.
pub(crate) const MAX_TYPES: usize = 32;

/// A counter of a counter set.
type Counter<'s> = (&'s str, &'s str);

/// How many devices of each type could be allocated; empty where the view does not apply.
pub(crate) fn summary(
    pool: Newest<'_, &ResourceSlice>,
    in_use: &InUse<'_>,
    default_attribute: Option<&str>,
    findings: &mut Vec<Finding>,
) -> Result<Vec<PartitionTypeStatus>, ViewError> {
    let attributes = Attributes::of(pool, default_attribute);
    if !pool.slices().any(|slice| attributes.of_slice(slice).is_some() && !devices_of(slice).is_empty()) {
        return Ok(Vec::new());
    }
    if !pool.slices().any(|slice| slice.spec.shared_counters.as_ref().is_some_and(|sets| !sets.is_empty())) {
        return Err(ViewError::NoSharedCounters { driver: pool.driver().to_owned(), pool: pool.pool().to_owned() });
    }
    let groups = groups(pool, in_use, &attributes, findings)?;
    let left = Counters::left(pool, in_use);
    let count = groups.len();
    if count > MAX_TYPES {
        let (driver, pool) = (pool.driver().to_owned(), pool.pool().to_owned());
        return Err(ViewError::TooManyPartitionTypes { driver, pool, count });
    }
    let statuses = groups.into_iter().map(|((attribute, value), group)| PartitionTypeStatus {
        attribute: attribute.to_owned(),
        type_: value.to_owned(),
        total: crate::pool::count(group.total),
        allocatable: crate::pool::count(left.fitting(&group)),
    });
    Ok(statuses.collect())
}

/// Which attribute groups the devices of which slice.
struct Attributes<'q> {
    /// For every slice, if none of the pool's names one.
    default: Option<&'q str>,
}

impl<'q> Attributes<'q> {
    fn of(pool: Newest<'_, &ResourceSlice>, default: Option<&'q str>) -> Self {
        let is_declared = pool.slices().any(|slice| declared(slice).is_some() && !devices_of(slice).is_empty());
        Self { default: default.filter(|attribute| !attribute.is_empty() && !is_declared) }
    }

    fn of_slice<'s>(&self, slice: &'s ResourceSlice) -> Option<&'s str>
    where
        'q: 's,
    {
        self.default.or_else(|| declared(slice))
    }
}

fn declared(slice: &ResourceSlice) -> Option<&str> {
    slice.spec.partition_type_attribute.as_deref().filter(|attribute| !attribute.is_empty())
}

/// The devices of one type: all consume the same.
struct Group<'s> {
    cost: Cost<'s>,
    total: usize,
    /// Those that no claim holds.
    fresh: usize,
}

fn groups<'s>(
    pool: Newest<'_, &'s ResourceSlice>,
    in_use: &InUse<'_>,
    attributes: &Attributes<'s>,
    findings: &mut Vec<Finding>,
) -> Result<BTreeMap<(&'s str, &'s str), Group<'s>>, ViewError> {
    let mut groups: BTreeMap<_, Group<'s>> = BTreeMap::new();
    for slice in pool.slices() {
        let Some(attribute) = attributes.of_slice(slice) else { continue };
        for device in devices_of(slice).iter().filter(|device| is_partition(device)) {
            let value = value(device, attribute, pool.driver()).ok_or_else(|| ViewError::NoPartitionType {
                driver: pool.driver().to_owned(),
                pool: pool.pool().to_owned(),
                device: device.name.clone(),
                attribute: attribute.to_owned(),
            })?;
            let cost = Cost::of(device);
            let group =
                groups.entry((attribute, value)).or_insert_with(|| Group { cost: cost.clone(), total: 0, fresh: 0 });
            if group.cost != cost {
                if group.cost.has_the_shape_of(&cost) {
                    findings.push(Finding::CounterSetPerCard { partition_type: value.to_owned() });
                }
                let (driver, pool) = (pool.driver().to_owned(), pool.pool().to_owned());
                return Err(ViewError::CostMismatch { driver, pool, partition_type: value.to_owned() });
            }
            group.total = group.total.saturating_add(1);
            group.fresh = group.fresh.saturating_add(usize::from(!in_use.contains(&device.name)));
        }
    }
    Ok(groups)
}

pub(crate) fn is_partition(device: &Device) -> bool {
    device.consumes_counters.as_ref().is_some_and(|consumed| !consumed.is_empty())
}

fn value<'s>(device: &'s Device, attribute: &str, driver: &str) -> Option<&'s str> {
    lookup(device.attributes.as_ref()?, attribute, driver)?.string.as_deref()
}

/// An amount as a cost compares it.
#[derive(Clone, Copy, Debug)]
enum Amount<'s> {
    Quantity(Quantity),
    Unreadable(&'s str),
}

impl Amount<'_> {
    /// By which amounts of one counter are sorted.
    const fn rank(&self) -> Option<Quantity> {
        match self {
            Self::Quantity(quantity) => Some(*quantity),
            Self::Unreadable(_) => None,
        }
    }
}

impl PartialEq for Amount<'_> {
    /// Quantities are the same if they are written the same in canonical form: `1Gi` is `1024Mi`, but not `1073741824`.
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

/// What one device consumes, sorted by counter set and counter.
#[derive(Clone, Debug, PartialEq)]
struct Cost<'s>(Vec<(Counter<'s>, Amount<'s>)>);

impl<'s> Cost<'s> {
    fn of(device: &'s Device) -> Self {
        let consumed = device.consumes_counters.iter().flatten();
        let counters =
            consumed.flat_map(|set| set.counters.iter().map(|(name, counter)| (&set.counter_set, name, counter)));
        let amounts = counters.map(|(set, name, counter)| {
            let amount = Quantity::from_kube(&counter.value);
            let amount = amount.map_or(Amount::Unreadable(&counter.value.0), Amount::Quantity);
            ((set.as_str(), name.as_str()), amount)
        });
        let mut cost: Vec<_> = amounts.collect();
        // A set that is named twice, which the API server refuses, has two amounts of one counter.
        cost.sort_by_key(|(counter, amount)| (*counter, amount.rank()));
        Self(cost)
    }

    /// Whether the same is consumed, though from other counter sets.
    fn has_the_shape_of(&self, other: &Self) -> bool {
        let shape = |cost: &Self| {
            let mut amounts: Vec<_> = cost.0.iter().map(|((_, counter), amount)| (*counter, *amount)).collect();
            amounts.sort_by_key(|(counter, amount)| (*counter, amount.rank()));
            amounts
        };
        shape(self) == shape(other)
    }
}

/// What is left of each counter, in nano-units. It may be less than nothing.
struct Counters<'s>(BTreeMap<Counter<'s>, i128>);

impl<'s> Counters<'s> {
    /// The counters of a pool less what its devices in use consume. A value that is no quantity is not there.
    fn left(pool: Newest<'_, &'s ResourceSlice>, in_use: &InUse<'_>) -> Self {
        let sets = pool.slices().flat_map(|slice| slice.spec.shared_counters.iter().flatten());
        let counters = sets.flat_map(|set| set.counters.iter().map(|(name, counter)| (&set.name, name, counter)));
        let amounts = counters.filter_map(|(set, name, counter)| {
            Some(((set.as_str(), name.as_str()), Quantity::from_kube(&counter.value).ok()?.nanos()))
        });
        let mut left = Self(amounts.collect());
        for device in pool.slices().flat_map(devices_of).filter(|device| is_partition(device)) {
            if in_use.contains(&device.name) {
                left.take(&Cost::of(device));
            }
        }
        left
    }

    fn take(&mut self, cost: &Cost<'s>) {
        for (counter, amount) in &cost.0 {
            if let (Some(left), Amount::Quantity(amount)) = (self.0.get_mut(counter), amount) {
                *left = left.saturating_sub(amount.nanos());
            }
        }
    }

    fn has(&self, cost: &Cost<'s>) -> bool {
        cost.0.iter().all(|(counter, amount)| match (self.0.get(counter), amount) {
            (Some(left), Amount::Quantity(amount)) => *left >= amount.nanos(),
            _ => false,
        })
    }

    /// How many devices of a group fit one after the other.
    fn fitting(&self, group: &Group<'s>) -> usize {
        let own = group.cost.0.iter().filter_map(|(counter, _)| self.0.get_key_value(counter));
        let mut left = Counters(own.map(|(counter, left)| (*counter, *left)).collect());
        let mut count: usize = 0;
        while count < group.fresh && left.has(&group.cost) {
            left.take(&group.cost);
            count = count.saturating_add(1);
        }
        count
    }
}
