//! Pods that wait for a node, kept as the watch tells, with the time of the next attempt for each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dra_alloc::claims::ClaimKey;
use examples::candidates::{claims_of, is_pending};
use examples::live::cluster_view::{ClusterView, place};
use examples::live::touched::Place;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::time::Instant;

/// Pause after the first attempt that found no node.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Reason that an attempt has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setback {
    /// No node fits: changes of nodes and claims bring the next attempt forward.
    NoNode,
    /// A write was refused, or somebody else has the devices. Nothing brings the next attempt forward but another pod spec: the
    /// events that follow may be those of the own writes.
    Write,
    /// The search took too long, and will again.
    TimedOut,
    /// The pod has a rule that this scheduler does not know. Nothing changes that but another pod spec.
    Foreign,
}

impl Setback {
    /// Returns the first and the longest pause.
    const fn pauses(self) -> (Duration, Duration) {
        match self {
            Self::NoNode => (FIRST_PAUSE, Duration::from_secs(10)),
            Self::Write => (Duration::from_secs(1), Duration::from_secs(30)),
            Self::TimedOut => (Duration::from_secs(1), Duration::from_secs(300)),
            Self::Foreign => (Duration::from_secs(300), Duration::from_secs(300)),
        }
    }
}

/// Pods that wait for a node of one scheduler.
#[derive(Debug)]
pub(super) struct Queue {
    /// Name that pods ask for in `schedulerName`.
    scheduler: String,
    pods: BTreeMap<Place, Waiting>,
    by_claim: BTreeMap<ClaimKey, BTreeSet<Place>>,
    /// Pods by the time of their next attempt. One that is being bound has none.
    due: BTreeSet<(Instant, Place)>,
}

/// Pod that waits.
#[derive(Debug)]
struct Waiting {
    uid: Option<String>,
    created: Option<Time>,
    claims: BTreeSet<ClaimKey>,
    /// Time at which the pod was first seen to wait.
    since: Instant,
    due: Option<Instant>,
    /// Reason that the last attempt has failed, and the pause after it; `None` before the first one.
    setback: Option<(Setback, Duration)>,
    spec: Option<PodSpec>,
}

impl Queue {
    pub(super) const fn new(scheduler: String) -> Self {
        Self { scheduler, pods: BTreeMap::new(), by_claim: BTreeMap::new(), due: BTreeSet::new() }
    }

    /// Takes a list of all pods.
    pub(super) fn replace(&mut self, view: &ClusterView) {
        let gone: Vec<Place> = self.pods.keys().filter(|place| view.pod_at(place).is_none()).cloned().collect();
        for place in &gone {
            self.remove(place);
        }
        for pod in view.all_pods() {
            self.update(&place(&pod.metadata), Some(pod));
        }
    }

    /// Takes a pod as it is now; `None` if it is gone.
    pub(super) fn update(&mut self, place: &Place, pod: Option<&Pod>) {
        let pod = pod.filter(|pod| is_pending(pod, Some(&self.scheduler)));
        let uid = pod.and_then(|pod| pod.metadata.uid.as_ref());
        if self.pods.get(place).is_some_and(|known| pod.is_none() || known.uid.as_ref() != uid) {
            self.remove(place);
        }
        let Some(pod) = pod else { return };
        let (now, claims) = (Instant::now(), claims_of(pod));
        let waiting = self.pods.entry(place.clone()).or_insert_with(|| Waiting {
            uid: uid.cloned(),
            created: pod.metadata.creation_timestamp.clone(),
            claims: BTreeSet::new(),
            since: now,
            due: None,
            setback: None,
            spec: pod.spec.clone(),
        });
        let is_new = waiting.due.is_none() && waiting.setback.is_none();
        if waiting.spec != pod.spec {
            // Another wish: what went wrong before may be over.
            (waiting.spec, waiting.setback) =
                (pod.spec.clone(), waiting.setback.map(|_| (Setback::NoNode, FIRST_PAUSE)));
        }
        for claim in waiting.claims.difference(&claims) {
            remove_place(&mut self.by_claim, claim, place);
        }
        for claim in claims.difference(&waiting.claims) {
            self.by_claim.entry(claim.clone()).or_default().insert(place.clone());
        }
        waiting.claims = claims;
        if is_new { self.set_due(place, now) } else { self.soon(place) }
    }

    pub(super) fn remove(&mut self, place: &Place) {
        let Some(known) = self.pods.remove(place) else { return };
        for claim in &known.claims {
            remove_place(&mut self.by_claim, claim, place);
        }
        if let Some(due) = known.due {
            self.due.remove(&(due, place.clone()));
        }
    }

    /// Notes a change of a claim: its pods are tried anew.
    pub(super) fn claim_changed(&mut self, claim: &ClaimKey) {
        let places: Vec<Place> = self.by_claim.get(claim).into_iter().flatten().cloned().collect();
        for place in &places {
            self.soon(place);
        }
    }

    /// Notes a change of nodes: every pod is tried anew.
    pub(super) fn nodes_changed(&mut self) {
        let places: Vec<Place> = self.due.iter().map(|(_, place)| place.clone()).collect();
        for place in &places {
            self.soon(place);
        }
    }

    /// Takes the pods whose time has come, the oldest first. Each has no further attempt before [`Queue::delay`].
    pub(super) fn take_due(&mut self) -> Vec<Place> {
        let now = Instant::now();
        let mut due = Vec::new();
        while self.due.first().is_some_and(|(due, _)| *due <= now) {
            let Some((_, place)) = self.due.pop_first() else { break };
            if let Some(waiting) = self.pods.get_mut(&place) {
                waiting.due = None;
                due.push((waiting.created.clone(), place.1.clone(), place));
            }
        }
        due.sort();
        due.into_iter().map(|(.., place)| place).collect()
    }

    /// Returns the time of the next attempt.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Plans another attempt, later than after the last one that failed likewise. Returns true after the first.
    pub(super) fn delay(&mut self, place: &Place, setback: Setback) -> bool {
        let Some(waiting) = self.pods.get_mut(place) else { return false };
        let known = waiting.setback;
        let (first, longest) = setback.pauses();
        let last = known.filter(|(known, _)| *known == setback).map(|(_, pause)| pause);
        let pause = last.map_or(first, |last| last.saturating_mul(2)).min(longest);
        waiting.setback = Some((setback, pause));
        let now = Instant::now();
        self.set_due(place, now.checked_add(pause).unwrap_or(now));
        known.is_none()
    }

    /// Returns the time since which a pod waits.
    pub(super) fn waiting_since(&self, place: &Place) -> Option<Instant> {
        self.pods.get(place).map(|waiting| waiting.since)
    }

    /// Brings the next attempt of a pod forward, to the end of the shortest pause.
    fn soon(&mut self, place: &Place) {
        let now = Instant::now();
        let soon = now.checked_add(FIRST_PAUSE).unwrap_or(now);
        let waits_for_news = |waiting: &&Waiting| waiting.setback.is_none_or(|(setback, _)| setback == Setback::NoNode);
        let waiting = self.pods.get(place).filter(waits_for_news);
        if waiting.and_then(|waiting| waiting.due).is_some_and(|due| soon < due) {
            self.set_due(place, soon);
        }
    }

    fn set_due(&mut self, place: &Place, due: Instant) {
        let Some(waiting) = self.pods.get_mut(place) else { return };
        if let Some(before) = waiting.due.replace(due) {
            self.due.remove(&(before, place.clone()));
        }
        self.due.insert((due, place.clone()));
    }
}

fn remove_place(by_claim: &mut BTreeMap<ClaimKey, BTreeSet<Place>>, claim: &ClaimKey, place: &Place) {
    let Some(places) = by_claim.get_mut(claim) else { return };
    places.remove(place);
    if places.is_empty() {
        by_claim.remove(claim);
    }
}
