//! Checks of a pool that no single slice shows: names that several slices use, counters that devices consume, and values
//! of standard attributes, which the API server does not know.
//!
//! Source: `validatePool` of `resourceslicecontroller.go`; the other checks are this crate's own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;

use dra_attrs::internal::NumaNodeValue;
use dra_attrs::{FieldPath, Index, PciAddress, Quantity, StandardAttribute};
use k8s_openapi::api::resource::v1::{CounterSet, Device, DeviceAttribute, DeviceCounterConsumption, ResourceSlice};

use crate::pool::slice_devices;

/// Mistake in the slices of one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolMistake {
    /// Two devices have the same name. kube-scheduler allocates nothing from the pool.
    DuplicateDevice {
        /// Name of the devices.
        device: String,
        /// Slices with a device of the name.
        slices: Vec<Index<ResourceSlice>>,
    },
    /// Two counter sets have the same name. kube-scheduler allocates nothing from the pool.
    DuplicateCounterSet {
        /// Name of the counter sets.
        counter_set: String,
        /// Slices with a counter set of the name.
        slices: Vec<Index<ResourceSlice>>,
    },
    /// A device consumes from a counter set that the pool does not have.
    CounterSetMissing {
        /// Name of the device.
        device: String,
        /// Name of the counter set.
        counter_set: String,
    },
    /// A device consumes a counter that its counter set does not have.
    CounterMissing {
        /// Name of the device.
        device: String,
        /// Name of the counter set.
        counter_set: String,
        /// Name of the counter.
        counter: String,
    },
    /// A standard attribute has a value that readers can't use.
    StandardAttribute {
        /// Name of the device.
        device: String,
        /// Name of the attribute.
        attribute: &'static str,
        /// Reason, in words.
        reason: String,
    },
    /// Slices disagree about the driver or the name of the pool.
    PoolsDiffer,
    /// Slices disagree about `resourceSliceCount`.
    CountsDiffer,
    /// Slices disagree about the generation.
    GenerationsDiffer,
    /// Slices disagree about the nodes of the devices.
    NodesDiffer,
    /// A device consumes more than its counter set has, so that it can never be allocated.
    NeverAllocatable {
        /// Name of the device.
        device: String,
        /// Name of the counter set.
        counter_set: String,
        /// Name of the counter.
        counter: String,
    },
    /// No device consumes from a counter set.
    CounterSetUnused {
        /// Name of the counter set.
        counter_set: String,
    },
}

impl PoolMistake {
    /// Returns true if the slices should not be published with the mistake. Other mistakes are warnings.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        !matches!(self, Self::NeverAllocatable { .. } | Self::CounterSetUnused { .. })
    }
}

impl fmt::Display for PoolMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateDevice { device, .. } => write!(f, "duplicate device {device}"),
            Self::DuplicateCounterSet { counter_set, .. } => write!(f, "duplicate counter set {counter_set}"),
            Self::CounterSetMissing { device, counter_set } => {
                write!(f, "device {device}: the pool has no counter set {counter_set}")
            }
            Self::CounterMissing { device, counter_set, counter } => {
                write!(f, "device {device}: counter set {counter_set} has no counter {counter}")
            }
            Self::StandardAttribute { device, attribute, reason } => {
                write!(f, "device {device}: attribute {attribute}: {reason}")
            }
            Self::PoolsDiffer => f.write_str("slices disagree about driver or pool"),
            Self::CountsDiffer => f.write_str("slices disagree about resourceSliceCount"),
            Self::GenerationsDiffer => f.write_str("slices disagree about the generation"),
            Self::NodesDiffer => f.write_str("slices disagree about the nodes of the devices"),
            Self::NeverAllocatable { device, counter_set, counter } => {
                write!(f, "device {device} consumes more of counter {counter} than counter set {counter_set} has")
            }
            Self::CounterSetUnused { counter_set } => write!(f, "no device consumes from counter set {counter_set}"),
        }
    }
}

/// A mistake in the slices of a pool, and the field that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolFinding {
    /// Slice with the field.
    pub slice: Index<ResourceSlice>,
    /// Path of the field in the slice.
    pub field: String,
    /// Mistake that the field makes.
    pub mistake: PoolMistake,
}

impl fmt::Display for PoolFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slice {}: {}: {}", self.slice, self.field, self.mistake)
    }
}

/// Returns all mistakes in the slices of one pool that no single slice shows, errors and warnings, in the order of the
/// slices. What one slice shows is found by `validate_slice` of the crate `dra-validate`.
///
/// Cost: linear in devices and counters, apart from look-ups by name.
///
/// ```
/// use dra_device::pool::{PoolMistake, validate_pool};
/// use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
///
/// let mut slice = ResourceSlice::default();
/// slice.spec.devices = Some(vec![Device { name: "gpu-0".to_owned(), ..Device::default() }]);
/// let findings = validate_pool([&slice, &slice]);
/// assert_eq!(findings[0].to_string(), "slice 1: spec.devices[0].name: duplicate device gpu-0");
/// assert!(findings[0].mistake.is_error());
/// ```
pub fn validate_pool<'a>(slices: impl IntoIterator<Item = &'a ResourceSlice>) -> Vec<PoolFinding> {
    let slices: Vec<&ResourceSlice> = slices.into_iter().collect();
    let contents = slices
        .iter()
        .map(|slice| (slice_devices(slice).iter().collect(), slice.spec.shared_counters.iter().flatten().collect()));
    let mut findings = check_contents(contents);
    findings.extend(check_agreement(&slices));
    findings
}

/// Devices and counter sets of one slice.
struct SliceContent<'a> {
    devices: Vec<&'a Device>,
    counter_sets: Vec<&'a CounterSet>,
}

/// Returns the mistakes in the contents of a pool's slices: devices and counter sets of each.
pub fn check_contents<'a>(
    slices: impl IntoIterator<Item = (Vec<&'a Device>, Vec<&'a CounterSet>)>,
) -> Vec<PoolFinding> {
    let contents = |(devices, counter_sets)| SliceContent { devices, counter_sets };
    let slices: Vec<SliceContent<'a>> = slices.into_iter().map(contents).collect();
    let mut check = Check { slices: &slices, sets: BTreeMap::new(), used: BTreeSet::new(), findings: Vec::new() };
    check.counter_sets();
    check.devices();
    check.unused_sets();
    check.findings
}

/// Position in the list of slices, and of a device or counter set in its slice.
type Place = (usize, usize);

struct Check<'c, 'a> {
    slices: &'c [SliceContent<'a>],
    sets: BTreeMap<&'a str, (Place, &'a CounterSet)>,
    used: BTreeSet<&'a str>,
    findings: Vec<PoolFinding>,
}

impl<'a> Check<'_, 'a> {
    fn counter_sets(&mut self) {
        let slices = self.slices;
        let mut duplicates: BTreeMap<&str, Vec<Place>> = BTreeMap::new();
        for (place, set) in places(slices, |slice| &slice.counter_sets) {
            let &mut (first, _) = self.sets.entry(&set.name).or_insert((place, set));
            if first != place {
                duplicates.entry(&set.name).or_insert_with(|| vec![first]).push(place);
            }
        }
        for (name, places) in in_order(duplicates) {
            let mistake = PoolMistake::DuplicateCounterSet { counter_set: name.to_owned(), slices: slices_of(&places) };
            self.report_second(&places, "sharedCounters", mistake);
        }
    }

    fn devices(&mut self) {
        let slices = self.slices;
        let duplicates = duplicate_devices(slices);
        for (place, device) in places(slices, |slice| &slice.devices) {
            if let Some(places) = duplicates.get(device.name.as_str()).filter(|places| places.get(1) == Some(&place)) {
                let mistake = PoolMistake::DuplicateDevice { device: device.name.clone(), slices: slices_of(places) };
                self.report_second(places, "devices", mistake);
            }
            for (number, consumption) in device.consumes_counters.iter().flatten().enumerate() {
                self.consumption(place, device, number, consumption);
            }
            self.attributes(place, device);
        }
    }

    fn consumption(&mut self, place: Place, device: &Device, number: usize, consumption: &'a DeviceCounterConsumption) {
        let report = |check: &mut Self, counter: Option<&str>, mistake| {
            let at = FieldPath::new("spec");
            let at = at.child("devices");
            let at = at.index(place.1);
            let at = at.child("consumesCounters");
            let at = at.index(number);
            let field = match counter {
                None => at.child("counterSet").to_string(),
                Some(counter) => at.child("counters").key(counter).to_string(),
            };
            check.findings.push(PoolFinding { slice: Index::from(place.0), field, mistake });
        };
        let named = || (device.name.clone(), consumption.counter_set.clone());
        let Some(&(_, set)) = self.sets.get(consumption.counter_set.as_str()) else {
            let (device, counter_set) = named();
            return report(self, None, PoolMistake::CounterSetMissing { device, counter_set });
        };
        self.used.insert(&set.name);
        for (name, consumed) in &consumption.counters {
            let (device, counter_set) = named();
            let counter = name.clone();
            match set.counters.get(name) {
                None => report(self, Some(name), PoolMistake::CounterMissing { device, counter_set, counter }),
                Some(available) => {
                    let amounts =
                        Quantity::from_kube(&consumed.value).ok().zip(Quantity::from_kube(&available.value).ok());
                    if amounts.is_some_and(|(consumed, available)| consumed > available) {
                        report(self, Some(name), PoolMistake::NeverAllocatable { device, counter_set, counter });
                    }
                }
            }
        }
    }

    fn attributes(&mut self, place: Place, device: &Device) {
        let Some(attributes) = &device.attributes else { return };
        let standard = attributes.range::<str, _>((Bound::Included(STANDARD_DOMAIN), Bound::Unbounded));
        for (name, value) in standard.take_while(|(name, _)| name.starts_with(STANDARD_DOMAIN)) {
            let Some((attribute, problem)) = STANDARD.into_iter().find(|(attribute, _)| attribute == name) else {
                continue;
            };
            let Some(reason) = problem(value) else { continue };
            let mistake = PoolMistake::StandardAttribute { device: device.name.clone(), attribute, reason };
            let field = format!("spec.devices[{}].attributes[{attribute}]", place.1);
            self.findings.push(PoolFinding { slice: Index::from(place.0), field, mistake });
        }
    }

    fn unused_sets(&mut self) {
        let unused = self.sets.iter().filter(|(name, _)| !self.used.contains(*name));
        let mut unused: Vec<(Place, &str)> = unused.map(|(name, (place, _))| (*place, *name)).collect();
        unused.sort_unstable();
        self.findings.extend(unused.into_iter().map(|(place, name)| PoolFinding {
            slice: Index::from(place.0),
            field: format!("spec.sharedCounters[{}]", place.1),
            mistake: PoolMistake::CounterSetUnused { counter_set: name.to_owned() },
        }));
    }

    /// Reports a name at the second place that uses it.
    fn report_second(&mut self, places: &[Place], list: &str, mistake: PoolMistake) {
        let (slice, position) = places.get(1).copied().unwrap_or_default();
        let field = format!("spec.{list}[{position}].name");
        self.findings.push(PoolFinding { slice: Index::from(slice), field, mistake });
    }
}

/// Returns the items of all slices with their places.
fn places<'c, 'a: 'c, T: 'a>(
    slices: &'c [SliceContent<'a>],
    list: impl Fn(&'c SliceContent<'a>) -> &'c [&'a T] + 'c,
) -> impl Iterator<Item = (Place, &'a T)> {
    slices.iter().enumerate().flat_map(move |(slice, content)| {
        list(content).iter().enumerate().map(move |(position, item)| ((slice, position), *item))
    })
}

/// Returns the names of devices that occur more than once, with all their places.
fn duplicate_devices<'a>(slices: &[SliceContent<'a>]) -> BTreeMap<&'a str, Vec<Place>> {
    let named = || places(slices, |slice| &slice.devices).map(|(place, device)| (device.name.as_str(), place));
    // Names in ascending order are distinct.
    if named().is_sorted_by(|(left, _), (right, _)| left < right) {
        return BTreeMap::new();
    }
    let mut all: Vec<(&str, Place)> = named().collect();
    all.sort_unstable();
    let same_name = all.chunk_by(|(left, _), (right, _)| left == right).filter(|chunk| chunk.len() > 1);
    same_name.filter_map(|chunk| Some((chunk.first()?.0, chunk.iter().map(|(_, place)| *place).collect()))).collect()
}

/// Returns names by the second of their places.
fn in_order(duplicates: BTreeMap<&str, Vec<Place>>) -> Vec<(&str, Vec<Place>)> {
    let mut duplicates: Vec<_> = duplicates.into_iter().collect();
    duplicates.sort_by_key(|(_, places)| places.get(1).copied());
    duplicates
}

/// Returns the slices of places, each once.
fn slices_of(places: &[Place]) -> Vec<Index<ResourceSlice>> {
    let mut slices: Vec<Index<ResourceSlice>> = places.iter().map(|(slice, _)| Index::from(*slice)).collect();
    slices.dedup();
    slices
}

/// Function that returns the problem of a value in words.
type Problem = fn(&DeviceAttribute) -> Option<String>;

/// Beginning of the names of standard attributes.
const STANDARD_DOMAIN: &str = "resource.kubernetes.io/";

/// Standard attributes with their checks.
const STANDARD: [(&str, Problem); 3] = [
    (StandardAttribute::NUMA_NODE, numa_node_problem),
    (StandardAttribute::PCI_BUS_ID, pci_bus_id_problem),
    (StandardAttribute::PCIE_ROOT, pcie_root_problem),
];

fn numa_node_problem(value: &DeviceAttribute) -> Option<String> {
    match NumaNodeValue::parse(value) {
        Err(error) => Some(error.to_string()),
        Ok(NumaNodeValue::Scalar(node)) => (node < 0).then(|| format!("no NUMA node {node}")),
        Ok(NumaNodeValue::List(nodes)) => {
            let distinct: BTreeSet<i64> = nodes.iter().copied().collect();
            let negative = distinct.first().filter(|node| **node < 0).map(|node| format!("no NUMA node {node}"));
            negative.or_else(|| (distinct.len() < nodes.len()).then(|| "a NUMA node is listed twice".to_owned()))
        }
    }
}

fn pci_bus_id_problem(value: &DeviceAttribute) -> Option<String> {
    match &value.string {
        None => Some("not a string".to_owned()),
        Some(text) => PciAddress::parse_extended(text).err().map(|error| error.to_string()),
    }
}

fn pcie_root_problem(value: &DeviceAttribute) -> Option<String> {
    (value.string.is_none() && value.strings.is_none()).then(|| "neither a string nor a list of strings".to_owned())
}

/// Returns the disagreements between slices, at the first slice that differs from slice 0.
fn check_agreement(slices: &[&ResourceSlice]) -> Vec<PoolFinding> {
    type Same = fn(&ResourceSlice, &ResourceSlice) -> bool;
    let checks: [(&str, PoolMistake, Same); 4] = [
        ("spec.pool.name", PoolMistake::PoolsDiffer, |one, other| {
            (&one.spec.driver, &one.spec.pool.name) == (&other.spec.driver, &other.spec.pool.name)
        }),
        ("spec.pool.resourceSliceCount", PoolMistake::CountsDiffer, |one, other| {
            one.spec.pool.resource_slice_count == other.spec.pool.resource_slice_count
        }),
        ("spec.pool.generation", PoolMistake::GenerationsDiffer, |one, other| {
            one.spec.pool.generation == other.spec.pool.generation
        }),
        ("spec.nodeName", PoolMistake::NodesDiffer, |one, other| {
            one.spec.node_name.as_deref().unwrap_or_default() == other.spec.node_name.as_deref().unwrap_or_default()
        }),
    ];
    let Some((first, others)) = slices.split_first() else { return Vec::new() };
    let finding = |(field, mistake, same): (&str, PoolMistake, Same)| {
        let other: usize = others.iter().position(|other| !same(first, other))?;
        Some(PoolFinding { slice: Index::from(other.saturating_add(1)), field: field.to_owned(), mistake })
    };
    checks.into_iter().filter_map(finding).collect()
}
