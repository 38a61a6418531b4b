//! Explanations for pods: the reasons of all nodes, grouped.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use dra_attrs::GateName;
use dra_device::DeviceId;
use serde::{Serialize, Serializer};

use super::extended_requests::ExtendedResourceError;
use super::filter::{FilterVerdict, NodeFilterError};
use crate::explain::{Cause, Explanation, Reason, Suggestion};

/// Largest number of groups of nodes, suggestions and holdings that are displayed each.
const SHOWN: usize = 5;

/// Reasons why no node can run a pod, grouped over the nodes, and within a prioritized list over its alternatives.
///
/// `Display` prints one line in the form of kube-scheduler's event. Of equally many nodes the reasons are in the order of the
/// alphabet, so that the line does not depend on the order in which nodes were added.
///
/// ```
/// use dra_alloc::pods::PodExplanation;
/// let mut explanation = PodExplanation::default();
/// explanation.add_other("node-1", "Insufficient cpu");
/// explanation.add_other("node-2", "Insufficient cpu");
/// assert_eq!(explanation.to_string(), "0/2 nodes are available: 2 Insufficient cpu");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PodExplanation {
    /// Number of nodes that fit.
    pub fitting: usize,
    /// Nodes that do not fit, the largest group first once displayed.
    pub groups: Vec<RefusedNodes>,
    /// Changes with which a pod could use nodes, each with the number of those nodes.
    pub suggestions: Vec<SuggestedChange>,
    /// Feature gates that are off and that devices need, or with which nodes could be used, each with the number of those
    /// nodes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gates_off: BTreeMap<GateName, usize>,
    /// Devices that other pods of the gang, or of the question, have in flight.
    #[serde(serialize_with = "each_holding")]
    pub holdings: Vec<Arc<GangHolding>>,
    /// Extended resources and containers, by the request of the pod's claim for them (KEP-5004).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extended_requests: BTreeMap<String, String>,
}

/// Nodes that a pod can't use for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RefusedNodes {
    /// Reason, in words that are the same on all of the nodes.
    pub reason: String,
    /// Names of the nodes.
    pub nodes: BTreeSet<String>,
    /// For a prioritized list: the reasons of each alternative, with the number of nodes.
    pub alternatives: BTreeMap<String, BTreeMap<String, usize>>,
}

/// A change with which a pod could use nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SuggestedChange {
    /// The change.
    pub change: Suggestion,
    /// Number of nodes on which the allocation succeeds with it.
    pub nodes: usize,
}

/// Devices that a placed pod of a gang has in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GangHolding {
    /// Name of the pod.
    pub pod: String,
    /// Name of its node.
    pub node: String,
    /// The devices.
    pub devices: Vec<DeviceId>,
}

/// Writes the holdings themselves, which explanations share.
fn each_holding<S: Serializer>(holdings: &[Arc<GangHolding>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(holdings.iter().map(|holding| &**holding))
}

impl PodExplanation {
    /// Adds the verdict for a node. The words are those of the allocator's explanation, if the allocator was asked for one.
    pub fn add_verdict(&mut self, node: &str, verdict: &FilterVerdict) {
        self.add_nodes(&[node], verdict);
    }

    /// Adds nodes with the same verdict.
    pub(super) fn add_nodes(&mut self, nodes: &[&str], verdict: &FilterVerdict) {
        let number = nodes.len();
        let Some(refusal) = verdict.refusal() else {
            self.fitting += number;
            return;
        };
        for mapping in verdict.mappings() {
            let what = format!("{} of container {}", mapping.resource_name, mapping.container_name);
            self.extended_requests.entry(mapping.request_name.clone()).or_insert(what);
        }
        let explanation = verdict.explanation();
        let first = explanation.and_then(|explanation| explanation.reasons.first());
        let reason = match (refusal, first) {
            (NodeFilterError::OutOfReach { .. }, _) => "claim allocated for other nodes".to_owned(),
            (NodeFilterError::LeftOver { .. }, _) => {
                "claim for extended resources left over from an earlier attempt".to_owned()
            }
            (NodeFilterError::ExtendedResource(error), _) => match &**error {
                ExtendedResourceError::NoProvider { resource } => {
                    format!("no device plugin or device class for {resource}")
                }
                error => error.to_string(),
            },
            (_, Some(Reason { cause: Cause::NoAlternative { at }, because, .. })) => {
                let reason = format!("no alternative for request {}", at.request);
                let group = self.group(&reason);
                for alternative in because {
                    let (name, reason) = alternative.of_alternative();
                    *group.alternatives.entry(name).or_default().entry(reason).or_default() += number;
                }
                reason
            }
            (_, Some(_)) => explanation.and_then(Explanation::headline).unwrap_or_default(),
            (refusal, None) => refusal.to_string(),
        };
        self.group(&reason).nodes.extend(nodes.iter().map(|node| (*node).to_owned()));
        for gate in explanation.into_iter().flat_map(Explanation::gates_off) {
            *self.gates_off.entry(gate).or_default() += number;
        }
        for change in explanation.into_iter().flat_map(|explanation| &explanation.suggestions) {
            match self.suggestions.iter_mut().find(|known| known.change == *change) {
                Some(known) => known.nodes += number,
                None => self.suggestions.push(SuggestedChange { change: change.clone(), nodes: number }),
            }
        }
    }

    /// Adds a node that does not fit for a reason that has nothing to do with claims, such as `Insufficient cpu`.
    pub fn add_other(&mut self, node: &str, reason: impl AsRef<str>) {
        self.group(reason.as_ref()).nodes.insert(node.to_owned());
    }

    /// Adds the nodes of another explanation. Suggestions that read alike are one.
    ///
    /// With [`PodExplanation::remove`], a caller that keeps an explanation for each node renews that of the whole cluster when
    /// one node has changed.
    ///
    /// ```
    /// use dra_alloc::pods::PodExplanation;
    /// let on = |node: &str, reason: &str| {
    ///     let mut explanation = PodExplanation::default();
    ///     explanation.add_other(node, reason);
    ///     explanation
    /// };
    /// let (before, after) = (on("node-1", "Insufficient cpu"), on("node-1", "node(s) were unschedulable"));
    /// let mut cluster = on("node-2", "Insufficient cpu");
    /// cluster.add(&before);
    /// assert_eq!(cluster.to_string(), "0/2 nodes are available: 2 Insufficient cpu");
    /// cluster.remove(&before);
    /// cluster.add(&after);
    /// let text = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable";
    /// assert_eq!(cluster.to_string(), text);
    /// ```
    ///
    /// # Complexity
    /// Linear in the size of `other`, times the number of groups and suggestions; a look-up for each of its nodes.
    pub fn add(&mut self, other: &Self) {
        self.fitting += other.fitting;
        for RefusedNodes { reason, nodes, alternatives } in &other.groups {
            let group = self.group(reason);
            group.nodes.extend(nodes.iter().cloned());
            for (alternative, reasons) in alternatives {
                let known = group.alternatives.entry(alternative.clone()).or_default();
                for (reason, nodes) in reasons {
                    *known.entry(reason.clone()).or_default() += nodes;
                }
            }
        }
        for SuggestedChange { change, nodes } in &other.suggestions {
            match self.suggested(change) {
                Some(known) => known.nodes += nodes,
                None => self.suggestions.push(SuggestedChange { change: change.clone(), nodes: *nodes }),
            }
        }
        for (gate, nodes) in &other.gates_off {
            *self.gates_off.entry(*gate).or_default() += nodes;
        }
        self.holdings.extend_from_slice(&other.holdings);
        self.extended_requests.extend(other.extended_requests.clone());
    }

    /// Removes the nodes of another explanation, which was added before. The names of extended resources stay.
    ///
    /// # Complexity
    /// That of [`PodExplanation::add`].
    pub fn remove(&mut self, other: &Self) {
        self.fitting = self.fitting.saturating_sub(other.fitting);
        for RefusedNodes { reason, nodes, alternatives } in &other.groups {
            let group = self.group(reason);
            for node in nodes {
                group.nodes.remove(node);
            }
            for (alternative, reasons) in alternatives {
                let Some(known) = group.alternatives.get_mut(alternative) else { continue };
                for (reason, nodes) in reasons {
                    let Some(count) = known.get_mut(reason) else { continue };
                    *count = count.saturating_sub(*nodes);
                }
                known.retain(|_, nodes| *nodes > 0);
            }
            group.alternatives.retain(|_, reasons| !reasons.is_empty());
        }
        self.groups.retain(|group| !group.nodes.is_empty());
        for SuggestedChange { change, nodes } in &other.suggestions {
            if let Some(known) = self.suggested(change) {
                known.nodes = known.nodes.saturating_sub(*nodes);
            }
        }
        self.suggestions.retain(|change| change.nodes > 0);
        for (gate, nodes) in &other.gates_off {
            let Some(known) = self.gates_off.get_mut(gate) else { continue };
            *known = known.saturating_sub(*nodes);
        }
        self.gates_off.retain(|_, nodes| *nodes > 0);
        self.holdings.retain(|holding| !other.holdings.contains(holding));
    }

    /// Returns the suggestion that reads like another one.
    fn suggested(&mut self, change: &Suggestion) -> Option<&mut SuggestedChange> {
        let text = change.to_string();
        self.suggestions.iter_mut().find(|known| known.change == *change || known.change.to_string() == text)
    }

    pub(crate) fn set_holdings(&mut self, holdings: Vec<Arc<GangHolding>>) {
        self.holdings = holdings;
    }

    fn group(&mut self, reason: &str) -> &mut RefusedNodes {
        let known = self.groups.iter().position(|group| group.reason == reason);
        let index = known.unwrap_or_else(|| {
            let (nodes, alternatives) = (BTreeSet::new(), BTreeMap::new());
            self.groups.push(RefusedNodes { reason: reason.to_owned(), nodes, alternatives });
            self.groups.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "the group was found or pushed above")]
        &mut self.groups[index]
    }

    /// Returns the number of nodes that were added. A node with several reasons counts once.
    ///
    /// # Complexity
    /// n log n in the nodes.
    ///
    /// ```
    /// use dra_alloc::pods::PodExplanation;
    /// let mut explanation = PodExplanation::default();
    /// explanation.add_other("node-1", "Insufficient cpu");
    /// explanation.add_other("node-1", "Insufficient memory");
    /// assert_eq!(explanation.to_string(), "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory");
    /// ```
    #[must_use]
    pub fn number_of_nodes(&self) -> usize {
        let refused: BTreeSet<&String> = self.groups.iter().flat_map(|group| &group.nodes).collect();
        self.fitting + refused.len()
    }
}

impl fmt::Display for RefusedNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.nodes.len(), self.reason)?;
        if self.alternatives.is_empty() {
            return Ok(());
        }
        let alternatives = self.alternatives.iter().map(|(name, reasons)| {
            let reasons: Vec<(String, usize)> = reasons.iter().map(|(text, nodes)| (text.clone(), *nodes)).collect();
            format!("{name}: {}", cut(by_number(reasons), ", "))
        });
        write!(f, " ({})", cut(alternatives.collect(), "; "))
    }
}

impl fmt::Display for PodExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("{}/{} nodes are available", self.fitting, self.number_of_nodes());
        let mut groups: Vec<&RefusedNodes> = self.groups.iter().collect();
        groups.sort_by_key(|group| (Reverse(group.nodes.len()), group.reason.as_str()));
        if !groups.is_empty() {
            text = format!("{text}: {}", cut(groups.iter().map(ToString::to_string).collect(), ", "));
        }
        let changes = self.suggestions.iter().map(|change| (Reverse(change.nodes), change.change.to_string()));
        let changes: BTreeSet<(Reverse<usize>, String)> = changes.collect();
        let changes = changes.iter().map(|(Reverse(nodes), change)| {
            let unit = if *nodes == 1 { "node" } else { "nodes" };
            format!("possible on {nodes} {unit} {change}")
        });
        let holdings = self.holdings.iter().map(|holding| {
            let devices = cut(holding.devices.iter().map(ToString::to_string).collect(), ", ");
            format!("pod {} on {}, placed before it, holds {devices}", holding.pod, holding.node)
        });
        let mut parts = vec![cut(changes.collect(), ", "), cut(holdings.collect(), ", ")];
        let named =
            self.extended_requests.iter().filter(|(request, _)| parts.iter().any(|part| part.contains(*request)));
        let named = named.map(|(request, what)| format!("request {request} is {what}"));
        parts.push(cut(named.collect(), ", "));
        for part in parts.iter().filter(|part| !part.is_empty()) {
            text = format!("{text}; {part}");
        }
        f.write_str(&text)
    }
}

/// Returns texts with their numbers, the largest first, and of equal numbers in the order of the alphabet.
fn by_number(mut texts: Vec<(String, usize)>) -> Vec<String> {
    texts.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    texts.into_iter().map(|(text, number)| format!("{number} {text}")).collect()
}

/// Joins texts, with "and N more" after the first few.
fn cut(mut texts: Vec<String>, separator: &str) -> String {
    let more = texts.len().saturating_sub(SHOWN);
    texts.truncate(SHOWN);
    let end = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{end}", texts.join(separator))
}
