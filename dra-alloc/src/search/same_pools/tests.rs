//! Comparison of searches that are taken over from a node with the same pools with the node's own, on random clusters whose
//! slices all nodes see.

use serde_json::{Value, json};

use crate::oracle::Case;
use crate::oracle::compare::inventory;
use crate::oracle::random::{self, Random};
use crate::search::budget::{Budget, Effort};
use crate::search::equivalent_searches::EquivalentSearches;
use crate::search::oracle_case::allocate;
use crate::search::outcome::Outcome;
use crate::search::pruning_rules::PruningRules;

/// Number of random clusters, lower without optimisation.
const SEEDS: u64 = if cfg!(debug_assertions) { 400 } else { 4_000 };
const WORK: u64 = 20_000;

/// Remembers each search.
fn eager() -> EquivalentSearches {
    let mut searches = EquivalentSearches::default();
    searches.same_pools.least_work = 0;
    searches
}

/// Shows all slices to all nodes, but for some devices that choose their nodes.
fn shared(random: &mut Random, case: &Case) -> Case {
    let mut value = case.to_json();
    for slice in value["slices"].as_array_mut().unwrap() {
        let spec = slice["spec"].as_object_mut().unwrap();
        for field in ["nodeName", "nodeSelector", "perDeviceNodeSelection", "allNodes"] {
            spec.remove(field);
        }
        let devices = spec.get_mut("devices").and_then(Value::as_array_mut);
        if random.percent(10) && devices.as_ref().is_some_and(|devices| !devices.is_empty()) {
            for device in devices.into_iter().flatten() {
                let one = random.percent(50);
                device[if one { "nodeName" } else { "allNodes" }] = if one { json!("other") } else { json!(true) };
            }
            spec.insert("perDeviceNodeSelection".to_owned(), json!(true));
        } else {
            spec.insert("allNodes".to_owned(), json!(true));
        }
    }
    Case::from_json(value)
}

/// Returns the cluster as another node sees it, which may skip operations or not.
fn on(random: &mut Random, case: &Case, name: &str) -> Case {
    let mut value = case.to_json();
    value["node"]["metadata"]["name"] = json!(name);
    let declared = if random.percent(50) { json!(["DRAOptionalNodeOperations"]) } else { json!([]) };
    value["node"]["status"] = json!({"declaredFeatures": declared});
    Case { allocated: case.allocated.clone(), ..Case::from_json(value) }
}

#[test]
fn nodes_with_the_same_pools_have_the_answer_and_the_steps_of_their_own_search() {
    let (mut taken_over, mut allocated) = (0, 0);
    for (seed, make) in (0..SEEDS).zip([random::case, random::tight, random::racks, random::risky].iter().cycle()) {
        let random = &mut Random::new(seed);
        let case = shared(random, &make(seed));
        let (index, known) = (inventory(&case), eager());
        for name in ["node-1", "other", "node-3", "node-4"] {
            let node = on(random, &case, name);
            let before = known.same_pools.searches().len();
            let ask = |known| allocate(&node, &index, PruningRules::default(), known, Budget::work(WORK));
            // The work of reading facts may have paid for a part of an evaluation.
            let steps = |(outcome, effort): (Outcome, Effort)| (outcome, effort.steps, effort.is_counted);
            let (answer, own) = (ask(Some(&known)).map(steps), ask(None).map(steps));
            assert_eq!(answer, own, "seed {seed}, {name}: {}", node.to_json());
            taken_over += u64::from(before > 0 && known.same_pools.searches().len() == before);
            allocated += u64::from(matches!(answer, Ok((Outcome::Allocated(_), ..))));
        }
    }
    assert!(taken_over > SEEDS && allocated > SEEDS / 2, "{taken_over} taken over, {allocated} allocated");
}
