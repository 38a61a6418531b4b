//! Every history of three pods that share two claims, with crashes, conflicts, refusals and foreign writes anywhere.
//!
//! `EXPLORE=2` lets two such disruptions happen in one history instead of one.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a test may be asked for more and tells its size"
)]

use std::collections::{BTreeMap, BTreeSet, hash_map::DefaultHasher};
use std::hash::{Hash, Hasher};

use dra_alloc::kubelet::ClaimKey;
use dra_alloc::pods::{
    ApiAnswer, BindStep, ClaimLookup, ClaimTracker, ClaimWrite, GroupRound, PodCycle, PodOptions, PreBind,
};
use dra_alloc::{Allocator, Budget, Classes, GateSet, Inventory, Profile};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::world::{NOW, World, claim, node, pod};

/// Claims of each pod: the second one shares with both others.
const CLAIMS: [&[&str]; 3] = [&["c"], &["c", "d"], &["d"]];

#[derive(Clone, Debug)]
enum Phase {
    Idle,
    Binding { cycle: Box<PodCycle>, binding: Box<PreBind> },
    Bound,
    Gone,
}

/// An API server and a scheduler at one point of a history.
#[derive(Clone)]
struct State {
    server: BTreeMap<ClaimKey, ResourceClaim>,
    version: u64,
    tracker: ClaimTracker,
    pods: Vec<Phase>,
    disruptions: u32,
}

/// Fate of a call: the answer comes, or something goes wrong.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Answered,
    Conflict,
    Refused,
    CrashBefore,
    CrashAfter,
}

const FATES: [Fate; 5] = [Fate::Answered, Fate::Conflict, Fate::Refused, Fate::CrashBefore, Fate::CrashAfter];

struct Explorer {
    inventory: Inventory,
    classes: Classes,
    pods: Vec<Pod>,
    options: PodOptions,
    seen: BTreeSet<u64>,
    ends: usize,
}

fn allocation(claim: &ResourceClaim) -> Option<&AllocationResult> {
    claim.status.as_ref()?.allocation.as_ref()
}

fn consumers(claim: &ResourceClaim) -> Vec<&str> {
    let status = claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten());
    status.map(|entry| entry.name.as_str()).collect()
}

/// The part of a claim that matters.
struct Fact {
    version: u64,
    devices: Option<Vec<String>>,
    consumers: Vec<String>,
    protected: bool,
}

impl From<&ResourceClaim> for Fact {
    fn from(claim: &ResourceClaim) -> Self {
        Self {
            version: claim.metadata.resource_version.as_deref().unwrap_or_default().parse().unwrap_or_default(),
            devices: allocation(claim).map(devices),
            consumers: consumers(claim).into_iter().map(str::to_owned).collect(),
            protected: claim.metadata.finalizers.iter().flatten().next().is_some(),
        }
    }
}

fn devices(allocation: &AllocationResult) -> Vec<String> {
    let results = allocation.devices.iter().flat_map(|devices| devices.results.iter().flatten());
    results.map(|result| result.device.clone()).collect()
}

impl State {
    fn store(&mut self, mut claim: ResourceClaim) -> ResourceClaim {
        self.version += 1;
        claim.metadata.resource_version = Some(self.version.to_string());
        self.server.insert(ClaimKey::from_metadata(&claim.metadata), claim.clone());
        claim
    }

    fn call(&mut self, write: &ClaimWrite) -> ApiAnswer {
        let key = match write {
            ClaimWrite::Update { claim } | ClaimWrite::UpdateStatus { claim } => {
                ClaimKey::from_metadata(&claim.metadata)
            }
            ClaimWrite::PatchReservation { namespace, name, .. } | ClaimWrite::Get { namespace, name } => {
                ClaimKey::new(namespace, name)
            }
            other => panic!("{other:?}"),
        };
        let stored = self.server[&key].clone();
        let changed = match write {
            ClaimWrite::Update { claim } | ClaimWrite::UpdateStatus { claim }
                if claim.metadata.resource_version != stored.metadata.resource_version =>
            {
                return ApiAnswer::Conflict("modified".to_owned());
            }
            ClaimWrite::Update { claim } => ResourceClaim { status: stored.status, ..ResourceClaim::clone(claim) },
            ClaimWrite::UpdateStatus { claim } => {
                assert!(allocation(&stored).is_none() || allocation(&stored) == allocation(claim), "immutable");
                assert_eq!(consumers(claim).iter().collect::<BTreeSet<_>>().len(), consumers(claim).len());
                ResourceClaim { status: claim.status.clone(), ..stored }
            }
            ClaimWrite::PatchReservation { consumer, .. } => without_consumer(stored, consumer),
            _ => return ApiAnswer::Object(Box::new(stored)),
        };
        ApiAnswer::Object(Box::new(self.store(changed)))
    }

    fn crash(&mut self) {
        self.tracker = ClaimTracker::new(GateSet::default());
        self.tracker.replace(self.server.values().cloned()).unwrap();
        for phase in &mut self.pods {
            if matches!(phase, Phase::Binding { .. }) {
                *phase = Phase::Idle;
            }
        }
    }

    /// Ends a pod: the controller takes it from its claims, and frees those that nobody uses any more.
    fn end(&mut self, index: usize) {
        self.pods[index] = Phase::Gone;
        for name in CLAIMS[index] {
            let stored = self.server[&ClaimKey::new("ns", name)].clone();
            if !consumers(&stored).contains(&format!("p{index}").as_str()) {
                continue;
            }
            let mut claim = without_consumer(stored, &format!("p{index}-uid"));
            if consumers(&claim).is_empty() {
                (claim.status, claim.metadata.finalizers) = (None, None);
            }
            self.store(claim);
        }
    }

    /// Returns a hash of everything that decides what can follow. Versions count by their order only.
    fn key(&self) -> u64 {
        let tracked = |tracker: &ClaimTracker| {
            let claims = ["c", "d"].map(|name| tracker.claim("ns", name).cloned());
            claims.into_iter().flatten().collect::<Vec<_>>()
        };
        let mut restored = self.tracker.clone();
        for name in ["c", "d"] {
            restored.restore("ns", name);
        }
        let mut facts: Vec<Fact> = self.server.values().map(Fact::from).collect();
        facts.extend(tracked(&self.tracker).iter().map(|claim| Fact::from(&**claim)));
        facts.extend(tracked(&restored).iter().map(|claim| Fact::from(&**claim)));
        facts.extend(self.tracker.in_flight().map(|claim| Fact::from(&**claim)));
        let mut hasher = DefaultHasher::new();
        for phase in &self.pods {
            std::mem::discriminant(phase).hash(&mut hasher);
            let Phase::Binding { cycle, binding } = phase else { continue };
            for claim in cycle.claims() {
                facts.push(Fact::from(claim.claim()));
                (claim.chosen().map(devices), claim.has_allocation_in_flight()).hash(&mut hasher);
            }
            // A write that is open names its claim as it shall be.
            match (**binding).clone().next(&mut (**cycle).clone(), &mut self.tracker.clone(), NOW) {
                BindStep::Write(ClaimWrite::Update { claim } | ClaimWrite::UpdateStatus { claim }) => {
                    facts.push(Fact::from(&*claim));
                }
                step => format!("{step:?}").hash(&mut hasher),
            }
            binding.conflicts().hash(&mut hasher);
        }
        let versions: BTreeSet<u64> = facts.iter().map(|fact| fact.version).collect();
        let ranks: BTreeMap<u64, usize> = versions.into_iter().zip(0..).collect();
        for fact in facts {
            (ranks[&fact.version], fact.devices, fact.consumers, fact.protected).hash(&mut hasher);
        }
        self.disruptions.hash(&mut hasher);
        hasher.finish()
    }

    fn check(&self) {
        let held: Vec<_> = self.server.values().filter_map(allocation).map(|allocation| &allocation.devices).collect();
        assert!(held.len() < 2 || held[0] != held[1], "a device is allocated twice");
        for (index, phase) in self.pods.iter().enumerate() {
            if !matches!(phase, Phase::Bound) {
                continue;
            }
            for name in CLAIMS[index] {
                let claim = &self.server[&ClaimKey::new("ns", name)];
                assert!(allocation(claim).is_some(), "a bound pod has lost its devices");
                assert!(consumers(claim).contains(&format!("p{index}").as_str()), "a reservation is lost");
            }
        }
    }
}

fn without_consumer(mut claim: ResourceClaim, consumer: &str) -> ResourceClaim {
    if let Some(reserved) = claim.status.as_mut().and_then(|status| status.reserved_for.as_mut()) {
        reserved.retain(|entry| entry.uid != consumer);
    }
    claim
}

impl Explorer {
    /// Returns the states that can follow.
    fn next(&self, state: &State) -> Vec<State> {
        let mut found = Vec::new();
        for index in 0..self.pods.len() {
            match &state.pods[index] {
                Phase::Idle => {
                    found.extend(self.schedule(state, index));
                    found.push(changed(state, |state| state.end(index)));
                }
                Phase::Binding { .. } => {
                    let fates = FATES.into_iter().filter(|fate| *fate == Fate::Answered || state.disruptions > 0);
                    found.extend(fates.filter_map(|fate| bind(state, index, fate)));
                    if state.disruptions > 0 {
                        found.push(changed(state, |state| {
                            state.disruptions -= 1;
                            give_up(state, index);
                        }));
                    }
                }
                Phase::Bound => found.push(changed(state, |state| state.end(index))),
                Phase::Gone => {}
            }
        }
        found.push(changed(state, |state| state.tracker.replace(state.server.values().cloned()).unwrap()));
        if state.disruptions > 0 {
            for claim in state.server.values() {
                found.push(changed(state, |state| {
                    state.disruptions -= 1;
                    state.store(claim.clone());
                }));
            }
        }
        found
    }

    fn schedule(&self, state: &State, index: usize) -> Option<State> {
        let mut state = state.clone();
        let (pod, mut round) = (&self.pods[index], GroupRound::default());
        let begun = PodCycle::pre_filter(pod, None, &state.tracker, &self.classes, &round, self.options);
        let mut cycle = begun.ok()??;
        let allocator = Allocator::new(Profile::V1_37, &self.inventory, &self.classes);
        let verdict = cycle.filter(&node("n1"), &allocator, state.tracker.state(), NOW, Budget::default());
        if verdict.refusal().is_some() {
            return None;
        }
        cycle.record("n1", verdict);
        cycle.reserve("n1", &mut state.tracker, &mut round).unwrap();
        state.pods[index] = Phase::Binding { cycle: Box::new(cycle), binding: Box::default() };
        Some(state)
    }

    fn explore(&mut self, first: State) {
        let mut open = vec![first];
        while let Some(state) = open.pop() {
            if !self.seen.insert(state.key()) {
                continue;
            }
            state.check();
            if state.pods.iter().all(|phase| matches!(phase, Phase::Gone)) {
                self.ends += 1;
                assert_eq!(state.tracker.in_flight().count(), 0, "an allocation is in flight for ever");
                let mut tracker = state.tracker.clone();
                tracker.replace(Vec::<ResourceClaim>::new()).unwrap();
                assert_eq!(tracker.state(), ClaimTracker::new(GateSet::default()).state());
                assert!(state.server.values().all(|claim| consumers(claim).is_empty()));
            }
            open.extend(self.next(&state));
        }
    }
}

fn changed(state: &State, change: impl FnOnce(&mut State)) -> State {
    let mut state = state.clone();
    change(&mut state);
    state
}

/// Makes the next call of a pod's binding, with a fate. `None` if there is no call for the fate to befall.
fn bind(state: &State, index: usize, fate: Fate) -> Option<State> {
    let mut state = state.clone();
    let Phase::Binding { mut cycle, mut binding } = std::mem::replace(&mut state.pods[index], Phase::Idle) else {
        return None;
    };
    let step = binding.next(&mut cycle, &mut state.tracker, NOW);
    let BindStep::Write(write) = step else {
        if fate != Fate::Answered {
            return None;
        }
        let is_done = step == BindStep::Done;
        state.pods[index] = if is_done { Phase::Bound } else { Phase::Binding { cycle, binding } };
        if !is_done {
            give_up(&mut state, index);
        }
        return Some(state);
    };
    if fate != Fate::Answered {
        state.disruptions -= 1;
    }
    let answer = match fate {
        Fate::Answered | Fate::CrashAfter => state.call(&write),
        Fate::Conflict => ApiAnswer::Conflict("modified".to_owned()),
        Fate::Refused | Fate::CrashBefore => ApiAnswer::Failed("refused".to_owned()),
    };
    if matches!(fate, Fate::CrashBefore | Fate::CrashAfter) {
        state.crash();
        return Some(state);
    }
    binding.answer(&mut cycle, &mut state.tracker, answer, NOW);
    state.pods[index] = Phase::Binding { cycle, binding };
    Some(state)
}

/// Undoes a binding that failed.
fn give_up(state: &mut State, index: usize) {
    let Phase::Binding { mut cycle, .. } = std::mem::replace(&mut state.pods[index], Phase::Idle) else { return };
    for write in cycle.unreserve(&mut state.tracker) {
        if let ApiAnswer::Object(claim) = state.call(&write) {
            state.tracker.assume(*claim).unwrap();
        }
    }
}

#[test]
fn three_pods_and_two_shared_claims_in_every_order() {
    let disruptions = std::env::var("EXPLORE").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let world = World::new(1, [claim("c", 1), claim("d", 1)]);
    let pods = CLAIMS.iter().enumerate().map(|(index, claims)| pod(&format!("p{index}"), claims, None)).collect();
    let mut explorer = Explorer {
        inventory: world.inventory,
        classes: world.classes,
        pods,
        options: world.options,
        seen: BTreeSet::new(),
        ends: 0,
    };
    let state =
        State { server: world.server, version: 10, tracker: world.tracker, pods: vec![Phase::Idle; 3], disruptions };
    explorer.explore(state);
    println!("{} states, {} ends", explorer.seen.len(), explorer.ends);
    assert!(explorer.seen.len() > 1_000 && explorer.ends > 10);
}
