//! Every history of some pods that want the same devices, with crashes, conflicts, refusals and foreign writes anywhere.
//!
//! A state is what an API server and a scheduler know at one time. States that allow the same histories are visited once.
//! `EXPLORE=3` lets three disruptions happen in one history.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a test may be asked for more and tells its size"
)]

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{
    ApiResponse, BindStep, ClaimCalls, ClaimLookup, ClaimTracker, ClaimWrite, CycleClaim, GroupRound, PodCycle,
    PodOptions, PreBind,
};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Allocator, Budget, Classes, Inventory, Profile};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use serde_json::{from_value, json};

use super::api_server::{ApiServer, allocation, consumers, devices, without_consumer};
use super::world::{GPUS, NOW, World, claim, extended_pod, node, pod};

#[derive(Clone)]
enum Phase {
    Idle,
    /// The step is what the binding does next.
    Binding(Arc<Binding>),
    /// Calls that take back an attempt, or what an earlier one has left.
    Undoing(Arc<ClaimCalls>),
    Bound,
    Gone,
}

#[derive(Clone)]
struct Binding {
    cycle: PodCycle,
    progress: PreBind,
    step: BindStep,
}

/// An API server and a scheduler at one point of a history.
#[derive(Clone)]
struct State {
    server: ApiServer,
    tracker: ClaimTracker,
    /// Claims as the watch has shown them last.
    watched: BTreeMap<ClaimKey, Arc<ResourceClaim>>,
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
    selectors: SelectorCache,
    node: Node,
    pods: Vec<Pod>,
    /// Names of the claims of each pod.
    claims: Vec<&'static [&'static str]>,
    options: PodOptions,
    seen: BTreeSet<u64>,
    ends: usize,
}

/// Hash of a state. Two states have one hash if they allow the same histories:
///
/// - Of a generated name only its order among those counts, and of the consumers only who they are.
/// - The memory of a claim counts with its versions in their order: at the server, in the cache, as the watch showed it.
/// - The copy in an attempt counts by its contents no more once the claim is written, or once somebody else has written it:
///   the next write of the attempt is a conflict then, whatever it says.
struct Key<'s> {
    state: &'s State,
    /// Numbers of the generated names.
    created: BTreeSet<u64>,
    hasher: DefaultHasher,
}

fn number(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Returns the number of a generated name, from the UID that belongs to it.
fn created(claim: &ResourceClaim) -> Option<u64> {
    claim.metadata.uid.as_deref()?.strip_prefix("uid-").map(|created| number(Some(created)))
}

fn version(claim: &ResourceClaim) -> u64 {
    number(claim.metadata.resource_version.as_deref())
}

fn is_protected(claim: &ResourceClaim) -> bool {
    claim.metadata.finalizers.iter().flatten().next().is_some()
}

impl<'s> Key<'s> {
    fn new(state: &'s State) -> Self {
        let cycles = state.pods.iter().filter_map(|phase| match phase {
            Phase::Binding(binding) => Some(binding.cycle.claims().iter().map(CycleClaim::claim)),
            _ => None,
        });
        let memory = state.server.claims.values().chain(state.watched.values());
        let claims = memory.map(|claim| &**claim).chain(cycles.flatten());
        Self { state, created: claims.filter_map(created).collect(), hasher: DefaultHasher::new() }
    }

    fn add_name(&mut self, claim: &ResourceClaim) {
        match created(claim) {
            Some(number) => self.created.range(..number).count().hash(&mut self.hasher),
            None => claim.metadata.name.hash(&mut self.hasher),
        }
    }

    fn add_contents(&mut self, claim: &ResourceClaim) {
        let mut consumers = consumers(claim);
        consumers.sort_unstable();
        (allocation(claim).map(devices), consumers, is_protected(claim)).hash(&mut self.hasher);
    }

    /// Adds what server, cache and watch have of each claim.
    fn add_memory(&mut self) {
        let state = self.state;
        for key in state.server.claims.keys().chain(state.watched.keys()).collect::<BTreeSet<_>>() {
            let stored = state.server.claims.get(key);
            let copies = [stored, state.tracker.claim(&key.namespace, &key.name), state.watched.get(key)];
            let versions: BTreeSet<u64> = copies.iter().flatten().map(|claim| version(claim)).collect();
            for copy in copies {
                copy.is_some().hash(&mut self.hasher);
                let Some(claim) = copy else { continue };
                self.add_name(claim);
                versions.range(..version(claim)).count().hash(&mut self.hasher);
                self.add_contents(claim);
            }
        }
        state.tracker.calls_in_doubt().len().hash(&mut self.hasher);
        for claim in state.tracker.in_flight() {
            self.add_name(claim);
            allocation(claim).map(devices).hash(&mut self.hasher);
        }
    }

    /// Returns true if somebody else has written a claim, or removed it.
    fn is_stale(&self, claim: &ResourceClaim) -> bool {
        let stored = self.state.server.claims.get(&ClaimKey::from_metadata(&claim.metadata));
        stored.is_none_or(|stored| version(stored) != version(claim))
    }

    fn add_binding(&mut self, Binding { cycle, progress, step }: &Binding) {
        for claim in cycle.claims() {
            (claim.chosen().map(devices), claim.has_allocation_in_flight()).hash(&mut self.hasher);
            let claim = claim.claim();
            self.add_name(claim);
            let is_written = consumers(claim).contains(&&*cycle.pod().name);
            let (is_allocated, is_stale) = (allocation(claim).is_some(), self.is_stale(claim));
            (is_written, is_allocated, is_stale && !is_written).hash(&mut self.hasher);
        }
        match step {
            BindStep::Write(write) => self.add_write(write),
            step => format!("{step:?}").hash(&mut self.hasher),
        }
        progress.conflicts().hash(&mut self.hasher);
    }

    fn add_write(&mut self, write: &ClaimWrite) {
        std::mem::discriminant(write).hash(&mut self.hasher);
        match write {
            ClaimWrite::Update { claim } | ClaimWrite::UpdateStatus { claim } => {
                self.add_name(claim);
                self.is_stale(claim).hash(&mut self.hasher);
            }
            ClaimWrite::PatchReservation { name, .. } => name.hash(&mut self.hasher),
            ClaimWrite::Get { name, .. } if !name.contains("extended") => name.hash(&mut self.hasher),
            // A pod has one claim that can be meant.
            ClaimWrite::Create { .. }
            | ClaimWrite::Delete { .. }
            | ClaimWrite::Get { .. }
            | ClaimWrite::PatchPodStatus { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

impl State {
    fn new(server: ApiServer, pods: usize, disruptions: u32) -> Self {
        let more = std::env::var("EXPLORE").ok().and_then(|text| text.parse().ok());
        let disruptions = more.unwrap_or(disruptions);
        let tracker = ClaimTracker::new(Component::of(Profile::V1_37));
        let mut state = Self { server, tracker, watched: BTreeMap::new(), pods: vec![Phase::Idle; pods], disruptions };
        state.watch();
        state
    }

    fn watch(&mut self) {
        self.tracker.replace(self.server.list(), Some(&self.server.version())).unwrap();
        self.watched = self.server.claims.clone();
    }

    /// Returns true if the watch has nothing to show.
    fn is_current(&self) -> bool {
        let same = |(one, other): (&Arc<ResourceClaim>, &Arc<ResourceClaim>)| Arc::ptr_eq(one, other);
        self.watched.len() == self.server.claims.len()
            && self.watched.values().zip(self.server.claims.values()).all(same)
    }

    fn crash(&mut self) {
        self.tracker = ClaimTracker::new(Component::of(Profile::V1_37));
        self.watch();
        for phase in &mut self.pods {
            if matches!(phase, Phase::Binding { .. } | Phase::Undoing(_)) {
                *phase = Phase::Idle;
            }
        }
    }

    /// Makes a call with a fate. `None` if the scheduler has crashed.
    fn call(&mut self, write: &ClaimWrite, fate: Fate) -> Option<ApiResponse> {
        self.disruptions -= u32::from(fate != Fate::Answered);
        let answer = match fate {
            Fate::Answered | Fate::CrashAfter => self.server.call(write),
            Fate::Conflict => ApiResponse::Conflict("modified".to_owned()),
            Fate::Refused | Fate::CrashBefore => ApiResponse::Failed("refused".to_owned()),
        };
        if matches!(fate, Fate::CrashBefore | Fate::CrashAfter) {
            self.crash();
            return None;
        }
        // The scheduler takes a claim that it has created for seen.
        if let (ClaimWrite::Create { .. }, ApiResponse::Object(created)) = (write, &answer) {
            let key = ClaimKey::from_metadata(&created.metadata);
            self.watched.insert(key.clone(), Arc::clone(&self.server.claims[&key]));
        }
        if let (ClaimWrite::Delete { namespace, name, .. }, ApiResponse::Done) = (write, &answer) {
            self.watched.remove(&ClaimKey::new(namespace, name));
        }
        Some(answer)
    }

    /// Returns the claims that were made for a pod's extended resources.
    fn made_for(&self, pod: &str) -> Vec<&ResourceClaim> {
        let is_owner = |claim: &ResourceClaim| {
            claim.metadata.owner_references.iter().flatten().any(|owner| owner.uid == format!("{pod}-uid"))
        };
        self.server.claims.values().map(|claim| &**claim).filter(|claim| is_owner(claim)).collect()
    }

    fn key(&self) -> u64 {
        let mut key = Key::new(self);
        key.add_memory();
        for phase in &self.pods {
            std::mem::discriminant(phase).hash(&mut key.hasher);
            match phase {
                Phase::Binding(binding) => key.add_binding(binding),
                Phase::Undoing(calls) => {
                    // The rest of the calls follows from the first one.
                    calls.next().iter().for_each(|write| key.add_write(write));
                    calls.len().hash(&mut key.hasher);
                }
                Phase::Idle | Phase::Bound | Phase::Gone => {}
            }
        }
        self.disruptions.hash(&mut key.hasher);
        key.hasher.finish()
    }
}

fn changed(state: &State, change: impl FnOnce(&mut State)) -> State {
    let mut state = state.clone();
    change(&mut state);
    state
}

impl Explorer {
    fn new(world: World, pods: Vec<Pod>, claims: Vec<&'static [&'static str]>) -> Self {
        Self {
            inventory: world.inventory,
            classes: world.classes,
            selectors: SelectorCache::default(),
            node: node("n1"),
            pods,
            claims,
            options: world.options,
            seen: BTreeSet::new(),
            ends: 0,
        }
    }

    /// Returns the states that can follow.
    fn next(&self, state: &State) -> Vec<State> {
        let mut found = Vec::new();
        let fates = || FATES.into_iter().filter(|fate| *fate == Fate::Answered || state.disruptions > 0);
        for (index, phase) in state.pods.iter().enumerate() {
            match phase {
                Phase::Idle => {
                    found.extend(self.schedule(state, index));
                    found.push(changed(state, |state| self.end(state, index)));
                }
                Phase::Binding(binding) => {
                    match &binding.step {
                        BindStep::Write(write) => {
                            found.extend(fates().map(|fate| bind(state, index, binding, write, fate)));
                        }
                        BindStep::Done => found.push(changed(state, |state| state.pods[index] = Phase::Bound)),
                        _ => found.push(changed(state, |state| give_up(state, index, binding))),
                    }
                    if state.disruptions > 0 {
                        found.push(changed(state, |state| {
                            state.disruptions -= 1;
                            give_up(state, index, binding);
                        }));
                    }
                }
                Phase::Undoing(calls) => found.extend(fates().map(|fate| undo(state, index, calls, fate))),
                Phase::Bound => found.push(changed(state, |state| self.end(state, index))),
                Phase::Gone => {}
            }
        }
        if !state.is_current() {
            found.push(changed(state, State::watch));
        }
        // A foreign write that nobody is about to meet may as well come later.
        let is_met = state.pods.iter().any(|phase| matches!(phase, Phase::Binding(_) | Phase::Undoing(_)));
        if state.disruptions > 0 && is_met {
            for claim in state.server.claims.values() {
                found.push(changed(state, |state| {
                    state.disruptions -= 1;
                    state.server.store(ResourceClaim::clone(claim));
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
        let allocator =
            Allocator::new(Profile::V1_37, &self.inventory, &self.classes).with_selector_cache(&self.selectors);
        let verdict = cycle.filter(&self.node, &allocator, state.tracker.state(), NOW, Budget::default());
        let is_refused = verdict.refusal().is_some();
        cycle.record("n1", verdict);
        if is_refused {
            let calls = cycle.post_filter(0).calls();
            state.pods[index] = Phase::Undoing(Arc::new(calls.next().map(|_| calls)?));
            return Some(state);
        }
        cycle.reserve("n1", &mut state.tracker, &mut round).unwrap();
        go_on(&mut state, index, cycle, PreBind::default());
        Some(state)
    }

    /// Ends a pod: the controller takes it from its claims, and frees those that nobody uses any more. Those that it owns are
    /// collected.
    fn end(&self, state: &mut State, index: usize) {
        state.pods[index] = Phase::Gone;
        let pod = format!("p{index}");
        for name in self.claims[index] {
            let stored = ResourceClaim::clone(&state.server.claims[&ClaimKey::new("ns", name)]);
            if !consumers(&stored).contains(&&*pod) {
                continue;
            }
            let mut claim = without_consumer(stored, &format!("{pod}-uid"));
            if consumers(&claim).is_empty() {
                (claim.status, claim.metadata.finalizers) = (None, None);
            }
            state.server.store(claim);
        }
        let owned: Vec<_> = state.made_for(&pod).iter().map(|claim| ClaimKey::from_metadata(&claim.metadata)).collect();
        state.server.claims.retain(|key, _| !owned.contains(key));
    }

    fn check(&self, state: &State) {
        let mut held = BTreeSet::new();
        for claim in state.server.claims.values() {
            for device in allocation(claim).into_iter().flat_map(devices) {
                assert!(held.insert(device), "a device is allocated twice");
            }
        }
        for (index, phase) in state.pods.iter().enumerate() {
            if !matches!(phase, Phase::Bound) {
                continue;
            }
            let pod = format!("p{index}");
            let named = self.claims[index].iter().map(|name| &*state.server.claims[&ClaimKey::new("ns", name)]);
            let made = state.made_for(&pod);
            assert_eq!(made.len(), usize::from(self.claims[index].is_empty()), "claims are left behind");
            for claim in named.chain(made) {
                assert!(allocation(claim).is_some(), "a bound pod has lost its devices");
                assert!(consumers(claim).contains(&&*pod), "a reservation is lost");
            }
        }
    }

    /// Plays a state in which nobody acts without disruption until a pod is bound, if one waits and no device is held by a
    /// claim whose pods have ended. Nobody gives back an allocation that was never reserved, as in Kubernetes.
    fn check_progress(&self, state: &State) {
        let waits = |phase: &Phase| matches!(phase, Phase::Idle);
        let is_stuck = |claim: &ResourceClaim| {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            let mut phases = self.claims.iter().zip(&state.pods);
            allocation(claim).is_some()
                && claim.metadata.owner_references.is_none()
                && !phases.any(|(claims, phase)| claims.contains(&name) && waits(phase))
        };
        let is_free = state.pods.iter().all(|phase| matches!(phase, Phase::Idle | Phase::Gone))
            && !state.server.claims.values().any(|claim| is_stuck(claim));
        if !is_free || !state.pods.iter().any(waits) {
            return;
        }
        let mut state = state.clone();
        for _ in 0..3 * self.pods.len() {
            for index in 0..self.pods.len() {
                state.watch();
                settle(&mut state.tracker, &mut state.server);
                if !waits(&state.pods[index]) {
                    continue;
                }
                state = self.schedule(&state, index).unwrap_or(state);
                loop {
                    state = match state.pods[index].clone() {
                        Phase::Undoing(calls) => undo(&state, index, &calls, Fate::Answered),
                        Phase::Binding(binding) => match &binding.step {
                            BindStep::Write(write) => bind(&state, index, &binding, write, Fate::Answered),
                            BindStep::Done => return,
                            step => panic!("{step:?}"),
                        },
                        _ => break,
                    };
                }
            }
        }
        panic!("devices are held by nobody");
    }

    fn explore(&mut self, first: State) {
        let mut open = vec![first];
        while let Some(state) = open.pop() {
            self.check(&state);
            self.check_progress(&state);
            if state.pods.iter().all(|phase| matches!(phase, Phase::Gone)) {
                self.ends += 1;
                assert!(state.server.claims.values().all(|claim| consumers(claim).is_empty()));
                assert!((0..self.pods.len()).all(|pod| state.made_for(&format!("p{pod}")).is_empty()));
                let mut tracker = state.tracker.clone();
                settle(&mut tracker, &mut state.server.clone());
                assert_eq!(tracker.in_flight().count(), 0, "an allocation is in flight for ever");
                tracker.replace(Vec::<ResourceClaim>::new(), None).unwrap();
                assert_eq!(tracker.state(), ClaimTracker::new(Component::of(Profile::V1_37)).state());
            }
            for next in self.next(&state) {
                if self.seen.insert(next.key()) {
                    open.push(next);
                }
            }
        }
        println!("{} states, {} ends", self.seen.len(), self.ends);
    }
}

/// Reads the claims of which the scheduler does not know if they are allocated.
fn settle(tracker: &mut ClaimTracker, server: &mut ApiServer) {
    let mut calls = tracker.calls_in_doubt();
    while let Some(write) = calls.next() {
        calls.answer(tracker, server.call(&write));
    }
}

/// Enters what a binding does next.
fn go_on(state: &mut State, index: usize, mut cycle: PodCycle, mut progress: PreBind) {
    let step = progress.next(&mut cycle, &mut state.tracker, NOW);
    state.pods[index] = Phase::Binding(Arc::new(Binding { cycle, progress, step }));
}

/// Makes the next call of a pod's binding, with a fate.
fn bind(state: &State, index: usize, binding: &Binding, write: &ClaimWrite, fate: Fate) -> State {
    let mut state = state.clone();
    if let Some(answer) = state.call(write, fate) {
        let Binding { mut cycle, mut progress, .. } = binding.clone();
        progress.answer(&mut cycle, &mut state.tracker, answer, NOW);
        go_on(&mut state, index, cycle, progress);
    }
    state
}

/// Begins to undo a binding. Patches of reservations that nothing can disturb are made at once: no decision about another pod
/// depends on them.
fn give_up(state: &mut State, index: usize, binding: &Binding) {
    let mut calls = binding.cycle.clone().unreserve(&mut state.tracker);
    while let Some(write) =
        calls.next().filter(|write| state.disruptions == 0 && matches!(write, ClaimWrite::PatchReservation { .. }))
    {
        let answer = state.server.call(&write);
        calls.answer(&mut state.tracker, answer);
    }
    state.pods[index] = if calls.is_empty() { Phase::Idle } else { Phase::Undoing(Arc::new(calls)) };
}

/// Makes the next call that takes something back, with a fate.
fn undo(state: &State, index: usize, calls: &ClaimCalls, fate: Fate) -> State {
    let mut state = state.clone();
    let mut calls = calls.clone();
    let write = calls.next().unwrap();
    if let Some(answer) = state.call(&write, fate) {
        calls.answer(&mut state.tracker, answer);
        state.pods[index] = if calls.is_empty() { Phase::Idle } else { Phase::Undoing(Arc::new(calls)) };
    }
    state
}

/// The second pod shares with both others.
#[test]
fn three_pods_and_two_shared_claims_in_every_order() {
    let claims: Vec<&[&str]> = vec![&["c"], &["c", "d"], &["d"]];
    let world = World::new(1, [claim("c", 1), claim("d", 1)]);
    let first = State::new(world.server.clone(), claims.len(), 1);
    let pods = claims.iter().enumerate().map(|(index, claims)| pod(&format!("p{index}"), claims, None)).collect();
    let mut explorer = Explorer::new(world, pods, claims);
    explorer.explore(first);
    assert!(explorer.seen.len() > 1_000 && explorer.ends > 10);
}

/// One device, wanted by a pod with a claim and by a pod with an extended resource.
#[test]
fn a_claim_and_an_extended_resource_want_one_device_in_every_order() {
    let slice: ResourceSlice = from_value(json!({"metadata": {"name": "s"}, "spec": {"driver": "d.example.com",
        "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "a"}]}}))
    .unwrap();
    let world = World { inventory: Inventory::new([slice]), ..World::new(0, [claim("c", 1)]) };
    let first = State::new(world.server.clone(), 2, 2);
    let pods = vec![pod("p0", &["c"], None), extended_pod("p1", &[(GPUS, "1")])];
    let mut explorer = Explorer::new(world, pods, vec![&["c"], &[]]);
    explorer.explore(first);
    assert!(explorer.seen.len() > 500 && explorer.ends > 10);
}
