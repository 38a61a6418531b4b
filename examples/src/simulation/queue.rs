//! Pods that wait, in the order in which they are tried.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::arrivals::{Arrivals, Kind};
use super::description::Order;

/// Key by which waiting pods are tried, the smallest first: priority and rank of the kind, then position of the pod.
type Key = ((Reverse<i32>, u64), usize);

/// Pods that wait. Those of one kind are equal: if the first one does not fit, none does.
#[derive(Debug)]
pub(super) struct Queue<'s> {
    order: Order,
    arrivals: &'s Arrivals,
    /// Positions of the pods, by kind, in the order of their arrival.
    waiting: BTreeMap<usize, VecDeque<usize>>,
}

impl<'s> Queue<'s> {
    pub(super) const fn new(order: Order, arrivals: &'s Arrivals) -> Self {
        Self { order, arrivals, waiting: BTreeMap::new() }
    }

    pub(super) fn push(&mut self, pod: usize, kind: usize) {
        self.waiting.entry(kind).or_default().push_back(pod);
    }

    /// Returns true if a pod of the kind waits.
    pub(super) fn has_kind(&self, kind: usize) -> bool {
        self.waiting.contains_key(&kind)
    }

    /// Returns the first pod of each kind, with the kind.
    pub(super) fn heads(&self) -> BTreeSet<(Key, usize)> {
        self.waiting.keys().filter_map(|kind| Some((self.head(*kind)?, *kind))).collect()
    }

    /// Returns the key of the first pod of a kind.
    pub(super) fn head(&self, kind: usize) -> Option<Key> {
        let of_kind = |kind: &Kind| (kind.priority, kind.devices);
        let (priority, devices) = self.arrivals.kinds.get(kind).map(of_kind).unwrap_or_default();
        let rank = match self.order {
            Order::Arrival => 0,
            Order::SmallestFirst => devices,
            Order::LargestFirst => u64::MAX - devices,
        };
        Some(((Reverse(priority), rank), *self.waiting.get(&kind)?.front()?))
    }

    /// Takes the first pod of a kind out if it is this one.
    pub(super) fn take(&mut self, pod: usize, kind: usize) -> bool {
        let Some(pods) = self.waiting.get_mut(&kind).filter(|pods| pods.front() == Some(&pod)) else { return false };
        pods.pop_front();
        if pods.is_empty() {
            self.waiting.remove(&kind);
        }
        true
    }

    /// Returns the number of waiting pods, for each kind.
    pub(super) fn len_by_kind(&self) -> impl Iterator<Item = (usize, usize)> {
        self.waiting.iter().map(|(kind, pods)| (*kind, pods.len()))
    }
}
