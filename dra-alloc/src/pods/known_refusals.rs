//! Nodes whose devices have refused a kind of pods.
//!
//! A node that has refused a pod refuses each pod of its kind, for as long as no device becomes free: a search is complete, and
//! fewer free devices never turn a no into a yes. Pods are of one kind if all their claims wait for an allocation and ask for the
//! same. Refusals of the caller's check of nodes are not kept.

use std::collections::BTreeMap;

use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::cycle::{ClaimSituation, PodCycle};
use crate::cluster::bits::Bits;

/// Nodes, by their positions in one list, whose devices have refused a kind of pods since a device became free last.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownRefusals {
    /// Number of nodes in the list.
    nodes: usize,
    /// Kinds by what their claims ask for.
    kinds: BTreeMap<String, usize>,
    /// Kinds of pods, by UID.
    of_pod: BTreeMap<String, usize>,
    /// Nodes that have refused each kind.
    refused: Vec<Bits>,
    /// Refusals since the last mark.
    latest: Vec<(usize, usize)>,
}

impl KnownRefusals {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { nodes, ..Self::default() }
    }

    /// Returns the kind of a pod; `None` if others can't stand in for it.
    pub(super) fn kind_of(&mut self, pod: &Pod, cycle: &PodCycle) -> Option<usize> {
        // A claim that others share may be allocated by now.
        if !waits(cycle) {
            return None;
        }
        if let Some(kind) = self.of_pod.get(pod.uid()) {
            return Some(*kind);
        }
        let next = self.kinds.len();
        let kind = *self.kinds.entry(key_of(pod, cycle)).or_insert(next);
        self.refused.resize(self.kinds.len(), Bits::none(self.nodes));
        if !pod.uid().is_empty() {
            self.of_pod.insert(pod.uid().to_owned(), kind);
        }
        Some(kind)
    }

    pub(super) fn has(&self, kind: Option<usize>, node: usize) -> bool {
        kind.and_then(|kind| self.refused.get(kind)).is_some_and(|refused| refused.contains(node))
    }

    pub(super) fn add(&mut self, kind: Option<usize>, node: usize) {
        let Some((kind, refused)) = kind.and_then(|kind| Some((kind, self.refused.get_mut(kind)?))) else { return };
        if !refused.contains(node) {
            refused.set(node, true);
            self.latest.push((kind, node));
        }
    }

    /// Sets a mark, to which [`KnownRefusals::forget_latest`] goes back.
    pub(crate) fn mark(&mut self) {
        self.latest.clear();
    }

    /// Forgets the refusals since the mark of nodes on which a pod was placed that is taken back.
    pub(crate) fn forget_latest(&mut self, was_touched: impl Fn(usize) -> bool) {
        for (kind, node) in self.latest.drain(..).filter(|(_, node)| was_touched(*node)) {
            if let Some(refused) = self.refused.get_mut(kind) {
                refused.set(node, false);
            }
        }
    }

    /// Forgets all refusals, since a device became free.
    pub(crate) fn clear(&mut self) {
        let nodes = self.nodes;
        self.refused.iter_mut().for_each(|refused| *refused = Bits::none(nodes));
        self.latest.clear();
    }
}

/// Returns true if all claims of a pod wait for an allocation.
fn waits(cycle: &PodCycle) -> bool {
    cycle.claims().iter().all(|claim| *claim.situation() == ClaimSituation::ToAllocate)
}

/// Returns what the pods of a kind have in common: what their claims ask for, and for extended resources their containers.
fn key_of(pod: &Pod, cycle: &PodCycle) -> String {
    let of_entries = cycle.claims().iter().filter(|claim| !claim.is_for_extended_resources());
    let specs: Vec<_> = of_entries.map(|claim| &claim.claim().spec).collect();
    let spec = pod.spec.as_ref().filter(|_| cycle.extended_resource_names().next().is_some());
    json!([specs, spec.map(|spec| (&spec.init_containers, &spec.containers))]).to_string()
}
