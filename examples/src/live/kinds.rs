//! Verdicts on nodes, kept by kind of pods: a pod is judged on those nodes only that nobody of its kind has tried since they
//! changed.
//!
//! Pods are of one kind if they ask for the same devices, and may use the same nodes otherwise. A node that has refused one of
//! them refuses all, until it changes. The choice is that of [`best_node`](crate::placing::best_node): the highest score, the
//! first by name among equals. Where nothing scores more than the first node that fits, later nodes stay untried.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use dra_alloc::pods::{ClaimSituation, PodCycle, PodExplanation};
use k8s_openapi::api::core::v1::{Node, Pod};

use super::touched::Nodes;
use crate::placing::{NoNode, NodeVerdict};

/// Largest number of kinds that are remembered. The one that was not asked about for longest goes first.
const MOST: usize = 32;

/// Kinds of pods, each with what is known of the nodes.
#[derive(Debug, Default)]
pub struct Kinds {
    known: BTreeMap<String, Kind>,
    /// Number of questions so far.
    asked: u64,
}

/// Nodes as one kind of pods sees them. A node that is in none of the lists was not tried.
#[derive(Debug, Default)]
pub struct Kind {
    /// Number of the last question about the kind.
    asked: u64,
    /// Last node by name that was tried.
    tried_to: Option<String>,
    /// Nodes up to there that have to be tried again.
    changed: BTreeSet<String>,
    /// Scores of the nodes that fit.
    scores: BTreeMap<String, i64>,
    /// The same nodes, the best one first.
    ranked: BTreeSet<(Reverse<i64>, String)>,
    /// Reasons of the nodes that do not fit.
    refusals: BTreeMap<String, PodExplanation>,
    /// The reasons of all of them.
    explanation: PodExplanation,
}

/// Names the kind of a pod; `None` if the verdicts on nodes depend on more than that: a claim is allocated already, or there
/// are extended resources.
#[must_use]
pub fn kind_of(pod: &Pod, cycle: Option<&PodCycle>) -> Option<String> {
    let claims = cycle.map(PodCycle::claims).unwrap_or_default();
    let is_plain = claims
        .iter()
        .all(|claim| *claim.situation() == ClaimSituation::ToAllocate && !claim.is_for_extended_resources());
    let specs: Vec<_> = claims.iter().map(|claim| &claim.claim().spec).collect();
    let wishes = pod.spec.as_ref().map(|spec| (&spec.node_selector, &spec.tolerations));
    serde_json::to_string(&(wishes, specs)).ok().filter(|_| is_plain)
}

impl Kinds {
    /// Returns what is known of the nodes by a kind of pods.
    pub fn kind(&mut self, name: &str) -> &mut Kind {
        if self.known.len() >= MOST && !self.known.contains_key(name) {
            let oldest = self.known.iter().min_by_key(|(_, kind)| kind.asked).map(|(name, _)| name.clone());
            oldest.and_then(|oldest| self.known.remove(&oldest));
        }
        self.asked = self.asked.saturating_add(1);
        let kind = self.known.entry(name.to_owned()).or_default();
        kind.asked = self.asked;
        kind
    }

    /// Notes that nodes were added, changed or deleted.
    ///
    /// # Complexity
    /// Linear in the number of those nodes, times a look-up in each kind. If it may be all, everything is forgotten.
    pub fn touch(&mut self, nodes: &Nodes) {
        match nodes {
            Nodes::All => self.known.clear(),
            Nodes::These(nodes) => {
                for kind in self.known.values_mut() {
                    for node in nodes {
                        kind.touch(node);
                    }
                }
            }
        }
    }
}

impl Kind {
    /// Chooses the node with the highest score, the first by name of several. `judge` is asked about nodes that were not tried
    /// yet or have changed, and about the chosen one. `best_score` is a score that no node exceeds.
    ///
    /// # Errors
    /// No node fits, or a judgement has failed.
    ///
    /// # Complexity
    /// A judgement for each node that was not tried yet, up to the first one with the best score, and one for each that has
    /// changed since; besides look-ups.
    pub fn best_node<'n>(
        &mut self,
        nodes: &'n BTreeMap<String, Node>,
        best_score: i64,
        mut judge: impl FnMut(&'n Node) -> Result<NodeVerdict, NoNode>,
    ) -> Result<String, NoNode> {
        // Nodes whose verdict is about this pod, not about another one of its kind.
        let mut judged: BTreeSet<&str> = BTreeSet::new();
        loop {
            let best = self.ranked.first().cloned();
            let unbeaten = best.as_ref().filter(|(score, _)| score.0 >= best_score).map(|(_, name)| name.as_str());
            let next = match (self.next_untried(nodes, unbeaten), best) {
                (Some(next), _) => next,
                (None, Some((_, name))) if judged.contains(name.as_str()) => return Ok(name),
                (None, Some((_, name))) => name,
                (None, None) => return Err(NoNode::Nowhere(Box::new(self.explanation.clone()))),
            };
            match nodes.get_key_value(&next) {
                Some((name, node)) => {
                    let verdict = judge(node)?;
                    judged.insert(name);
                    self.note(next, verdict);
                }
                None => self.forget(&next),
            }
        }
    }

    /// Returns the first node that has to be tried, if it comes before another one.
    fn next_untried(&self, nodes: &BTreeMap<String, Node>, before: Option<&str>) -> Option<String> {
        let untried = || {
            let from = self.tried_to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            nodes.range::<str, _>((from, Bound::Unbounded)).next().map(|(name, _)| name)
        };
        self.changed.first().or_else(untried).filter(|next| before.is_none_or(|before| next.as_str() < before)).cloned()
    }

    fn note(&mut self, node: String, verdict: NodeVerdict) {
        self.forget(&node);
        if self.tried_to.as_ref().is_none_or(|last| *last < node) {
            self.tried_to = Some(node.clone());
        }
        match verdict {
            NodeVerdict::Fits(score) => {
                self.ranked.insert((Reverse(score), node.clone()));
                self.scores.insert(node, score);
            }
            NodeVerdict::Refused(reasons) => {
                self.explanation.add(&reasons);
                self.refusals.insert(node, reasons);
            }
        }
    }

    /// Forgets the verdict on a node.
    fn forget(&mut self, node: &str) {
        self.changed.remove(node);
        if let Some((node, score)) = self.scores.remove_entry(node) {
            self.ranked.remove(&(Reverse(score), node));
        }
        if let Some(reasons) = self.refusals.remove(node) {
            self.explanation.remove(&reasons);
        }
    }

    fn touch(&mut self, node: &str) {
        self.forget(node);
        if self.tried_to.as_deref().is_some_and(|last| node <= last) {
            self.changed.insert(node.to_owned());
        }
    }
}
