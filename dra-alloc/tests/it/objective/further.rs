//! Outlook and displaced units, by trying all.

use std::collections::BTreeSet;

use dra_alloc::objective::{Alternatives, Objective, Pairs, Proof, Term, Unit};
use dra_alloc::{AllocatedState, Allocator, Budget};
use dra_attrs::Component;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
use serde_json::{from_value, json};

use super::terms::World;
use super::{FOUND, STEPS, ask_for_best, devices, gives_back, pairs};
use crate::oracle::compare::{classes, inventory};
use crate::oracle::random::{self, Random};
use crate::oracle::search::{Decisions, Search, solutions};
use crate::oracle::{Case, DeviceId};

const SEEDS: u64 = if cfg!(debug_assertions) { 120 } else { 2_000 };

/// Returns the case after a solution was allocated.
fn after(search: &Search<'_>, decisions: &Decisions) -> Case {
    let mut case = search.case.clone();
    for (number, chosen) in decisions.devices.iter().enumerate() {
        if search.ask(chosen.claim, chosen.request, chosen.ask).admin {
            continue;
        }
        let id = search.candidates[chosen.candidate].id.clone();
        let Some(consumed) = &chosen.consumed else {
            case.allocated.devices.insert(id);
            continue;
        };
        let share = case.allocated.shared.len() + number;
        case.allocated.shared.insert((id.clone(), format!("new-{share}")));
        for (name, amount) in consumed {
            let sum = case.allocated.capacity.entry(id.clone()).or_default().entry(name.clone()).or_default();
            *sum = sum.checked_add(*amount).unwrap();
        }
    }
    case
}

/// Returns the number of further solutions and their least total; `None` if there are too many to try.
fn further(case: &Case, of: &Pairs, times: usize) -> Option<(usize, u64)> {
    if times == 0 {
        return Some((0, 0));
    }
    let (search, all) = solutions(case, STEPS)?;
    if all.len() > 60 {
        return None;
    }
    let mut best = (0, 0);
    for decisions in &all {
        let (rounds, total) = further(&after(&search, decisions), of, times - 1)?;
        let found = (rounds + 1, total + World::new(&search, decisions).pairs(of));
        if found.0 > best.0 || (found.0 == best.0 && found.1 < best.1) {
            best = found;
        }
    }
    Some(best)
}

/// Returns a random case in which some requests have admin access.
fn admins(seed: u64) -> Case {
    let (mut case, random) = (random::tight(seed), &mut Random::new(seed));
    let specs = case.claims.iter_mut().flat_map(|claim| &mut claim.spec).flat_map(|spec| &mut spec.devices);
    for exactly in specs.flat_map(|devices| devices.requests.iter_mut().flatten()).flat_map(|one| &mut one.exactly) {
        exactly.admin_access = random.percent(60).then_some(true);
    }
    case
}

#[test]
fn an_outlook_is_the_best_of_all_ways_to_go_on() {
    let (mut compared, mut better, mut with_admin) = (0, 0, 0);
    let kinds: [fn(u64) -> Case; 4] = [random::case, random::tight, random::racks, admins];
    for (seed, kind) in (0..SEEDS).chain(FOUND).flat_map(|seed| kinds.map(|kind| (seed, kind))) {
        let case = kind(seed);
        if gives_back(&case) {
            continue;
        }
        let has_admin = json!(case.claims).to_string().contains("\"adminAccess\":true");
        let Some((search, all)) = solutions(&case, STEPS) else { continue };
        if all.is_empty() || all.len() > 60 {
            continue;
        }
        let random = &mut Random::new(seed);
        let ids: Vec<DeviceId> = search.candidates.iter().map(|candidate| candidate.id.clone()).collect();
        let (of, times) = (pairs(random, &ids), random.between(1, 2));
        let value = |decisions: &Decisions| Some(further(&after(&search, decisions), &of, times)?.1);
        let Some(values) = all.iter().map(value).collect::<Option<Vec<u64>>>() else { continue };
        let term = Term::Outlook { of: of.clone(), times: Some(u32::try_from(times).unwrap()) };
        let objective = Objective::new([vec![term.into()]]).unwrap();
        let objective = objective.with_alternatives(Alternatives::Scored).with_steps(1_000_000);
        let Some(verdict) = ask_for_best(&case, &objective) else { continue };
        let score = verdict.score.unwrap();
        assert_eq!(score.proof, Proof::Least);
        let wanted = (vec![*values.iter().min().unwrap()], vec![values[0]]);
        assert_eq!((score.value, score.first_fit), wanted, "seed {seed}, {objective}: {}", case.to_json());
        compared += 1;
        better += u64::from(values.iter().any(|value| *value < values[0]));
        with_admin += u64::from(has_admin);
    }
    assert!(
        compared > SEEDS / 4 && better > SEEDS / 40 && with_admin > SEEDS / 8,
        "{compared} compared, {better} better than the first, {with_admin} with admin access"
    );
}

/// Returns a claim that holds a device.
fn holder(number: usize, id: &DeviceId) -> (ResourceClaim, AllocationResult) {
    let claim = json!({"metadata": {"namespace": "a", "name": format!("h{number}"), "uid": format!("uid-{number}")}});
    let result = json!({"request": "r", "driver": id.driver, "pool": id.pool, "device": id.device});
    (from_value(claim).unwrap(), from_value(json!({"devices": {"results": [result]}})).unwrap())
}

/// Returns the devices of each solution in their order.
fn names(search: &Search<'_>, decisions: &Decisions) -> Vec<String> {
    let name = |chosen: &crate::oracle::search::Chosen| {
        let name = search.ask(chosen.claim, chosen.request, chosen.ask).full_name();
        format!("{name} {}", search.candidates[chosen.candidate].id)
    };
    decisions.devices.iter().map(name).collect()
}

/// Returns some devices that the first solution has and that can't be shared.
fn whole_devices_of_first(case: &Case) -> Option<Vec<DeviceId>> {
    let (search, all) = solutions(case, STEPS)?;
    let candidates = all.first()?.devices.iter().map(|chosen| &search.candidates[chosen.candidate]);
    let whole = candidates.filter(|candidate| !search.is_sharable(candidate));
    Some(whole.map(|candidate| candidate.id.clone()).take(3).collect())
}

#[test]
fn displaced_units_are_the_cheapest_without_which_a_solution_is_one() {
    let (mut compared, mut with_units) = (0, 0);
    let kinds: [fn(u64) -> Case; 2] = [random::case, random::tight];
    for (seed, kind) in (0..SEEDS).chain(FOUND).flat_map(|seed| kinds.map(|kind| (seed, kind))) {
        let mut case = kind(seed);
        if let Some(first) = whole_devices_of_first(&case) {
            case.allocated.devices.extend(first);
        }
        let held: Vec<DeviceId> = case.allocated.devices.iter().cloned().collect();
        if held.is_empty() || held.len() > 4 || gives_back(&case) || !case.allocated.shared.is_empty() {
            continue;
        }
        case.allocated.capacity.clear();
        let random = &mut Random::new(seed);
        // One or two claims a unit.
        let unit_of: Vec<usize> = (0..held.len()).map(|number| random.below(number + 1)).collect();
        let prices: Vec<u64> = held.iter().map(|_| u64::try_from(random.between(1, 5)).unwrap()).collect();
        let names_of_sets = (0..1_usize << held.len()).map(|gone| {
            let mut case = case.clone();
            case.allocated.devices.retain(|id| {
                let number = held.iter().position(|other| other == id).unwrap();
                gone & (1 << unit_of[number]) == 0
            });
            let all = solutions(&case, STEPS)?;
            let price: u64 = (0..held.len()).filter(|unit| gone & (1 << unit) != 0).map(|unit| prices[unit]).sum();
            Some((price, all.1.iter().map(|decisions| names(&all.0, decisions)).collect::<Vec<_>>()))
        });
        let Some(sets) = names_of_sets.collect::<Option<Vec<_>>>() else { continue };
        let free = &sets.last().unwrap().1;
        if free.is_empty() {
            continue;
        }
        let price = |names: &Vec<String>| {
            let enough = sets.iter().filter(|(_, all)| all.contains(names));
            enough.map(|(price, _)| *price).min().unwrap()
        };
        let (least, best) =
            free.iter().map(|names| (price(names), names)).reduce(|a, b| if b.0 < a.0 { b } else { a }).unwrap();

        let mut state = AllocatedState::default();
        for (number, id) in held.iter().enumerate() {
            let (claim, allocation) = holder(number, id);
            state.assume(&claim, &allocation).unwrap();
        }
        let units = (0..held.len()).map(|unit| Unit {
            id: unit.to_string(),
            claims: (0..held.len()).filter(|n| unit_of[*n] == unit).map(|n| format!("a/h{n}")).collect(),
            price: prices[unit],
        });
        let objective = Objective::new([vec![Term::Displaced { units: units.collect() }.into()]]).unwrap();
        let objective = objective.with_alternatives(Alternatives::Scored);
        let (classes, inventory) = (classes(&case), inventory(&case));
        let allocator =
            Allocator::new(Component::new(case.profile, case.gates), &inventory, &classes).with_objective(&objective);
        let Ok(verdict) = allocator.allocate(&state, &case.node, &case.claims, Budget::default()) else { continue };
        let score = verdict.score.unwrap();
        let context = || format!("seed {seed}, units {unit_of:?}, prices {prices:?}: {}", case.to_json());
        assert_eq!((score.value, score.proof), (vec![least], Proof::Least), "{}", context());
        assert_eq!(&devices(&verdict.outcome), best, "{}", context());
        let gone: BTreeSet<usize> = score.displaced.iter().map(|id| id.parse().unwrap()).collect();
        assert_eq!(gone.iter().map(|unit| prices[*unit]).sum::<u64>(), least, "{}", context());
        compared += 1;
        with_units += u64::from(least > 0);
    }
    assert!(compared > SEEDS / 8 && with_units > SEEDS / 16, "{compared} compared, {with_units} need units");
}
