//! The terms a second time, as plain loops over devices and names.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::objective::{GroupBy, PairCost, PairScope, Pairs, Term};
use dra_alloc::selector::{Options, Selector, SelectorInput};
use dra_alloc::taint::{taint_by_rule, tolerates};
use dra_alloc::{Gate, Profile};
use dra_attrs::{ListTypes, Quantity, Scalar, ValueSet, lookup_by_name};

use crate::oracle::pools;
use crate::oracle::search::{Candidate, Chosen, Decisions, Search};

/// Counter of a pool: number of the pool, counter set, name.
type CounterId = (usize, String, String);

/// Cluster after some devices were taken.
pub(super) struct World<'w, 'a> {
    search: &'w Search<'a>,
    new: Vec<&'w Chosen>,
    picks: &'w Decisions,
    used: BTreeMap<CounterId, i128>,
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap()
}

fn nanos(value: &k8s_openapi::apimachinery::pkg::api::resource::Quantity) -> i128 {
    Quantity::from_kube(value).unwrap().nanos()
}

fn thousandths(part: i128, whole: i128) -> u64 {
    if whole == 0 { 0 } else { u64::try_from((1000 * part / whole).max(0)).unwrap() }
}

fn values<'a>(candidate: &Candidate<'a>, name: &str) -> BTreeSet<Scalar<'a>> {
    let attributes = candidate.device.attributes.as_ref();
    let attribute = attributes.and_then(|all| lookup_by_name(all, name, &candidate.id.driver));
    ValueSet::from_attribute(attribute, ListTypes::Enabled).values().iter().copied().collect()
}

fn amounts(candidate: &Candidate<'_>) -> BTreeMap<CounterId, i128> {
    let mut all = BTreeMap::new();
    for set in candidate.device.consumes_counters.iter().flatten() {
        for (name, counter) in &set.counters {
            *all.entry((candidate.pool, set.counter_set.clone(), name.clone())).or_default() += nanos(&counter.value);
        }
    }
    all
}

impl<'w, 'a> World<'w, 'a> {
    pub(super) fn new(search: &'w Search<'a>, decisions: &'w Decisions) -> Self {
        let is_admin = |chosen: &&Chosen| search.ask(chosen.claim, chosen.request, chosen.ask).admin;
        let new: Vec<&Chosen> = decisions.devices.iter().filter(|chosen| !is_admin(chosen)).collect();
        let mut world = World { search, new, picks: decisions, used: BTreeMap::new() };
        for (number, pool) in search.pools.iter().enumerate() {
            for slice in pool.slices.iter().chain(&pool.elsewhere) {
                for device in pools::devices(slice) {
                    let id = crate::oracle::DeviceId::new(pool.driver, pool.name, &device.name);
                    let is_new = world.new.iter().any(|chosen| search.candidates[chosen.candidate].id == id);
                    if search.case.allocated.is_allocated(&id) || is_new {
                        let candidate = Candidate { id, pool: number, slice, device };
                        for (counter, amount) in amounts(&candidate) {
                            *world.used.entry(counter).or_default() += amount;
                        }
                    }
                }
            }
        }
        world
    }

    fn candidate(&self, chosen: &Chosen) -> &'w Candidate<'a> {
        &self.search.candidates[chosen.candidate]
    }

    fn reach(&self) -> impl Iterator<Item = &'w Candidate<'a>> {
        let case = self.search.case;
        self.search.candidates.iter().filter(move |candidate| {
            candidate.slice.spec.per_device_node_selection != Some(true)
                || pools::device_matches_node(case, candidate.device).unwrap_or(false)
        })
    }

    fn totals(&self) -> BTreeMap<CounterId, i128> {
        let mut totals = BTreeMap::new();
        for (number, pool) in self.search.pools.iter().enumerate() {
            for set in &pool.counter_sets {
                for (name, counter) in &set.counters {
                    totals.insert((number, set.name.clone(), name.clone()), nanos(&counter.value));
                }
            }
        }
        totals
    }

    fn is_new(&self, candidate: &Candidate<'_>) -> bool {
        self.new.iter().any(|chosen| self.candidate(chosen).id == candidate.id)
    }

    fn is_allocatable(&self, candidate: &Candidate<'_>) -> bool {
        let allocated = &self.search.case.allocated;
        let totals = self.totals();
        let has_counters = amounts(candidate).into_iter().all(|(counter, amount)| {
            totals.get(&counter).is_none_or(|total| self.used.get(&counter).unwrap_or(&0) + amount <= *total)
        });
        let is_in_use = allocated.is_shared(&candidate.id) || self.is_new(candidate);
        !allocated.devices.contains(&candidate.id)
            && if self.search.is_sharable(candidate) { is_in_use || has_counters } else { !is_in_use && has_counters }
    }

    fn groups(&self, by: &GroupBy, candidate: &Candidate<'a>) -> BTreeSet<String> {
        match by {
            GroupBy::Pool => BTreeSet::from([candidate.pool.to_string()]),
            GroupBy::CounterSet => {
                let known = self.totals();
                let own = amounts(candidate).into_keys().filter(|counter| known.contains_key(counter));
                own.map(|(pool, set, _)| format!("{pool} {set}")).collect()
            }
            GroupBy::Attribute(name) => values(candidate, name).iter().map(|value| format!("{value:?}")).collect(),
            _ => unreachable!(),
        }
    }

    /// Returns the number of uses of each group by held devices.
    fn uses(&self, by: &GroupBy) -> BTreeMap<String, u64> {
        let allocated = &self.search.case.allocated;
        let mut uses = BTreeMap::new();
        for candidate in self.reach() {
            let shares = allocated.shared.iter().filter(|(id, _)| *id == candidate.id).count();
            let number = count(shares + usize::from(allocated.devices.contains(&candidate.id)));
            for group in self.groups(by, candidate) {
                *uses.entry(group).or_default() += number;
            }
        }
        uses
    }

    pub(super) fn value(&self, term: &Term) -> u64 {
        let before = Decisions::default();
        let before = World::new(self.search, &before);
        let sum = |of: &dyn Fn(&Chosen) -> u64| self.new.iter().map(|chosen| of(chosen)).sum();
        match term {
            Term::Opened { by } => {
                let (uses, mut opened) = (self.uses(by), BTreeSet::new());
                for chosen in &self.new {
                    opened.extend(self.groups(by, self.candidate(chosen)));
                }
                count(opened.iter().filter(|group| uses[*group] == 0).count())
            }
            Term::Spread { by } => {
                let (uses, mut after) = (self.uses(by), self.uses(by));
                for chosen in &self.new {
                    for group in self.groups(by, self.candidate(chosen)) {
                        *after.entry(group).or_default() += 1;
                    }
                }
                let squares = |uses: &BTreeMap<String, u64>| uses.values().map(|number| number * number).sum::<u64>();
                squares(&after) - squares(&uses)
            }
            Term::Options => count(
                self.reach().filter(|c| before.is_allocatable(c) && !self.is_allocatable(c) && !self.is_new(c)).count(),
            ),
            Term::Room { size } => {
                let sets: BTreeSet<(usize, String)> =
                    self.totals().into_keys().map(|(pool, set, _)| (pool, set)).collect();
                let room = |world: &World<'_, 'a>, set| world.largest(set, size.as_deref());
                sets.iter().map(|set| room(&before, set) - room(self, set)).sum()
            }
            Term::Stranded => {
                let alive: BTreeSet<CounterId> =
                    self.reach().filter(|c| self.is_allocatable(c)).flat_map(|c| amounts(c).into_keys()).collect();
                let dead = self.totals().into_iter().filter(|(counter, _)| !alive.contains(counter));
                let left = |counter: &CounterId, total: i128| total - self.used.get(counter).unwrap_or(&0);
                dead.map(|(counter, total)| thousandths(left(&counter, total), total)).sum()
            }
            Term::Pairs(pairs) => self.pairs(pairs),
            Term::Pairing { of, with, attribute } => {
                let claims = 0..self.search.claims.len();
                claims.map(|claim| self.unpaired(claim, of, with, attribute)).sum()
            }
            Term::Waste { capacity } => {
                let amount = |candidate: &Candidate<'_>| {
                    let all = candidate.device.capacity.as_ref();
                    let named = all.and_then(|all| lookup_by_name(all, capacity, &candidate.id.driver));
                    named.map_or(0, |capacity| nanos(&capacity.value))
                };
                let largest = self.reach().map(amount).max().unwrap_or(0);
                sum(&|chosen| {
                    let candidate = self.candidate(chosen);
                    if self.search.is_sharable(candidate) { 0 } else { thousandths(amount(candidate), largest) }
                })
            }
            Term::Prefer { selectors } => sum(&|chosen| {
                let candidate = self.candidate(chosen);
                let holds = |text: &String| {
                    let selector = Selector::compile(text, &Options::stored()).unwrap();
                    selector.matches(SelectorInput::new(&candidate.id.driver, candidate.device)) == Ok(true)
                };
                count(selectors.iter().position(holds).unwrap_or(selectors.len()))
            }),
            Term::Tainted => sum(&|chosen| self.taints(chosen)),
            Term::Conditions => sum(&|chosen| {
                let conditions = &self.candidate(chosen).device.binding_conditions;
                u64::from(conditions.as_ref().is_some_and(|conditions| !conditions.is_empty()))
            }),
            Term::Alternative => self.picks.picks.iter().map(|pick| count(pick.ask)).sum(),
            _ => unreachable!(),
        }
    }

    fn largest(&self, (pool, set): &(usize, String), size: Option<&str>) -> u64 {
        let totals = self.totals();
        let own = |candidate: &Candidate<'a>| {
            let of_set = amounts(candidate).into_iter().filter(|((p, s, _), _)| p == pool && s == set);
            of_set.filter(|(counter, _)| totals.contains_key(counter)).collect::<Vec<_>>()
        };
        let size_of = |((pool, set, name), amount): &(CounterId, i128)| match size {
            Some(size) if size == name => u64::try_from(amount / 1_000_000_000).unwrap(),
            Some(_) => 0,
            None => thousandths(*amount, totals[&(*pool, set.clone(), name.clone())]),
        };
        let allocatable = self.reach().filter(|candidate| self.is_allocatable(candidate));
        allocatable.flat_map(own).map(|consumed| size_of(&consumed)).max().unwrap_or(0)
    }

    pub(super) fn pairs(&self, pairs: &Pairs) -> u64 {
        let mut sum = 0;
        for (number, left) in self.new.iter().enumerate() {
            for right in &self.new[..number] {
                if left.claim == right.claim || pairs.within == PairScope::AllClaims {
                    sum += self.cost(&pairs.cost, left, right);
                }
            }
        }
        sum
    }

    fn cost(&self, cost: &PairCost, left: &Chosen, right: &Chosen) -> u64 {
        let (left, right) = (self.candidate(left), self.candidate(right));
        match cost {
            PairCost::Distance { attributes } => {
                let meet = |name: &String| values(left, name).intersection(&values(right, name)).next().is_some();
                count(attributes.iter().position(meet).unwrap_or(attributes.len()))
            }
            PairCost::Links { scores, otherwise } => {
                let best = scores.iter().map(|(_, _, score)| *score).max().unwrap_or(0).max(*otherwise);
                let names = [left.id.to_string(), right.id.to_string()];
                let is_it = |a: &dra_alloc::DeviceId, b: &dra_alloc::DeviceId| {
                    let pair = [a.to_string(), b.to_string()];
                    pair == names || [&pair[1], &pair[0]] == [&names[0], &names[1]]
                };
                let score = scores.iter().find(|(a, b, _)| is_it(a, b)).map_or(*otherwise, |(_, _, score)| *score);
                u64::from(best - score)
            }
            _ => unreachable!(),
        }
    }

    /// Tries all ways to give each device a partner of its own, or none.
    fn unpaired(&self, claim: usize, of: &str, with: &str, attribute: &str) -> u64 {
        let of_request = |name: &str| -> Vec<BTreeSet<Scalar<'a>>> {
            let asked = |chosen: &Chosen| self.search.claims[chosen.claim].requests[chosen.request].name;
            let own = self.new.iter().filter(|chosen| chosen.claim == claim && asked(chosen) == name);
            own.map(|chosen| values(self.candidate(chosen), attribute)).collect()
        };
        let (wanting, partners) = (of_request(of), of_request(with));
        count(fewest_alone(&wanting, &partners, &mut vec![false; partners.len()]))
    }

    fn taints(&self, chosen: &Chosen) -> u64 {
        if !self.search.has(Gate::DeviceTaints) {
            return 0;
        }
        let (candidate, case) = (self.candidate(chosen), self.search.case);
        let ask = self.search.ask(chosen.claim, chosen.request, chosen.ask);
        let tolerations = ask.tolerations.map(Vec::as_slice).unwrap_or_default();
        let rules =
            case.taint_rules.iter().filter(|_| case.profile == Profile::Kep || self.search.has(Gate::DeviceTaintRules));
        let by_rule = rules
            .filter_map(|rule| taint_by_rule(rule, &candidate.id.driver, &candidate.id.pool, &candidate.id.device));
        let taints = candidate.device.taints.iter().flatten().chain(by_rule).filter(|taint| taint.effect != "None");
        let worst = taints.map(|taint| {
            let mut own = tolerations.iter().filter(|toleration| tolerates(toleration, taint));
            let evicts = taint.effect == "NoExecute" && own.all(|toleration| toleration.toleration_seconds.is_some());
            if evicts { 2 } else { 1 }
        });
        worst.max().unwrap_or(0)
    }
}

fn fewest_alone(wanting: &[BTreeSet<Scalar<'_>>], partners: &[BTreeSet<Scalar<'_>>], taken: &mut Vec<bool>) -> usize {
    let Some((first, rest)) = wanting.split_first() else { return 0 };
    let mut fewest = 1 + fewest_alone(rest, partners, taken);
    for number in 0..partners.len() {
        if !taken[number] && first.intersection(&partners[number]).next().is_some() {
            taken[number] = true;
            fewest = fewest.min(fewest_alone(rest, partners, taken));
            taken[number] = false;
        }
    }
    fewest
}
