//! Nodes that are tried before the others (KEP-5278, External components may set `NominatedNodeName`; KEP-1923).

use serde::Serialize;

use crate::reservation::NodeFit;

/// Result of the `PreFilter` plugins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PreFilterResult {
    /// Nodes are to be filtered.
    #[default]
    Passed,
    /// No node can fit.
    Rejected,
    /// A plugin failed.
    Failed,
}

/// Treatment of the node hint of a batch of like pods when the nominated node did not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HintAfterNomination {
    /// The hint is not tried, as in kube-scheduler 1.37.
    #[default]
    Skipped,
    /// The hint is tried too (an open request upstream).
    Tried,
}

/// Result of a node that was tried before the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum CandidateResult {
    /// The node fits: no other node is filtered, and none is scored.
    Taken,
    /// The cluster does not have the node.
    NotInCluster,
    /// The node is not among the nodes that may be used now.
    NotInPlacement,
    /// The filter failed, which is fatal only if it fails again when all nodes are filtered.
    Failed,
    /// The node does not fit.
    Rejected,
}

/// Nodes that fit a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeasibleNodes<'a> {
    /// There are no nodes to filter.
    NoNodes,
    /// A `PreFilter` plugin failed.
    PreFilterFailed,
    /// A `PreFilter` plugin rejected the pod: no node was filtered, not even the nominated one.
    PreFilterRejected,
    /// A node that was tried before the others fits. Scoring is skipped, because no other node was filtered.
    First(&'a str),
    /// The nodes that fit, in the given order, to be scored. The pod is unschedulable if there are none.
    Nodes(Vec<&'a str>),
    /// The filter failed on this node.
    Failed(&'a str),
}

/// Input of a scheduling cycle.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct CycleStart<'a> {
    /// `status.nominatedNodeName` of the copy that came out of the queue. Later writes are not seen.
    pub nnn: Option<&'a str>,
    /// Node on which the last like pod of a batch fitted.
    pub hint: Option<&'a str>,
    /// Treatment of `hint` when the nominated node did not fit.
    pub hint_after_nomination: HintAfterNomination,
    /// Result of the `PreFilter` plugins.
    pub pre_filter: PreFilterResult,
    /// Nodes that may be used, in the order in which they are filtered.
    pub placement: &'a [&'a str],
}

/// Result of filtering nodes for one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeEvaluation<'a> {
    /// Nodes that fit.
    pub feasible: FeasibleNodes<'a>,
    /// Nodes that were tried before the others, with their results.
    pub tried: Vec<(&'a str, CandidateResult)>,
    /// Number of filter runs.
    pub filter_runs: usize,
}

impl<'a> CycleStart<'a> {
    /// Builds the input for these nodes.
    #[must_use]
    pub fn new(placement: &'a [&'a str]) -> Self {
        Self { placement, ..Self::default() }
    }

    /// Sets the nomination of the pod.
    #[must_use]
    pub fn with_nomination(self, nnn: Option<&'a str>) -> Self {
        Self { nnn: nnn.filter(|node| !node.is_empty()), ..self }
    }

    /// Filters nodes, the nominated node first. `exists` tells if the cluster has a node. `fit` filters one node, with
    /// its nominations ([`filter_with_nominated_pods`](crate::filter_with_nominated_pods)) and extenders.
    ///
    /// A node that was tried first and did not fit is filtered again with the others, so that a useless nomination
    /// costs one more call of `fit`.
    ///
    /// ```
    /// use nnn::NodeFit;
    /// use nnn::scheduling::{CycleStart, FeasibleNodes};
    /// let nodes = ["a", "b", "c"];
    /// let start = CycleStart::new(&nodes).with_nomination(Some("b"));
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
            PreFilterResult::Failed => Some(FeasibleNodes::PreFilterFailed),
            PreFilterResult::Rejected => Some(FeasibleNodes::PreFilterRejected),
            PreFilterResult::Passed => None,
        }
    }

    fn candidates(&self) -> [Option<&'a str>; 2] {
        match (self.nnn, self.hint_after_nomination) {
            (None, _) => [self.hint, None],
            (nnn, HintAfterNomination::Skipped) => [nnn, None],
            (nnn, HintAfterNomination::Tried) => [nnn, self.hint.filter(|hint| nnn != Some(hint))],
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
///
/// ```
/// use nnn::scheduling::filter_rounds;
/// assert_eq!(filter_rounds(1000, 16), 63);
/// ```
#[must_use]
pub const fn filter_rounds(nodes: usize, parallelism: usize) -> usize {
    nodes.div_ceil(if parallelism == 0 { 1 } else { parallelism })
}
