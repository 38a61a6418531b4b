//! Comparison with the oracle, and with searches without elisions, on random clusters of many small pools of partitions and on
//! their histories.

use dra_attrs::Quantity;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequestAllocationResult};

use crate::cluster::state::AllocatedState;
use crate::oracle::compare::{answer, expected, inventory, state};
use crate::oracle::plain::plain;
use crate::oracle::random::{self, Random};
use crate::oracle::{Answer, Case, DeviceId, allocate_counting};
use crate::search::budget::Budget;
use crate::search::elisions::{Elision, Elisions};
use crate::search::oracle_case::allocate_beside;
use crate::search::outcome::Outcome;
use crate::search::{PruningRules, SearchedStates};

/// Number of random clusters, lower without optimisation.
const CLUSTERS: u64 = if cfg!(debug_assertions) { 60 } else { 2_000 };
/// Number of claims that come one after the other.
const CLAIMS: usize = 4;
/// Steps of the oracle; a question that needs more is compared with the plain search alone.
const FEW_STEPS: u64 = 1_000;
const WORK: u64 = 100_000;
/// All rules, from the first backtrack on.
const FROM_START: PruningRules = PruningRules::from_start((1 << PruningRules::COUNT) - 1);

/// Notes in a case what a claim has got.
fn note(case: &mut Case, allocation: &AllocationResult) {
    let results = allocation.devices.iter().flat_map(|devices| devices.results.iter().flatten());
    for DeviceRequestAllocationResult { driver, pool, device, admin_access, share_id, consumed_capacity, .. } in results
    {
        if *admin_access == Some(true) {
            continue;
        }
        let id = DeviceId::new(driver, pool, device);
        let Some(share) = share_id else {
            case.allocated.devices.insert(id);
            continue;
        };
        case.allocated.shared.insert((id.clone(), share.clone()));
        let sums = case.allocated.capacity.entry(id).or_default();
        for (name, amount) in consumed_capacity.iter().flatten() {
            let sum = sums.entry(name.clone()).or_insert(Quantity::ZERO);
            *sum = sum.checked_add(Quantity::from_kube(amount).unwrap()).unwrap();
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    by_oracle: u32,
    allocated: u32,
    refused: u32,
    failed: u32,
    fewer_steps: u32,
}

/// Asks a case in several ways, and returns the allocations.
fn ask(case: &Case, kept: &AllocatedState, counts: &mut Counts) -> Option<Vec<AllocationResult>> {
    let (inventory, fresh) = (inventory(case), state(case));
    let with = |state: &AllocatedState, pruning, elisions, like: Option<&SearchedStates>| {
        let searched = allocate_beside(case, &inventory, state, (pruning, elisions), like, Budget::work(WORK));
        let steps = searched.as_ref().map_or(0, |(_, effort)| effort.steps);
        (searched.map(|(outcome, _)| outcome), steps)
    };
    let (all, none) = (Elisions::default(), Elisions::from_bits(0));
    let (wanted, _) = with(&fresh, PruningRules::default(), none, None);
    if matches!(wanted, Ok(Outcome::Stopped(_))) {
        return None;
    }
    let (own, steps) = with(kept, FROM_START, all, None);
    assert_eq!(own, wanted, "{}", case.to_json());
    let (without, more_steps) = with(kept, FROM_START, all.without(Elision::LikePools), None);
    assert_eq!(without, wanted, "{}", case.to_json());
    counts.fewer_steps += u32::from(steps < more_steps);
    let like = SearchedStates::default();
    for _ in 0..2 {
        assert_eq!(with(kept, PruningRules::default(), all, Some(&like)).0, wanted, "{}", case.to_json());
    }
    let (by_oracle, _) = allocate_counting(case, FEW_STEPS);
    if by_oracle != Answer::Stopped {
        counts.by_oracle += 1;
        let (by_oracle, own) = (expected(by_oracle), answer(own));
        assert_eq!((own.0, plain(&own.1)), (by_oracle.0, plain(&by_oracle.1)), "{}", case.to_json());
    }
    counts.failed += u32::from(wanted.is_err());
    counts.refused += u32::from(wanted == Ok(Outcome::Unsatisfied));
    let Ok(Outcome::Allocated(allocations)) = wanted else { return None };
    counts.allocated += 1;
    Some(allocations)
}

/// Asks clusters and their histories, and asserts that there is some of everything.
fn assert_agrees(clusters: u64) {
    let mut counts = Counts::default();
    for seed in 0..clusters {
        let (mut case, random) = (random::partitioned(seed), &mut Random::new(seed));
        let mut kept = state(&case);
        for number in 0..CLAIMS {
            if let Some(allocations) = ask(&case, &kept, &mut counts) {
                for (claim, allocation) in case.claims.clone().iter().zip(&allocations) {
                    kept.assume(claim, allocation).unwrap();
                    note(&mut case, allocation);
                }
            }
            let claim = random::partitioned_claim(random, 10 + number);
            case.claims = vec![serde_json::from_value(claim).unwrap()];
        }
    }
    let asked = u32::try_from(clusters).unwrap() * 4;
    let is_mixed = counts.by_oracle > asked / 4
        && counts.allocated > asked / 5
        && counts.refused > asked / 50
        && counts.failed > asked / 50
        && counts.fewer_steps > asked / 20;
    assert!(is_mixed, "{counts:?} of {asked}");
}

#[test]
fn the_oracle_agrees_on_pools_of_partitions_and_their_histories() {
    assert_agrees(CLUSTERS);
}

#[test]
#[ignore = "takes minutes without optimization, where the test above asks as many"]
fn the_oracle_agrees_on_two_thousand_clusters_of_partitions() {
    assert_agrees(2_000);
}
