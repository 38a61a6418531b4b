//! One history of pods, claims and nodes with many bindings open at once: calls are carried out in any order, answers come late,
//! twice, never or as lost, the watch lags behind and repeats itself, nodes come and go, pods end, bindings are cancelled and the
//! scheduler restarts. Whoever plays it makes the choices: a test at random, a fuzz target by its bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{
    ApiResponse, Binding, BindingCall, BindingMemory, BindingRequest, BindingStep, ClaimTracker, ClaimWrite,
    GroupRound, PodCycle, PodOptions,
};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Allocator, Budget, Classes, Inventory};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use nnn::memory::{NominationAnswer, PodMemory, PodStage, PodUsage};
use nnn::{Command, PodKey};

use super::api_server::{allocation, consumers, without_consumer};
use super::cluster::{ClusterServer, after, key, node_of, nomination_of};
use super::world::{NOW, World, claim, node, pod};
use crate::oracle::random::Random;

/// Time after which a server with a limit works on no request any more, in seconds.
const REQUEST_TIMEOUT: i64 = 60;
const NODES: [&str; 3] = ["n1", "n2", "n3"];
/// Pods that a node takes.
const ROOM: u32 = 3;
/// Claims of each pod: some are shared, some pods have two, one has none.
const PODS: [&[&str]; 7] = [&["c0"], &["c0"], &["c0", "c1"], &["c2"], &["c2", "c3"], &["c4"], &[]];
const CLAIMS: [(&str, i64); 5] = [("c0", 1), ("c1", 1), ("c2", 1), ("c3", 1), ("c4", 2)];

/// Time within which a call is carried out, if it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lateness {
    /// A write of a claim may be stored long after it was lost, on its way through a proxy, say. A binding and the removal of a
    /// reservation are not, which have no version: nothing but the time-out of the server tells that they aren't stored any more.
    Unlimited,
    /// As of the server by default: nothing is stored a minute after it was sent.
    Minute,
}

/// Call that is out, with the time at which it was made.
#[derive(Clone)]
struct Sent {
    call: BindingCall,
    at: i64,
}

/// Change that the watch shows.
#[derive(Clone)]
enum Event {
    Pod(Arc<Pod>),
    Gone(PodKey),
    Claim(Arc<ResourceClaim>),
}

pub(crate) struct History {
    inventory: Inventory,
    classes: Classes,
    selectors: SelectorCache,
    options: PodOptions,
    server: ClusterServer,
    pods: PodMemory,
    claims: ClaimTracker,
    bindings: BTreeMap<String, Binding>,
    /// Calls that are out, and answers on their way.
    calls: Vec<Sent>,
    answers: Vec<(BindingCall, ApiResponse)>,
    events: Vec<Event>,
    delivered: usize,
    nodes: BTreeSet<&'static str>,
    now: i64,
    /// Number of bindings so far.
    pub(crate) bound: usize,
    lateness: Lateness,
    seed: u64,
}

fn name(index: usize) -> String {
    format!("p{index}")
}

impl History {
    pub(crate) fn new(seed: u64, lateness: Lateness) -> Self {
        let claims = CLAIMS.map(|(name, count)| claim(name, count));
        let World { inventory, classes, options, server, tracker, .. } = World::new(NODES.len(), claims);
        let mut server = ClusterServer::new(server);
        for (index, claims) in PODS.iter().enumerate() {
            server.store(pod(&name(index), claims, None));
        }
        let mut pods = PodMemory::default();
        pods.replace(server.pods.values().cloned(), None).unwrap();
        let nodes = NODES.into_iter().collect();
        let (bindings, selectors) = (BTreeMap::new(), SelectorCache::default());
        let (calls, answers, events) = (Vec::new(), Vec::new(), Vec::new());
        let (claims, delivered, now, bound) = (tracker, 0, 0, 0);
        Self {
            inventory,
            classes,
            selectors,
            options,
            server,
            pods,
            claims,
            bindings,
            calls,
            answers,
            events,
            delivered,
            nodes,
            now,
            bound,
            lateness,
            seed,
        }
    }

    fn memory(&mut self) -> BindingMemory<'_> {
        BindingMemory { pods: &mut self.pods, claims: &mut self.claims }
    }

    /// Changes the server, notes what the watch will show, and checks what is stored.
    fn at_server<T>(&mut self, change: impl FnOnce(&mut ClusterServer) -> T) -> T {
        let before = self.server.clone();
        let result = change(&mut self.server);
        for (name, pod) in &self.server.pods {
            if before.pods.get(name).is_none_or(|known| !Arc::ptr_eq(known, pod)) {
                self.events.push(Event::Pod(Arc::clone(pod)));
                self.bound += usize::from(node_of(pod).is_some());
            }
        }
        for name in before.pods.keys().filter(|name| !self.server.pods.contains_key(*name)) {
            self.events.push(Event::Gone(key(name)));
        }
        for (key, claim) in &self.server.claims.claims {
            if before.claims.claims.get(key).is_none_or(|known| !Arc::ptr_eq(known, claim)) {
                self.events.push(Event::Claim(Arc::clone(claim)));
            }
        }
        self.check();
        result
    }

    fn check(&self) {
        let mut held = BTreeSet::new();
        for claim in self.server.claims.list() {
            let results = allocation(&claim).and_then(|allocation| allocation.devices.as_ref()?.results.clone());
            for result in results.into_iter().flatten() {
                assert!(held.insert((result.pool, result.device)), "a device is given twice: {}", self.seed);
            }
        }
        for (index, claims) in PODS.iter().enumerate() {
            let Some(pod) = self.server.pods.get(&name(index)) else { continue };
            let Some(node) = node_of(pod) else { continue };
            assert_eq!(nomination_of(pod), None, "a bound pod is nominated: {}", self.seed);
            for claim in *claims {
                let claim = &self.server.claims.claims[&ClaimKey::new("ns", claim)];
                let result = allocation(claim).and_then(|found| found.devices.as_ref()?.results.as_ref()?.first());
                assert_eq!(result.map(|result| result.pool.as_str()), Some(node), "devices elsewhere: {}", self.seed);
                assert!(consumers(claim).contains(&&*name(index)), "a reservation is lost: {}", self.seed);
            }
        }
    }

    /// Lets all bindings decide.
    fn go_on(&mut self) {
        let uids: Vec<String> = self.bindings.keys().cloned().collect();
        for uid in uids {
            let Some(mut binding) = self.bindings.remove(&uid) else { continue };
            let now = after(self.now);
            match binding.next(&mut self.memory(), now) {
                BindingStep::Call(call) => {
                    assert!(
                        !self.server.nominates_bound(&call.pod, &call.request),
                        "a bound pod is nominated: {}",
                        self.seed
                    );
                    self.calls.push(Sent { call, at: self.now });
                }
                BindingStep::Wait { .. } => {}
                _ => continue,
            }
            self.bindings.insert(uid, binding);
        }
    }

    /// Returns a cycle for a pod and a node where it fits.
    fn fitting(&mut self, pod: &Pod, first: usize) -> Option<(Option<PodCycle>, &'static str)> {
        let mut round = GroupRound::default();
        let begun = PodCycle::pre_filter(pod, None, &self.claims, &self.classes, &round, self.options);
        let mut cycle = begun.ok()?;
        let allocator = Allocator::new(self.options.scheduler(), &self.inventory, &self.classes)
            .with_selector_cache(&self.selectors);
        let mut nodes = NODES.iter().copied().cycle().skip(first).take(NODES.len());
        let chosen = nodes.find(|on| {
            if !self.nodes.contains(on) || self.pods.usage_for(pod, on).pods >= ROOM {
                return false;
            }
            let Some(cycle) = &mut cycle else { return true };
            let verdict = cycle.filter(&node(on), &allocator, self.claims.state(), NOW, Budget::default());
            let fits = verdict.refusal().is_none();
            cycle.record(on, verdict);
            fits
        })?;
        if let Some(cycle) = &mut cycle {
            cycle.reserve(chosen, &mut self.claims, &mut round).unwrap();
        }
        Some((cycle, chosen))
    }

    fn begin(&mut self, index: usize, first: usize) -> bool {
        let Some(known) = self.pods.pod("ns", &name(index)).cloned() else { return false };
        let uid = key(&name(index)).uid;
        let is_waiting = self.pods.stage(&uid).is_some_and(PodStage::is_waiting);
        if !is_waiting || self.bindings.contains_key(&uid) {
            return false;
        }
        let stored = self.server.pods.get(&name(index));
        assert!(stored.is_none_or(|pod| node_of(pod).is_none()), "a bound pod is tried again: {}", self.seed);
        let Some((cycle, chosen)) = self.fitting(&known, first) else { return false };
        let usage = PodUsage::wanted_by(&known).unwrap();
        let binding = Binding::begin(&key(&name(index)), chosen, usage, cycle, &mut self.memory()).unwrap();
        self.bindings.insert(uid, binding);
        self.go_on();
        true
    }

    /// Returns true if the server carries out a call that has come now.
    fn is_in_time(&self, sent: &Sent) -> bool {
        let has_no_version = matches!(
            sent.call.request,
            BindingRequest::Bind { .. } | BindingRequest::Claim(ClaimWrite::PatchReservation { .. })
        );
        !(has_no_version || self.lateness == Lateness::Minute) || self.now - sent.at < REQUEST_TIMEOUT
    }

    /// Lets a call come to the server.
    fn carry_out(&mut self, random: &mut Random) {
        if self.calls.is_empty() {
            return;
        }
        let sent = self.calls.swap_remove(random.below(self.calls.len()));
        if !self.is_in_time(&sent) {
            return;
        }
        let call = sent.call.clone();
        let lost = || ApiResponse::Lost("no answer".to_owned());
        let answer = match random.below(100) {
            0..10 => {
                self.at_server(|server| server.call(&call));
                lost()
            }
            10..16 => lost(),
            16..20 => ApiResponse::Conflict("modified".to_owned()),
            20..23 => ApiResponse::Unavailable("try again".to_owned()),
            23..26 => ApiResponse::Failed("refused".to_owned()),
            // Nobody hears of it any more: it counts as lost after a minute.
            26..28 => {
                self.now += 60;
                return;
            }
            28..30 => {
                self.at_server(|server| server.call(&call));
                self.now += 60;
                return;
            }
            // The connection breaks, and the call goes on to the server.
            30..33 => {
                self.calls.push(sent);
                self.answers.push((call, lost()));
                return;
            }
            _ => self.at_server(|server| server.call(&call)),
        };
        self.answers.push((call, answer));
    }

    fn hear(&mut self, random: &mut Random) {
        if self.answers.is_empty() {
            return;
        }
        let index = random.below(self.answers.len());
        let (call, answer) =
            if random.percent(15) { self.answers[index].clone() } else { self.answers.swap_remove(index) };
        if let Some(mut binding) = self.bindings.remove(&call.pod.uid) {
            let now = after(self.now);
            binding.answer(&call, answer, &mut self.memory(), now);
            self.bindings.insert(call.pod.uid, binding);
        }
        self.go_on();
    }

    fn deliver(&mut self, event: Event) {
        match event {
            Event::Pod(pod) => drop(self.pods.observe(pod).unwrap()),
            Event::Gone(pod) => drop(self.pods.observe_deleted(&pod)),
            Event::Claim(claim) => drop(self.claims.observe(claim).unwrap()),
        }
    }

    fn watch(&mut self, random: &mut Random) {
        let Some(event) = self.events.get(self.delivered).cloned() else { return };
        self.delivered += 1;
        let is_repeated = !matches!(event, Event::Gone(_)) && random.percent(20);
        self.deliver(event.clone());
        if is_repeated {
            self.deliver(event);
        }
        self.go_on();
    }

    /// Takes pods that are gone from their claims, as the controller does, and frees claims that nobody uses any more.
    fn collect(&mut self) {
        self.at_server(|server| {
            let is_gone = |user: &str| !server.pods.contains_key(user);
            let mut found = Vec::new();
            for claim in server.claims.list() {
                let gone: Vec<String> =
                    consumers(&claim).into_iter().filter(|user| is_gone(user)).map(|user| key(user).uid).collect();
                if gone.is_empty() {
                    continue;
                }
                let mut claim =
                    { gone }.iter().fold(ResourceClaim::clone(&claim), |claim, uid| without_consumer(claim, uid));
                if consumers(&claim).is_empty() {
                    (claim.status, claim.metadata.finalizers) = (None, None);
                }
                found.push(claim);
            }
            for claim in found {
                server.claims.store(claim);
            }
        });
    }

    /// Ends the scheduler and begins anew. A call that is out may still be carried out.
    fn restart(&mut self, random: &mut Random) {
        self.bindings.clear();
        self.answers.clear();
        for sent in std::mem::take(&mut self.calls) {
            if random.percent(50) && self.is_in_time(&sent) {
                self.at_server(|server| server.call(&sent.call));
            }
        }
        self.claims = ClaimTracker::new(self.options.scheduler());
        self.claims.replace(self.server.claims.list(), None).unwrap();
        self.pods = PodMemory::default();
        self.pods.replace(self.server.pods.values().cloned(), None).unwrap();
        self.delivered = self.events.len();
    }

    pub(crate) fn step(&mut self, random: &mut Random) {
        match random.below(100) {
            0..25 => drop(self.begin(random.below(PODS.len()), random.below(NODES.len()))),
            25..50 => self.carry_out(random),
            50..72 => self.hear(random),
            72..88 => self.watch(random),
            88..90 => self.settle_doubts(),
            90..92 => {
                self.now += 1 + i64::try_from(random.below(40)).unwrap();
                self.go_on();
            }
            92..94 => {
                let node = NODES[random.below(NODES.len())];
                if !self.nodes.remove(node) {
                    self.nodes.insert(node);
                }
            }
            94..96 => {
                let index = random.below(PODS.len());
                if let Some(binding) = self.bindings.get_mut(&key(&name(index)).uid) {
                    binding.cancel("preempted");
                    self.go_on();
                }
            }
            96 => {
                let name = name(random.below(PODS.len()));
                self.at_server(|server| server.pods.remove(&name));
            }
            98 => self.collect(),
            97 => self.restart(random),
            _ => {}
        }
    }

    fn settle_doubts(&mut self) {
        let mut calls = self.claims.calls_in_doubt();
        while let Some(write) = calls.next() {
            let answer = self.at_server(|server| server.claims.call(&write));
            calls.answer(&mut self.claims, answer);
        }
        let in_doubt = self.pods.in_doubt().filter(|pod| !self.bindings.contains_key(&pod.uid));
        let in_doubt: Vec<PodKey> = in_doubt.cloned().collect();
        for pod in &in_doubt {
            self.nominate_again(pod);
        }
    }

    /// Writes the nomination of a pod once more whose binding has ended without knowing what is stored.
    fn nominate_again(&mut self, pod: &PodKey) {
        let command = match self.pods.nomination(&pod.uid) {
            Some(node) => Command::PatchNnn { pod: pod.clone(), node: node.to_owned() },
            None => Command::ClearNnn { pod: pod.clone() },
        };
        match self.at_server(|server| server.request(pod, &BindingRequest::Status(command))) {
            ApiResponse::Pod(pod) => drop(self.pods.observe_answer(*pod).unwrap()),
            _ => self.pods.answer_nomination(&pod.uid, NominationAnswer::Refused).unwrap(),
        }
    }

    /// Plays to the end without further disturbance.
    pub(crate) fn end(&mut self) {
        self.nodes = NODES.into_iter().collect();
        for _ in 0..500 {
            self.collect();
            while let Some(event) = self.events.get(self.delivered).cloned() {
                self.delivered += 1;
                self.deliver(event);
            }
            self.settle_doubts();
            self.now += 61;
            self.go_on();
            self.serve();
            let began = (0..PODS.len()).any(|index| self.begin(index, 0));
            let is_quiet = self.calls.is_empty() && self.bindings.is_empty() && self.delivered == self.events.len();
            if is_quiet && !began {
                return self.check_end();
            }
        }
        panic!("no end: {}, {:?}", self.seed, self.bindings);
    }

    /// Carries out calls and hears the answers, until there is none.
    fn serve(&mut self) {
        while !self.calls.is_empty() || !self.answers.is_empty() {
            for sent in std::mem::take(&mut self.calls) {
                if self.is_in_time(&sent) {
                    let answer = self.at_server(|server| server.call(&sent.call));
                    self.answers.push((sent.call, answer));
                }
            }
            for (call, answer) in std::mem::take(&mut self.answers) {
                let Some(mut binding) = self.bindings.remove(&call.pod.uid) else { continue };
                let now = after(self.now);
                binding.answer(&call, answer, &mut self.memory(), now);
                self.bindings.insert(call.pod.uid, binding);
            }
            self.go_on();
        }
    }

    fn check_end(&self) {
        let seed = self.seed;
        assert_eq!(self.claims.in_flight().count(), 0, "something stays in flight: {seed}");
        assert_eq!(self.pods.in_doubt().count(), 0, "something stays in doubt: {seed}");
        for index in 0..PODS.len() {
            let Some(stored) = self.server.pods.get(&name(index)) else { continue };
            let stage = self.pods.stage(&key(&name(index)).uid);
            match node_of(stored) {
                Some(node) => assert_eq!(stage, Some(PodStage::Bound { node }), "{seed}"),
                // It was tried, and nothing fits.
                None => assert!(stage.is_some_and(PodStage::is_waiting), "{seed}: {stage:?}"),
            }
        }
        for claim in self.server.claims.list() {
            let name = claim.metadata.name.as_deref().unwrap();
            for user in consumers(&claim) {
                let pod = self.server.pods.get(user).unwrap_or_else(|| panic!("{name} is kept for {user}: {seed}"));
                assert!(node_of(pod).is_some() || allocation(&claim).is_some(), "{seed}");
            }
        }
    }
}
