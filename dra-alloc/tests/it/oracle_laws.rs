//! Comparison of the allocator with the oracle on random clusters, and laws that need no oracle.

use std::sync::Arc;

use dra_alloc::{AllocateError, Allocator, Budget, Gate, Inventory, InventoryEvent, Outcome, Profile, Verdict};
use dra_attrs::Component;
use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::Value;

use crate::oracle::compare::{answer, classes, expected, inventory, numbered, state};
use crate::oracle::plain::plain;
use crate::oracle::{self, Answer, Case, allocate_counting};

/// Number of random clusters, lower without optimisation.
const SEEDS: u64 = if cfg!(debug_assertions) { 400 } else { 8000 };

/// Steps of the oracle; a case that needs more is not compared.
const FEW_STEPS: u64 = 5_000;

/// Kinds of random clusters.
const MAKERS: [fn(u64) -> Case; 3] = [oracle::random::case, oracle::random::tight, oracle::random::racks];

fn allocate_from(case: &Case, inventory: &Inventory) -> Result<Verdict, AllocateError> {
    with_allocator(case, inventory, |allocator| {
        allocator.allocate(&state(case), &case.node, &case.claims, Budget::default())
    })
}

fn answer_from(case: &Case, inventory: &Inventory) -> (&'static str, Value) {
    answer(allocate_from(case, inventory).map(|verdict| verdict.outcome))
}

fn with_allocator<T>(case: &Case, inventory: &Inventory, work: impl FnOnce(Allocator<'_>) -> T) -> T {
    let classes = classes(case);
    work(Allocator::new(Component::new(case.profile, case.gates), inventory, &classes).with_share_ids(&numbered))
}

#[test]
fn the_oracle_agrees() {
    let mut compared = 0;
    for seed in 0..SEEDS {
        let mut case = oracle::random::case(seed);
        for profile in [Profile::Kep, Profile::V1_37] {
            case.profile = profile;
            let (wanted, _) = allocate_counting(&case, FEW_STEPS);
            if wanted == Answer::Stopped {
                continue;
            }
            compared += 1;
            let (wanted, actual) = (expected(wanted), answer_from(&case, &inventory(&case)));
            let (actual, wanted) = ((actual.0, plain(&actual.1)), (wanted.0, plain(&wanted.1)));
            assert_eq!(actual, wanted, "seed {seed}, {profile}: {}", case.to_json());
        }
    }
    assert!(compared > SEEDS * 7 / 4, "{compared}");
}

/// Facts that are read beforehand equal those that a search would read: counters, capacities, and what is left of them.
#[test]
fn preparing_changes_no_answer_and_no_step() {
    let (mut allocated, mut failed) = (0, 0);
    for (seed, make) in (0..SEEDS / 2).flat_map(|seed| MAKERS.iter().map(move |make| (seed, make))) {
        let case = make(seed);
        let allocate = |is_prepared| {
            let (inventory, state) = (inventory(&case), state(&case));
            with_allocator(&case, &inventory, |allocator| {
                if is_prepared {
                    allocator.prepare(&state, [&case.node]);
                }
                let verdict = allocator.allocate(&state, &case.node, &case.claims, Budget::default());
                verdict.map(|verdict| (verdict.steps, verdict.outcome)).map_err(|error| error.to_string())
            })
        };
        let unprepared = allocate(false);
        assert_eq!(allocate(true), unprepared, "seed {seed}: {}", case.to_json());
        allocated += u64::from(matches!(unprepared, Ok((_, Outcome::Allocated(_)))));
        failed += u64::from(unprepared.is_err());
    }
    assert!(allocated > SEEDS / 4 && failed > 0, "{allocated} allocated, {failed} failed");
}

#[test]
fn changes_in_any_order_give_the_same_index() {
    for seed in 0..SEEDS / 4 {
        let case = oracle::random::case(seed);
        let mut changed = Inventory::default();
        let stale = |slice: &ResourceSlice| {
            let mut stale = slice.clone();
            stale.spec.pool.generation = stale.spec.pool.generation.saturating_add(7);
            Arc::new(stale)
        };
        // Every slice is first added in another state, and some other slice comes and goes.
        for slice in &case.slices {
            changed.apply(InventoryEvent::Slice(stale(slice))).unwrap();
        }
        let mut other = case.slices.first().cloned().unwrap_or_default();
        other.metadata.name = Some("passing".to_owned());
        changed.apply(InventoryEvent::Slice(Arc::new(other))).unwrap();
        for slice in case.slices.iter().rev() {
            changed.apply(InventoryEvent::Slice(Arc::new(slice.clone()))).unwrap();
        }
        changed.apply(InventoryEvent::SliceDeleted { name: "passing".to_owned(), uid: None }).unwrap();
        for rule in &case.taint_rules {
            changed.apply(InventoryEvent::TaintRule(Arc::new(rule.clone()))).unwrap();
        }
        let built = allocate_from(&case, &inventory(&case));
        assert_eq!(allocate_from(&case, &changed), built, "seed {seed}");
    }
}

#[test]
fn what_the_index_keeps_changes_no_answer() {
    for seed in 0..SEEDS / 4 {
        let mut case = oracle::random::case(seed);
        let first = allocate_from(&case, &inventory(&case));
        let prepared = inventory(&case);
        with_allocator(&case, &prepared, |allocator| allocator.prepare(&state(&case), [&case.node]));
        assert_eq!(allocate_from(&case, &prepared), first, "seed {seed}, prepared");
        // The cached views are built with other feature gates first.
        let asked = inventory(&case);
        let (gates, partitions) = (case.gates, Gate::PartitionableDevices);
        case.gates = if gates.has(partitions) { gates.without(partitions) } else { gates.with(partitions) };
        let _ = allocate_from(&case, &asked);
        case.gates = gates;
        assert_eq!(allocate_from(&case, &asked), first, "seed {seed}, other gates before");
    }
}

#[test]
fn unrelated_input_and_its_order_change_nothing() {
    for seed in 0..SEEDS / 4 {
        let mut case = oracle::random::case(seed);
        let before = answer_from(&case, &inventory(&case));
        let elsewhere = case.slices.iter().map(|slice| {
            let mut other = slice.clone();
            other.metadata.name = Some(format!("{}-elsewhere", slice.metadata.name.as_deref().unwrap_or_default()));
            other.spec.pool.name = format!("{}-elsewhere", slice.spec.pool.name);
            (other.spec.all_nodes, other.spec.node_selector, other.spec.per_device_node_selection) = (None, None, None);
            other.spec.node_name = Some("another-node".to_owned());
            other
        });
        let elsewhere: Vec<_> = elsewhere.collect();
        for (index, slice) in elsewhere.into_iter().enumerate() {
            case.slices.insert((index * 2).min(case.slices.len()), slice);
        }
        case.classes.reverse();
        let after = answer_from(&case, &inventory(&case));
        assert_eq!(after, before, "seed {seed}");
    }
}

#[test]
fn answers_change_no_input() {
    for seed in 0..SEEDS / 8 {
        let case = oracle::random::case(seed);
        let (inventory, before) = (inventory(&case), case.to_json());
        let first = allocate_from(&case, &inventory);
        assert_eq!(first, allocate_from(&case, &inventory), "seed {seed}");
        assert_eq!(case.to_json(), before);
        assert!(inventory.slices().eq(case.slices.iter()));
    }
}
