//! Sums over the events of a day.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Simulation;
use super::event::{Event, EventKind, HeldDevice, Refusal};
use super::run::End;

/// Number of equal parts of a day for which the use of devices is told.
const PARTS: usize = 144;

/// Counter of events.
#[derive(Debug)]
pub struct Statistics {
    duration: u64,
    /// Length of a part of the day, in milliseconds.
    part: u64,
    nodes: usize,
    kinds: Vec<KindCounter>,
    refused: BTreeMap<(usize, Refusal), u64>,
    devices: BTreeMap<String, Level>,
    nodes_in_use: Level,
    /// Number of pods on each node that has some.
    pods_on: BTreeMap<String, u64>,
    waiting: Level,
    /// Waiting pods of each priority.
    waiting_of: BTreeMap<i32, Level>,
    /// Number of claims that share each device, for those that have shares.
    shares: BTreeMap<HeldDevice, u64>,
}

/// Counts of a kind of pods.
#[derive(Debug, Default)]
struct KindCounter {
    name: String,
    priority: i32,
    arrived: u64,
    /// Pods that have got devices, and were not preempted since.
    placed: u64,
    refused: u64,
    preempted: u64,
    /// Milliseconds that preempted pods have had their devices.
    lost: u64,
    moved: u64,
    /// Milliseconds of each wait that has ended with devices, nothing for a pod that was placed at once.
    waited: Vec<u64>,
    why: Option<String>,
}

/// Number that changes over the day.
#[derive(Debug, Default)]
struct Level {
    /// Largest possible number.
    total: u64,
    now: u64,
    most: u64,
    /// Time up to which the parts are filled.
    at: u64,
    /// For each part of the day: the number, summed over its milliseconds.
    parts: Vec<u64>,
}

impl Level {
    fn new(total: u64) -> Self {
        Self { total, parts: vec![0; PARTS], ..Self::default() }
    }

    /// Lets the number be as it is up to a time.
    fn until(&mut self, at: u64, part: u64) {
        while self.at < at {
            let index = self.at / part;
            let end = at.min((index + 1) * part);
            if let Some(sum) = usize::try_from(index).ok().and_then(|index| self.parts.get_mut(index)) {
                *sum += self.now * (end - self.at);
            }
            self.at = end;
        }
    }

    fn add(&mut self, at: u64, part: u64) {
        self.until(at, part);
        self.now += 1;
        self.most = self.most.max(self.now);
    }

    fn take(&mut self, at: u64, part: u64) {
        self.until(at, part);
        self.now = self.now.saturating_sub(1);
    }
}

impl Statistics {
    /// Creates a counter for the days of a simulation.
    #[must_use]
    pub fn new(simulation: &Simulation) -> Self {
        let counter = |kind: &super::arrivals::Kind| KindCounter {
            name: kind.name.clone(),
            priority: kind.priority,
            ..KindCounter::default()
        };
        let priorities = simulation.arrivals.kinds.iter().map(|kind| (kind.priority, Level::new(0)));
        let devices = simulation.cluster.devices.iter().map(|(driver, count)| (driver.clone(), Level::new(*count)));
        Self {
            duration: simulation.duration,
            part: simulation.duration.div_ceil(PARTS as u64).max(1),
            nodes: simulation.nodes(),
            kinds: simulation.arrivals.kinds.iter().map(counter).collect(),
            refused: BTreeMap::new(),
            devices: devices.collect(),
            nodes_in_use: Level::new(simulation.nodes() as u64),
            pods_on: BTreeMap::new(),
            waiting: Level::new(0),
            waiting_of: priorities.collect(),
            shares: BTreeMap::new(),
        }
    }

    /// Counts an event.
    pub fn count(&mut self, event: &Event<'_>) {
        let at = event.at;
        self.count_waiting(event);
        self.count_nodes(event);
        let Some(kind) = self.kinds.get_mut(event.kind_index) else { return };
        match &event.event {
            EventKind::Arrived => kind.arrived += 1,
            EventKind::Waits { why } => {
                kind.why = kind.why.take().or_else(|| why.clone());
            }
            EventKind::Placed { waited, devices, .. } => {
                kind.placed += 1;
                kind.waited.push(waited.unwrap_or_default());
                devices.iter().for_each(|device| self.hold(at, device));
            }
            EventKind::Refused { refusal, why, .. } => {
                kind.refused += 1;
                kind.why = kind.why.take().or_else(|| why.clone());
                *self.refused.entry((event.kind_index, refusal.clone())).or_default() += 1;
            }
            EventKind::Preempted { ran, devices, .. } => {
                kind.placed = kind.placed.saturating_sub(1);
                kind.preempted += 1;
                kind.lost = kind.lost.saturating_add(*ran);
                devices.iter().for_each(|device| self.release(at, device));
            }
            EventKind::Moved { left, devices, .. } => {
                kind.moved += 1;
                left.iter().for_each(|device| self.release(at, device));
                devices.iter().for_each(|device| self.hold(at, device));
            }
            EventKind::Ended { devices, .. } => devices.iter().for_each(|device| self.release(at, device)),
        }
    }

    /// Counts a pod that begins to wait, or ceases to.
    fn count_waiting(&mut self, event: &Event<'_>) {
        let (at, part) = (event.at, self.part);
        let priority = self.kinds.get(event.kind_index).map(|kind| kind.priority);
        let of_priority = priority.and_then(|priority| self.waiting_of.get_mut(&priority));
        let levels = [Some(&mut self.waiting), of_priority].into_iter().flatten();
        match event.event {
            EventKind::Waits { .. } => levels.for_each(|level| level.add(at, part)),
            EventKind::Placed { waited: Some(_), .. } | EventKind::Refused { waited: Some(_), .. } => {
                levels.for_each(|level| level.take(at, part));
            }
            _ => {}
        }
    }

    /// Counts the pod of an event on its node: a node is in use while it has pods.
    fn count_nodes(&mut self, event: &Event<'_>) {
        let (left, taken) = match event.event {
            EventKind::Placed { node, .. } => (None, Some(node)),
            EventKind::Moved { from, node, .. } => (Some(from), Some(node)),
            EventKind::Preempted { node, .. } | EventKind::Ended { node, .. } => (Some(node), None),
            EventKind::Arrived | EventKind::Waits { .. } | EventKind::Refused { .. } => (None, None),
        };
        if let Some(pods) = left.and_then(|node| self.pods_on.get_mut(node)) {
            *pods = pods.saturating_sub(1);
            if *pods == 0 {
                self.pods_on.remove(left.unwrap_or_default());
                self.nodes_in_use.take(event.at, self.part);
            }
        }
        if let Some(node) = taken {
            let pods = self.pods_on.entry(node.to_owned()).or_default();
            *pods += 1;
            if *pods == 1 {
                self.nodes_in_use.add(event.at, self.part);
            }
        }
    }

    fn hold(&mut self, at: u64, device: &HeldDevice) {
        if device.shared {
            let shares = self.shares.entry(device.clone()).or_default();
            *shares += 1;
            if *shares > 1 {
                return;
            }
        }
        let level = self.devices.entry(device.driver.clone()).or_insert_with(|| Level::new(0));
        level.add(at, self.part);
    }

    fn release(&mut self, at: u64, device: &HeldDevice) {
        if device.shared
            && let Some(shares) = self.shares.get_mut(device)
        {
            *shares -= 1;
            if *shares > 0 {
                return;
            }
            self.shares.remove(device);
        }
        if let Some(level) = self.devices.get_mut(&device.driver) {
            level.take(at, self.part);
        }
    }

    /// Returns the sums of the whole day.
    #[must_use]
    pub fn finish(mut self, end: &End) -> Summary {
        let (duration, part) = (self.duration, self.part);
        let levels = self.devices.values_mut().chain(self.waiting_of.values_mut());
        let levels = levels.chain([&mut self.waiting, &mut self.nodes_in_use]);
        levels.for_each(|level| level.until(duration, part));
        let refused = self.refused.into_iter().map(|((kind, refusal), pods)| RefusedPods {
            kind: self.kinds.get(kind).map(|kind| kind.name.clone()).unwrap_or_default(),
            refusal,
            pods,
        });
        let refused = refused.collect();
        let mut all = KindCounter { name: "all".to_owned(), ..KindCounter::default() };
        let mut kinds = Vec::new();
        let priorities = self.waiting_of.into_iter().rev();
        let priorities: Vec<PriorityCounts> = priorities
            .map(|(priority, level)| {
                let of_priority = self.kinds.iter().filter(|kind| kind.priority == priority);
                PriorityCounts::new(priority, of_priority, Use::new(format!("priority {priority}"), level, duration))
            })
            .collect();
        for (index, kind) in self.kinds.into_iter().enumerate() {
            all.arrived += kind.arrived;
            all.placed += kind.placed;
            all.refused += kind.refused;
            all.preempted += kind.preempted;
            all.moved += kind.moved;
            all.waited.extend(&kind.waited);
            kinds.push(KindCounts::new(kind, end.waiting.get(&index).copied().unwrap_or_default()));
        }
        let sum = KindCounts::new(all, end.waiting.values().sum());
        let used = self.devices.into_iter().map(|(driver, level)| Use::new(driver, level, duration));
        Summary {
            duration,
            part,
            nodes: self.nodes,
            kinds,
            sum,
            refused,
            devices: used.collect(),
            nodes_in_use: Use::new("nodes".to_owned(), self.nodes_in_use, duration),
            waiting: Use::new("waiting pods".to_owned(), self.waiting, duration),
            priorities,
            stopped: end.stopped,
        }
    }
}

/// Sums of a day. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Summary {
    /// Length of the day.
    pub duration: u64,
    /// Length of each part of the day but the last ones.
    pub part: u64,
    /// Number of nodes.
    pub nodes: usize,
    /// Counts of each kind of pods.
    pub kinds: Vec<KindCounts>,
    /// Counts of all pods.
    pub sum: KindCounts,
    /// Refused pods by kind and reason.
    pub refused: Vec<RefusedPods>,
    /// Use of the devices of each driver.
    pub devices: Vec<Use>,
    /// Nodes that have pods.
    pub nodes_in_use: Use,
    /// Pods that wait.
    pub waiting: Use,
    /// Counts of each priority, the highest first.
    pub priorities: Vec<PriorityCounts>,
    /// Number of searches that the budget has stopped. Their nodes count as full.
    pub stopped: u64,
}

/// Counts of pods. A pod is placed, refused, or waits at the end of the day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KindCounts {
    /// Name of the kind.
    pub name: String,
    /// Pods that have come.
    pub arrived: u64,
    /// Pods that have got devices.
    pub placed: u64,
    /// Pods that were refused.
    pub refused: u64,
    /// Number of times that a pod was preempted.
    pub preempted: u64,
    /// Number of times that a pod was moved.
    pub moved: u64,
    /// Pods that wait at the end of the day.
    pub waiting: u64,
    /// Times that placed pods have waited.
    pub waits: Waits,
    /// Reasons of the nodes when the first pod of the kind found no room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Counts of the pods of one priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PriorityCounts {
    /// Priority.
    pub priority: i32,
    /// Number of times that a pod was preempted.
    pub preempted: u64,
    /// Milliseconds that preempted pods had had their devices.
    pub lost: u64,
    /// Waits that have ended with devices.
    pub waits: Waits,
    /// Pods that wait.
    pub waiting: Use,
}

impl PriorityCounts {
    fn new<'k>(priority: i32, kinds: impl Iterator<Item = &'k KindCounter>, waiting: Use) -> Self {
        let (mut preempted, mut lost, mut waited) = (0_u64, 0_u64, Vec::new());
        for kind in kinds {
            preempted = preempted.saturating_add(kind.preempted);
            lost = lost.saturating_add(kind.lost);
            waited.extend(&kind.waited);
        }
        Self { priority, preempted, lost, waits: Waits::new(&mut waited), waiting }
    }
}

impl Waits {
    fn new(waited: &mut [u64]) -> Self {
        waited.sort_unstable();
        let (count, sum) = (waited.len(), waited.iter().sum::<u64>());
        let share = |percent: usize| {
            let rank = (count * percent).div_ceil(100).saturating_sub(1);
            waited.get(rank).copied().unwrap_or_default()
        };
        let mean = sum.checked_div(count as u64).unwrap_or_default();
        Self { mean, median: share(50), p95: share(95), longest: share(100) }
    }
}

/// Waiting times of placed pods, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Waits {
    /// Mean, rounded down.
    pub mean: u64,
    /// Half of the pods waited no longer.
    pub median: u64,
    /// 95 % of the pods waited no longer.
    pub p95: u64,
    /// Longest wait.
    pub longest: u64,
}

/// Pods of one kind that were refused for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RefusedPods {
    /// Name of the kind.
    pub kind: String,
    /// Reason of the refusal.
    #[serde(flatten)]
    pub refusal: Refusal,
    /// Number of pods.
    pub pods: u64,
}

/// Number over the day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Use {
    /// Name: the driver of devices, or the things themselves.
    pub name: String,
    /// Largest possible number: all devices.
    pub total: u64,
    /// Largest number at one time.
    pub most: u64,
    /// Number summed over the milliseconds of the day, divided by the length of the day, in thousandths.
    pub mean_thousandths: u64,
    /// For each part of the day: the number, summed over its milliseconds.
    pub parts: Vec<u64>,
}

impl KindCounts {
    fn new(mut kind: KindCounter, waiting: u64) -> Self {
        let waits = Waits::new(&mut kind.waited);
        let KindCounter { name, arrived, placed, refused, preempted, moved, why, .. } = kind;
        Self { name, arrived, placed, refused, preempted, moved, waiting, waits, why }
    }
}

impl Use {
    fn new(name: String, level: Level, duration: u64) -> Self {
        let sum: u128 = level.parts.iter().map(|part| u128::from(*part)).sum();
        let mean = u64::try_from(sum * 1000 / u128::from(duration.max(1))).unwrap_or(u64::MAX);
        Self { name, total: level.total, most: level.most, mean_thousandths: mean, parts: level.parts }
    }

    /// Returns the use in each part of the day as percents of all devices, rounded down.
    #[must_use]
    pub fn percents(&self, summary: &Summary) -> Vec<u16> {
        let percent = |(index, sum): (usize, &u64)| {
            let whole = u128::from(summary.part_len(index)) * u128::from(self.total);
            (u128::from(*sum) * 100)
                .checked_div(whole)
                .and_then(|percent| u16::try_from(percent).ok())
                .unwrap_or_default()
        };
        self.parts.iter().enumerate().map(percent).collect()
    }
}

impl Summary {
    /// Returns the length of a part of the day: the last ones may be shorter, or empty.
    #[must_use]
    pub fn part_len(&self, index: usize) -> u64 {
        let begin = self.part.saturating_mul(index as u64);
        self.duration.saturating_sub(begin).min(self.part)
    }
}
