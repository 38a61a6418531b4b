//! Every history of the bindings of three pods that share claims, with nominations, calls in flight at the same time, and one
//! disruption anywhere: a lost answer, a binding that is stored late, a conflict, a refusal, a crash, a cancelled binding, a pod
//! that is deleted.
//!
//! A state is what an API server and a scheduler know at one time. States that allow the same histories are visited once.
//! `EXPLORE=2` lets two disruptions happen in one history.
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
    ApiResponse, Binding, BindingCall, BindingMemory, BindingRequest, BindingStep, BindingWait, ClaimTracker,
    ClaimWrite, GroupRound, PodCycle, PodOptions,
};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Allocator, Budget, ClaimId, Classes, Inventory};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use nnn::Command;
use nnn::memory::{PodMemory, PodStage, PodUsage};

use super::api_server::{ApiServer, allocation, consumers, devices, without_consumer};
use super::cluster::{ClusterServer, GATES, after, key, node_of, nomination_of};
use super::world::{NOW, World, claim, node, pod};

/// Fate of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fate {
    Answered,
    Conflict,
    Refused,
    /// The call was not carried out, and nobody knows.
    Lost,
    /// The call was carried out, and nobody knows.
    LostAfter,
    /// The binding is carried out at any later time, within a minute.
    Late,
    CrashBefore,
    CrashAfter,
}

const FATES: [Fate; 8] = [
    Fate::Answered,
    Fate::Conflict,
    Fate::Refused,
    Fate::Lost,
    Fate::LostAfter,
    Fate::Late,
    Fate::CrashBefore,
    Fate::CrashAfter,
];

/// A binding, with the call that is out, and everything that has happened to it.
#[derive(Clone)]
struct Open {
    binding: Binding,
    call: Option<BindingCall>,
    wait: Option<BindingWait>,
    history: Vec<(&'static str, Fate)>,
}

/// An API server and a scheduler at one point of a history.
#[derive(Clone)]
struct State {
    server: ClusterServer,
    pods: PodMemory,
    claims: ClaimTracker,
    open: BTreeMap<usize, Open>,
    /// Bindings that the server carries out some time.
    late: Vec<BindingCall>,
    minutes: i64,
    disruptions: u32,
    has_crashed: bool,
}

struct Explorer {
    inventory: Inventory,
    classes: Classes,
    selectors: SelectorCache,
    options: PodOptions,
    /// Claims of each pod, and the nodes in the order in which they are tried for it.
    wishes: [(&'static [&'static str], [&'static str; 2]); 3],
    seen: BTreeSet<u64>,
    ends: usize,
    waits_for_turns: usize,
}

fn word(request: &BindingRequest) -> &'static str {
    match request {
        BindingRequest::Status(Command::PatchNnn { .. }) => "nominate",
        BindingRequest::Status(_) => "clear",
        BindingRequest::Claim(ClaimWrite::Update { .. }) => "finalizer",
        BindingRequest::Claim(ClaimWrite::UpdateStatus { .. }) => "status",
        BindingRequest::Claim(ClaimWrite::PatchReservation { .. }) => "unreserve",
        BindingRequest::Claim(_) => "get",
        BindingRequest::Bind { .. } => "bind",
        _ => "read",
    }
}

fn name(index: usize) -> String {
    format!("p{index}")
}

/// Returns what counts of a claim.
fn facts(claim: &ResourceClaim) -> (Option<&str>, Option<Vec<String>>, Vec<&str>, bool) {
    let metadata = &claim.metadata;
    let mut consumers = consumers(claim);
    consumers.sort_unstable();
    let is_protected = metadata.finalizers.iter().flatten().next().is_some();
    (metadata.resource_version.as_deref(), allocation(claim).map(devices), consumers, is_protected)
}

impl State {
    fn memory(&mut self) -> BindingMemory<'_> {
        BindingMemory { pods: &mut self.pods, claims: &mut self.claims }
    }

    /// Shows the scheduler what the server has.
    fn watch(&mut self) {
        let known: Vec<ClaimId> = self.claims.claims().map(|claim| ClaimId::from(&**claim)).collect();
        for claim in self.server.claims.list() {
            self.claims.observe(claim).unwrap();
        }
        assert!(known.iter().all(|id| self.server.claims.claims.contains_key(&ClaimKey::new(&id.namespace, &id.name))));
        self.pods.replace(self.server.pods.values().cloned(), None).unwrap();
        self.pods.take_changed_nodes();
    }

    fn is_current(&self) -> bool {
        let mut known = self.pods.pods().map(|(pod, _)| pod);
        let are_pods = self.server.pods.values().all(|pod| known.next().is_some_and(|known| known == pod));
        let same = |(one, other): (&Arc<ResourceClaim>, Arc<ResourceClaim>)| facts(one) == facts(&other);
        are_pods && known.next().is_none() && self.claims.claims().zip(self.server.claims.list()).all(same)
    }

    /// Lets a binding decide, and all others that wait for a turn.
    fn go_on(&mut self, index: usize) {
        let others: Vec<usize> = self.open.keys().copied().filter(|other| *other != index).collect();
        for index in std::iter::once(index).chain(others) {
            let Some(mut open) = self.open.remove(&index) else { continue };
            if open.call.is_some() {
                self.open.insert(index, open);
                continue;
            }
            let now = after(60 * self.minutes);
            match open.binding.next(&mut self.memory(), now) {
                BindingStep::Call(call) => {
                    assert!(!self.server.nominates_bound(&call.pod, &call.request), "a bound pod is nominated");
                    (open.call, open.wait) = (Some(call), None);
                }
                BindingStep::Wait { reason, .. } => open.wait = Some(reason),
                BindingStep::Bound => {
                    assert_eq!(node_of(&self.server.pods[&name(index)]), Some(open.binding.node()));
                    continue;
                }
                _ => {
                    let stored = self.server.pods.get(&name(index));
                    let is_nominated = stored.is_some_and(|pod| nomination_of(pod).is_some());
                    let was_disturbed = |(word, fate): &(&str, Fate)| *word == "clear" && *fate != Fate::Answered;
                    assert!(!is_nominated || open.history.iter().any(was_disturbed), "a nomination stays");
                    continue;
                }
            }
            self.open.insert(index, open);
        }
        self.pods.take_changed_nodes();
    }

    fn crash(&mut self) {
        self.claims = ClaimTracker::new(PodOptions::new(GATES).scheduler());
        self.pods = PodMemory::default();
        self.open.clear();
        self.has_crashed = true;
        self.watch();
    }

    /// Lets the call of a binding come to the server, and its answer back.
    fn land(&mut self, index: usize, fate: Fate) {
        self.disruptions -= u32::from(fate != Fate::Answered);
        let Some(open) = self.open.get_mut(&index) else { return };
        let Some(call) = open.call.take() else { return };
        open.history.push((word(&call.request), fate));
        let answer = match fate {
            Fate::Answered | Fate::LostAfter | Fate::CrashAfter => self.server.call(&call),
            Fate::Conflict => ApiResponse::Conflict("modified".to_owned()),
            Fate::Refused => ApiResponse::Failed("refused".to_owned()),
            Fate::Lost | Fate::Late | Fate::CrashBefore => ApiResponse::Lost("no answer".to_owned()),
        };
        match fate {
            Fate::CrashBefore | Fate::CrashAfter => return self.crash(),
            Fate::Late => self.late.push(call.clone()),
            _ => {}
        }
        let answer = if fate == Fate::LostAfter { ApiResponse::Lost("no answer".to_owned()) } else { answer };
        let now = after(60 * self.minutes);
        let Some(mut open) = self.open.remove(&index) else { return };
        open.binding.answer(&call, answer, &mut self.memory(), now);
        self.open.insert(index, open);
        self.go_on(index);
    }

    /// Deletes a pod: the controller takes it from its claims, and frees those that nobody uses any more.
    fn delete(&mut self, index: usize, claims: &[&str]) {
        self.server.pods.remove(&name(index));
        for claim in claims {
            let stored = ResourceClaim::clone(&self.server.claims.claims[&ClaimKey::new("ns", claim)]);
            if !consumers(&stored).contains(&&*name(index)) {
                continue;
            }
            let mut claim = without_consumer(stored, &format!("p{index}-uid"));
            if consumers(&claim).is_empty() {
                (claim.status, claim.metadata.finalizers) = (None, None);
            }
            self.server.claims.store(claim);
        }
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.server.claims.claims.values().for_each(|claim| facts(claim).hash(&mut hasher));
        self.claims.claims().for_each(|claim| facts(claim).hash(&mut hasher));
        for claim in self.claims.in_flight() {
            (&claim.metadata.name, allocation(claim).map(devices)).hash(&mut hasher);
        }
        self.claims.calls_in_doubt().len().hash(&mut hasher);
        let version = |pod: &Pod| pod.metadata.resource_version.clone();
        for (name, pod) in &self.server.pods {
            (name, node_of(pod), nomination_of(pod), version(pod)).hash(&mut hasher);
        }
        for (pod, stage) in self.pods.pods() {
            let uid = pod.metadata.uid.as_deref().unwrap();
            format!("{stage:?}").hash(&mut hasher);
            (uid, version(pod), self.pods.nomination(uid)).hash(&mut hasher);
        }
        self.pods.in_doubt().count().hash(&mut hasher);
        for (index, open) in &self.open {
            (index, open.binding.node(), &open.history, format!("{:?}", open.wait)).hash(&mut hasher);
            open.call.as_ref().map(|call| word(&call.request)).hash(&mut hasher);
            for claim in open.binding.cycle().into_iter().flat_map(PodCycle::claims) {
                (facts(claim.claim()), claim.chosen().map(devices), claim.has_allocation_in_flight()).hash(&mut hasher);
            }
        }
        (self.late.len(), self.minutes, self.disruptions, self.has_crashed).hash(&mut hasher);
        hasher.finish()
    }
}

fn changed(state: &State, change: impl FnOnce(&mut State)) -> State {
    let mut state = state.clone();
    change(&mut state);
    state
}

impl Explorer {
    fn new(wishes: [(&'static [&'static str], [&'static str; 2]); 3]) -> (Self, State) {
        let World { inventory, classes, options, server, .. } = World::new(2, [claim("c", 1), claim("d", 1)]);
        let mut server = ClusterServer::new(ApiServer::with_own_versions(&server));
        for (index, (claims, _)) in wishes.iter().enumerate() {
            server.store(pod(&name(index), claims, None));
        }
        let more = std::env::var("EXPLORE").ok().and_then(|text| text.parse().ok());
        let mut state = State {
            server,
            pods: PodMemory::default(),
            claims: ClaimTracker::new(options.scheduler()),
            open: BTreeMap::new(),
            late: Vec::new(),
            minutes: 0,
            disruptions: more.unwrap_or(1),
            has_crashed: false,
        };
        state.watch();
        let selectors = SelectorCache::default();
        (
            Self { inventory, classes, selectors, options, wishes, seen: BTreeSet::new(), ends: 0, waits_for_turns: 0 },
            state,
        )
    }

    /// Returns the states that can follow.
    fn next(&self, state: &State) -> Vec<State> {
        let mut found = Vec::new();
        let may_disrupt = state.disruptions > 0;
        for index in 0..self.wishes.len() {
            if let Some(open) = state.open.get(&index) {
                let is_bind =
                    open.call.as_ref().is_some_and(|call| matches!(call.request, BindingRequest::Bind { .. }));
                let fates = FATES.into_iter().filter(|fate| *fate == Fate::Answered || may_disrupt);
                let fates = fates.filter(|fate| open.call.is_some() && (*fate != Fate::Late || is_bind));
                found.extend(fates.map(|fate| changed(state, |state| state.land(index, fate))));
            } else {
                found.extend(self.schedule(state, index));
            }
            if may_disrupt && state.open.contains_key(&index) {
                found.push(changed(state, |state| {
                    state.disruptions -= 1;
                    state.open.get_mut(&index).unwrap().binding.cancel("preempted");
                    state.go_on(index);
                }));
                found.push(changed(state, |state| {
                    state.disruptions -= 1;
                    state.delete(index, self.wishes[index].0);
                    state.go_on(index);
                }));
            }
        }
        for position in 0..state.late.len() {
            found.push(changed(state, |state| {
                let call = state.late.remove(position);
                state.server.call(&call);
            }));
        }
        if state.open.values().any(|open| open.wait == Some(BindingWait::Repetition)) {
            found.push(changed(state, |state| {
                (state.minutes, state.late) = (state.minutes + 1, Vec::new());
                state.go_on(0);
            }));
        }
        if !state.is_current() {
            found.push(changed(state, |state| {
                state.watch();
                state.go_on(0);
            }));
        }
        found
    }

    /// Begins the binding of a pod, if it waits and fits.
    fn schedule(&self, state: &State, index: usize) -> Option<State> {
        // One that is gone would be tried until the watch shows it, which adds nothing.
        let stored = state.server.pods.get(&name(index))?;
        let known = state.pods.pod("ns", &name(index))?;
        if !state.pods.stage(&key(&name(index)).uid).is_some_and(PodStage::is_waiting) {
            return None;
        }
        let (stored, mut state) = (Arc::clone(stored), state.clone());
        let mut round = GroupRound::default();
        let begun = PodCycle::pre_filter(known, None, &state.claims, &self.classes, &round, self.options);
        let mut cycle = begun.ok()??;
        let allocator = Allocator::new(self.options.scheduler(), &self.inventory, &self.classes)
            .with_selector_cache(&self.selectors);
        let chosen = self.wishes[index].1.into_iter().find(|on| {
            let verdict = cycle.filter(&node(on), &allocator, state.claims.state(), NOW, Budget::default());
            let fits = verdict.refusal().is_none();
            cycle.record(on, verdict);
            fits
        })?;
        cycle.reserve(chosen, &mut state.claims, &mut round).unwrap();
        assert!(node_of(&stored).is_none() || state.has_crashed, "a bound pod is tried again");
        let binding = Binding::begin(&key(&name(index)), chosen, PodUsage::default(), Some(cycle), &mut state.memory());
        state.open.insert(index, Open { binding: binding.unwrap(), call: None, wait: None, history: Vec::new() });
        state.go_on(index);
        Some(state)
    }

    fn check(&self, state: &State) {
        let mut held = BTreeSet::new();
        for claim in state.server.claims.list() {
            let results = allocation(&claim).and_then(|allocation| allocation.devices.as_ref()?.results.clone());
            for result in results.into_iter().flatten() {
                assert!(held.insert((result.pool, result.device)), "a device is allocated twice");
            }
        }
        for (index, (claims, _)) in self.wishes.iter().enumerate() {
            let Some(pod) = state.server.pods.get(&name(index)) else { continue };
            if let Some(node) = node_of(pod) {
                assert_eq!(nomination_of(pod), None, "a bound pod is nominated");
                for claim in *claims {
                    let claim = &state.server.claims.claims[&ClaimKey::new("ns", claim)];
                    let result = allocation(claim).and_then(|found| found.devices.as_ref()?.results.as_ref()?.first());
                    assert_eq!(result.map(|result| result.pool.as_str()), Some(node), "devices of another node");
                    assert!(consumers(claim).contains(&&*name(index)), "a reservation is lost");
                }
            }
            let Some(open) = state.open.get(&index) else { continue };
            let nominated = nomination_of(pod);
            let was_refused = open.history.iter().any(|(word, fate)| *word == "nominate" && *fate != Fate::Answered);
            let is_early = open.history.is_empty();
            let wrong = nominated.filter(|node| *node != open.binding.node());
            assert!(wrong.is_none() || is_early || was_refused, "nominated to {wrong:?}");
        }
    }

    /// Plays a state in which nothing is out, until no pod fits any more, and checks that nobody is left who does.
    fn check_progress(&self, state: &State) {
        let mut state = state.clone();
        state.disruptions = 0;
        for _ in 0..200 {
            state.watch();
            let mut doubts = state.claims.calls_in_doubt();
            while let Some(write) = doubts.next() {
                let answer = state.server.claims.call(&write);
                doubts.answer(&mut state.claims, answer);
            }
            state.go_on(0);
            let Some(next) = self.next(&state).into_iter().next() else { break };
            state = next;
        }
        assert!(state.open.is_empty(), "a binding does not end");
        for index in 0..self.wishes.len() {
            let Some(pod) = state.server.pods.get(&name(index)) else { continue };
            if node_of(pod).is_none() {
                assert!(self.schedule(&state, index).is_none(), "a pod that fits is not placed");
                let known = state.pods.stage(&format!("p{index}-uid"));
                assert!(known.is_some_and(PodStage::is_waiting), "a pod is lost");
            }
        }
        assert_eq!(state.claims.in_flight().count(), 0, "an allocation is in flight for ever");
    }

    fn explore(&mut self, first: State) {
        let mut open = vec![first];
        while let Some(state) = open.pop() {
            self.check(&state);
            if state.open.is_empty() {
                self.check_progress(&state);
            }
            let waits = |open: &Open| matches!(open.wait, Some(BindingWait::Turn(_)));
            self.waits_for_turns += usize::from(state.open.values().any(waits));
            let next = self.next(&state);
            self.ends += usize::from(next.is_empty());
            open.extend(next.into_iter().filter(|next| self.seen.insert(next.hash())));
        }
        println!("{} states, {} ends, {} waits", self.seen.len(), self.ends, self.waits_for_turns);
    }
}

#[test]
fn three_pods_with_nominations_and_shared_claims_in_every_order() {
    // The second pod shares with both others; the third one prefers another node, or shares the same claim.
    let first: (&[&str], _) = (&["c"], ["n1", "n2"]);
    let second: (&[&str], _) = (&["c", "d"], ["n1", "n2"]);
    let lasts: [(&[&str], _); 2] = [(&["d"], ["n2", "n1"]), (&["c"], ["n1", "n2"])];
    let mut waits = 0;
    for last in lasts {
        let wishes = [first, second, last];
        let (mut explorer, first) = Explorer::new(wishes);
        explorer.explore(first);
        assert!(explorer.seen.len() > 1_000 && explorer.ends > 10);
        waits += explorer.waits_for_turns;
    }
    assert!(waits > 10, "bindings meet at a claim");
}
