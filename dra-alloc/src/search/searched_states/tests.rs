//! Comparison of searches that are taken over from a like node with the node's own, on random nodes and their twins: some with
//! other names, some with one random difference.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::SearchedStates;
use crate::cluster::inventory::Inventory;
use crate::cluster::inventory::lens::Lens;
use crate::cluster::inventory::sight::Sight;
use crate::oracle::Case;
use crate::oracle::compare::inventory;
use crate::oracle::random::{self, Random};
use crate::oracle::twins::{changed, local, renamed};
use crate::search::PruningRules;
use crate::search::budget::Budget;
use crate::search::oracle_case::{self, Searched};
use crate::search::outcome::Outcome;

/// Number of random nodes of each sort, lower without optimisation.
const SEEDS: u64 = if cfg!(debug_assertions) { 100 } else { 500 };
/// Number of twins of each node.
const TWINS: u64 = 12;
const WORK: u64 = 20_000;
/// Sorts of random nodes, each with its share of the seeds.
const SORTS: [(Make, u64); 4] = [(random::case, 4), (random::tight, 1), (random::racks, 1), (random::risky, 1)];

impl SearchedStates {
    /// Remembers each search, and reads the state of each node.
    fn eager() -> Self {
        Self { credit: AtomicU64::new(u64::MAX / 2), least_work: (0, 0), ..Self::default() }
    }
}

thread_local! {
    /// Inventories of a test, which share shapes. A shape goes with its last inventory.
    static ALL: RefCell<Vec<Inventory>> = RefCell::new(vec![Inventory::default()]);
}

/// Builds a case of a seed.
type Make = fn(u64) -> Case;

fn allocate(case: &Case, like: &SearchedStates, pruning: PruningRules, work: u64) -> Searched {
    ALL.with_borrow_mut(|all| {
        let inventory = inventory(case).with_shapes_of(&all[0]);
        let answer = oracle_case::allocate(case, &inventory, pruning, Some(like), Budget::work(work));
        all.push(inventory);
        answer
    })
}

/// Returns true if all pools of the node have a shape.
fn has_shapes(case: &Case) -> bool {
    let (inventory, sight) = (inventory(case), Sight::new(case.profile, case.gates));
    let view = inventory.view(&case.node, sight).unwrap();
    let lens = inventory.shapes().lens(Lens::ALL);
    view.pools().enumerate().all(|(at, pool)| !view.is_shared(at) && pool.shape(inventory.shapes(), &lens).is_some())
}

/// Returns the answer on a twin, which is compared with its own search, and true if that of another one was taken over.
fn ask(twin: &Case, known: &SearchedStates, pruning: PruningRules) -> (Searched, bool) {
    let before = known.known.len();
    let answer = allocate(twin, known, pruning, WORK);
    let own = SearchedStates::eager();
    assert_eq!(answer, allocate(twin, &own, pruning, WORK), "{}", twin.to_json());
    let was_taken_over = known.known.len() == before && own.known.len() > 0;
    (answer, was_taken_over)
}

#[test]
fn twins_have_the_answer_and_the_effort_of_their_own_search() {
    let (mut like, mut unlike, mut allocated) = (0_u32, 0_u32, 0_u32);
    for (sort, (make, share)) in SORTS.iter().enumerate() {
        for seed in 0..SEEDS * share {
            ALL.with_borrow_mut(|all| all.truncate(1));
            let random = &mut Random::new(seed * 7 + sort as u64);
            let case = if seed % 4 == 0 { make(seed) } else { local(&make(seed)) };
            let pruning = if seed % 2 == 0 { PruningRules::default() } else { PruningRules::from_start(u16::MAX >> 5) };
            let known = SearchedStates::eager();
            let _ = ask(&case, &known, pruning);
            if known.known.len() == 0 {
                continue;
            }
            if case.taint_rules.is_empty() && has_shapes(&case) {
                let (answer, was_taken_over) = ask(&renamed(&case), &known, pruning);
                assert!(was_taken_over, "{}", case.to_json());
                allocated += u32::from(matches!(answer, Ok((Outcome::Allocated(_), _))));
            }
            for _ in 0..TWINS {
                let twin = changed(random, &case);
                let (_, was_taken_over) = ask(&twin, &known, pruning);
                *(if was_taken_over { &mut like } else { &mut unlike }) += 1;
            }
        }
    }
    assert!(like > 500 && unlike > 500 && allocated > 100, "{like} like, {unlike} unlike, {allocated} allocated");
}

#[test]
fn a_budget_that_is_too_small_for_the_search_stops_it() {
    let case = random::tight(3);
    let known = SearchedStates::eager();
    let (_, effort) = allocate(&case, &known, PruningRules::default(), WORK).unwrap();
    assert_eq!(known.known.len(), 1);
    for work in 0..effort.work {
        let own = allocate(&case, &SearchedStates::eager(), PruningRules::default(), work);
        assert!(matches!(own, Ok((Outcome::Stopped(_), _))));
        assert_eq!(allocate(&case, &known, PruningRules::default(), work), own);
    }
}

#[test]
fn states_are_read_in_vain_for_as_much_work_as_searches_took() {
    let known = SearchedStates { least_work: (0, 0), ..SearchedStates::default() };
    let case = local(&random::tight(3));
    let credit = || known.credit.load(Ordering::Relaxed);
    let ask = |case: &Case| drop(allocate(case, &known, PruningRules::default(), WORK));
    let (_, effort) = allocate(&case, &known, PruningRules::default(), WORK).unwrap();
    let of_search = credit();
    assert_eq!(of_search, effort.work);
    // A search that is found adds what it saved, less what was read.
    ask(&case);
    assert!(credit() > of_search && credit() < 2 * of_search);
    // Without credit no state is read: the search is made again.
    known.credit.store(0, Ordering::Relaxed);
    ask(&case);
    assert_eq!((credit(), known.known.len()), (of_search, 1));
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
fn nodes_with_the_same_pools_have_the_answer_and_the_effort_of_their_own_search() {
    let (mut taken_over, mut allocated) = (0, 0);
    for (seed, make) in (0..4 * SEEDS).zip([random::case, random::tight, random::racks, random::risky].iter().cycle()) {
        let random = &mut Random::new(seed);
        let case = shared(random, &make(seed));
        let (index, known) = (inventory(&case), SearchedStates::eager());
        for name in ["node-1", "other", "node-3", "node-4"] {
            let node = on(random, &case, name);
            let before = known.known.len();
            let ask = |known| oracle_case::allocate(&node, &index, PruningRules::default(), known, Budget::work(WORK));
            let (answer, own) = (ask(Some(&known)), ask(None));
            assert_eq!(answer, own, "seed {seed}, {name}: {}", node.to_json());
            taken_over += u64::from(before > 0 && known.known.len() == before);
            allocated += u64::from(matches!(answer, Ok((Outcome::Allocated(_), _))));
        }
    }
    assert!(taken_over > SEEDS / 2 && allocated > SEEDS / 4, "{taken_over} taken over, {allocated} allocated");
}
