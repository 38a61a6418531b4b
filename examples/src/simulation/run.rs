//! A day, event by event.

use std::collections::{BTreeMap, BTreeSet};

use super::Simulation;
use super::arrivals::Arrival;
use super::event::{Event, EventKind, Refusal};
use super::queue::Queue;
use super::scheduler::{Changed, Placed, Scheduler, Unplaced, name_of_node};

/// State at the end of a day.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct End {
    /// Number of pods that still wait, by the position of their kind.
    pub(super) waiting: BTreeMap<usize, u64>,
    /// Number of searches that the budget has stopped. Their nodes count as full.
    pub stopped: u64,
}

/// Step of a pod, or of all. Of one instant, devices are freed first, and a pod gives up only when it was tried once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    End,
    /// Nodes are emptied; it is of no pod.
    Consolidate,
    Arrive,
    GiveUp,
}

/// Day that is played.
struct Run<'s, F> {
    simulation: &'s Simulation,
    scheduler: Scheduler<'s>,
    queue: Queue<'s>,
    /// Steps to come: time, step, and position of the pod.
    due: BTreeSet<(u64, Step, usize)>,
    /// Pods with devices, by position.
    placed: BTreeMap<usize, Placed>,
    /// Times at which pods have got their devices, by position.
    began: BTreeMap<usize, u64>,
    /// Times at which pods came back that were preempted, by position.
    came_back: BTreeMap<usize, u64>,
    tell: F,
    now: u64,
}

impl Simulation {
    /// Plays the day and tells each event. Pods that wait are tried again when devices are freed, on the nodes that see them.
    ///
    /// # Complexity
    /// For each pod a search on each node that has changed since it has refused a pod with such claims.
    pub fn run(&self, tell: impl FnMut(&Event<'_>)) -> End {
        let arrive = |(index, pod): (usize, &Arrival)| (pod.at, Step::Arrive, index);
        let mut run = Run {
            simulation: self,
            scheduler: Scheduler::new(self),
            queue: Queue::new(self.order, &self.arrivals),
            due: self.arrivals.pods.iter().enumerate().map(arrive).collect(),
            placed: BTreeMap::new(),
            began: BTreeMap::new(),
            came_back: BTreeMap::new(),
            tell,
            now: 0,
        };
        run.schedule(self.consolidate, Step::Consolidate, 0);
        while let Some((at, step, pod)) = run.due.pop_first().filter(|(at, ..)| *at < self.duration) {
            run.now = at;
            match step {
                Step::Arrive => run.arrive(pod),
                Step::End => run.end(pod),
                Step::Consolidate => run.consolidate(),
                Step::GiveUp => run.give_up(pod),
            }
        }
        let waiting = run.queue.len_by_kind().map(|(kind, count)| (kind, count as u64));
        End { waiting: waiting.collect(), stopped: run.scheduler.stopped }
    }
}

impl<'s, F: FnMut(&Event<'_>)> Run<'s, F> {
    fn arrive(&mut self, pod: usize) {
        let Some(arrival) = self.simulation.arrivals.pods.get(pod) else { return };
        self.tell(arrival, EventKind::Arrived);
        // Where a pod with such claims waits, there is no room.
        let is_hopeless = self.queue.has_kind(arrival.kind);
        let attempt = if is_hopeless { Err(Unplaced::NoRoom(None)) } else { self.attempt(arrival, Changed::All) };
        match attempt {
            Err(Unplaced::NoRoom(why)) if !is_hopeless => self.make_room(pod, arrival, why),
            attempt => self.conclude(pod, arrival, attempt, None),
        }
    }

    /// Places a pod where others give up their devices for it; it waits if nobody makes room.
    fn make_room(&mut self, pod: usize, arrival: &Arrival, why: Option<String>) {
        let kind = self.simulation.arrivals.kinds.get(arrival.kind);
        let victims = kind.map(|kind| self.scheduler.victims(arrival, kind, &self.placed)).unwrap_or_default();
        if victims.is_empty() {
            return self.conclude(pod, arrival, Err(Unplaced::NoRoom(why)), None);
        }
        for victim in &victims {
            self.preempt(*victim, arrival);
        }
        let attempt = self.attempt(arrival, Changed::All);
        self.conclude(pod, arrival, attempt, None);
        for victim in victims {
            if let Some(arrival) = self.simulation.arrivals.pods.get(victim) {
                self.conclude(victim, arrival, Err(Unplaced::NoRoom(None)), None);
            }
        }
        // A victim may have had more than the other pod needs.
        self.retry(Changed::All);
    }

    /// Takes the devices of a pod. It has come back, and is not in the queue yet.
    fn preempt(&mut self, victim: usize, by: &Arrival) {
        let (arrival, placed) = (self.simulation.arrivals.pods.get(victim), self.placed.remove(&victim));
        let (Some(arrival), Some(placed)) = (arrival, placed) else { return };
        let began = self.began.remove(&victim).unwrap_or(self.now);
        let end = arrival.stay.map(|stay| (began.saturating_add(stay), Step::End, victim));
        end.map(|end| self.due.remove(&end));
        self.scheduler.free(&placed);
        let ran = self.now.saturating_sub(began);
        let node = self.name_of(placed.node);
        self.tell(arrival, EventKind::Preempted { by: &by.name, node, ran, devices: &placed.devices });
        self.came_back.insert(victim, self.now);
    }

    fn end(&mut self, pod: usize) {
        let (arrival, placed) = (self.simulation.arrivals.pods.get(pod), self.placed.remove(&pod));
        let (Some(arrival), Some(placed)) = (arrival, placed) else { return };
        let changed = self.scheduler.free(&placed);
        self.began.remove(&pod);
        self.tell(arrival, EventKind::Ended { node: self.name_of(placed.node), devices: &placed.devices });
        self.retry(changed);
    }

    /// Moves pods so that nodes are empty, and tries those that wait: one may need a whole node.
    fn consolidate(&mut self) {
        let moves = self.scheduler.moves(&self.placed);
        let has_moves = !moves.is_empty();
        for (pod, node) in moves {
            self.relocate(pod, node);
        }
        if has_moves {
            self.retry(Changed::All);
        }
        self.schedule(self.simulation.consolidate, Step::Consolidate, 0);
    }

    /// Moves a pod to another node. The time of its end stays.
    fn relocate(&mut self, pod: usize, node: usize) {
        let arrivals = &self.simulation.arrivals;
        let Some(arrival) = arrivals.pods.get(pod) else { return };
        let (kind, old) = (arrivals.kinds.get(arrival.kind), self.placed.remove(&pod));
        let (Some(kind), Some(old)) = (kind, old) else { return };
        let new = self.scheduler.relocate(arrival, kind, &old, node);
        if let Some(new) = &new {
            let [from, node] = [&old, new].map(|placed| self.name_of(placed.node));
            let (left, devices) = (&old.devices, &new.devices);
            self.tell(arrival, EventKind::Moved { from, node, left, devices });
        }
        self.placed.insert(pod, new.unwrap_or(old));
    }

    fn give_up(&mut self, pod: usize) {
        let Some(arrival) = self.simulation.arrivals.pods.get(pod) else { return };
        let waited = self.now.saturating_sub(self.waits_since(pod, arrival));
        let patience = self.simulation.arrivals.kinds.get(arrival.kind).and_then(|kind| kind.patience);
        // A pod that was preempted waits anew.
        let is_over = patience.is_some_and(|patience| waited >= patience);
        if is_over && self.queue.take(pod, arrival.kind) {
            let waited = Some(waited);
            self.tell(arrival, EventKind::Refused { refusal: Refusal::GaveUp, waited, why: None });
        }
    }

    /// Tries the pods that wait on nodes whose devices were freed. If a pod does not fit, no pod of its kind does.
    fn retry(&mut self, changed: Changed) {
        let mut heads = self.queue.heads();
        while let Some(((_, pod), kind)) = heads.pop_first() {
            let Some(arrival) = self.simulation.arrivals.pods.get(pod) else { continue };
            let attempt = self.attempt(arrival, changed);
            if matches!(attempt, Err(Unplaced::NoRoom(_))) {
                continue;
            }
            self.queue.take(pod, kind);
            let waited = self.now.saturating_sub(self.waits_since(pod, arrival));
            self.conclude(pod, arrival, attempt, Some(waited));
            heads.extend(self.queue.head(kind).map(|head| (head, kind)));
        }
    }

    fn attempt(&mut self, arrival: &Arrival, among: Changed) -> Result<Placed, Unplaced> {
        match self.simulation.arrivals.kinds.get(arrival.kind) {
            Some(kind) => self.scheduler.place(arrival, kind, among),
            None => Err(Unplaced::NoRoom(None)),
        }
    }

    /// Takes in the result of an attempt for a pod that does not wait any more, or not yet.
    fn conclude(&mut self, pod: usize, arrival: &Arrival, result: Result<Placed, Unplaced>, waited: Option<u64>) {
        match result {
            Ok(placed) => {
                let (node, devices) = (self.name_of(placed.node), &placed.devices);
                self.tell(arrival, EventKind::Placed { node, waited, devices });
                self.schedule(arrival.stay, Step::End, pod);
                self.placed.insert(pod, placed);
                self.began.insert(pod, self.now);
            }
            Err(Unplaced::NoRoom(why)) => {
                self.tell(arrival, EventKind::Waits { why });
                self.queue.push(pod, arrival.kind);
                let patience = self.simulation.arrivals.kinds.get(arrival.kind).and_then(|kind| kind.patience);
                self.schedule(patience, Step::GiveUp, pod);
            }
            Err(Unplaced::Refused(refusal, why)) => {
                self.tell(arrival, EventKind::Refused { refusal, waited, why });
            }
        }
    }

    /// Returns the name of a node.
    fn name_of(&self, node: usize) -> &'s str {
        self.simulation.cluster.nodes.get(node).map_or("", name_of_node)
    }

    /// Returns the time since which a pod waits.
    fn waits_since(&self, pod: usize, arrival: &Arrival) -> u64 {
        self.came_back.get(&pod).copied().unwrap_or(arrival.at)
    }

    /// Plans a step, if it has a time.
    fn schedule(&mut self, after: Option<u64>, step: Step, pod: usize) {
        self.due.extend(after.map(|after| (self.now.saturating_add(after), step, pod)));
    }

    fn tell(&mut self, arrival: &Arrival, event: EventKind<'_>) {
        let kind = self.simulation.arrivals.kinds.get(arrival.kind).map_or("", |kind| &kind.name);
        (self.tell)(&Event { at: self.now, pod: &arrival.name, kind, kind_index: arrival.kind, event });
    }
}
