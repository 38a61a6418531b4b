//! Verdicts on nodes, kept by kind of pods: a pod is judged on those nodes only that nobody of its kind has tried since they
//! changed.
//!
//! Pods are of one kind if they ask for the same devices, and may use the same nodes otherwise; a pod with an allocated claim is
//! of a kind with those that have the same claim. A node that has refused one of them refuses all, until it changes. The choice is that of [`best_node`](crate::placing::best_node): the highest score, the
//! first by name among equals. Where nothing scores more than the first node that fits, later nodes stay untried.
//!
//! [`NodeVerdicts`](dra_alloc::NodeVerdicts) remembers less: that a node has refused, by its position in a list. Here scores are kept
//! too, so that the best node is chosen, and reasons, since the event of a pod counts those of all nodes. Watches tell which nodes
//! have changed, also nodes that come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use dra_alloc::pods::{ClaimSituation, CycleClaim, PodCycle, PodExplanation};
use dra_alloc::queue::{Refusal, Remedy};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimSpec};
use nnn::memory::PodUsage;
use serde::Serialize;

use crate::placing::{NoNode, NodeVerdict, Rank};
use dra_live::touched::Nodes;

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
struct Kind {
    /// Number of the last question about the kind.
    asked: u64,
    /// Last node by name that was tried.
    tried_to: Option<String>,
    /// Nodes up to there that have to be tried again.
    changed: BTreeSet<String>,
    /// Scores of the nodes that fit.
    ranks: BTreeMap<String, Rank>,
    /// The same nodes, the best one first.
    ranked: BTreeSet<(Rank, String)>,
    /// Reasons of the nodes that do not fit.
    refusals: BTreeMap<String, PodExplanation>,
    /// The reasons of all of them, shared with who was told them last.
    explanation: Arc<PodExplanation>,
    /// Remedies of the refusals so far, without those of the pods' own claims.
    refusal: Refusal,
}

/// Name of a kind of pods.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindName {
    text: String,
    /// True if pods of the kind come again and again.
    lasts: bool,
}

/// Wish of a pod by one of its claims.
#[derive(Serialize)]
enum Wish<'c> {
    Devices(Option<&'c ResourceClaimSpec>),
    /// Devices that the claim has, whoever else uses it: UID and version.
    Allocated(Option<&'c str>, Option<&'c str>),
}

impl<'c> Wish<'c> {
    fn of(claim: &'c CycleClaim) -> Option<Self> {
        let ResourceClaim { metadata, spec, .. } = claim.claim();
        match claim.situation() {
            ClaimSituation::Pending(_) => None,
            _ if claim.is_for_extended_resources() => None,
            ClaimSituation::ToAllocate => Some(Self::Devices(spec.as_ref())),
            ClaimSituation::Allocated => {
                Some(Self::Allocated(metadata.uid.as_deref(), metadata.resource_version.as_deref()))
            }
        }
    }
}

impl KindName {
    /// Names a kind of which pods come again and again.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), lasts: true }
    }

    /// Marks a kind of which nothing is remembered once a pod has a node.
    #[must_use]
    pub fn while_a_pod_waits(mut self) -> Self {
        self.lasts = false;
        self
    }

    /// Names the kind of a pod by its claims, what it asks of a node, and its priority, by which nominations count; `None` if the
    /// verdicts on nodes depend on more: there are extended resources, or a claim is shared with a pod that is being placed. A kind with an allocated claim lasts while its pods
    /// wait, and ends with each change of the claim.
    #[must_use]
    pub fn of(pod: &Pod, cycle: Option<&PodCycle>) -> Option<Self> {
        let claims = cycle.map(PodCycle::claims).unwrap_or_default();
        let wishes: Vec<Wish<'_>> = claims.iter().map(Wish::of).collect::<Option<_>>()?;
        let of_pod = pod.spec.as_ref().map(|spec| {
            let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
            (&spec.node_selector, &spec.tolerations, affinity, spec.priority)
        });
        let usage = PodUsage::wanted_by(pod).ok()?;
        let lasts = wishes.iter().all(|wish| matches!(wish, Wish::Devices(_)));
        serde_json::to_string(&(of_pod, usage.resources, usage.ports, wishes)).ok().map(|text| Self { text, lasts })
    }
}

impl Kinds {
    /// Chooses the node with the highest score, the first by name of several. `judge` is asked about nodes that no pod of the
    /// kind has tried since they changed, and about the chosen one; without a kind, as if it were the first pod of one.
    /// `best_score` is a score that no node exceeds.
    ///
    /// # Errors
    /// No node fits, or a judgement has failed.
    ///
    /// # Complexity
    /// A judgement for each node that was not tried yet, up to the first one with the best score, and one for each that has
    /// changed since; besides look-ups.
    pub fn best_node<'n>(
        &mut self,
        kind: Option<&KindName>,
        nodes: &'n BTreeMap<String, Node>,
        best_score: i64,
        judge: impl FnMut(&'n Node) -> Result<NodeVerdict, NoNode>,
    ) -> Result<String, NoNode> {
        let Some(name) = kind else { return Kind::default().best_node(nodes, best_score, judge) };
        let mut kind = self.known.remove(&name.text).unwrap_or_default();
        let best = kind.best_node(nodes, best_score, judge);
        if name.lasts || best.is_err() {
            self.keep(name, kind);
        }
        best
    }

    /// Adds what nodes have refused a pod of a kind for, and returns what they have refused the kind for so far: a node that has
    /// refused one pod is not asked for the next. Claims of the pods are left out, for each pod has its own.
    ///
    /// # Complexity
    /// Linear in the number of remedies.
    pub fn add_refusal(&mut self, kind: Option<&KindName>, refusal: &Refusal) -> Refusal {
        let is_common = |remedy: &&Remedy| !matches!(remedy, Remedy::Claim { .. });
        let common = Refusal::new(refusal.remedies().filter(is_common).cloned());
        let Some(known) = kind.and_then(|kind| self.known.get_mut(&kind.text)) else { return common };
        known.refusal.add_all(common);
        known.refusal.clone()
    }

    fn keep(&mut self, name: &KindName, mut kind: Kind) {
        if self.known.len() >= MOST {
            let oldest = self.known.iter().min_by_key(|(_, kind)| kind.asked).map(|(name, _)| name.clone());
            oldest.and_then(|oldest| self.known.remove(&oldest));
        }
        self.asked = self.asked.saturating_add(1);
        kind.asked = self.asked;
        self.known.insert(name.text.clone(), kind);
    }

    /// Forgets what a kind of pods knows of the nodes.
    pub fn forget(&mut self, kind: &KindName) {
        self.known.remove(&kind.text);
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
    fn best_node<'n>(
        &mut self,
        nodes: &'n BTreeMap<String, Node>,
        best_score: i64,
        mut judge: impl FnMut(&'n Node) -> Result<NodeVerdict, NoNode>,
    ) -> Result<String, NoNode> {
        // Nodes whose verdict is about this pod, not about another one of its kind.
        let mut judged: BTreeSet<&str> = BTreeSet::new();
        loop {
            let best = self.ranked.first().cloned();
            let unbeaten = best.as_ref().filter(|(rank, _)| rank.is_best(best_score)).map(|(_, name)| name.as_str());
            let next = match (self.next_untried(nodes, unbeaten), best) {
                (Some(next), _) => next,
                (None, Some((_, name))) if judged.contains(name.as_str()) => return Ok(name),
                (None, Some((_, name))) => name,
                (None, None) => return Err(NoNode::Nowhere(Arc::clone(&self.explanation))),
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
            NodeVerdict::Fits(rank) => {
                self.ranked.insert((rank.clone(), node.clone()));
                self.ranks.insert(node, rank);
            }
            NodeVerdict::Refused(reasons) => {
                Arc::make_mut(&mut self.explanation).add(&reasons);
                self.refusals.insert(node, reasons);
            }
        }
    }

    /// Forgets the verdict on a node.
    fn forget(&mut self, node: &str) {
        self.changed.remove(node);
        if let Some((node, rank)) = self.ranks.remove_entry(node) {
            self.ranked.remove(&(rank, node));
        }
        if let Some(reasons) = self.refusals.remove(node) {
            Arc::make_mut(&mut self.explanation).remove(&reasons);
        }
    }

    fn touch(&mut self, node: &str) {
        self.forget(node);
        if self.tried_to.as_deref().is_some_and(|last| node <= last) {
            self.changed.insert(node.to_owned());
        }
    }
}
