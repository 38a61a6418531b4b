//! A week of a cluster: jobs with priorities come, stay and go; one without a place may preempt jobs of lower priority. Placing and
//! preempting are the program's own; it asks the library which nodes fit.
//!
//!     cargo run --release -p benches --example week [NODES] [JOBS] [MEAN_STAY_H]
//!
//! A job takes the fullest node that fits. For one without a place, all nodes are asked as they would be without the jobs of lower
//! priority; the one with the fewest of them in the way is taken, and these wait again. Printed is one JSON object, with the seconds of
//! processor time.
//!
//! `--no-default-features` leaves out the feature `by_state`: each node is asked for itself then, with calls that commit 4193c4f has.
#![allow(unexpected_cfgs, reason = "an older commit does not know the feature")]
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout, reason = "a measurement, run by hand")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::error::Error;

use dra_alloc::selector::SelectorCache;
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Inventory, Outcome, Profile};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};

/// Devices of a node, by driver.
const DEVICES: [(&str, usize); 2] = [("gpu", 8), ("nic", 4)];
const NUMA_NODE: &str = "resource.kubernetes.io/numaNode";
/// GPUs of each kind of jobs, and NICs of the GPUs' NUMA node, with the share of the kind in a hundred jobs.
const KINDS: [(usize, usize, usize); 5] = [(1, 0, 45), (2, 0, 15), (2, 1, 20), (4, 0, 10), (8, 0, 10)];
/// Number of priorities. Of 20 jobs 14 have the lowest, 5 the next, one the highest.
const PRIORITIES: usize = 3;
const MINUTES: u64 = 7 * 24 * 60;

/// Numbers that are the same in each run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % end
    }
}

fn slices(node: usize) -> Result<Vec<ResourceSlice>, serde_json::Error> {
    let slice = |(kind, count): (&str, usize)| {
        let device = |index: usize| {
            json!({"name": format!("{kind}-{index}"), "attributes": {
                "model": {"string": "h100"}, "uuid": {"string": format!("{kind}-{node}-{index}")},
                NUMA_NODE: {"int": index * 2 / count}}})
        };
        from_value(json!({"metadata": {"name": format!("{kind}-of-{node}")}, "spec": {
            "driver": format!("{kind}.example.com"), "nodeName": format!("n{node}"),
            "pool": {"name": format!("n{node}"), "generation": 1, "resourceSliceCount": 1},
            "devices": (0..count).map(device).collect::<Vec<Value>>()}}))
    };
    DEVICES.into_iter().map(slice).collect()
}

fn class(kind: &str) -> Result<DeviceClass, serde_json::Error> {
    let expression =
        format!("device.driver == '{kind}.example.com' && device.attributes['{kind}.example.com'].model == 'h100'");
    from_value(json!({"metadata": {"name": kind}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}))
}

fn claim(name: &str, (gpus, nics, _): (usize, usize, usize)) -> Result<ResourceClaim, serde_json::Error> {
    let request =
        |class: &str, count: usize| json!({"name": class, "exactly": {"deviceClassName": class, "count": count}});
    let devices = match nics {
        0 => json!({"requests": [request("gpu", gpus)]}),
        nics => json!({"requests": [request("gpu", gpus), request("nic", nics)],
            "constraints": [{"matchAttribute": NUMA_NODE}]}),
    };
    let metadata = json!({"namespace": "ns", "name": name, "uid": name});
    from_value(json!({"metadata": metadata, "spec": {"devices": devices}}))
}

#[derive(Clone)]
struct Job {
    kind: usize,
    priority: usize,
    comes: u64,
    /// Minutes that are left of its stay.
    stays: u64,
    claim: ResourceClaim,
    may_preempt: bool,
}

/// A job on a node.
struct Running {
    job: usize,
    until: u64,
}

/// Questions about nodes.
struct Questions<'c> {
    allocator: &'c Allocator<'c>,
    nodes: &'c [Node],
    #[cfg(feature = "by_state")]
    by_priority: Vec<dra_alloc::Nodes<&'c Node>>,
}

impl<'c> Questions<'c> {
    fn new(allocator: &'c Allocator<'c>, nodes: &'c [Node]) -> Self {
        Self {
            allocator,
            nodes,
            #[cfg(feature = "by_state")]
            by_priority: (0..PRIORITIES).map(|_| dra_alloc::Nodes::new(nodes)).collect(),
        }
    }

    /// Returns the first node of a list that fits, with the allocation.
    fn first(
        &self,
        state: &AllocatedState,
        claim: &ResourceClaim,
        mut nodes: impl Iterator<Item = usize>,
    ) -> Option<(usize, AllocationResult)> {
        let attempt = self.allocator.attempt(state, [claim]);
        nodes.find_map(|node| {
            match attempt.allocate(&self.nodes[node], Budget::default()).expect("valid input").outcome {
                Outcome::Allocated(results) => Some((node, results.into_iter().next()?)),
                _ => None,
            }
        })
    }

    /// Returns all nodes that fit as they are without the jobs below a priority.
    #[cfg(feature = "by_state")]
    fn all(&mut self, state: &AllocatedState, priority: usize, claim: &ResourceClaim) -> Vec<usize> {
        let asked = self.by_priority[priority].attempt(self.allocator, state, [claim]);
        let fitting = asked.by_state(Budget::default()).filter(|answer| answer.fit == Ok(dra_alloc::Fit::Yes));
        fitting.flat_map(|answer| answer.nodes().map(usize::from).collect::<Vec<_>>()).collect()
    }

    /// Returns all nodes that fit as they are without the jobs below a priority.
    #[cfg(not(feature = "by_state"))]
    fn all(&mut self, state: &AllocatedState, _: usize, claim: &ResourceClaim) -> Vec<usize> {
        let attempt = self.allocator.attempt(state, [claim]);
        let fits = |node: &usize| {
            let verdict = attempt.allocate(&self.nodes[*node], Budget::default()).expect("valid input");
            matches!(verdict.outcome, Outcome::Allocated(_))
        };
        (0..self.nodes.len()).filter(fits).collect()
    }
}

/// Cluster with the jobs on it and those that wait.
struct Week<'c> {
    questions: Questions<'c>,
    jobs: Vec<Job>,
    /// Devices in use, of the jobs of a priority and above it.
    states: Vec<AllocatedState>,
    on: Vec<Vec<Running>>,
    /// Nodes by the number of their free GPUs.
    by_free: BTreeSet<(usize, usize)>,
    free: Vec<usize>,
    waiting: BTreeMap<(Reverse<usize>, usize), VecDeque<usize>>,
    /// Nodes that got room since a kind was refused by all; none if it was not.
    news: [Option<BTreeSet<usize>>; KINDS.len()],
    leaving: BinaryHeap<Reverse<(u64, usize, usize)>>,
    placed: usize,
    preempted: usize,
    asked_to_preempt: usize,
}

impl Week<'_> {
    fn set_free(&mut self, node: usize, free: usize) {
        self.by_free.remove(&(self.free[node], node));
        self.free[node] = free;
        self.by_free.insert((free, node));
    }

    fn begin(&mut self, job: usize, node: usize, allocation: &AllocationResult, now: u64) {
        let Job { kind, priority, stays, ref claim, .. } = self.jobs[job];
        for state in &mut self.states[..=priority] {
            state.assume(claim, allocation).expect("a valid allocation");
        }
        self.on[node].push(Running { job, until: now + stays });
        self.leaving.push(Reverse((now + stays, node, job)));
        self.set_free(node, self.free[node] - KINDS[kind].0);
    }

    /// Ends a job on a node. Returns the minutes that are left of its stay; none if it is not there.
    fn end(&mut self, job: usize, node: usize, now: u64) -> Option<u64> {
        let place = self.on[node].iter().position(|running| running.job == job)?;
        let left = self.on[node].swap_remove(place).until - now;
        let Job { kind, priority, ref claim, .. } = self.jobs[job];
        for state in &mut self.states[..=priority] {
            let _ = state.forget(claim);
        }
        self.set_free(node, self.free[node] + KINDS[kind].0);
        self.news.iter_mut().flatten().for_each(|news| {
            news.insert(node);
        });
        Some(left)
    }

    fn wait(&mut self, job: usize) {
        let Job { kind, priority, .. } = self.jobs[job];
        self.waiting.entry((Reverse(priority), kind)).or_default().push_back(job);
    }

    /// Places the jobs that wait, those of the highest priority first, until each kind is refused.
    fn place_all(&mut self, now: u64) {
        let keys: Vec<_> = self.waiting.iter().filter(|(_, jobs)| !jobs.is_empty()).map(|(key, _)| *key).collect();
        for key in keys {
            while let Some(job) = self.waiting[&key].front().copied() {
                if !self.place(job, now) && !self.preempt(job, now) {
                    break;
                }
                self.waiting.get_mut(&key).and_then(VecDeque::pop_front);
            }
        }
    }

    fn place(&mut self, job: usize, now: u64) -> bool {
        let Job { kind, ref claim, .. } = self.jobs[job];
        let wanted = KINDS[kind].0;
        let found = if let Some(news) = &self.news[kind] {
            let mut open: Vec<_> = news.iter().filter(|node| self.free[**node] >= wanted).copied().collect();
            open.sort_unstable_by_key(|node| (self.free[*node], *node));
            self.questions.first(&self.states[0], claim, open.into_iter())
        } else {
            let open = self.by_free.range((wanted, 0)..).map(|(_, node)| *node);
            self.questions.first(&self.states[0], claim, open)
        };
        let Some((node, allocation)) = found else {
            self.news[kind] = Some(BTreeSet::new());
            return false;
        };
        self.placed += 1;
        self.begin(job, node, &allocation, now);
        true
    }

    /// Takes the devices of jobs of lower priority for a job, which asks once.
    fn preempt(&mut self, job: usize, now: u64) -> bool {
        let Job { kind, priority, ref claim, may_preempt, .. } = self.jobs[job];
        if priority == 0 || !may_preempt {
            return false;
        }
        let claim = claim.clone();
        self.jobs[job].may_preempt = false;
        self.asked_to_preempt += 1;
        let fitting = self.questions.all(&self.states[priority], priority, &claim);
        let victims = |node: usize| {
            let lower =
                self.on[node].iter().map(|running| running.job).filter(|job| self.jobs[*job].priority < priority);
            let mut lower: Vec<usize> = lower.collect();
            lower.sort_unstable_by_key(|job| (self.jobs[*job].priority, Reverse(KINDS[self.jobs[*job].kind].0), *job));
            lower
        };
        let harm = |node: &usize| {
            let (mut free, mut harm) = (self.free[*node], 0);
            for victim in victims(*node) {
                if free >= KINDS[kind].0 {
                    break;
                }
                free += KINDS[self.jobs[victim].kind].0;
                harm += 1;
            }
            (harm, *node)
        };
        let Some(node) = fitting.into_iter().min_by_key(harm) else { return false };
        for victim in victims(node) {
            if let Some((_, allocation)) = self.questions.first(&self.states[0], &claim, std::iter::once(node)) {
                self.begin(job, node, &allocation, now);
                self.placed += 1;
                return true;
            }
            self.jobs[victim].stays = self.end(victim, node, now).unwrap_or_default();
            self.preempted += 1;
            self.wait(victim);
        }
        let (_, allocation) = self.questions.first(&self.states[0], &claim, std::iter::once(node)).expect("room");
        self.begin(job, node, &allocation, now);
        self.placed += 1;
        true
    }

    fn play(&mut self) {
        for next in 0..self.jobs.len() {
            let now = self.jobs[next].comes;
            while let Some(Reverse((until, node, job))) = self.leaving.peek().copied().filter(|entry| entry.0.0 <= now)
            {
                self.leaving.pop();
                // An end that was put off by a preemption is no longer that of the job.
                let is_due = self.on[node].iter().any(|running| running.job == job && running.until == until);
                if is_due && self.end(job, node, until).is_some() {
                    self.place_all(until);
                }
            }
            self.wait(next);
            self.place_all(now);
        }
    }
}

/// Returns the processor time of the program, in milliseconds.
fn processor_time() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    Ok(text.split_whitespace().next().ok_or("a time")?.parse::<u64>()? / 1_000_000)
}

fn jobs(count: usize, mean_stay_hours: usize) -> Result<Vec<Job>, serde_json::Error> {
    let mut draws = Draws(1);
    let job = |number: usize| {
        let mut share = draws.below(100);
        let is_kind = |(_, _, of_kind): &(usize, usize, usize)| {
            let is_it = share < *of_kind;
            share = share.saturating_sub(*of_kind);
            is_it
        };
        let kind = KINDS.iter().position(is_kind).unwrap_or_default();
        let priority = match draws.below(20) {
            0..14 => 0,
            14..19 => 1,
            _ => 2,
        };
        let comes = MINUTES * u64::try_from(number).unwrap_or_default() / u64::try_from(count).unwrap_or(1);
        let stays = u64::try_from(1 + draws.below(mean_stay_hours * 120)).unwrap_or(1);
        Ok(Job { kind, priority, comes, stays, claim: claim(&format!("j{number}"), KINDS[kind])?, may_preempt: true })
    };
    (0..count).map(job).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let nodes = numbers.next().transpose()?.unwrap_or(5_000);
    let count = numbers.next().transpose()?.unwrap_or(100_000);
    let mean_stay_hours = numbers.next().transpose()?.unwrap_or(40);
    let list = (0..nodes).map(|node| from_value(json!({"metadata": {"name": format!("n{node}")}})));
    let list: Vec<Node> = list.collect::<Result<_, _>>()?;
    let all = (0..nodes).map(slices).collect::<Result<Vec<_>, _>>()?;
    let (inventory, selectors) = (Inventory::new(all.into_iter().flatten()), SelectorCache::default());
    let classes = Classes::new([class("gpu")?, class("nic")?]);
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes).with_selector_cache(&selectors);
    let mut week = Week {
        questions: Questions::new(&allocator, &list),
        jobs: jobs(count, mean_stay_hours)?,
        states: vec![AllocatedState::default(); PRIORITIES],
        on: (0..nodes).map(|_| Vec::new()).collect(),
        by_free: (0..nodes).map(|node| (8, node)).collect(),
        free: vec![8; nodes],
        waiting: BTreeMap::new(),
        news: Default::default(),
        leaving: BinaryHeap::new(),
        placed: 0,
        preempted: 0,
        asked_to_preempt: 0,
    };
    let begin = processor_time()?;
    week.play();
    let told = json!({"case": "week", "nodes": nodes, "jobs": count, "by_state": cfg!(feature = "by_state"),
        "ms": processor_time()? - begin, "placed": week.placed, "preempted": week.preempted,
        "asked_to_preempt": week.asked_to_preempt, "devices_in_use": week.states[0].len()});
    println!("{told}");
    Ok(())
}
