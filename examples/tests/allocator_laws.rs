//! Comparison of the allocator with the oracle on random clusters, and laws that need no oracle.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod oracle;

use std::sync::Arc;

use dra_alloc::{
    AllocateError, AllocatedState, Allocator, Budget, Classes, DraGate, Inventory, InventoryEvent, Outcome, Profile,
    PruningRules, Share, Verdict,
};
use k8s_openapi::api::resource::v1::ResourceSlice;
use oracle::plain::plain;
use oracle::{Answer, Case, allocate_counting};
use serde_json::{Value, json};

/// Number of random clusters, lower without optimisation.
const SEEDS: u64 = if cfg!(debug_assertions) { 800 } else { 8000 };

/// Steps of the oracle; a case that needs more is not compared.
const FEW_STEPS: u64 = 5_000;

fn device_id(id: &oracle::DeviceId) -> dra_alloc::DeviceId {
    dra_alloc::DeviceId::new(&id.driver, &id.pool, &id.device)
}

fn state(case: &Case) -> AllocatedState {
    let mut state = AllocatedState::default();
    case.allocated.devices.iter().for_each(|id| state.hold(&device_id(id)));
    case.allocated.shared.iter().for_each(|(id, share)| state.share(&device_id(id), share));
    for (id, amounts) in &case.allocated.capacity {
        for (name, amount) in amounts {
            state.consume(&device_id(id), name, *amount);
        }
    }
    state
}

/// Returns the number of a share in the form of a UUID: the oracle gives the same.
fn numbered(share: Share<'_>) -> String {
    format!("00000000-0000-0000-0000-{:012x}", share.number)
}

fn inventory(case: &Case) -> Inventory {
    let rules = case.taint_rules.iter().cloned().map(Arc::new);
    Inventory::new(case.slices.iter().cloned()).with_taint_rules(rules)
}

fn allocate_from(case: &Case, inventory: &Inventory) -> Result<Verdict, AllocateError> {
    allocate_with(case, inventory, PruningRules::default())
}

fn allocate_with(case: &Case, inventory: &Inventory, pruning: PruningRules) -> Result<Verdict, AllocateError> {
    with_allocator(case, inventory, |allocator| {
        allocator.with_pruning_rules(pruning).allocate(&state(case), &case.node, &case.claims, Budget::default())
    })
}

fn with_allocator<T>(case: &Case, inventory: &Inventory, work: impl FnOnce(Allocator<'_>) -> T) -> T {
    let classes = Classes::new(case.classes.iter().cloned());
    work(Allocator::new(case.profile, inventory, &classes).with_share_ids(&numbered).with_gates(case.gates))
}

/// Returns the answer in the oracle's terms. Texts of reasons may differ.
fn answer(verdict: Result<Verdict, AllocateError>) -> (&'static str, Value) {
    match verdict.map(|verdict| verdict.outcome) {
        Err(_) => ("failed", Value::Null),
        Ok(Outcome::Allocated(results)) => ("allocated", json!(results)),
        Ok(Outcome::FailedOnNode(_)) => ("failed on node", Value::Null),
        Ok(Outcome::Stopped) => ("stopped", Value::Null),
        Ok(_) => ("unsatisfied", Value::Null),
    }
}

fn expected(answer: Answer) -> (&'static str, Value) {
    match answer {
        Answer::Allocated(results) => ("allocated", json!(results)),
        Answer::Unsatisfied => ("unsatisfied", Value::Null),
        Answer::FailedOnNode(_) => ("failed on node", Value::Null),
        Answer::Failed(_) => ("failed", Value::Null),
        Answer::Stopped => ("stopped", Value::Null),
    }
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
            let (wanted, actual) = (expected(wanted), answer(allocate_from(&case, &inventory(&case))));
            let (actual, wanted) = ((actual.0, plain(&actual.1)), (wanted.0, plain(&wanted.1)));
            assert_eq!(actual, wanted, "seed {seed}, {profile}: {}", case.to_json());
        }
    }
    assert!(compared > SEEDS * 7 / 4, "{compared}");
}

#[test]
fn the_oracle_agrees_where_much_is_nearly_alike() {
    let all = PruningRules::from_start((1 << PruningRules::COUNT) - 1);
    let (mut allocated, mut turned_back) = (0, 0);
    for seed in 0..SEEDS * 4 {
        let case = oracle::random::tight(seed);
        let (wanted, _) = allocate_counting(&case, FEW_STEPS);
        if wanted == Answer::Stopped {
            continue;
        }
        let (wanted, inventory) = (expected(wanted), inventory(&case));
        for pruning in [all, PruningRules::default()] {
            let actual = answer(allocate_with(&case, &inventory, pruning));
            assert_eq!(actual.0, wanted.0, "seed {seed}: {}", case.to_json());
            assert_eq!(plain(&actual.1), plain(&wanted.1), "seed {seed}: {}", case.to_json());
        }
        let steps = |pruning| allocate_with(&case, &inventory, pruning).map_or(0, |verdict| verdict.steps);
        allocated += u64::from(wanted.0 == "allocated");
        turned_back += u64::from(steps(all) < steps(PruningRules::from_start(0)));
    }
    assert!(allocated > SEEDS / 2, "{allocated}");
    assert!(turned_back > SEEDS / 4, "branches were left out in {turned_back} of {} clusters", SEEDS * 4);
}

#[test]
fn leaving_out_branches_changes_no_answer() {
    let all = (1 << PruningRules::COUNT) - 1;
    let mut turned_back = 0;
    for seed in 0..SEEDS / 2 {
        let (case, combination) = (oracle::random::case(seed), u8::try_from(seed % (all + 1)).unwrap());
        let inventory = inventory(&case);
        let plain = allocate_with(&case, &inventory, PruningRules::from_start(0)).map(|verdict| verdict.outcome);
        if plain == Ok(Outcome::Stopped) {
            continue;
        }
        for bits in [u8::try_from(all).unwrap(), combination] {
            let pruned = allocate_with(&case, &inventory, PruningRules::from_start(bits));
            assert_eq!(pruned.map(|verdict| verdict.outcome), plain, "seed {seed}, pruning {bits:07b}");
        }
        let steps = |pruning| allocate_with(&case, &inventory, pruning).map_or(0, |verdict| verdict.steps);
        let all = u8::try_from(all).unwrap();
        turned_back += u64::from(steps(PruningRules::from_start(all)) < steps(PruningRules::from_start(0)));
    }
    assert!(turned_back > SEEDS / 40, "branches were left out in {turned_back} of {} clusters", SEEDS / 2);
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
        changed.apply(InventoryEvent::SliceDeleted("passing".to_owned())).unwrap();
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
        with_allocator(&case, &prepared, |allocator| allocator.prepare([&case.node]));
        assert_eq!(allocate_from(&case, &prepared), first, "seed {seed}, prepared");
        // The cached views are built with other feature gates first.
        let asked = inventory(&case);
        let (gates, partitions) = (case.gates, DraGate::PartitionableDevices);
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
        let before = answer(allocate_from(&case, &inventory(&case)));
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
        let after = allocate_from(&case, &inventory(&case));
        assert_eq!(answer(after), before, "seed {seed}");
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
