//! Random histories of three claims, two devices and up to three open bindings: a quarter of the writes has no answer, the watch
//! is late and repeats itself, lists may be old, cycles are dropped, the scheduler restarts. No device is given twice, and in the
//! end memory has what the API server has.

use std::collections::BTreeSet;
use std::sync::Arc;

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{ApiResponse, BindStep, ClaimCalls, ClaimLookup, ClaimTracker, ClaimWrite, PodCycle, PreBind};
use dra_alloc::{AllocatedState, ClaimId};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::api_server::{ApiServer, allocation, consumers, devices};
use super::world::{NOW, World, claim, pod};
use crate::oracle::random::Random;

/// Number of histories of each kind, lower without optimisation.
const HISTORIES: u64 = if cfg!(debug_assertions) { 250 } else { 20_000 };
const STEPS: usize = 120;
const CLAIMS: [&str; 3] = ["c0", "c1", "c2"];

/// Words in which a caller tells that a write had no answer.
type Told = fn(&mut Random) -> ApiResponse;

/// Change that the watch shows.
#[derive(Clone)]
enum Event {
    Shown(Arc<ResourceClaim>),
    Deleted(ClaimId),
}

struct History {
    world: World,
    bindings: Vec<(PodCycle, PreBind)>,
    /// Events of the watch since the beginning, and the number of those that were delivered.
    events: Vec<Event>,
    delivered: usize,
    /// Lists as they were made at some time, with their versions.
    lists: Vec<(String, Vec<Arc<ResourceClaim>>)>,
    told: Option<Told>,
    recreated: usize,
    /// Name of the kind, and seed.
    name: (&'static str, u64),
}

impl History {
    fn new(told: Option<Told>, name: (&'static str, u64)) -> Self {
        let world = World::new(1, CLAIMS.map(|name| claim(name, 1)));
        let mut history = Self {
            world,
            bindings: Vec::new(),
            events: Vec::new(),
            delivered: 0,
            lists: Vec::new(),
            told,
            recreated: 0,
            name,
        };
        history.note_list();
        history
    }

    fn note_list(&mut self) {
        self.lists.push((self.world.server.version(), self.world.server.list().collect()));
    }

    /// Notes what has changed at the server.
    fn note(&mut self, before: &ApiServer) {
        let server = &self.world.server;
        for (key, claim) in &server.claims {
            if before.claims.get(key).is_none_or(|known| !Arc::ptr_eq(known, claim)) {
                self.events.push(Event::Shown(Arc::clone(claim)));
            }
        }
        for (key, claim) in &before.claims {
            if !server.claims.contains_key(key) {
                self.events.push(Event::Deleted(ClaimId::from(&**claim)));
            }
        }
        let mut held = BTreeSet::new();
        for device in server.claims.values().filter_map(|claim| allocation(claim)).flat_map(devices) {
            assert!(held.insert(device), "a device is given twice: {:?}", self.name);
        }
        self.note_list();
    }

    /// Makes a call, whose answer may be lost.
    fn call(&mut self, write: &ClaimWrite, random: &mut Random) -> ApiResponse {
        let before = self.world.server.clone();
        let is_lost = !matches!(write, ClaimWrite::Get { .. }) && random.percent(25);
        let Some(told) = self.told.filter(|_| is_lost) else {
            let answer = self.world.server.call(write);
            self.note(&before);
            return answer;
        };
        if random.percent(60) {
            self.world.server.call(write);
            self.note(&before);
        }
        told(random)
    }

    fn make(&mut self, mut calls: ClaimCalls, random: &mut Random) {
        while let Some(write) = calls.next() {
            let answer = self.call(&write, random);
            calls.answer(&mut self.world.tracker, answer);
        }
    }

    fn begin(&mut self, random: &mut Random) {
        let index = random.below(CLAIMS.len());
        let pod = pod(&format!("p{index}"), &[CLAIMS[index]], None);
        let world = &mut self.world;
        let begun = PodCycle::pre_filter(&pod, None, &world.tracker, &world.classes, &world.round, world.options);
        let Ok(Some(mut cycle)) = begun else { return };
        let verdict = world.filter(&cycle, "n1");
        if verdict.refusal().is_some() {
            return;
        }
        cycle.record("n1", verdict);
        cycle.reserve("n1", &mut world.tracker, &mut world.round).unwrap();
        self.bindings.push((cycle, PreBind::default()));
    }

    fn go_on(&mut self, random: &mut Random) {
        let index = random.below(self.bindings.len());
        let (mut cycle, mut binding) = self.bindings.swap_remove(index);
        match binding.next(&mut cycle, &mut self.world.tracker, NOW) {
            BindStep::Write(write) => {
                let answer = self.call(&write, random);
                binding.answer(&mut cycle, &mut self.world.tracker, answer, NOW);
                self.bindings.push((cycle, binding));
            }
            BindStep::Done => {}
            _ => self.give_up(&mut cycle, random),
        }
    }

    fn give_up(&mut self, cycle: &mut PodCycle, random: &mut Random) {
        let calls = cycle.unreserve(&mut self.world.tracker);
        self.make(calls, random);
    }

    fn deliver(&mut self, event: Event) {
        match event {
            Event::Shown(claim) => drop(self.world.tracker.observe(claim).unwrap()),
            Event::Deleted(claim) => drop(self.world.tracker.observe_deleted(&claim)),
        }
    }

    fn watch(&mut self, random: &mut Random) {
        let Some(event) = self.events.get(self.delivered).cloned() else { return };
        self.delivered += 1;
        self.deliver(event);
        if random.percent(25) {
            // The watch begins anew from an earlier version, and shows again what came since.
            let from = self.delivered - random.below(self.delivered.min(4) + 1);
            for position in from..self.delivered {
                self.deliver(self.events[position].clone());
            }
        }
    }

    /// Ends the pod of a claim, as the controller does, or deletes the claim and makes it anew.
    fn release(&mut self, random: &mut Random) {
        let before = self.world.server.clone();
        let name = CLAIMS[random.below(CLAIMS.len())];
        let mut stored = self.world.stored(name);
        (stored.status, stored.metadata.finalizers) = (None, None);
        if random.percent(40) {
            self.world.server.claims.remove(&ClaimKey::new("ns", name));
            self.note(&before);
            self.recreated += 1;
            stored.metadata.uid = Some(format!("{name}-uid-{}", self.recreated));
        }
        let before = self.world.server.clone();
        self.world.store(stored);
        self.note(&before);
    }

    fn step(&mut self, random: &mut Random) {
        match random.below(100) {
            0..24 if self.bindings.len() < 3 => self.begin(random),
            24..60 if !self.bindings.is_empty() => self.go_on(random),
            60..82 => self.watch(random),
            82..88 => self.release(random),
            88..90 => {
                let before = self.world.server.clone();
                let name = CLAIMS[random.below(CLAIMS.len())];
                let stored = self.world.stored(name);
                self.world.store(stored);
                self.note(&before);
            }
            90..93 if !self.bindings.is_empty() => {
                let (mut cycle, _) = self.bindings.swap_remove(random.below(self.bindings.len()));
                self.give_up(&mut cycle, random);
            }
            // A task is cancelled, before its call or in the middle of it.
            93..95 if !self.bindings.is_empty() => {
                let (mut cycle, mut binding) = self.bindings.swap_remove(random.below(self.bindings.len()));
                if random.percent(50)
                    && let BindStep::Write(write) = binding.next(&mut cycle, &mut self.world.tracker, NOW)
                {
                    self.call(&write, random);
                }
            }
            95..98 => {
                let (version, list) = self.lists[self.lists.len() - 1 - random.below(self.lists.len().min(6))].clone();
                self.world.tracker.replace(list, Some(&version)).unwrap();
            }
            98 => {
                self.bindings.clear();
                self.world.tracker = ClaimTracker::new(self.world.options.scheduler());
                self.world.watch();
                self.delivered = self.events.len();
            }
            _ => {
                let calls = self.world.tracker.calls_in_doubt();
                self.make(calls, random);
            }
        }
    }

    fn end(&mut self, random: &mut Random) {
        self.bindings.clear();
        let calls = self.world.tracker.calls_in_doubt();
        self.make(calls, random);
        while self.delivered < self.events.len() {
            self.watch(random);
        }
        let tracker = &self.world.tracker;
        assert_eq!(tracker.in_flight().count(), 0, "something stays in flight");
        let stored: Vec<Arc<ResourceClaim>> = self.world.server.list().collect();
        let expected =
            AllocatedState::from_claims(stored.iter().map(|claim| &**claim), Component::of(Profile::V1_37)).unwrap();
        assert_eq!(*tracker.state(), expected);
        for claim in &stored {
            let name = claim.metadata.name.as_deref().unwrap();
            assert_eq!(tracker.claim("ns", name), Some(claim));
        }
    }
}

/// Plays the histories of one kind, and returns the number of allocations that were written.
fn play(name: &'static str, told: Option<Told>) -> usize {
    let mut written = 0;
    for seed in 0..HISTORIES {
        let random = &mut Random::new(seed);
        let mut history = History::new(told, (name, seed));
        for _ in 0..STEPS {
            history.step(random);
        }
        history.end(random);
        let is_written = |event: &&Event| matches!(event, Event::Shown(claim) if !consumers(claim).is_empty());
        written += history.events.iter().filter(is_written).count();
    }
    written
}

#[test]
fn no_device_is_given_twice_whatever_a_lost_answer_is_told_as() {
    const TOLD: [(&str, Option<Told>); 5] = [
        ("nothing is lost", None),
        ("lost", Some(|_| ApiResponse::Lost("no answer".to_owned()))),
        ("conflict", Some(|_| ApiResponse::Conflict("modified".to_owned()))),
        ("unavailable", Some(|_| ApiResponse::Unavailable("timed out".to_owned()))),
        ("without a claim", Some(|_| ApiResponse::Done)),
    ];
    for (name, told) in TOLD {
        let written = play(name, told);
        assert!(written > 4 * usize::try_from(HISTORIES).unwrap(), "{name}: {written} allocations are written");
    }
}
