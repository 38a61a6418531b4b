//! The laws of `driver::reconcile`, by exhaustive exploration of small pools: one driver that plans on old views, changes
//! its mind, crashes and loses answers, others who delete slices, and a reader who looks at every moment.
//!
//! A request takes effect before its sender gives it up, or never. Generations survive a crash, as they do with a clock
//! as the floor. `EXPLORE_STATES=1000000` explores more than the short run of the tests.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "asked for by hand, and tells what was found")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dra_attrs::Index;
use dra_node::driver::{Memory, NodeChoice, PoolPlan, PoolScope, ReconcileOptions, SlicePlan, SliceWrite, reconcile};
use k8s_openapi::api::resource::v1::{Device, ResourcePool, ResourceSlice, ResourceSliceSpec};
use smallvec::SmallVec;

const SCOPE: PoolScope<'_> = PoolScope { driver: "gpu.example.com", pool: "p", node_name: Some("node-1"), owner: None };

/// Contents of one slice: its position in tens, its version in units.
type Content = u8;

/// Pools that the driver wants, one after the other.
type Script = &'static [&'static [Content]];

const A1: Content = 1;
const A2: Content = 2;
const B1: Content = 11;
const B2: Content = 12;
const C1: Content = 21;

/// One slice on the server. Any two states of one slice differ, so that it is its own resource version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    index: u8,
    uid: u8,
    generation: u8,
    count: u8,
    content: Content,
}

type Objects = SmallVec<[Object; 4]>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Op {
    Delete(Object),
    Update(Object, Object),
    Create(Object),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    server: Objects,
    view: Objects,
    pending: SmallVec<[Op; 4]>,
    /// Position in the script.
    desired: u8,
    floor: u8,
    created: u8,
    /// Latest wanted pool that a reader has seen complete.
    seen: Option<u8>,
    left: Budget,
}

/// Numbers of events that may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Budget {
    plans: u8,
    crashes: u8,
    deletions: u8,
    lost: u8,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Watch,
    Plan,
    Write,
    LoseAnswer,
    LoseRequest,
    ChangeMind,
    Crash,
    DeleteByOthers(Object),
}

#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
struct World {
    script: Script,
    keeps_generation: bool,
    generates_names: bool,
    /// True if the driver plans on the latest state only.
    is_fresh: bool,
    /// True if generations that were written are remembered.
    has_floor: bool,
    budget: Budget,
}

const BUDGET: Budget = Budget { plans: 5, crashes: 1, deletions: 1, lost: 1 };

impl World {
    const fn strict(script: Script) -> Self {
        let (keeps_generation, generates_names) = (false, false);
        Self { script, keeps_generation, generates_names, is_fresh: false, has_floor: true, budget: BUDGET }
    }

    const fn upstream(script: Script, generates_names: bool) -> Self {
        Self { script, keeps_generation: true, generates_names, is_fresh: false, has_floor: false, budget: BUDGET }
    }

    fn start(&self) -> State {
        State {
            server: Objects::new(),
            view: Objects::new(),
            pending: SmallVec::new(),
            desired: 0,
            floor: 0,
            created: 0,
            seen: None,
            left: self.budget,
        }
    }

    /// Returns the name of a slice. Of two generated ones, the later is the smaller: the server's letters are random.
    fn name(&self, object: Object) -> String {
        let (index, count) = (Index::from(usize::from(object.index)), usize::from(object.count));
        if self.generates_names {
            format!(
                "{}{:05}",
                SlicePlan::generate_name(index, count, SCOPE.driver, None),
                99_999 - u32::from(object.uid)
            )
        } else {
            SlicePlan::fixed_name(index, count, SCOPE.driver, None, SCOPE.pool)
        }
    }

    fn slice_of(&self, object: Object) -> ResourceSlice {
        let mut slice = ResourceSlice::default();
        slice.metadata.name = Some(self.name(object));
        slice.metadata.uid = Some(object.uid.to_string());
        slice.spec = ResourceSliceSpec {
            driver: SCOPE.driver.to_owned(),
            node_name: SCOPE.node_name.map(str::to_owned),
            pool: ResourcePool {
                name: SCOPE.pool.to_owned(),
                generation: i64::from(object.generation),
                resource_slice_count: i64::from(object.count),
            },
            devices: Some(vec![device(object.content)]),
            ..ResourceSliceSpec::default()
        };
        slice
    }

    fn operation(write: &SliceWrite, view: &[Object]) -> Op {
        let by_uid = |uid: &str| *view.iter().find(|object| object.uid.to_string() == uid).unwrap();
        let sent = |slice: &ResourceSlice, index: Index<ResourceSlice>, uid: u8| Object {
            index: u8::try_from(usize::from(index)).unwrap(),
            uid,
            generation: u8::try_from(slice.spec.pool.generation).unwrap(),
            count: u8::try_from(slice.spec.pool.resource_slice_count).unwrap(),
            content: slice.spec.devices.as_ref().unwrap()[0].name.parse().unwrap(),
        };
        match write {
            SliceWrite::Delete { uid, .. } => Op::Delete(by_uid(uid)),
            SliceWrite::Update { index, slice } => {
                let old = by_uid(slice.metadata.uid.as_deref().unwrap());
                assert_eq!(SlicePlan::decode_index(slice.metadata.name.as_deref().unwrap(), 1), Some(*index));
                Op::Update(old, sent(slice, *index, old.uid))
            }
            SliceWrite::Create { index, slice } => Op::Create(sent(slice, *index, 0)),
            _ => unreachable!(),
        }
    }

    /// Returns the writes of a pass, and the floor after it.
    fn plan(&self, view: &[Object], desired: u8, floor: u8) -> (SmallVec<[Op; 4]>, u8) {
        let slices: Vec<ResourceSlice> = view.iter().map(|object| self.slice_of(*object)).collect();
        let devices: Vec<Device> = self.script[usize::from(desired)].iter().map(|content| device(*content)).collect();
        let wanted =
            devices.iter().map(|device| SlicePlan { devices: Some(vec![device]), ..SlicePlan::default() }).collect();
        let plan = PoolPlan::new(NodeChoice::Node("node-1"), wanted);
        let mut memory = Memory::default().with_generation_floor(i64::from(floor));
        let (keeps_generation, generates_names) = (self.keeps_generation, self.generates_names);
        let options = ReconcileOptions { keeps_generation, generates_names, ..ReconcileOptions::default() };
        let pass = reconcile(&SCOPE, &slices, Some(&plan), &mut memory, &options).unwrap();
        let ops = pass.writes.iter().map(|write| Self::operation(write, view)).collect();
        (ops, if self.has_floor { u8::try_from(memory.generation_floor()).unwrap() } else { 0 })
    }

    /// Makes one write. Returns false if it stops the pass.
    fn write(&self, server: &mut Objects, created: &mut u8, op: Op) -> bool {
        let find = |server: &Objects, old: Object| server.iter().position(|object| object.uid == old.uid);
        let is_done = match op {
            Op::Delete(old) => match find(server, old) {
                None => true,
                Some(at) if server[at] == old => {
                    server.remove(at);
                    true
                }
                Some(_) => false,
            },
            Op::Update(old, new) => match find(server, old) {
                Some(at) if server[at] == old => {
                    server[at] = new;
                    true
                }
                _ => false,
            },
            Op::Create(new) => {
                let exists = server.iter().any(|object| object.index == new.index);
                if exists && !self.generates_names {
                    return false;
                }
                *created += 1;
                server.push(Object { uid: *created, ..new });
                true
            }
        };
        server.sort_unstable();
        is_done
    }

    /// Returns the wanted pool that a reader takes the slices for; `None` if the pool is incomplete or invalid.
    ///
    /// # Errors
    /// The pool is complete, and was never wanted.
    fn read(&self, server: &[Object], desired: u8) -> Result<Option<u8>, String> {
        let Some(generation) = server.iter().map(|object| object.generation).max() else { return Ok(None) };
        let current: Vec<&Object> = server.iter().filter(|object| object.generation == generation).collect();
        let mut contents: Vec<Content> = current.iter().map(|object| object.content).collect();
        contents.sort_unstable();
        let is_complete = current.iter().all(|object| usize::from(object.count) == current.len());
        // Versions of one slice have the same devices.
        let is_valid = contents.windows(2).all(|pair| pair[0] / 10 != pair[1] / 10);
        if !is_complete || !is_valid {
            return Ok(None);
        }
        let wanted = (0..=desired).rev().find(|epoch| self.script[usize::from(*epoch)] == contents);
        wanted.map(Some).ok_or_else(|| format!("{contents:?} is complete, and was never wanted"))
    }

    fn events(&self, state: &State) -> Vec<Event> {
        let mut events = Vec::new();
        if !self.is_fresh && state.view != state.server {
            events.push(Event::Watch);
        }
        if state.pending.is_empty() {
            if state.left.plans > 0 {
                events.push(Event::Plan);
            }
        } else {
            events.push(Event::Write);
            if state.left.lost > 0 {
                events.extend([Event::LoseAnswer, Event::LoseRequest]);
            }
            if state.left.crashes > 0 {
                events.push(Event::Crash);
            }
        }
        if usize::from(state.desired) + 1 < self.script.len() {
            events.push(Event::ChangeMind);
        }
        if state.left.deletions > 0 {
            events.extend(state.server.iter().map(|object| Event::DeleteByOthers(*object)));
        }
        events
    }

    fn after(&self, state: &State, event: Event, plans: &mut Plans) -> State {
        let mut next = state.clone();
        match event {
            Event::Watch => next.view.clone_from(&next.server),
            Event::Plan => {
                next.left.plans -= 1;
                if self.is_fresh {
                    next.view.clone_from(&next.server);
                }
                let key = (next.view.clone(), next.desired, next.floor);
                let plan =
                    plans.entry(key).or_insert_with_key(|(view, desired, floor)| self.plan(view, *desired, *floor));
                next.pending.clone_from(&plan.0);
                next.floor = plan.1;
            }
            Event::Write => {
                let op = next.pending.remove(0);
                if !self.write(&mut next.server, &mut next.created, op) {
                    next.pending.clear();
                }
            }
            Event::LoseAnswer => {
                next.left.lost -= 1;
                self.write(&mut next.server, &mut next.created, state.pending[0]);
                next.pending.clear();
            }
            Event::LoseRequest => {
                next.left.lost -= 1;
                next.pending.clear();
            }
            Event::ChangeMind => next.desired += 1,
            Event::Crash => {
                next.left.crashes -= 1;
                next.pending.clear();
            }
            Event::DeleteByOthers(object) => {
                next.left.deletions -= 1;
                next.server.retain(|other| *other != object);
            }
        }
        next
    }

    /// Lets the driver work undisturbed, and checks liveness and quiet.
    fn settle(&self, state: &State, plans: &mut Plans) -> Result<(), String> {
        let (mut server, mut floor, mut created) = (state.server.clone(), state.floor, state.created);
        for _ in 0..4 {
            let key = (server.clone(), state.desired, floor);
            let (ops, next) =
                plans.entry(key).or_insert_with_key(|(view, desired, floor)| self.plan(view, *desired, *floor)).clone();
            floor = next;
            if ops.is_empty() {
                let read = self.read(&server, state.desired)?;
                let wanted = |epoch: u8| self.script[usize::from(epoch)] == self.script[usize::from(state.desired)];
                if !read.is_some_and(wanted) {
                    return Err(format!("at rest, and not as wanted: {server:?}"));
                }
                // A driver that restarts has no floor.
                let restarted = self.plan(&server, state.desired, 0).0;
                return if restarted.is_empty() { Ok(()) } else { Err(format!("a restart writes {restarted:?}")) };
            }
            for op in ops {
                if !self.write(&mut server, &mut created, op) {
                    return Err(format!("{op:?} fails on a fresh view: {server:?}"));
                }
            }
        }
        Err(format!("does not come to rest: {server:?}"))
    }

    /// Explores states breadth first, up to a number of them. Returns the number, or the shortest way to a state that
    /// breaks a law.
    fn explore(&self, most: usize) -> Result<usize, (String, Vec<(Event, State)>)> {
        let mut plans = Plans::new();
        let mut settled: BTreeSet<(Objects, u8, u8)> = BTreeSet::new();
        let mut states = vec![(self.start(), None::<(usize, Event)>)];
        let mut known = BTreeSet::from([self.start()]);
        let mut open = VecDeque::from([0]);
        while let Some(at) = open.pop_front() {
            let state = states[at].0.clone();
            for event in self.events(&state) {
                let mut next = self.after(&state, event, &mut plans);
                let verdict = self.read(&next.server, next.desired).and_then(|read| match (read, next.seen) {
                    (Some(read), Some(seen)) if read < seen => Err(format!("pool {read} comes back after {seen}")),
                    (read, seen) => Ok(read.or(seen)),
                });
                let verdict = verdict.and_then(|seen| {
                    next.seen = seen;
                    let is_new = settled.insert((next.server.clone(), next.desired, next.floor));
                    if is_new { self.settle(&next, &mut plans) } else { Ok(()) }
                });
                if let Err(problem) = verdict {
                    let mut way = vec![(event, next)];
                    let mut back = Some(at);
                    while let Some((before, event)) = back.and_then(|at| states[at].1) {
                        way.push((event, states[back.unwrap()].0.clone()));
                        back = Some(before);
                    }
                    way.reverse();
                    return Err((problem, way));
                }
                if known.len() < most && known.insert(next.clone()) {
                    open.push_back(states.len());
                    states.push((next, Some((at, event))));
                }
            }
        }
        Ok(known.len())
    }
}

/// Plans by view, wanted pool and floor.
type Plans = BTreeMap<(Objects, u8, u8), (SmallVec<[Op; 4]>, u8)>;

fn device(content: Content) -> Device {
    Device { name: content.to_string(), ..Device::default() }
}

/// Returns the number of states to explore: few unless more are asked for.
fn most_states() -> usize {
    std::env::var("EXPLORE_STATES").ok().and_then(|text| text.parse().ok()).unwrap_or(8_000)
}

const CHANGES: Script = &[&[A1, B1, C1], &[A2, B1, C1], &[A1, B2]];
const GROWTH: Script = &[&[A1], &[A1, B1, C1], &[A2, B1]];
const SHRINKING: Script = &[&[A1, B1, C1], &[A2], &[A1, B2]];

#[test]
fn strict_generations_and_fixed_names_keep_the_laws() {
    let mut total = 0;
    for script in [CHANGES, GROWTH, SHRINKING] {
        match World::strict(script).explore(most_states()) {
            Ok(states) => total += states,
            Err((problem, way)) => panic!("{problem}: {way:#?}"),
        }
    }
    println!("{total} states");
    assert!(total >= 3 * most_states().min(8_000));
}

#[test]
fn upstreams_rule_keeps_the_laws_on_a_fresh_view() {
    for generates_names in [true, false] {
        let world = World { is_fresh: true, ..World::upstream(CHANGES, generates_names) };
        match world.explore(most_states()) {
            Ok(states) => println!("{states} states"),
            Err((problem, way)) => panic!("{problem}: {way:#?}"),
        }
    }
}

/// Returns the way to a pool that is complete and was never wanted.
fn counter_example(world: &World) -> Vec<(Event, State)> {
    let (problem, way) = world.explore(usize::MAX).unwrap_err();
    println!("{problem}");
    for (event, state) in &way {
        println!("  {event:?}: {:?}", state.server);
    }
    assert!(problem.ends_with("never wanted"), "{problem}");
    way
}

const QUIET: Budget = Budget { plans: 4, crashes: 0, deletions: 0, lost: 0 };

#[test]
fn upstreams_rule_makes_a_second_slice_of_one_generation_on_an_old_view() {
    let budget = Budget { crashes: 1, ..QUIET };
    let world = World { budget, ..World::upstream(&[&[A1, B1], &[A2, B2]], true) };
    let way = counter_example(&world);
    let is_twice = |state: &State| {
        state.server.windows(2).any(|pair| pair[0].index == pair[1].index && pair[0].generation == pair[1].generation)
    };
    assert!(way.iter().any(|(_, state)| is_twice(state)));
}

#[test]
fn upstreams_rule_changes_a_slice_in_place_on_an_old_view() {
    let world = World { budget: QUIET, ..World::upstream(&[&[A1, B1], &[A2, B1], &[A1, B2]], false) };
    let way = counter_example(&world);
    let contents: Vec<Content> = way.last().unwrap().1.server.iter().map(|object| object.content).collect();
    assert_eq!(contents, [A2, B2]);
}

#[test]
fn upstreams_rule_begins_a_generation_again_next_to_a_left_over_slice() {
    let script: Script = &[&[A1, B1], &[A2, B2]];
    let undisturbed = World { budget: QUIET, ..World::upstream(script, false) };
    assert!(undisturbed.explore(usize::MAX).is_ok());
    let way = counter_example(&World { budget: Budget { deletions: 1, ..QUIET }, ..undisturbed });
    assert!(way.iter().any(|(event, _)| matches!(event, Event::DeleteByOthers(_))));
    let last = &way.last().unwrap().1.server;
    assert!(last.iter().all(|object| object.generation == 1) && last.iter().map(|object| object.content).eq([A2, B1]));
}

#[test]
fn the_strict_rule_needs_a_floor() {
    let without_floor = World { has_floor: false, ..World::strict(&[&[A1, B1], &[A2, B2]]) };
    assert!(without_floor.explore(usize::MAX).is_err());
}
