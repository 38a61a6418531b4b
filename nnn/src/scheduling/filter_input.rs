//! Nodes that the scheduler tries before all other nodes: the nominated node and the hint of a batch of identical pods
//! (KEP-5278, External components may set `NominatedNodeName`; KEP-1923).

use serde::Serialize;

use crate::nomination::NodeFit;

/// Result of trying the nominated node, or the hint, before all other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum CandidateResult {
    /// The node fits: no other node is filtered, and none is scored.
    Taken,
    /// The node does not exist in the cluster.
    NotInCluster,
    /// The node exists, but is not in [`FilterInput::placement`].
    NotInPlacement,
    /// The filter failed on the node. The scheduler then filters all nodes, and the cycle fails only if the filter
    /// fails again.
    Failed,
    /// The pod does not fit the node.
    Rejected,
}

/// Result of filtering nodes for a pod: the nodes that fit, or the reason for none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeasibleNodes<'a> {
    /// The cluster has no nodes to filter.
    NoNodes,
    /// A `PreFilter` plugin failed.
    PreFilterFailed,
    /// A `PreFilter` plugin rejected the pod, so that no node was filtered, not even the nominated one.
    PreFilterRejected,
    /// The nominated node or the hint fits. Scoring is skipped, because no other node was filtered.
    First(&'a str),
    /// Nodes that fit, in the order of the input, to be scored. If empty, the pod is unschedulable.
    Nodes(Vec<&'a str>),
    /// The filter failed on this node.
    Failed(&'a str),
}

/// Input of the filter phase of a scheduling cycle.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct FilterInput<'a> {
    /// `status.nominatedNodeName` of the pod as it came out of the scheduling queue; later writes are ignored.
    pub nnn: Option<&'a str>,
    /// Node on which the last identical pod of a batch fitted.
    pub hint: Option<&'a str>,
    /// True if the scheduler tries `hint` after the nominated node did not fit, as requested in an open Kubernetes issue.
    /// kube-scheduler 1.37 does not.
    pub tries_hint_after_nomination: bool,
    /// Combined result of the `PreFilter` plugins. If one rejected the pod, no node can fit.
    pub pre_filter: NodeFit<()>,
    /// Nodes that the pod may use, in the order in which they are filtered.
    pub placement: &'a [&'a str],
}

/// Result of filtering nodes for one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeEvaluation<'a> {
    /// Nodes that fit the pod, or the reason for none.
    pub feasible: FeasibleNodes<'a>,
    /// Nodes that were tried before all others (the nominated node, the hint), with their results.
    pub tried: Vec<(&'a str, CandidateResult)>,
    /// Number of filter runs, each of one pod on one node.
    pub filter_runs: usize,
}

impl NodeEvaluation<'_> {
    /// Returns the number of rounds of the cycle, `parallelism` nodes at a time: one for each node that was filtered before
    /// all others, and those of the rest.
    ///
    /// ```
    /// use nnn::NodeFit;
    /// use nnn::scheduling::FilterInput;
    /// let nodes = ["a", "b", "c"];
    /// let useless = FilterInput::new(&nodes).with_nomination(Some("b"));
    /// let found = useless.evaluate(|_| true, |_| NodeFit::Rejected("full"));
    /// assert_eq!(found.rounds(2), 1 + 2);
    /// ```
    #[must_use]
    pub fn rounds(&self, parallelism: usize) -> usize {
        let unfiltered = [CandidateResult::NotInCluster, CandidateResult::NotInPlacement];
        let first = self.tried.iter().filter(|(_, result)| !unfiltered.contains(result)).count();
        filter_rounds(self.filter_runs.saturating_sub(first), parallelism).saturating_add(first)
    }
}

impl<'a> FilterInput<'a> {
    /// Builds the input for a pod that may use the nodes in `placement`.
    #[must_use]
    pub fn new(placement: &'a [&'a str]) -> Self {
        Self { placement, ..Self::default() }
    }

    /// Sets the node in `status.nominatedNodeName`.
    #[must_use]
    pub fn with_nomination(self, nnn: Option<&'a str>) -> Self {
        Self { nnn: nnn.filter(|node| !node.is_empty()), ..self }
    }

    /// Filters nodes for the pod, the nominated node first. `exists` looks a node up in the cluster; `fit` filters one
    /// node, with its nominations ([`filter_with_nominated_pods`](crate::PodSnapshot::filter_with_nominated_pods)) and extenders.
    ///
    /// A node that was tried first and did not fit is filtered again with the others, so that a useless nomination
    /// costs one more call of `fit`.
    ///
    /// ```
    /// use nnn::NodeFit;
    /// use nnn::scheduling::{FilterInput, FeasibleNodes};
    /// let nodes = ["a", "b", "c"];
    /// let start = FilterInput::new(&nodes).with_nomination(Some("b"));
    /// let found = start.evaluate(|_| true, |_| NodeFit::<()>::Fits);
    /// assert_eq!((found.feasible, found.filter_runs), (FeasibleNodes::First("b"), 1));
    /// ```
    pub fn evaluate<R>(
        &self,
        exists: impl Fn(&str) -> bool,
        mut fit: impl FnMut(&str) -> NodeFit<R>,
    ) -> NodeEvaluation<'a> {
        let mut evaluation = NodeEvaluation { feasible: FeasibleNodes::NoNodes, tried: Vec::new(), filter_runs: 0 };
        if let Some(stop) = self.stop() {
            evaluation.feasible = stop;
            return evaluation;
        }
        for node in self.candidates().into_iter().flatten() {
            let tried = self.try_first(node, &exists, &mut fit, &mut evaluation.filter_runs);
            evaluation.tried.push((node, tried));
            if tried == CandidateResult::Taken {
                evaluation.feasible = FeasibleNodes::First(node);
                return evaluation;
            }
        }
        evaluation.feasible = self.evaluate_all(fit, &mut evaluation.filter_runs);
        evaluation
    }

    fn stop(&self) -> Option<FeasibleNodes<'a>> {
        match self.pre_filter {
            _ if self.placement.is_empty() => Some(FeasibleNodes::NoNodes),
            NodeFit::Failed(()) => Some(FeasibleNodes::PreFilterFailed),
            NodeFit::Rejected(()) => Some(FeasibleNodes::PreFilterRejected),
            NodeFit::Fits => None,
        }
    }

    fn candidates(&self) -> [Option<&'a str>; 2] {
        match (self.nnn, self.tries_hint_after_nomination) {
            (None, _) => [self.hint, None],
            (nnn, false) => [nnn, None],
            (nnn, true) => [nnn, self.hint.filter(|hint| nnn != Some(hint))],
        }
    }

    fn try_first<R>(
        &self,
        node: &str,
        exists: impl Fn(&str) -> bool,
        mut fit: impl FnMut(&str) -> NodeFit<R>,
        filter_runs: &mut usize,
    ) -> CandidateResult {
        if !exists(node) {
            return CandidateResult::NotInCluster;
        }
        if !self.placement.contains(&node) {
            return CandidateResult::NotInPlacement;
        }
        *filter_runs = filter_runs.saturating_add(1);
        match fit(node) {
            NodeFit::Fits => CandidateResult::Taken,
            NodeFit::Rejected(_) => CandidateResult::Rejected,
            NodeFit::Failed(_) => CandidateResult::Failed,
        }
    }

    fn evaluate_all<R>(&self, mut fit: impl FnMut(&str) -> NodeFit<R>, filter_runs: &mut usize) -> FeasibleNodes<'a> {
        let mut fitting = Vec::new();
        for node in self.placement {
            *filter_runs = filter_runs.saturating_add(1);
            match fit(node) {
                NodeFit::Fits => fitting.push(*node),
                NodeFit::Rejected(_) => {}
                NodeFit::Failed(_) => return FeasibleNodes::Failed(node),
            }
        }
        FeasibleNodes::Nodes(fitting)
    }
}

/// Returns the number of rounds in which `nodes` nodes are filtered, `parallelism` at a time.
const fn filter_rounds(nodes: usize, parallelism: usize) -> usize {
    nodes.div_ceil(if parallelism == 0 { 1 } else { parallelism })
}

#[cfg(test)]
mod tests {
    use super::filter_rounds;

    #[test]
    fn the_last_round_may_be_a_part_of_one() {
        assert_eq!(filter_rounds(1000, 16), 63, "62 full rounds and one of 8");
        assert_eq!((filter_rounds(0, 16), filter_rounds(1, 0)), (0, 1));
    }
}
