//! Cache of nominations by node, with the priority and the requests of each nominated pod.
//!
//! The cache does not look at nodes: a nomination to a node that does not exist yet counts from the moment the node
//! appears.

use std::collections::BTreeMap;
#[expect(clippy::disallowed_types, reason = "its order is never seen: what is listed is sorted first")]
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

use dra_attrs::Resources;
use serde::Serialize;

use super::field_writes::{FieldWrites, WriteObservation};
use super::nominating_info::NominatingInfo;
use crate::config::Behavior;
use crate::pod::{PodKey, PodSnapshot};

/// Nomination of a pod to a node, with the priority and requests that filters need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Nomination {
    /// Pod that is nominated.
    pub pod: PodKey,
    /// Nominated node, which may not exist.
    pub node: String,
    /// The pod's priority.
    pub priority: i32,
    /// Resources that the pod requests.
    pub requests: Resources,
}

impl Nomination {
    /// Builds the nomination of `pod` to `node`.
    #[must_use]
    pub fn new(pod: &PodSnapshot, node: &str) -> Self {
        Self { pod: pod.key.clone(), node: node.to_owned(), priority: pod.priority, requests: pod.requests.clone() }
    }

    /// Builds a nomination with priority 0 and no requests, as kube-scheduler has for a pod in none of its queues.
    fn stub(pod: &PodKey, node: &str) -> Self {
        Self { pod: pod.clone(), node: node.to_owned(), priority: 0, requests: Resources::default() }
    }
}

/// Nominations of all pending pods, at most one for each pod.
///
/// An entry ends when the pod is assumed, bound or deleted, or when the nomination is cleared or replaced
/// ([`Self::remove`], [`Self::add`], [`Self::update`]). There are never more entries than pending pods, nor more nodes
/// than entries.
///
/// # Complexity
/// The cost of an operation on a pod or a node does not depend on the nominations to other nodes. [`Self::on_node`] is
/// linear in the nominations of its node. [`Self::iter`] and [`Self::nodes`] sort all nodes first.
///
/// ```
/// use nnn::{Behavior, NominatingInfo, Nominator, PodSnapshot};
/// let pod = PodSnapshot::pending("default", "web");
/// let mut nominator = Nominator::new(Behavior::Safe);
/// nominator.add(&pod, &NominatingInfo::nominate("not-yet-there"), Some(&pod));
/// assert_eq!(nominator.nominated_node(&pod.key.uid), Some("not-yet-there"));
/// nominator.remove(&pod.key.uid);
/// assert!(nominator.is_empty());
/// ```
#[derive(Clone, Debug)]
#[expect(clippy::disallowed_types, reason = "its order is never seen: what is listed is sorted first")]
pub struct Nominator {
    behavior: Behavior,
    /// Nominations by node, each list in the order in which the nominations were made.
    by_node: HashMap<String, BTreeMap<u64, Nomination>, BuildHasherDefault<DefaultHasher>>,
    by_uid: HashMap<String, (String, u64), BuildHasherDefault<DefaultHasher>>,
    writes: BTreeMap<String, FieldWrites<Option<String>>>,
    next: u64,
}

impl Nominator {
    /// Returns an empty cache.
    #[must_use]
    #[expect(clippy::disallowed_types, reason = "its order is never seen: what is listed is sorted first")]
    pub fn new(behavior: Behavior) -> Self {
        Self { behavior, by_node: HashMap::default(), by_uid: HashMap::default(), writes: BTreeMap::new(), next: 0 }
    }

    /// Replaces the pod's nomination by the node of `info`, or by `status.nominatedNodeName` if `info` is
    /// [`NominatingInfo::Noop`].
    ///
    /// `live` is the pod that has the same namespace and name now. The pod is left without a nomination if `live` is
    /// `None`, bound, gated, or another pod: with [`Behavior::Safe`] one of another UID. Never call this for an assumed pod.
    pub fn add(&mut self, pod: &PodSnapshot, info: &NominatingInfo, live: Option<&PodSnapshot>) {
        self.remove(&pod.key.uid);
        let is_same = |live: &PodSnapshot| !self.behavior.identifies_by_uid() || live.key.uid == pod.key.uid;
        let is_pending = live.is_some_and(|live| live.node.is_none() && !live.gated && is_same(live));
        let unseen = self.unseen_write(&pod.key.uid).filter(|_| self.behavior.protects_pending_writes());
        let status = unseen.unwrap_or(pod.nnn.as_deref());
        if let Some(nomination) = info.target(status).filter(|_| is_pending).map(|node| Nomination::new(pod, node)) {
            self.insert(nomination);
        }
    }

    /// Replaces the nomination of a pod, without the checks of [`Nominator::add`].
    pub fn insert(&mut self, nomination: Nomination) {
        self.remove(&nomination.pod.uid);
        if nomination.node.is_empty() {
            return;
        }
        let number = self.next;
        self.next = self.next.saturating_add(1);
        self.by_uid.insert(nomination.pod.uid.clone(), (nomination.node.clone(), number));
        self.by_node.entry(nomination.node.clone()).or_default().insert(number, nomination);
    }

    /// Removes the pod's nomination, if it has one. Called when the pod is assumed.
    pub fn remove(&mut self, uid: &str) -> Option<Nomination> {
        let (node, number) = self.by_uid.remove(uid)?;
        let of_node = self.by_node.get_mut(&node)?;
        let nomination = of_node.remove(&number);
        if of_node.is_empty() {
            self.by_node.remove(&node);
        }
        nomination
    }

    /// Removes the pod's nomination and its pending writes. Called when the pod is bound or deleted.
    pub fn forget(&mut self, uid: &str) -> Option<Nomination> {
        self.writes.remove(uid);
        self.remove(uid)
    }

    /// Returns the nomination after a pod update, decided as in kube-scheduler from old status, new status and memory.
    ///
    /// ```
    /// use nnn::Nominator;
    /// assert_eq!(Nominator::decide_update(None, None, Some("m")), Some("m"));
    /// assert_eq!(Nominator::decide_update(Some("x"), None, Some("m")), None);
    /// ```
    #[must_use]
    pub fn decide_update<'a>(old: Option<&str>, new: Option<&'a str>, memory: Option<&'a str>) -> Option<&'a str> {
        if old.is_none() && new.is_none() { memory } else { new }
    }

    /// Updates the nomination after an update of a pending pod, as decided by [`Self::decide_update`].
    ///
    /// With [`Behavior::Safe`], an update that is older than a pending PATCH leaves the nomination unchanged,
    /// and an update that shows the PATCH sets it to the new status. A pod whose scheduling gates are gone is nominated as
    /// its status says, like a new pod. The entry gets the new priority and requests, and
    /// moves to the end of its node's list.
    pub fn update(&mut self, old: &PodSnapshot, new: &PodSnapshot, live: Option<&PodSnapshot>) {
        let memory = self.remove(&old.key.uid).map(|nomination| nomination.node);
        let protects = self.behavior.protects_pending_writes();
        let decided = match self.sight(old, new) {
            WriteObservation::Older if protects => memory.as_deref(),
            WriteObservation::Shown if protects => new.nnn.as_deref(),
            _ if old.gated => new.nnn.as_deref(),
            _ => Self::decide_update(old.nnn.as_deref(), new.nnn.as_deref(), memory.as_deref()),
        };
        self.add(new, &NominatingInfo::Override(decided.map(str::to_owned)), live);
    }

    /// Records that a PATCH of the pod's nomination was sent.
    pub fn write_issued(&mut self, uid: &str, value: Option<&str>) {
        self.writes.entry(uid.to_owned()).or_default().issued(Some(value.map(str::to_owned)));
    }

    /// Records that a PATCH of the pod's status was sent that leaves the nomination unchanged. Its response goes to
    /// [`Self::write_answered`] too.
    pub(crate) fn other_write_issued(&mut self, uid: &str) {
        self.writes.entry(uid.to_owned()).or_default().issued(None);
    }

    /// Records the response to a PATCH: the new resource version, or `None` if it failed. Responses come in sending
    /// order.
    pub fn write_answered(&mut self, uid: &str, version: Option<u64>) {
        let Some(writes) = self.writes.get_mut(uid) else { return };
        writes.answered(version);
        if writes.is_over() {
            self.writes.remove(uid);
        }
    }

    /// Returns the nomination in the pod's last PATCH, if the watch has not shown it yet.
    #[must_use]
    pub fn unseen_write(&self, uid: &str) -> Option<Option<&str>> {
        self.writes.get(uid)?.last().map(Option::as_deref)
    }

    /// Records a watch event of an assumed pod. Changes pending writes but not the nomination.
    pub fn observed(&mut self, old: &PodSnapshot, new: &PodSnapshot) {
        self.sight(old, new);
    }

    fn sight(&mut self, old: &PodSnapshot, new: &PodSnapshot) -> WriteObservation {
        let Some(writes) = self.writes.get_mut(&new.key.uid) else { return WriteObservation::NothingWritten };
        let sight = writes.observed(&old.nnn, &new.nnn, new.resource_version);
        if writes.is_over() {
            self.writes.remove(&new.key.uid);
        }
        sight
    }

    /// Returns the nominations to a node, oldest first.
    pub fn on_node(&self, node: &str) -> impl Iterator<Item = &Nomination> {
        self.by_node.get(node).into_iter().flat_map(BTreeMap::values)
    }

    /// Returns the nominations to a node as kube-scheduler does: `queued` looks a pod up in the scheduling queues, and
    /// a pod in none of them has priority 0 and no requests.
    #[must_use]
    pub fn resolve_on_node<'a>(
        &self,
        node: &str,
        queued: impl Fn(&PodKey) -> Option<&'a PodSnapshot>,
    ) -> Vec<Nomination> {
        let resolve = |known: &Nomination| match queued(&known.pod) {
            Some(pod) => Nomination::new(pod, node),
            None => Nomination::stub(&known.pod, node),
        };
        self.on_node(node).map(resolve).collect()
    }

    /// Returns the node to which a pod is nominated.
    #[must_use]
    pub fn nominated_node(&self, uid: &str) -> Option<&str> {
        self.by_uid.get(uid).map(|(node, _)| node.as_str())
    }

    /// Returns the nominations to all nodes, grouped by node, oldest first within a node.
    pub fn iter(&self) -> impl Iterator<Item = &Nomination> {
        self.nodes().flat_map(|node| self.on_node(node))
    }

    /// Returns the nodes that have nominations, sorted.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        let mut nodes: Vec<&str> = self.by_node.keys().map(String::as_str).collect();
        nodes.sort_unstable();
        nodes.into_iter()
    }

    /// Returns the number of nominated pods.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_uid.len()
    }

    /// Returns true if no pod is nominated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_uid.is_empty()
    }
}
