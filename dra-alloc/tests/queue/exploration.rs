//! Every history of two or three pods up to a number of steps: no pod is lost, none starves, none spins, and an event lets out
//! those that it can help and nobody else.
//!
//! `EXPLORE=2` makes the histories two steps longer.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::slice;
use std::sync::Arc;

use dra_alloc::queue::{ClusterEvent, ObjectChange, Place, QueueAttempt, Refusal, Remedy, SchedulingQueue, WhenIdle};
use k8s_openapi::api::core::v1::Pod;

use super::objects::{at, pod, queue, read, remedy};

/// Remedies that refusals wait for and events bring.
const REMEDIES: [&str; 2] = ["room", "devices:x"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Add(usize),
    Delete(usize),
    Pop,
    /// Ends an attempt, by its number: refused for a remedy, failed, or bound.
    Refuse(usize, usize),
    Fail(usize),
    Done(usize),
    Wake(usize),
    /// One second passes.
    Second,
    /// The time comes at which the queue wants to be asked.
    NextAt,
}

/// Pods with their groups.
struct Cluster {
    pods: Vec<(&'static str, Option<&'static str>, Arc<Pod>)>,
    remedies: [Remedy; 2],
}

impl Cluster {
    fn new(pods: &[(&'static str, Option<&'static str>)]) -> Self {
        let with_object = |(name, group): &(&'static str, _)| (*name, *group, read(&pod(name, 0, *group)));
        Self { pods: pods.iter().map(with_object).collect(), remedies: REMEDIES.map(remedy) }
    }
}

/// A queue and what is known of it from outside.
struct History<'c> {
    cluster: &'c Cluster,
    queue: SchedulingQueue,
    now: i64,
    waiting: BTreeSet<usize>,
    /// Attempts by number.
    attempts: BTreeMap<usize, Tried>,
    begun: usize,
    /// Remedies that refused pods wait for, by pod.
    refused_for: BTreeMap<usize, usize>,
    /// End of the pause of pods whose attempt has failed.
    failed_until: BTreeMap<usize, i64>,
}

/// An attempt that is under way.
struct Tried {
    attempt: QueueAttempt,
    /// Pods that are tried and still there.
    pods: Vec<usize>,
    group: Option<&'static str>,
    /// Remedies that have come since the begin.
    come: BTreeSet<usize>,
}

impl<'c> History<'c> {
    fn new(cluster: &'c Cluster) -> Self {
        Self {
            cluster,
            queue: queue(WhenIdle::TryBackingOff),
            now: 0,
            waiting: BTreeSet::new(),
            attempts: BTreeMap::new(),
            begun: 0,
            refused_for: BTreeMap::new(),
            failed_until: BTreeMap::new(),
        }
    }

    /// Returns the steps that can come next.
    fn steps(&self) -> Vec<Step> {
        let all = 0..self.cluster.pods.len();
        let added = all.map(|pod| if self.waiting.contains(&pod) { Step::Delete(pod) } else { Step::Add(pod) });
        let ends = self.attempts.keys().flat_map(|number| {
            [Step::Refuse(*number, 0), Step::Refuse(*number, 1), Step::Fail(*number), Step::Done(*number)]
        });
        let mut steps: Vec<Step> = added.chain(ends).chain([Step::Pop, Step::Wake(0), Step::Wake(1)]).collect();
        steps.extend(self.queue.next_at().map(|_| [Step::Second, Step::NextAt]).into_iter().flatten());
        steps
    }

    fn place(&self, pod: usize) -> Option<Place> {
        self.queue.place(self.cluster.pods[pod].0)
    }

    fn play(&mut self, step: Step) {
        let cluster = self.cluster;
        let added = |pod: usize| ClusterEvent::Pod(ObjectChange::Added(&cluster.pods[pod].2));
        let deleted = |pod: usize| ClusterEvent::Pod(ObjectChange::Deleted(&cluster.pods[pod].2));
        match step {
            Step::Add(pod) => {
                self.queue.observe(&added(pod), at(self.now)).unwrap();
                self.waiting.insert(pod);
                self.inherit(pod);
            }
            Step::Delete(pod) => {
                self.queue.observe(&deleted(pod), at(self.now)).unwrap();
                self.waiting.remove(&pod);
                self.clear(pod);
                self.attempts.values_mut().for_each(|tried| tried.pods.retain(|known| *known != pod));
            }
            Step::Pop => drop(self.pop()),
            Step::Refuse(number, by) => {
                let Tried { attempt, pods, group, come } = self.attempts.remove(&number).unwrap();
                self.queue.refused(attempt, Refusal::new([cluster.remedies[by].clone()]), at(self.now));
                let expected = if come.contains(&by) { Place::BackingOff } else { Place::Unschedulable };
                for pod in self.with_joined(pods, group) {
                    assert_eq!(self.place(pod), Some(expected), "a remedy that came during the attempt counts");
                    self.refused_for.extend((expected == Place::Unschedulable).then_some((pod, by)));
                }
            }
            Step::Fail(number) => {
                let Tried { attempt, pods, group, .. } = self.attempts.remove(&number).unwrap();
                self.queue.failed(attempt, at(self.now));
                for pod in self.with_joined(pods, group) {
                    self.failed_until.insert(pod, self.now + 1_000);
                }
            }
            Step::Done(number) => {
                let Tried { attempt, pods, .. } = self.attempts.remove(&number).unwrap();
                self.queue.done(attempt);
                for pod in pods {
                    self.waiting.remove(&pod);
                    self.queue.observe(&added(pod), at(self.now)).unwrap();
                    assert_eq!(self.place(pod), None, "a watch that is behind adds no pod that is bound");
                    self.queue.observe(&deleted(pod), at(self.now)).unwrap();
                }
            }
            Step::Wake(by) => self.wake(by),
            Step::Second => self.now += 1_000,
            Step::NextAt => self.now = self.queue.next_at().unwrap().as_millisecond().max(self.now),
        }
        self.check();
    }

    /// Begins an attempt, and returns its number.
    fn pop(&mut self) -> Option<usize> {
        let attempt = self.queue.pop(at(self.now), |_| Ok(()))?;
        let names = attempt.pods().iter().filter_map(|pod| pod.metadata.name.as_deref());
        let position = |name| self.cluster.pods.iter().position(|(known, ..)| *known == name).unwrap();
        let pods: Vec<usize> = names.map(position).collect();
        for pod in &pods {
            let until = self.failed_until.get(pod).copied().unwrap_or_default();
            assert!(until <= self.now, "a pod whose attempt has failed comes back by time alone");
            assert!(self.waiting.contains(pod), "a pod is tried that is gone");
            self.clear(*pod);
        }
        self.begun += 1;
        let group = self.cluster.pods[pods[0]].1;
        self.attempts.insert(self.begun, Tried { attempt, pods, group, come: BTreeSet::new() });
        Some(self.begun)
    }

    /// Returns the pods of an attempt, and those that have joined their group.
    fn with_joined(&self, tried: Vec<usize>, group: Option<&str>) -> Vec<usize> {
        let is_joined = |pod: &usize| group.is_some() && self.cluster.pods[*pod].1 == group && !tried.contains(pod);
        let joined: Vec<usize> = self.waiting.iter().copied().filter(is_joined).collect();
        tried.into_iter().chain(joined).collect()
    }

    fn wake(&mut self, by: usize) {
        for tried in self.attempts.values_mut() {
            tried.come.insert(by);
        }
        let before: Vec<_> = (0..self.cluster.pods.len()).map(|pod| self.place(pod)).collect();
        self.queue.wake(slice::from_ref(&self.cluster.remedies[by]), at(self.now));
        for (pod, before) in before.into_iter().enumerate() {
            let is_helped = before == Some(Place::Unschedulable) && self.refused_for.get(&pod) == Some(&by);
            if is_helped {
                assert!(matches!(self.place(pod), Some(Place::Active | Place::BackingOff)), "an event is missed");
                self.refused_for.remove(&pod);
            } else {
                assert_eq!(self.place(pod), before, "an event wakes a pod that it can't help");
            }
        }
    }

    fn clear(&mut self, pod: usize) {
        self.refused_for.remove(&pod);
        self.failed_until.remove(&pod);
    }

    /// Gives a new pod what the other pods of its group wait for.
    fn inherit(&mut self, pod: usize) {
        let group = self.cluster.pods[pod].1;
        let is_other = |other: &&usize| group.is_some() && self.cluster.pods[**other].1 == group;
        let Some(other) = self.refused_for.keys().chain(self.failed_until.keys()).find(is_other).copied() else {
            return;
        };
        self.refused_for.extend(self.refused_for.get(&other).copied().map(|by| (pod, by)));
        self.failed_until.extend(self.failed_until.get(&other).copied().map(|until| (pod, until)));
    }

    fn check(&self) {
        let mut places = BTreeMap::new();
        for (pod, (_, group, _)) in self.cluster.pods.iter().enumerate() {
            let place = self.place(pod);
            assert_eq!(place.is_some(), self.waiting.contains(&pod), "pod {pod} is lost, or is kept");
            let unit = group.map_or(pod, |_| usize::MAX);
            if let Some(place) = place {
                assert_eq!(*places.entry(unit).or_insert(place), place, "pods of a group are apart");
            }
        }
        for place in [Place::Active, Place::BackingOff, Place::Unschedulable, Place::Gated] {
            let expected = places.values().filter(|found| **found == place).count();
            assert_eq!(self.queue.count(place), expected, "{place:?}");
        }
    }

    /// Goes on without events, refusing each attempt: all pods are tried again, and no more often than their pauses allow.
    fn go_on(mut self) {
        for number in self.attempts.keys().copied().collect::<Vec<_>>() {
            self.play(Step::Refuse(number, 0));
        }
        assert_eq!(self.queue.remembered(), 0, "no attempt is under way");
        let mut left = self.waiting.clone();
        for _ in 0..=2 * self.cluster.pods.len() {
            for count in 0.. {
                let Some(number) = self.pop() else { break };
                assert!(count < self.cluster.pods.len(), "a pod spins");
                left.retain(|pod| !self.attempts[&number].pods.contains(pod));
                self.play(Step::Refuse(number, 0));
            }
            match self.queue.next_at() {
                Some(next) => self.now = next.as_millisecond(),
                None => break,
            }
        }
        assert!(left.is_empty(), "a pod starves");
    }
}

fn explore(cluster: &Cluster, path: &mut Vec<Step>, steps: usize) -> usize {
    let mut history = History::new(cluster);
    for step in path.iter() {
        history.play(*step);
    }
    if path.len() == steps {
        history.go_on();
        return 1;
    }
    let mut number = 0;
    for step in history.steps() {
        path.push(step);
        number += explore(cluster, path, steps);
        path.pop();
    }
    number
}

fn explore_all(cluster: &Cluster, steps: usize) -> usize {
    let more: usize = env::var("EXPLORE").ok().and_then(|more| more.parse().ok()).unwrap_or_default();
    explore(cluster, &mut Vec::new(), steps + more)
}

#[test]
fn two_pods_in_every_history() {
    assert!(explore_all(&Cluster::new(&[("a", None), ("b", None)]), 6) > 10_000);
}

#[test]
fn a_pod_and_a_group_in_every_history() {
    assert!(explore_all(&Cluster::new(&[("a", None), ("b", Some("g")), ("c", Some("g"))]), 5) > 10_000);
}
