//! Splitting a pool into slices.

use std::collections::BTreeSet;

use dra_attrs::Profile;
use dra_node::driver::{NodeChoice, PlanError, PoolPlan, PoolSpec, SliceContents, SliceLimits, split_into_slices};
use k8s_openapi::api::resource::v1::{Counter, CounterSet, Device, DeviceCounterConsumption, DeviceTaint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use proptest::prelude::*;

pub(crate) fn devices(count: usize) -> Vec<Device> {
    (0..count).map(|number| Device { name: format!("d{number}"), ..Device::default() }).collect()
}

fn counters(count: usize) -> std::collections::BTreeMap<String, Counter> {
    (0..count).map(|number| (format!("c{number}"), Counter { value: Quantity("1".to_owned()) })).collect()
}

fn set(name: &str, count: usize) -> CounterSet {
    CounterSet { name: name.to_owned(), counters: counters(count) }
}

fn consumer(name: &str, sets: &[&str]) -> Device {
    let consumption = |set: &&str| DeviceCounterConsumption {
        counter_set: (*set).to_owned(),
        counters: counters(1),
        ..DeviceCounterConsumption::default()
    };
    let consumes_counters = Some(sets.iter().map(consumption).collect());
    Device { name: name.to_owned(), consumes_counters, ..Device::default() }
}

fn tainted(name: &str) -> Device {
    let taint = DeviceTaint { key: "k".to_owned(), effect: "NoSchedule".to_owned(), ..DeviceTaint::default() };
    Device { name: name.to_owned(), taints: Some(vec![taint]), ..Device::default() }
}

pub(crate) fn pool(devices: &[Device]) -> PoolSpec<'_> {
    PoolSpec::new("gpu.example.com", "p", NodeChoice::Node("node-1")).with_devices(devices)
}

fn names<'p>(plan: &'p PoolPlan<'_>) -> Vec<Vec<&'p str>> {
    let names = |slice: &'p dra_node::driver::SlicePlan<'_>| {
        slice.devices.iter().flatten().map(|device| device.name.as_str()).collect()
    };
    plan.slices.iter().map(names).collect()
}

fn sizes(plan: &PoolPlan<'_>) -> Vec<usize> {
    names(plan).iter().map(Vec::len).collect()
}

fn sets<'p>(plan: &'p PoolPlan<'_>) -> Vec<Vec<&'p str>> {
    plan.slices.iter().map(|slice| slice.counter_sets.iter().map(|set| set.name.as_str()).collect()).collect()
}

fn contents<'p>(plan: &'p PoolPlan<'_>) -> Vec<SliceContents<'p>> {
    let pairs = names(plan).into_iter().zip(sets(plan));
    pairs.map(|(devices, counter_sets)| SliceContents { devices, counter_sets }).collect()
}

fn v37() -> SliceLimits {
    SliceLimits::of(Profile::V1_37)
}

fn v34() -> SliceLimits {
    SliceLimits::of(Profile::V1_34)
}

#[test]
fn counter_sets_have_slices_of_their_own_from_1_35_on() {
    let sets_of_nine: Vec<CounterSet> = (0..9).map(|number| set(&format!("s{number}"), 32)).collect();
    let devices = [consumer("a", &["s0"]), Device { name: "b".to_owned(), ..Device::default() }];
    let spec = pool(&devices).with_counter_sets(&sets_of_nine).with_partition_type_attribute(Some("d/type"));
    let planned = split_into_slices(&spec, &v37(), None).unwrap();
    assert_eq!(sizes(&planned), [0, 0, 2]);
    assert_eq!(sets(&planned).iter().map(Vec::len).collect::<Vec<_>>(), [8, 1, 0]);
    // The API server refuses a list of devices, even an empty one, beside counter sets.
    assert!(planned.slices[0].devices.is_none());
    let attributes: Vec<_> = planned.slices.iter().map(|slice| slice.partition_type_attribute).collect();
    assert_eq!(attributes, [None, None, Some("d/type")]);
    let on_36 = split_into_slices(&spec, &SliceLimits::of(Profile::V1_36), None).unwrap();
    assert!(on_36.slices.iter().all(|slice| slice.partition_type_attribute.is_none()));
}

#[test]
fn components_stay_together_before_1_35() {
    let all = [set("s0", 10), set("s1", 10), set("s2", 10), set("unused", 10)];
    let devices = [consumer("a", &["s0"]), consumer("b", &["s2"]), consumer("c", &["s1", "s0"]), tainted("d")];
    let spec = pool(&devices).with_counter_sets(&all);
    let planned = split_into_slices(&spec, &v34().filling_slices(), None).unwrap();
    assert_eq!(names(&planned), [vec!["a", "c", "b", "d"], vec![]]);
    assert_eq!(sets(&planned), [vec!["s0", "s1", "s2"], vec!["unused"]]);
    let lost = [consumer("a", &["nowhere"])];
    let error = split_into_slices(&pool(&lost), &v34().filling_slices(), None);
    assert!(matches!(error, Err(PlanError::CounterSetMissing { counter_set, .. }) if counter_set == "nowhere"));
    let wide = [set("s0", 33)];
    let error = split_into_slices(&pool(&[]).with_counter_sets(&wide), &v34().filling_slices(), None);
    assert!(matches!(error, Err(PlanError::CannotSplit { device_count: 0, .. })));
}

#[test]
fn one_component_may_have_128_devices_and_several_64() {
    let all = [set("s0", 1), set("s1", 1)];
    let one: Vec<Device> = (0..128).map(|number| consumer(&format!("d{number}"), &["s0"])).collect();
    let spec = pool(&one).with_counter_sets(&all[..1]);
    assert_eq!(sizes(&split_into_slices(&spec, &v34(), None).unwrap()), [128]);
    let two: Vec<Device> =
        (0..70).map(|number| consumer(&format!("d{number}"), &[if number < 40 { "s0" } else { "s1" }])).collect();
    let spec = pool(&two).with_counter_sets(&all);
    assert_eq!(sizes(&split_into_slices(&spec, &v34(), None).unwrap()), [40, 30]);
    assert_eq!(sizes(&split_into_slices(&spec, &v34().filling_slices(), None).unwrap()), [70]);
}

#[test]
fn a_device_that_changes_leaves_the_other_slices_as_they_were() {
    let before = devices(1000);
    let first = split_into_slices(&pool(&before), &v37(), None).unwrap();
    let mut after = before.clone();
    after.remove(100);
    after.insert(0, tainted("new"));
    let layout = contents(&first);
    let second = split_into_slices(&pool(&after), &v37(), Some(&layout)).unwrap();
    let (first, second_names) = (names(&first), names(&second));
    let changed: Vec<usize> = (0..16).filter(|slice| first[*slice] != second_names[*slice]).collect();
    assert_eq!((second_names.len(), changed.as_slice()), (16, [1].as_slice()));
    assert_eq!(second_names[1].last(), Some(&"new"));
    // The third plan is the second one: what was appended stays where it is.
    let layout = contents(&second);
    assert_eq!(split_into_slices(&pool(&after), &v37(), Some(&layout)).unwrap(), second);
}

#[test]
fn a_taint_displaces_devices_only_if_the_slice_gets_too_long() {
    let before = devices(100);
    let first = split_into_slices(&pool(&before), &v37().filling_slices(), None).unwrap();
    assert_eq!(sizes(&first), [100]);
    let mut after = before.clone();
    after[0] = tainted("d0");
    let layout = contents(&first);
    let second = split_into_slices(&pool(&after), &v37().filling_slices(), Some(&layout)).unwrap();
    assert_eq!(sizes(&second), [64, 36]);
    assert_eq!((names(&second)[0][0], names(&second)[1][0]), ("d0", "d64"));
}

#[test]
fn ten_thousand_devices_on_one_earlier_slice_are_split() {
    let all = devices(10_000);
    let names = all.iter().map(|device| device.name.as_str()).collect();
    let layout = vec![SliceContents { devices: names, ..SliceContents::default() }];
    let planned = split_into_slices(&pool(&all), &v37(), Some(&layout)).unwrap();
    assert_eq!((planned.slices.len(), planned.slices[0].devices.as_ref().unwrap().len()), (157, 64));
}

#[derive(Clone, Debug)]
struct AnyPool {
    devices: Vec<Device>,
    sets: Vec<CounterSet>,
    minor: u32,
    fills_slices: bool,
    previous: Vec<Vec<String>>,
}

fn any_pool() -> impl Strategy<Value = AnyPool> {
    let sets = prop::collection::vec(1..20_usize, 0..12);
    let previous = prop::collection::vec(prop::collection::vec(0..400_usize, 0..90), 0..6);
    (sets, prop::collection::vec((0..4_u8, 0..12_usize, 0..12_usize), 0..300), 33..39_u32, any::<bool>(), previous)
        .prop_map(|(sets, devices, minor, fills_slices, previous)| {
            let sets: Vec<CounterSet> =
                sets.into_iter().enumerate().map(|(number, count)| set(&format!("s{number}"), count)).collect();
            let device = |(number, (kind, one, other)): (usize, (u8, usize, usize))| {
                let name = format!("d{number}");
                let named = |number: usize| sets.get(number).map(|set| set.name.as_str());
                match (kind, named(one), named(other)) {
                    (1, ..) => tainted(&name),
                    (2, Some(one), _) => consumer(&name, &[one]),
                    (3, Some(one), Some(other)) if one != other => consumer(&name, &[one, other]),
                    _ => Device { name, ..Device::default() },
                }
            };
            let devices: Vec<Device> = devices.into_iter().enumerate().map(device).collect();
            let named = |slice: Vec<usize>| slice.into_iter().map(|number| format!("d{number}")).collect();
            AnyPool { devices, sets, minor, fills_slices, previous: previous.into_iter().map(named).collect() }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every device and every counter set is in one slice, and each slice is within the limits.
    #[test]
    fn nothing_is_lost_and_every_slice_is_accepted(any in any_pool(), is_sticky: bool) {
        let limits = SliceLimits::of(Profile::of_minor(any.minor));
        let limits = if any.fills_slices { limits.filling_slices() } else { limits };
        let previous = any.previous.iter().map(|names| SliceContents {
            devices: names.iter().map(String::as_str).collect(),
            ..SliceContents::default()
        });
        let layout: Option<Vec<SliceContents<'_>>> = is_sticky.then(|| previous.collect());
        let spec = pool(&any.devices).with_counter_sets(&any.sets);
        let planned = match split_into_slices(&spec, &limits, layout.as_deref()) {
            Ok(planned) => planned,
            Err(error) => {
                prop_assert!(any.minor <= 34, "{error}");
                return Ok(());
            }
        };
        let all: Vec<&str> = names(&planned).concat();
        let distinct: BTreeSet<&str> = all.iter().copied().collect();
        prop_assert_eq!((all.len(), distinct.len()), (any.devices.len(), any.devices.len()));
        prop_assert_eq!(sets(&planned).concat().len(), any.sets.len());
        for slice in &planned.slices {
            let devices = slice.devices.as_deref().unwrap_or_default();
            let consumes = |device: &&Device| device.consumes_counters.is_some();
            let advanced = devices.iter().any(|device| device.taints.is_some() || consumes(device));
            let most = if advanced && any.minor > 34 { 64 } else { 128 };
            prop_assert!(devices.len() <= most);
            if any.minor > 34 {
                prop_assert!(slice.counter_sets.len() <= 8);
                prop_assert!(slice.counter_sets.is_empty() || slice.devices.is_none());
            } else {
                let counters: usize = slice.counter_sets.iter().map(|set| set.counters.len()).sum();
                prop_assert!(counters <= 32);
                for consumption in devices.iter().flat_map(|device| device.consumes_counters.iter().flatten()) {
                    prop_assert!(slice.counter_sets.iter().any(|set| set.name == consumption.counter_set));
                }
            }
        }
        // What was planned is planned again.
        let again = split_into_slices(&spec, &limits, Some(&contents(&planned))).unwrap();
        prop_assert_eq!(again, planned);
    }
}
