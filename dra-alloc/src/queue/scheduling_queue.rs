//! The queue: places of pods, and their changes by attempts, events and time.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use dra_device::internal::{PodFields, ResourceVersion};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::attempt::QueueAttempt;
use super::event::{ClusterEvent, ObjectChange};
use super::options::QueueOptions;
use super::order::{PrioritySort, QueueOrder};
use super::places::Places;
use super::pod_change::{for_itself, has_gates, waits};
use super::recent::RecentRemedies;
use super::refusal::Refusal;
use super::remedy::Remedy;
use super::unit::{Ending, GroupKey, Place, RefusedBy, State, Unit};

/// Pods that wait for a node, and the decision which of them to try next.
///
/// The pods of a group (`spec.schedulingGroup`) are one unit: they wait, are tried and come back together. A pod with
/// scheduling gates is by itself until they are gone.
///
/// A clone is a snapshot, and costs as much as the queue has pods.
#[derive(Clone, Debug)]
pub struct SchedulingQueue<O: QueueOrder = PrioritySort> {
    order: O,
    options: QueueOptions,
    units: BTreeMap<u64, Unit<O::Rank>>,
    by_uid: BTreeMap<String, u64>,
    by_group: BTreeMap<GroupKey, u64>,
    /// UIDs of pods that were bound, until the watch shows it.
    bound: BTreeSet<String>,
    places: Places<O::Rank>,
    recent: RecentRemedies,
    next_number: u64,
}

/// An attempt that is over.
struct Ended {
    /// Number of the unit.
    number: u64,
    begin: u64,
    /// Changes of the pods since the begin.
    own: BTreeSet<Remedy>,
    is_activated: bool,
}

/// Reason why a queue can't take an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// A pod has no UID, so that nobody can tell it from the next one of its name.
    #[error("pod {pod}: metadata.uid: must not be empty")]
    NoUid {
        /// Namespace and name of the pod.
        pod: String,
    },
}

impl<O: QueueOrder> SchedulingQueue<O> {
    /// Creates an empty queue with an order, kube-scheduler's [`PrioritySort`] or the caller's.
    #[must_use]
    pub fn new(order: O, options: QueueOptions) -> Self {
        Self {
            order,
            options,
            units: BTreeMap::new(),
            by_uid: BTreeMap::new(),
            by_group: BTreeMap::new(),
            bound: BTreeSet::new(),
            places: Places::default(),
            recent: RecentRemedies::default(),
            next_number: 0,
        }
    }

    /// Takes an event, and returns the number of units that it lets out: of one pod each, or of the pods of a group. A pod
    /// event also adds the pod to the queue, updates it, or takes it out: a pod waits if it has no node, is not finished, and
    /// is not being deleted. The caller's caches have to know the event first.
    ///
    /// An event may come twice, and a pod's older version after a newer one: neither changes anything.
    ///
    /// # Errors
    /// A pod has no UID.
    ///
    /// # Complexity
    /// Linear in the objects of the event and in the pods of a waiting pod's group, and logarithmic in the number of pods for each
    /// unit that it helps.
    pub fn observe(&mut self, event: &ClusterEvent<'_>, now: Timestamp) -> Result<usize, QueueError> {
        let of_pod = match event {
            ClusterEvent::Pod(change) => self.observe_pod(change, now)?,
            _ => 0,
        };
        Ok(of_pod + self.wake(&event.remedies(), now))
    }

    /// Tells the queue of remedies that no event brings, and returns the number of units that they help: what an attempt has
    /// given back ([`Remedy::given_back`]), or changes that the caller's own filters look at.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods, for each remedy and each unit that it helps.
    pub fn wake(&mut self, remedies: &[Remedy], now: Timestamp) -> usize {
        let mut woken = 0;
        for remedy in remedies.iter().filter(|remedy| !remedy.is_own()) {
            self.recent.add(remedy);
            for number in self.places.helped_by(remedy) {
                self.release(number, now);
                woken += 1;
            }
        }
        woken
    }

    /// Takes out the first unit to try, and begins an attempt; `None` if there is none to try before [`SchedulingQueue::next_at`].
    ///
    /// `pre_enqueue` looks at the pods just before: a refusal keeps them back until a remedy of it comes. It costs no pause, and
    /// counts as no attempt. [`pre_enqueue`](crate::pods::pre_enqueue) with [`Refusal::blocked`] is the check for claims.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods, for each unit that comes back by time or is kept back.
    pub fn pop(
        &mut self,
        now: Timestamp,
        mut pre_enqueue: impl FnMut(&[Arc<Pod>]) -> Result<(), Refusal>,
    ) -> Option<QueueAttempt> {
        self.advance(now);
        loop {
            let number = self.places.first(self.options.tries_backing_off())?;
            let Err(refusal) = pre_enqueue(&self.units.get(&number)?.pods) else { return self.begin(number) };
            let flush_at = self.options.flush_at(now);
            let state = State::Waiting { refusal, flush_at, by: RefusedBy::PreEnqueue };
            self.change(number, |unit| unit.state = state);
        }
    }

    /// Ends an attempt that found no node. The pods wait for one of the remedies of the refusal; if one has come since the
    /// attempt began, they are tried again after a pause.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods and of recent remedies, for each remedy of the refusal.
    pub fn refused(&mut self, attempt: QueueAttempt, refusal: Refusal, now: Timestamp) {
        let Some(Ended { number, begin, own, is_activated }) = self.end(attempt) else { return };
        let is_helped =
            is_activated || self.recent.helps(&refusal, begin) || own.iter().any(|remedy| refusal.is_helped_by(remedy));
        self.recent.end(begin, number);
        let options = self.options;
        self.change(number, |unit| {
            unit.end(now);
            unit.refusals = unit.refusals.saturating_add(1);
            unit.failures = 0;
            match (is_helped, refusal.is_unsure()) {
                (true, _) => unit.pause(options, Ending::Refused),
                (false, true) => unit.pause(options, Ending::Failed),
                (false, false) => {
                    let flush_at = options.flush_at(now);
                    unit.state = State::Waiting { refusal, flush_at, by: RefusedBy::Attempt };
                }
            }
        });
    }

    /// Ends an attempt that an error has ended: a write was refused, or its answer was lost. The pods come back after a pause and
    /// not before: no event cuts it short, for the scheduler's own writes make events.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods.
    pub fn failed(&mut self, attempt: QueueAttempt, now: Timestamp) {
        let Some(Ended { number, begin, .. }) = self.end(attempt) else { return };
        self.recent.end(begin, number);
        let options = self.options;
        self.change(number, |unit| {
            unit.end(now);
            unit.failures = unit.failures.saturating_add(1);
            unit.pause(options, Ending::Failed);
        });
    }

    /// Ends an attempt whose pods are all bound. They stay away also if the watch shows them without a node once more. Pods that
    /// have joined their group meanwhile are tried next.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods, for each pod of the attempt.
    pub fn done(&mut self, attempt: QueueAttempt) {
        let Some(Ended { number, begin, .. }) = self.end(attempt) else { return };
        self.recent.end(begin, number);
        // Pods that are gone meanwhile are not in the unit any more, and those that have joined are not yet.
        let mut placed = Vec::new();
        self.change(number, |unit| {
            placed = mem::take(&mut unit.pods);
            unit.end(unit.since);
            (unit.refusals, unit.failures, unit.state) = (0, 0, State::Active);
        });
        for pod in &placed {
            self.by_uid.remove(pod.uid());
            self.bound.insert(pod.uid().to_owned());
        }
    }

    /// Takes out one pod that is bound, as of a group of which an attempt could not place every pod.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods, and linear in those of the group.
    pub fn bound(&mut self, uid: &str) {
        if let Some(number) = self.by_uid.remove(uid) {
            self.bound.insert(uid.to_owned());
            self.change(number, |unit| unit.remove(uid));
        }
    }

    /// Lets a pod, with its group, be tried without a pause and without an event. If it is being tried, it is tried again after
    /// a refusal. Returns false if nothing changes: the pod is unknown or active, is held by scheduling gates, or has failed and
    /// comes back by time alone.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods.
    pub fn activate(&mut self, uid: &str) -> bool {
        let Some(&number) = self.by_uid.get(uid) else { return false };
        let mut has_changed = true;
        self.change(number, |unit| match &mut unit.state {
            State::InFlight { is_activated, .. } => *is_activated = true,
            State::Waiting { .. } | State::BackingOff { after: Ending::Refused, .. } => unit.state = State::Active,
            State::Active | State::Held | State::BackingOff { after: Ending::Failed, .. } => has_changed = false,
        });
        has_changed
    }

    /// Forgets the pods that a new list of all pods does not have. The pods of the list itself are told by
    /// [`SchedulingQueue::observe`].
    ///
    /// # Complexity
    /// `n log n` in the number of pods.
    pub fn retain_listed<'u>(&mut self, uids: impl IntoIterator<Item = &'u str>, now: Timestamp) {
        let listed: BTreeSet<&str> = uids.into_iter().collect();
        let is_gone = |uid: &&String| !listed.contains(uid.as_str());
        let gone: Vec<String> = self.by_uid.keys().chain(&self.bound).filter(is_gone).cloned().collect();
        for uid in &gone {
            self.forget(uid, now);
        }
    }

    /// Returns the next time at which a pod can be tried without an event, if no pod is active; `None` if only an event helps.
    /// Call [`SchedulingQueue::pop`] at that time.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods.
    #[must_use]
    pub fn next_at(&self) -> Option<Timestamp> {
        self.places.next_at()
    }

    /// Returns the place of a pod; `None` if it is not in the queue.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods.
    #[must_use]
    pub fn place(&self, uid: &str) -> Option<Place> {
        Some(self.units.get(self.by_uid.get(uid)?)?.state.place())
    }

    /// Returns the number of units in a place. Pauses that are over count until the next [`SchedulingQueue::pop`].
    ///
    /// # Complexity
    /// Constant.
    #[must_use]
    pub fn count(&self, place: Place) -> usize {
        self.places.count(place)
    }

    /// Returns the number of objects that the queue remembers beside the pods that wait: UIDs of bound pods, and remedies that
    /// have come during attempts. For a test of a caller that memory follows the cluster.
    ///
    /// # Complexity
    /// Constant.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.bound.len() + self.recent.len()
    }

    /// Lets out the units whose time has come.
    fn advance(&mut self, now: Timestamp) {
        while let Some(number) = self.places.back(now) {
            self.change(number, |unit| unit.state = State::Active);
        }
        while let Some(number) = self.places.overdue(now) {
            self.release(number, now);
        }
    }

    fn begin(&mut self, number: u64) -> Option<QueueAttempt> {
        let begin = self.recent.begin(number);
        self.change(number, |unit| {
            unit.attempts = unit.attempts.saturating_add(1);
            unit.state = State::InFlight { begin, own: BTreeSet::new(), is_activated: false };
        });
        let unit = self.units.get(&number)?;
        Some(QueueAttempt { unit: number, number: unit.attempts, pods: unit.pods.clone() })
    }

    /// Takes an attempt back, whose unit is in flight until it is changed.
    #[expect(clippy::needless_pass_by_value, reason = "the attempt is over")]
    fn end(&mut self, attempt: QueueAttempt) -> Option<Ended> {
        let number = attempt.unit;
        match &mut self.units.get_mut(&number)?.state {
            State::InFlight { begin, own, is_activated } => {
                Some(Ended { number, begin: *begin, own: mem::take(own), is_activated: *is_activated })
            }
            _ => None,
        }
    }

    fn observe_pod(&mut self, change: &ObjectChange<'_, Arc<Pod>>, now: Timestamp) -> Result<usize, QueueError> {
        let (old, new) = (change.before(), change.after());
        if let Some(pod) = [old, new].into_iter().flatten().find(|pod| pod.uid().is_empty()) {
            return Err(QueueError::NoUid { pod: pod.full_name() });
        }
        let gone = old.filter(|old| new.is_none_or(|new| new.uid() != old.uid()));
        let of_group = gone.map_or(0, |pod| self.forget(pod.uid(), now));
        let of_pod = match new {
            Some(pod) if !waits(pod) => self.forget(pod.uid(), now),
            Some(pod) if !self.bound.contains(pod.uid()) => self.show(pod, now),
            _ => 0,
        };
        Ok(of_group + of_pod)
    }

    fn show(&mut self, pod: &Arc<Pod>, now: Timestamp) -> usize {
        match self.by_uid.get(pod.uid()) {
            Some(&number) => self.update(number, pod, now),
            None => self.add(pod, now, now),
        }
    }

    /// Adds a pod that waits since a time: to its group, or by itself.
    fn add(&mut self, pod: &Arc<Pod>, since: Timestamp, now: Timestamp) -> usize {
        let is_held = has_gates(pod);
        let group = GroupKey::of_pod(pod).filter(|_| !is_held);
        if let Some(&number) = group.as_ref().and_then(|group| self.by_group.get(group)) {
            return self.join(number, pod, now);
        }
        let number = self.next_number;
        self.next_number += 1;
        self.by_uid.insert(pod.uid().to_owned(), number);
        self.by_group.extend(group.clone().map(|group| (group, number)));
        let pods = vec![Arc::clone(pod)];
        let unit = Unit {
            rank: self.order.rank(&pods, since),
            pods,
            joined: Vec::new(),
            group,
            since,
            attempts: 0,
            refusals: 0,
            failures: 0,
            state: if is_held { State::Held } else { State::Active },
        };
        self.places.enter(number, &unit);
        self.units.insert(number, unit);
        0
    }

    fn join(&mut self, number: u64, pod: &Arc<Pod>, now: Timestamp) -> usize {
        self.by_uid.insert(pod.uid().to_owned(), number);
        self.change(number, |unit| match unit.state {
            State::InFlight { .. } => unit.joined.push(Arc::clone(pod)),
            _ => unit.pods.push(Arc::clone(pod)),
        });
        self.tell(number, &[Remedy::Members], now)
    }

    fn update(&mut self, number: u64, pod: &Arc<Pod>, now: Timestamp) -> usize {
        let Some(unit) = self.units.get_mut(&number) else { return 0 };
        let (is_held, since) = (matches!(unit.state, State::Held), unit.since);
        let Some(known) = unit.pod_mut(pod.uid()) else { return 0 };
        if ResourceVersion::is_older(&pod.metadata, &known.metadata) {
            return 0;
        }
        let own = for_itself(known, pod);
        if is_held && !has_gates(pod) {
            self.forget(pod.uid(), now);
            return 1 + self.add(pod, since, now);
        }
        self.change(number, |unit| {
            if let Some(known) = unit.pod_mut(pod.uid()) {
                *known = Arc::clone(pod);
            }
        });
        self.tell(number, &own, now)
    }

    /// Forgets a pod that is gone, that has a node, or that is finished.
    fn forget(&mut self, uid: &str, now: Timestamp) -> usize {
        self.bound.remove(uid);
        let Some(number) = self.by_uid.remove(uid) else { return 0 };
        self.change(number, |unit| unit.remove(uid));
        self.tell(number, &[Remedy::Members], now)
    }

    /// Tells a unit what has changed in its own pods.
    fn tell(&mut self, number: u64, own: &[Remedy], now: Timestamp) -> usize {
        let Some(unit) = self.units.get_mut(&number) else { return 0 };
        match &mut unit.state {
            State::InFlight { own: seen, .. } => seen.extend(own.iter().cloned()),
            State::Waiting { refusal, .. } if own.iter().any(|remedy| refusal.is_helped_by(remedy)) => {
                self.release(number, now);
                return 1;
            }
            _ => {}
        }
        0
    }

    fn release(&mut self, number: u64, now: Timestamp) {
        let options = self.options;
        self.change(number, |unit| unit.release(options, now));
    }

    /// Changes a unit, and its entries in the indexes with it. A unit that is over goes.
    fn change(&mut self, number: u64, change: impl FnOnce(&mut Unit<O::Rank>)) {
        let Some(unit) = self.units.get_mut(&number) else { return };
        self.places.leave(number, unit);
        change(unit);
        if !unit.is_over() {
            if !unit.pods.is_empty() {
                unit.rank = self.order.rank(&unit.pods, unit.since);
            }
            self.places.enter(number, unit);
        } else if let Some(group) = self.units.remove(&number).and_then(|unit| unit.group) {
            self.by_group.remove(&group);
        }
    }
}
