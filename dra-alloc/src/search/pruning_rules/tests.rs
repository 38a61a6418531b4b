//! Comparison of the search with and without pruning rules, and with the oracle, on random clusters.

use serde_json::{Value, json};

use super::{PruningRule, PruningRules};
use crate::cluster::inventory::Inventory;
use crate::oracle::compare::{answer, expected, inventory};
use crate::oracle::plain::plain;
use crate::oracle::{Answer, Case, allocate_counting, random};
use crate::search::budget::Budget;
use crate::search::oracle_case::{self, Searched};
use crate::search::outcome::Outcome;

/// Number of random clusters, lower without optimisation.
const SEEDS: u64 = if cfg!(debug_assertions) { 400 } else { 8000 };

/// Steps of the oracle; a case that needs more is not compared.
const FEW_STEPS: u64 = 5_000;

/// All rules, from the first backtrack on.
const ALL: u16 = (1 << PruningRules::COUNT) - 1;

fn allocate(case: &Case, inventory: &Inventory, pruning: PruningRules) -> Searched {
    oracle_case::allocate(case, inventory, pruning, None, Budget::default())
}

fn steps(case: &Case, inventory: &Inventory, rules: u16) -> u64 {
    allocate(case, inventory, PruningRules::from_start(rules)).map_or(0, |(_, effort)| effort.steps)
}

/// Returns the clusters of some seeds that the oracle decides in few steps, each with its answer and the index.
fn decided(seeds: u64, make: fn(u64) -> Case) -> impl Iterator<Item = (u64, Case, (&'static str, Value), Inventory)> {
    (0..seeds).filter_map(move |seed| {
        let case = make(seed);
        let (wanted, _) = allocate_counting(&case, FEW_STEPS);
        let inventory = inventory(&case);
        (wanted != Answer::Stopped).then(|| (seed, case, expected(wanted), inventory))
    })
}

fn assert_agrees(case: &Case, inventory: &Inventory, wanted: &(&str, Value), pruning: PruningRules) {
    let actual = answer(allocate(case, inventory, pruning).map(|(outcome, _)| outcome));
    assert_eq!(actual.0, wanted.0, "{pruning:?}: {}", case.to_json());
    assert_eq!(plain(&actual.1), plain(&wanted.1), "{pruning:?}: {}", case.to_json());
}

#[test]
fn the_oracle_agrees_where_much_is_nearly_alike() {
    let (mut allocated, mut turned_back) = (0, 0);
    for (_, case, wanted, inventory) in decided(SEEDS * 4, random::tight) {
        for pruning in [PruningRules::from_start(ALL), PruningRules::default()] {
            assert_agrees(&case, &inventory, &wanted, pruning);
        }
        allocated += u64::from(wanted.0 == "allocated");
        turned_back += u64::from(steps(&case, &inventory, ALL) < steps(&case, &inventory, 0));
    }
    assert!(allocated > SEEDS / 2, "{allocated}");
    assert!(turned_back > SEEDS / 4, "branches were left out in {turned_back} of {} clusters", SEEDS * 4);
}

#[test]
fn the_oracle_agrees_where_groups_are_alike() {
    let mut turned_back = 0;
    for (seed, case, wanted, inventory) in decided(SEEDS * 3, random::racks) {
        // Each rule alone, all but one, all.
        let rule = 1 << (seed % u64::from(PruningRules::COUNT));
        for rules in [rule, ALL & !rule, ALL] {
            assert_agrees(&case, &inventory, &wanted, PruningRules::from_start(rules));
        }
        turned_back += u64::from(steps(&case, &inventory, ALL) < steps(&case, &inventory, 0));
    }
    assert!(turned_back > SEEDS / 4, "branches were left out in {turned_back} of {} clusters", SEEDS * 3);
}

#[test]
fn the_oracle_agrees_where_the_first_device_goes_unchecked() {
    let (mut allocated, mut turned_back) = (0, 0);
    for (seed, case, wanted, inventory) in decided(SEEDS * 4, random::unchecked) {
        // Each rule alone, all but one, all.
        let rule = 1 << (seed % u64::from(PruningRules::COUNT));
        for rules in [rule, ALL & !rule, ALL] {
            assert_agrees(&case, &inventory, &wanted, PruningRules::from_start(rules));
        }
        allocated += u64::from(wanted.0 == "allocated");
        turned_back += u64::from(steps(&case, &inventory, ALL) < steps(&case, &inventory, 0));
    }
    assert!(allocated > SEEDS / 2, "{allocated}");
    assert!(turned_back > SEEDS / 4, "branches were left out in {turned_back} of {} clusters", SEEDS * 4);
}

#[test]
fn an_error_that_the_search_can_reach_is_reached() {
    let settled = 1 << PruningRule::SettledRisks as u16;
    let (mut failed, mut turned_back) = (0, 0);
    for (seed, case, (wanted, _), inventory) in decided(SEEDS * 3, random::risky) {
        let with = |rules| allocate(&case, &inventory, PruningRules::from_start(rules)).map(|(outcome, _)| outcome);
        let plain = with(0);
        assert_eq!(answer(plain.clone()).0, wanted, "seed {seed}: {}", case.to_json());
        for rules in [ALL, settled | (ALL >> (seed % 8)), ALL & !settled] {
            assert_eq!(with(rules), plain, "seed {seed}, pruning {rules:012b}: {}", case.to_json());
        }
        failed += u64::from(plain.is_err());
        turned_back += u64::from(steps(&case, &inventory, ALL) < steps(&case, &inventory, ALL & !settled));
    }
    assert!(failed > SEEDS / 4, "{failed} of {} ended in an error", SEEDS * 3);
    assert!(turned_back > SEEDS / 100, "settled risks left out branches in {turned_back} of {} clusters", SEEDS * 3);
}

/// A claim that gets 34 devices in the first branch of its list, with a request before the last one that may fail; and before it
/// a claim whose search goes back once, so that pruning is on.
fn beyond_the_limit() -> Case {
    let device = |name: String, kind: &str| json!({"name": name, "attributes": {"kind": {"string": kind}}});
    let side = |mut device: Value, side: i64| {
        device["attributes"]["side"] = json!({"int": side});
        device
    };
    let mut devices = vec![
        side(device("p-1".to_owned(), "p"), 1),
        side(device("p-2".to_owned(), "p"), 2),
        side(device("q".to_owned(), "q"), 2),
        device("a".to_owned(), "a"),
        device("m".to_owned(), "m"),
        device("e".to_owned(), "e"),
    ];
    devices.extend((0..31).map(|number| device(format!("b-{number}"), "b")));
    let asked = |count: usize, expression: String| {
        json!({"deviceClassName": "any", "allocationMode": "ExactCount", "count": count,
            "selectors": [{"cel": {"expression": expression}}]})
    };
    let of_kind = |count, kind| asked(count, format!("device.attributes['d.example.com'].kind == '{kind}'"));
    let exactly = |name: &str, asked: Value| json!({"name": name, "exactly": asked});
    let named = |name: &str, mut asked: Value| {
        asked["name"] = json!(name);
        asked
    };
    let may_fail = "device.attributes['d.example.com'].kind in ['p', 'q', 'a'] ? \
        device.attributes['d.example.com'].kind == 'a' : device.attributes['d.example.com'].missing";
    let list =
        json!({"name": "list", "firstAvailable": [named("big", of_kind(20, "b")), named("small", of_kind(1, "e"))]});
    let claim = |name: &str, requests: Value, constraints: Value| {
        json!({"metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"devices": {"requests": requests, "constraints": constraints}}})
    };
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": "d.example.com", "nodeName": "node-0", "pool": pool, "devices": devices});
    Case::from_json(json!({
        "name": "beyond the limit", "profile": "v1.37", "features": {"DRAPrioritizedList": true},
        "node": {"metadata": {"name": "node-0"}},
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "claims": [
            claim("first", json!([exactly("p", of_kind(1, "p")), exactly("q", of_kind(1, "q"))]),
                json!([{"matchAttribute": "d.example.com/side"}])),
            claim("second", json!([list, exactly("risky", asked(1, may_fail.to_owned())), exactly("m", of_kind(1, "m")),
                exactly("rest", of_kind(12, "b"))]), json!([])),
        ],
        "slices": [{"metadata": {"name": "devices"}, "spec": spec}],
        "allocated": {"devices": [], "shared": [], "capacity": {}},
    }))
}

#[test]
fn a_limit_that_ends_a_branch_ends_the_errors_behind_it() {
    let case = beyond_the_limit();
    let (inventory, wanted) = (inventory(&case), expected(allocate_counting(&case, FEW_STEPS).0));
    assert_eq!(wanted.0, "allocated");
    for pruning in [PruningRules::from_start(0), PruningRules::from_start(ALL), PruningRules::default()] {
        assert_agrees(&case, &inventory, &wanted, pruning);
    }
}

#[test]
fn leaving_out_branches_changes_no_answer() {
    let mut turned_back = 0;
    for seed in 0..SEEDS / 2 {
        let case = random::case(seed);
        // An odd factor visits every combination, and distant ones in few clusters.
        let combination = u16::try_from(seed * 1_367 % (u64::from(ALL) + 1)).unwrap_or(ALL);
        let inventory = inventory(&case);
        let with = |rules| allocate(&case, &inventory, PruningRules::from_start(rules)).map(|(outcome, _)| outcome);
        let plain = with(0);
        if matches!(plain, Ok(Outcome::Stopped(_))) {
            continue;
        }
        for rules in [ALL, combination] {
            assert_eq!(with(rules), plain, "seed {seed}, pruning {rules:012b}");
        }
        turned_back += u64::from(steps(&case, &inventory, ALL) < steps(&case, &inventory, 0));
    }
    assert!(turned_back > SEEDS / 40, "branches were left out in {turned_back} of {} clusters", SEEDS / 2);
}
