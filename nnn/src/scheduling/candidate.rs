//! Which node is tried first (KEP-5278, External components may set `NominatedNodeName`; KEP-1923).

use serde::Serialize;

use crate::reservation::Fit;

/// What `PreFilter` said about the pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PreFilter {
    /// Nodes are to be judged.
    #[default]
    Passed,
    /// No node can fit.
    Rejected,
    /// It could not tell.
    Failed,
}

/// Whether the hint of a batch of like pods is tried when the nominated node did not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HintAfterNnn {
    /// No, as kube-scheduler 1.37.
    #[default]
    Passed,
    /// Yes: a wish that is open upstream.
    Tried,
}

/// What became of a node that was tried before the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum FirstTry {
    /// It fits: no other node is filtered, none is scored.
    Taken,
    /// There is no such node.
    NotInCluster,
    /// It is not among the nodes that may be used now.
    NotInPlacement,
    /// It could not be judged, which is fatal only if it happens again among all nodes.
    Failed,
    /// It does not fit.
    Rejected,
}

/// What the evaluation of nodes found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feasible<'a> {
    /// There are no nodes to judge.
    NoNodes,
    /// `PreFilter` failed.
    PreFilterFailed,
    /// `PreFilter` rejected: nothing was judged, not the nominated node either.
    PreFilterRejected,
    /// A node that was tried before the others. Scoring is skipped: a better node would not have been looked for.
    First(&'a str),
    /// The nodes that fit, in the given order; to be scored. None means that the pod does not fit.
    Nodes(Vec<&'a str>),
    /// A node could not be judged.
    Failed(&'a str),
}

/// The start of a scheduling cycle.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct CycleStart<'a> {
    /// `status.nominatedNodeName` of the copy that came out of the queue. What is written later is not seen.
    pub nnn: Option<&'a str>,
    /// The node on which the last like pod of a batch fitted.
    pub hint: Option<&'a str>,
    /// What happens after the nominated node did not fit.
    pub hint_after_nnn: HintAfterNnn,
    /// What `PreFilter` said.
    pub pre_filter: PreFilter,
    /// The nodes that may be used, in the order in which they are judged.
    pub placement: &'a [&'a str],
}

/// How a scheduling cycle looked at nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evaluation<'a> {
    /// What was found.
    pub feasible: Feasible<'a>,
    /// The nodes that were tried before the others, and what became of them.
    pub tried: Vec<(&'a str, FirstTry)>,
    /// How often a node was judged.
    pub filter_runs: usize,
}

impl<'a> CycleStart<'a> {
    /// A cycle over these nodes.
    #[must_use]
    pub fn new(placement: &'a [&'a str]) -> Self {
        Self { placement, ..Self::default() }
    }

    /// The same for a pod with a nomination.
    #[must_use]
    pub fn nominated_to(self, nnn: Option<&'a str>) -> Self {
        Self { nnn: nnn.filter(|node| !node.is_empty()), ..self }
    }

    /// Looks for nodes. `exists` tells whether the cluster has a node, `fit` judges one: with the nominations of the node
    /// ([`crate::reservation::two_pass`]) and extenders.
    ///
    /// A node that was tried first and did not fit is judged again with the others, so that the cost of a useless hint is
    /// one more call of `fit`.
    ///
    /// ```
    /// use nnn::reservation::Fit;
    /// use nnn::scheduling::candidate::{CycleStart, Feasible};
    /// let nodes = ["a", "b", "c"];
    /// let start = CycleStart::new(&nodes).nominated_to(Some("b"));
    /// let found = start.evaluate(|_| true, |_| Fit::<()>::Fits);
    /// assert_eq!((found.feasible, found.filter_runs), (Feasible::First("b"), 1));
    /// ```
    pub fn evaluate<R>(&self, exists: impl Fn(&str) -> bool, mut fit: impl FnMut(&str) -> Fit<R>) -> Evaluation<'a> {
        let mut evaluation = Evaluation { feasible: Feasible::NoNodes, tried: Vec::new(), filter_runs: 0 };
        if let Some(stop) = self.stop() {
            evaluation.feasible = stop;
            return evaluation;
        }
        for node in self.candidates().into_iter().flatten() {
            let tried = self.try_first(node, &exists, &mut fit, &mut evaluation.filter_runs);
            evaluation.tried.push((node, tried));
            if tried == FirstTry::Taken {
                evaluation.feasible = Feasible::First(node);
                return evaluation;
            }
        }
        evaluation.feasible = self.evaluate_all(fit, &mut evaluation.filter_runs);
        evaluation
    }

    fn stop(&self) -> Option<Feasible<'a>> {
        match self.pre_filter {
            _ if self.placement.is_empty() => Some(Feasible::NoNodes),
            PreFilter::Failed => Some(Feasible::PreFilterFailed),
            PreFilter::Rejected => Some(Feasible::PreFilterRejected),
            PreFilter::Passed => None,
        }
    }

    fn candidates(&self) -> [Option<&'a str>; 2] {
        match (self.nnn, self.hint_after_nnn) {
            (None, _) => [self.hint, None],
            (nnn, HintAfterNnn::Passed) => [nnn, None],
            (nnn, HintAfterNnn::Tried) => [nnn, self.hint.filter(|hint| nnn != Some(hint))],
        }
    }

    fn try_first<R>(
        &self,
        node: &str,
        exists: impl Fn(&str) -> bool,
        mut fit: impl FnMut(&str) -> Fit<R>,
        filter_runs: &mut usize,
    ) -> FirstTry {
        if !exists(node) {
            return FirstTry::NotInCluster;
        }
        if !self.placement.contains(&node) {
            return FirstTry::NotInPlacement;
        }
        *filter_runs = filter_runs.saturating_add(1);
        match fit(node) {
            Fit::Fits => FirstTry::Taken,
            Fit::Rejected(_) => FirstTry::Rejected,
            Fit::Failed(_) => FirstTry::Failed,
        }
    }

    fn evaluate_all<R>(&self, mut fit: impl FnMut(&str) -> Fit<R>, filter_runs: &mut usize) -> Feasible<'a> {
        let mut fitting = Vec::new();
        for node in self.placement {
            *filter_runs = filter_runs.saturating_add(1);
            match fit(node) {
                Fit::Fits => fitting.push(*node),
                Fit::Rejected(_) => {}
                Fit::Failed(_) => return Feasible::Failed(node),
            }
        }
        Feasible::Nodes(fitting)
    }
}

/// How many rounds of filters judge so many nodes, so many at a time.
///
/// ```
/// use nnn::scheduling::candidate::filter_rounds;
/// assert_eq!(filter_rounds(1000, 16), 63);
/// ```
#[must_use]
pub const fn filter_rounds(nodes: usize, parallelism: usize) -> usize {
    nodes.div_ceil(if parallelism == 0 { 1 } else { parallelism })
}
