//! Number of partitions of each type that can still be allocated.
//!
//! KEP-5677 reports one cost for each type, and no number if devices of a type differ in what they consume, as they do
//! when each card has a counter set. Here the number is the largest one that the counters allow.

use std::collections::BTreeMap;

use dra_attrs::{Quantity, lookup_by_name};
use dra_device::pool::slice_devices;
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};

/// Largest number of groups of equal devices that a search looks at, beyond which the number is a lower bound.
const MAX_LOOKS: usize = 1_000_000;

/// Number of devices of one partition type that can still be allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionsLeft {
    /// Value of the attribute with the partition type.
    pub partition_type: String,
    /// Number of devices of the type.
    pub total: usize,
    /// Largest number of further devices of the type that can be allocated together, if no device of another type is.
    pub left: usize,
    /// False if the search was given up after a million looks at groups of equal devices, so that `left` is a lower bound.
    pub is_exact: bool,
}

impl PartitionsLeft {
    /// Returns for each partition type how many further devices can be allocated, sorted by type.
    ///
    /// `slices` are those of one pool's latest generation. The attribute with the type is that of a slice
    /// (`partitionTypeAttribute`), or else `default_attribute`. `is_in_use` says which devices are allocated. A device with a
    /// taint of effect `NoSchedule` or `NoExecute` does not count as left. Compatibility groups (KEP-5963) are not looked at.
    ///
    /// Cost: linear in devices, where devices of a type consume the same amounts from a counter set; otherwise a bounded
    /// search.
    ///
    /// ```
    /// use dra_node::driver::PartitionsLeft;
    /// use k8s_openapi::api::resource::v1::ResourceSlice;
    /// # use serde_json::json;
    /// let half = |name: &str, card: &str| json!({"name": name, "attributes": {"type": {"string": "half"}},
    ///     "consumesCounters": [{"counterSet": card, "counters": {"memory": {"value": "20Gi"}}}]});
    /// let slice: ResourceSlice = serde_json::from_value(json!({"spec": {"driver": "gpu.example.com",
    ///     "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
    ///     "sharedCounters": [{"name": "card-0", "counters": {"memory": {"value": "40Gi"}}},
    ///                        {"name": "card-1", "counters": {"memory": {"value": "20Gi"}}}],
    ///     "devices": [half("a", "card-0"), half("b", "card-0"), half("c", "card-1"), half("d", "card-1")]}}))?;
    /// let left = PartitionsLeft::by_type([&slice], Some("gpu.example.com/type"), |device| device == "a");
    /// assert_eq!((left[0].total, left[0].left), (4, 2));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn by_type<'a>(
        slices: impl IntoIterator<Item = &'a ResourceSlice>,
        default_attribute: Option<&str>,
        is_in_use: impl Fn(&str) -> bool,
    ) -> Vec<Self> {
        let slices: Vec<&ResourceSlice> = slices.into_iter().collect();
        let mut left = counters(&slices);
        let mut types: BTreeMap<&str, (usize, Vec<Cost<'_>>)> = BTreeMap::new();
        for slice in slices {
            let attribute = slice.spec.partition_type_attribute.as_deref().or(default_attribute);
            for device in slice_devices(slice) {
                let cost = cost(device);
                let is_used = is_in_use(&device.name);
                if is_used {
                    subtract(&mut left, &cost);
                }
                let value = attribute.and_then(|attribute| type_of(device, attribute, &slice.spec.driver));
                let Some(value) = value.filter(|_| !cost.is_empty()) else { continue };
                let (total, free) = types.entry(value).or_default();
                *total = total.saturating_add(1);
                if !is_used && !is_kept_off(device) {
                    free.push(cost);
                }
            }
        }
        let entry = |(partition_type, (total, free)): (&str, (usize, Vec<Cost<'_>>))| {
            let (number, is_exact) = most_together(free, &left);
            Self { partition_type: partition_type.to_owned(), total, left: number, is_exact }
        };
        types.into_iter().map(entry).collect()
    }
}

/// Names of a counter set and of one of its counters.
type CounterName<'s> = (&'s str, &'s str);

/// Amounts that a device consumes, in nano-units, sorted by counter.
type Cost<'s> = Vec<(CounterName<'s>, i128)>;

fn counters<'s>(slices: &[&'s ResourceSlice]) -> BTreeMap<CounterName<'s>, i128> {
    let sets = slices.iter().flat_map(|slice| slice.spec.shared_counters.iter().flatten());
    let named = sets.flat_map(|set| set.counters.iter().map(|(name, counter)| ((&*set.name, &**name), counter)));
    named.filter_map(|(name, counter)| Some((name, Quantity::from_kube(&counter.value).ok()?.nanos()))).collect()
}

fn cost(device: &Device) -> Cost<'_> {
    let mut cost = BTreeMap::new();
    for consumption in device.consumes_counters.iter().flatten() {
        for (name, counter) in &consumption.counters {
            // An amount that can't be read is more than there is.
            let amount = Quantity::from_kube(&counter.value).map_or(i128::MAX, Quantity::nanos);
            let sum: &mut i128 = cost.entry((&*consumption.counter_set, &**name)).or_default();
            *sum = sum.saturating_add(amount);
        }
    }
    cost.into_iter().collect()
}

fn subtract<'s>(left: &mut BTreeMap<CounterName<'s>, i128>, cost: &Cost<'s>) {
    for (name, amount) in cost {
        if let Some(left) = left.get_mut(name) {
            *left = left.saturating_sub(*amount);
        }
    }
}

fn type_of<'d>(device: &'d Device, attribute: &str, driver: &str) -> Option<&'d str> {
    lookup_by_name(device.attributes.as_ref()?, attribute, driver)?.string.as_deref()
}

fn is_kept_off(device: &Device) -> bool {
    device.taints.iter().flatten().any(|taint| taint.effect != "None")
}

/// Devices with equal costs, as positions in a list of counters.
struct Group {
    cost: Vec<(usize, i128)>,
    count: usize,
}

impl Group {
    /// Returns the number of devices that fit into what is left of the counters.
    fn fitting(&self, left: &[i128]) -> usize {
        let fits = |(counter, amount): &(usize, i128)| {
            let left = left.get(*counter).copied().unwrap_or(0);
            if *amount <= 0 {
                return usize::MAX;
            }
            usize::try_from(left.max(0).checked_div(*amount).unwrap_or(0)).unwrap_or(usize::MAX)
        };
        self.cost.iter().map(fits).min().unwrap_or(usize::MAX).min(self.count)
    }

    fn take(&self, left: &mut [i128], number: usize) {
        let number = i128::try_from(number).unwrap_or(i128::MAX);
        for (counter, amount) in &self.cost {
            if let Some(left) = left.get_mut(*counter) {
                *left = left.saturating_sub(amount.saturating_mul(number));
            }
        }
    }

    fn give_back(&self, left: &mut [i128], number: usize) {
        let number = i128::try_from(number).unwrap_or(i128::MAX);
        for (counter, amount) in &self.cost {
            if let Some(left) = left.get_mut(*counter) {
                *left = left.saturating_add(amount.saturating_mul(number));
            }
        }
    }
}

/// Returns the largest number of the devices that fit together, and true if no larger one exists.
fn most_together(devices: Vec<Cost<'_>>, counters: &BTreeMap<CounterName<'_>, i128>) -> (usize, bool) {
    let mut by_cost: BTreeMap<Cost<'_>, usize> = BTreeMap::new();
    for cost in devices {
        // A device that consumes an unknown counter can't be allocated.
        if cost.iter().all(|(name, _)| counters.contains_key(name)) {
            let count = by_cost.entry(cost).or_default();
            *count = count.saturating_add(1);
        }
    }
    let positions: BTreeMap<CounterName<'_>, usize> =
        counters.keys().enumerate().map(|(position, name)| (*name, position)).collect();
    let left: Vec<i128> = counters.values().copied().collect();
    let position = |name: &CounterName<'_>| positions.get(name).copied().unwrap_or_default();
    let groups = by_cost.into_iter().map(|(cost, count)| Group {
        cost: cost.iter().map(|(name, amount)| (position(name), *amount)).collect(),
        count,
    });
    let (mut total, mut is_exact): (usize, bool) = (0, true);
    for component in components(groups.collect(), left.len()) {
        let (number, exact) = search(&component, &left);
        total = total.saturating_add(number);
        is_exact &= exact;
    }
    (total, is_exact)
}

/// Splits groups into those that share no counter with groups of another component.
fn components(groups: Vec<Group>, counters: usize) -> Vec<Vec<Group>> {
    let mut parents: Vec<usize> = (0..counters).collect();
    let find = |parents: &[usize], mut at: usize| {
        while let Some(parent) = parents.get(at).filter(|parent| **parent != at) {
            at = *parent;
        }
        at
    };
    for group in &groups {
        let mut members = group.cost.iter().map(|(counter, _)| *counter);
        let Some(first) = members.next() else { continue };
        for other in members {
            let (one, other) = (find(&parents, first), find(&parents, other));
            if let Some(parent) = parents.get_mut(one.max(other)) {
                *parent = one.min(other);
            }
        }
    }
    let mut components: BTreeMap<usize, Vec<Group>> = BTreeMap::new();
    for group in groups {
        let root = group.cost.first().map_or(counters, |(counter, _)| find(&parents, *counter));
        components.entry(root).or_default().push(group);
    }
    components.into_values().collect()
}

/// Searches the largest number of devices of the groups that fit together, group after group, most devices first.
fn search(groups: &[Group], left: &[i128]) -> (usize, bool) {
    let (mut best, mut taken, mut chosen) = (0, 0_usize, Vec::<usize>::with_capacity(groups.len()));
    let mut left = left.to_vec();
    let mut looks = MAX_LOOKS;
    let mut is_down = true;
    loop {
        if is_down {
            let rest = groups.get(chosen.len()..).unwrap_or_default();
            let bound = rest.iter().map(|group| group.fitting(&left)).fold(taken, usize::saturating_add);
            best = best.max(taken);
            match rest.first().filter(|_| bound > best) {
                Some(group) => {
                    let number = group.fitting(&left);
                    group.take(&mut left, number);
                    taken = taken.saturating_add(number);
                    chosen.push(number);
                }
                None => is_down = false,
            }
        } else {
            let Some(number) = chosen.pop() else { return (best, true) };
            let Some(group) = groups.get(chosen.len()) else { return (best, false) };
            group.give_back(&mut left, number);
            taken = taken.saturating_sub(number);
            let rest = groups.get(chosen.len().saturating_add(1)..).unwrap_or_default();
            let bound = rest.iter().map(|group| group.fitting(&left)).fold(taken, usize::saturating_add);
            if let Some(fewer) = number.checked_sub(1).filter(|fewer| bound.saturating_add(*fewer) > best) {
                group.take(&mut left, fewer);
                taken = taken.saturating_add(fewer);
                chosen.push(fewer);
                is_down = true;
            }
        }
        let looked = groups.len().saturating_sub(chosen.len()).saturating_add(1);
        looks = match looks.checked_sub(looked) {
            Some(looks) => looks,
            None => return (best.max(taken.saturating_add(fill(groups, chosen.len(), &mut left))), false),
        };
    }
}

/// Takes from the groups after the first ones as many devices as fit, and returns their number.
fn fill(groups: &[Group], after: usize, left: &mut [i128]) -> usize {
    let mut taken: usize = 0;
    for group in groups.iter().skip(after) {
        let number = group.fitting(left);
        group.take(left, number);
        taken = taken.saturating_add(number);
    }
    taken
}
