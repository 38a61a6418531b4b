//! The larger use of two states: a search on it answers as one that asks both, by all solutions of each.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Component, DeviceId, Inventory, Outcome};
use dra_attrs::{Profile, Quantity};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};

use crate::oracle::compare::{classes, inventory, numbered, state};
use crate::oracle::plain::plain;
use crate::oracle::random::{self, Random};
use crate::oracle::search::solutions;
use crate::oracle::{Case, DeviceId as OracleId, result};

const SEEDS: u64 = if cfg!(debug_assertions) { 120 } else { 4_000 };
const STEPS: u64 = 20_000;
/// Number of solutions up to which those of both states are compared.
const SOLUTIONS: usize = 300;

/// Generator of cases.
type Kind = fn(u64) -> Case;

fn chosen(devices: BTreeSet<OracleId>, random: &mut Random, percent: u32) -> BTreeSet<OracleId> {
    devices.into_iter().filter(|_| random.percent(percent)).collect()
}

/// Returns the case at another time: some devices in use are free, some free ones in use, and shares are of another size.
fn later(case: &Case, random: &mut Random) -> Case {
    let mut later = case.clone();
    let used = &mut later.allocated;
    used.devices = chosen(std::mem::take(&mut used.devices), random, 50);
    let all = case.slices.iter().flat_map(|slice| {
        let devices = slice.spec.devices.iter().flatten();
        devices.map(|device| OracleId::new(&slice.spec.driver, &slice.spec.pool.name, &device.name))
    });
    let free: BTreeSet<OracleId> = all.filter(|device| !case.allocated.is_allocated(device)).collect();
    used.devices.extend(chosen(free, random, 20));
    for amount in used.capacity.values_mut().flat_map(BTreeMap::values_mut) {
        let other = [*amount, *amount, Quantity::ZERO, amount.checked_add(*amount).unwrap()];
        *amount = random.pick(&other);
    }
    later
}

fn ask(case: &Case, state: &AllocatedState) -> Option<Outcome> {
    let (classes, inventory) = (classes(case), inventory(case));
    let allocator = Allocator::new(Component::new(case.profile, case.gates), &inventory, &classes);
    let verdict = allocator.with_share_ids(&numbered).allocate(state, &case.node, &case.claims, Budget::default());
    verdict.ok().map(|verdict| verdict.outcome)
}

/// Returns the results of all solutions, in their order; `None` if there is nothing to compare.
fn results(case: &Case) -> Option<Vec<Value>> {
    let (search, all) = solutions(case, STEPS).filter(|(_, all)| all.len() <= SOLUTIONS)?;
    Some(all.iter().map(|decisions| plain(&json!(result::results(&search, decisions).unwrap()))).collect())
}

/// Compares a search on the larger use with the solutions of both states. Returns true if there is one, and `None` if there is
/// nothing to compare.
fn compare(now: &Case, later: &Case, context: &str) -> Option<bool> {
    let (first, second) = (results(now)?, results(later)?);
    let both = first.iter().find(|results| second.contains(results));
    let seen = state(now).max_state(&state(later));
    let context = || format!("{context}: {} and {}", now.to_json(), json!(later.to_json()["allocated"]));
    match (ask(now, &seen)?, both) {
        (Outcome::Allocated(found), Some(both)) => assert_eq!(plain(&json!(found)), *both, "{}", context()),
        (Outcome::Allocated(found), None) => panic!("not free in both: {found:?}, {}", context()),
        // Groups are those common to the devices of both times, so that some devices wait which would not have to.
        (_, Some(_)) => assert!(context().contains("compatibilityGroups"), "refused: {}", context()),
        (_, None) => {}
    }
    Some(both.is_some())
}

#[test]
fn a_search_on_the_larger_use_finds_the_first_solution_of_both_states() {
    const KINDS: [(&str, Kind); 3] = [("case", random::case), ("tight", random::tight), ("racks", random::racks)];
    let (mut found, mut refused) = (0, 0);
    for seed in 0..SEEDS {
        for (name, kind) in KINDS {
            let now = kind(seed);
            let later = later(&now, &mut Random::new(seed));
            match compare(&now, &later, &format!("{name} {seed}")) {
                Some(true) => found += 1,
                Some(false) => refused += 1,
                None => {}
            }
        }
    }
    assert!(found > SEEDS / 4 && refused > SEEDS / 4, "{found} found, {refused} refused");
}

/// Returns the answer for a device of 3 of 8 slots, where the first devices are used now and the others later.
fn fits(now: &[&str], later: &[&str]) -> bool {
    let device = |name: &str, slots: u32| json!({"name": name, "consumesCounters": [{"counterSet": "card", "counters": {"slots": {"value": slots.to_string()}}}]});
    let devices =
        [("two", 2), ("three-a", 3), ("three-b", 3), ("five", 5), ("six", 6)].map(|(name, slots)| device(name, slots));
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 2});
    let slices = [
        json!({"metadata": {"name": "counters"}, "spec": {"driver": "gpu", "nodeName": "n", "pool": pool,
            "sharedCounters": [{"name": "card", "counters": {"slots": {"value": "8"}}}]}}),
        json!({"metadata": {"name": "devices"}, "spec": {"driver": "gpu", "nodeName": "n", "pool": pool, "devices": devices}}),
    ];
    let wanted = json!([{"name": "r", "exactly": {"deviceClassName": "gpu",
        "selectors": [{"cel": {"expression": "device.driver == 'gpu'"}}]}}]);
    let claim: ResourceClaim = from_value(json!({"metadata": {"namespace": "ns", "name": "c", "uid": "c"},
        "spec": {"devices": {"requests": wanted}}}))
    .unwrap();
    let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}})).unwrap();
    let classes = Classes::new([class]);
    let inventory = Inventory::new(slices.map(|slice| from_value::<ResourceSlice>(slice).unwrap()));
    let allocator = Allocator::new(Component::of(Profile::V1_37), &inventory, &classes);
    let state = |devices: &[&str]| {
        let mut state = AllocatedState::default();
        for device in devices {
            state.hold(&DeviceId::new("gpu", "p", device));
        }
        state
    };
    let node = from_value(json!({"metadata": {"name": "n"}})).unwrap();
    let ask = |state: &AllocatedState| {
        let verdict = allocator.allocate(state, &node, [&claim], Budget::default()).unwrap();
        matches!(verdict.outcome, Outcome::Allocated(_))
    };
    let (now, later) = (state(now), state(later));
    let (seen, turned) = (now.max_state(&later), later.max_state(&now));
    assert_eq!(ask(&seen), ask(&turned));
    for name in ["two", "three-a", "three-b", "five", "six"] {
        let with = |state: &AllocatedState| {
            let mut with = state.clone();
            with.hold(&DeviceId::new("gpu", "p", name));
            with
        };
        // A change of the larger use is one of both states.
        assert_eq!(ask(&with(&seen)), ask(&with(&now).max_state(&with(&later))), "{name}");
    }
    ask(&seen)
}

#[test]
fn counters_are_counted_at_each_time_by_itself() {
    let rows: [(&[&str], &[&str], bool); 8] = [
        // Together they would consume more than there is: 5 + 5 of 8.
        (&["five"], &["two", "three-a"], true),
        (&["three-a"], &["three-b"], true),
        (&["five"], &["five"], true),
        (&["five"], &[], true),
        (&["six"], &[], true),
        (&["six"], &["three-a"], true),
        (&["six"], &["two"], false),
        (&["five", "three-a"], &["two"], false),
    ];
    for (now, later, expected) in rows {
        assert_eq!(fits(now, later), expected, "{now:?}, then {later:?}");
    }
}
