//! The cache of nominations: which pods are promised which node, with what they need there.
//!
//! The cache never asks about nodes: a name of a node that does not exist yet is as good a key as any, and the
//! reservation holds the moment the node appears.

use std::collections::BTreeMap;
#[expect(clippy::disallowed_types, reason = "its order is never seen: what is listed is sorted first")]
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

use serde::{Deserialize, Serialize};

use crate::amount::Resources;
use crate::nominating::NominatingInfo;
use crate::pod::{PodKey, PodView};
use crate::writes::{Sight, Writes};

/// What makes a pod that a look-up by name finds the same pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Identity {
    /// Its UID.
    #[default]
    Uid,
    /// Its name, as upstream: a pod that was deleted and made again leaves an entry that no event removes.
    Name,
}

/// What a status is worth that is older than a PATCH of our own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PendingWrites {
    /// Nothing: memory stays until the PATCH has been seen.
    #[default]
    Protected,
    /// As much as any, as upstream: an unrelated update puts the old nomination back.
    Ignored,
}

/// How careful the cache is. The default is the safe way.
///
/// ```
/// use nnn::nominator::{Identity, NominatorOptions};
/// assert_eq!(NominatorOptions::default().identity, Identity::Uid);
/// assert_eq!(NominatorOptions::UPSTREAM.identity, Identity::Name);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NominatorOptions {
    /// When a pod is the same.
    pub identity: Identity,
    /// Updates that predate a PATCH.
    pub pending_writes: PendingWrites,
}

impl NominatorOptions {
    /// What kube-scheduler does.
    pub const UPSTREAM: Self = Self { identity: Identity::Name, pending_writes: PendingWrites::Ignored };
}

/// A promise of room on a node. It holds what the pod needs, so that nothing has to be looked up when a node is judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Nomination {
    /// The pod.
    pub pod: PodKey,
    /// The node, which need not exist.
    pub node: String,
    /// The pod's priority.
    pub priority: i32,
    /// What it requests.
    pub requests: Resources,
}

impl Nomination {
    /// The promise of a node to a pod.
    #[must_use]
    pub fn new(pod: &PodView, node: &str) -> Self {
        Self { pod: pod.key.clone(), node: node.to_owned(), priority: pod.priority, requests: pod.requests.clone() }
    }

    /// What kube-scheduler makes of a nomination whose pod is in none of its queues: priority 0, no requests. The
    /// reservation has evaporated.
    #[must_use]
    pub fn stub(pod: &PodKey, node: &str) -> Self {
        Self { pod: pod.clone(), node: node.to_owned(), priority: 0, requests: Resources::default() }
    }
}

/// What a status update makes of a nomination, as kube-scheduler has it, by the old status, the new one, and
/// memory.
///
/// ```
/// use nnn::nominator::decide_update;
/// assert_eq!(decide_update(None, None, Some("m")), Some("m"));
/// assert_eq!(decide_update(Some("x"), None, Some("m")), None);
/// ```
#[must_use]
pub fn decide_update<'a>(old: Option<&str>, new: Option<&'a str>, memory: Option<&'a str>) -> Option<&'a str> {
    if old.is_none() && new.is_none() { memory } else { new }
}

/// The nominations of all pending pods. A pod has at most one.
///
/// An entry lives as long as a pending pod owns it. It ends when the pod is assumed, bound or deleted, and when the
/// nomination is cleared or replaced ([`Self::remove`], [`Self::add`], [`Self::update`]), so that there are never more
/// entries than pending pods, nor more nodes than entries.
///
/// No operation on a pod or a node depends on the number of nominations to other nodes. [`Self::on_node`] is linear in
/// those of its node, [`Self::iter`] and [`Self::nodes`] sort all nodes first.
///
/// ```
/// use nnn::nominating::NominatingInfo;
/// use nnn::nominator::Nominator;
/// use nnn::pod::PodView;
/// let pod = PodView::pending("default", "web");
/// let mut nominator = Nominator::default();
/// nominator.add(&pod, &NominatingInfo::to("not-yet-there"), Some(&pod));
/// assert_eq!(nominator.node_of(&pod.key.uid), Some("not-yet-there"));
/// nominator.remove(&pod.key.uid);
/// assert!(nominator.is_empty());
/// ```
#[derive(Clone, Debug, Default)]
#[expect(clippy::disallowed_types, reason = "its order is never seen: what is listed is sorted first")]
pub struct Nominator {
    options: NominatorOptions,
    /// In the order in which they were made, by a running number.
    by_node: HashMap<String, BTreeMap<u64, Nomination>, BuildHasherDefault<DefaultHasher>>,
    by_uid: HashMap<String, (String, u64), BuildHasherDefault<DefaultHasher>>,
    writes: BTreeMap<String, Writes<Option<String>>>,
    next: u64,
}

impl Nominator {
    /// An empty cache.
    #[must_use]
    pub fn new(options: NominatorOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Replaces the pod's nomination: by the node that `info` names, or, if it says nothing, that of the pod's status.
    ///
    /// `live` is the pod that now has its namespace and name. Without one, or if it is bound, or if it is another pod
    /// ([`Identity::Uid`]), the pod ends without a nomination. Never call this for an assumed pod.
    pub fn add(&mut self, pod: &PodView, info: &NominatingInfo, live: Option<&PodView>) {
        self.remove(&pod.key.uid);
        let is_same = |live: &PodView| self.options.identity == Identity::Name || live.key.uid == pod.key.uid;
        let is_pending = live.is_some_and(|live| live.node.is_none() && is_same(live));
        let unseen = self.unseen_write(&pod.key.uid).filter(|_| self.protects());
        let status = unseen.unwrap_or(pod.nnn.as_deref());
        if let Some(nomination) = info.target(status).filter(|_| is_pending).map(|node| Nomination::new(pod, node)) {
            self.insert(nomination);
        }
    }

    fn protects(&self) -> bool {
        self.options.pending_writes == PendingWrites::Protected
    }

    /// Replaces the nomination of a pod, without a question.
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

    /// Removes the pod's nomination, if it has one. To be called when the pod is assumed.
    pub fn remove(&mut self, uid: &str) -> Option<Nomination> {
        let (node, number) = self.by_uid.remove(uid)?;
        let of_node = self.by_node.get_mut(&node)?;
        let nomination = of_node.remove(&number);
        if of_node.is_empty() {
            self.by_node.remove(&node);
        }
        nomination
    }

    /// Removes everything that is known about a pod. To be called when it is bound or deleted.
    pub fn forget(&mut self, uid: &str) -> Option<Nomination> {
        self.writes.remove(uid);
        self.remove(uid)
    }

    /// Follows an update of a pending pod's status, by the rows of [`decide_update`]. An update that is older than a
    /// PATCH of our own leaves the nomination where it is, and one that shows the PATCH is right about it
    /// ([`PendingWrites::Protected`]).
    ///
    /// The entry gets the new priority and requests and moves to the end of its node's list.
    pub fn update(&mut self, old: &PodView, new: &PodView, live: Option<&PodView>) {
        let memory = self.remove(&old.key.uid).map(|nomination| nomination.node);
        let decided = match self.sight(old, new) {
            Sight::Older if self.protects() => memory.as_deref(),
            Sight::Shown if self.protects() => new.nnn.as_deref(),
            _ => decide_update(old.nnn.as_deref(), new.nnn.as_deref(), memory.as_deref()),
        };
        self.add(new, &NominatingInfo::Override(decided.map(str::to_owned)), live);
    }

    /// Says that a PATCH of the pod's nomination has been sent.
    pub fn write_issued(&mut self, uid: &str, value: Option<&str>) {
        self.writes.entry(uid.to_owned()).or_default().issued(Some(value.map(str::to_owned)));
    }

    /// Says that a PATCH of the pod's status has been sent that leaves the nomination: its answer is one of those that
    /// [`Self::write_answered`] is told.
    pub fn other_write_issued(&mut self, uid: &str) {
        self.writes.entry(uid.to_owned()).or_default().issued(None);
    }

    /// Says that a PATCH has been answered, with the version that it made, or `None` if it failed. Answers come in the
    /// order of the writes.
    pub fn write_answered(&mut self, uid: &str, version: Option<u64>) {
        let Some(writes) = self.writes.get_mut(uid) else { return };
        writes.answered(version);
        if writes.is_over() {
            self.writes.remove(uid);
        }
    }

    /// What the pod's last PATCH wrote that has not been seen yet.
    #[must_use]
    pub fn unseen_write(&self, uid: &str) -> Option<Option<&str>> {
        self.writes.get(uid)?.last().map(Option::as_deref)
    }

    /// Takes note of an update of a pod that is assumed, whose nomination does not matter now.
    pub fn observed(&mut self, old: &PodView, new: &PodView) {
        self.sight(old, new);
    }

    fn sight(&mut self, old: &PodView, new: &PodView) -> Sight {
        let Some(writes) = self.writes.get_mut(&new.key.uid) else { return Sight::NothingWritten };
        let sight = writes.observed(&old.nnn, &new.nnn, new.resource_version);
        if writes.is_over() {
            self.writes.remove(&new.key.uid);
        }
        sight
    }

    /// The nominations of a node, oldest first.
    pub fn on_node(&self, node: &str) -> impl Iterator<Item = &Nomination> {
        self.by_node.get(node).into_iter().flat_map(BTreeMap::values)
    }

    /// The nominations of a node as kube-scheduler reads them: `queued` finds the pod in a queue, and one that is in none
    /// becomes a [`Nomination::stub`].
    #[must_use]
    pub fn on_node_looked_up<'a>(
        &self,
        node: &str,
        queued: impl Fn(&PodKey) -> Option<&'a PodView>,
    ) -> Vec<Nomination> {
        let resolve = |known: &Nomination| match queued(&known.pod) {
            Some(pod) => Nomination::new(pod, node),
            None => Nomination::stub(&known.pod, node),
        };
        self.on_node(node).map(resolve).collect()
    }

    /// Where a pod is nominated.
    #[must_use]
    pub fn node_of(&self, uid: &str) -> Option<&str> {
        self.by_uid.get(uid).map(|(node, _)| node.as_str())
    }

    /// All nominations: by node, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Nomination> {
        self.nodes().flat_map(|node| self.on_node(node))
    }

    /// The nodes that have nominations, in order.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        let mut nodes: Vec<&str> = self.by_node.keys().map(String::as_str).collect();
        nodes.sort_unstable();
        nodes.into_iter()
    }

    /// How many pods are nominated.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_uid.len()
    }

    /// No pod is nominated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_uid.is_empty()
    }
}
