//! Choice of a node for one pod with claims.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dra_alloc::objective::Score;
use dra_alloc::pods::{
    FilterVerdict, NodeFilterError, PodCycle, PodExplanation, RoomLeft, StatusCode, normalize_scores,
};
use dra_alloc::{AllocatedState, Allocator, Budget, Inventory};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;

/// Reason that a pod has no node.
#[derive(Clone, Debug, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "a failure, or a no")]
pub enum NoNode {
    /// The search could not be carried out.
    #[error("{0}")]
    Failed(String),
    /// The search took too long: nobody knows if a node can serve the pod's claims.
    #[error("{0}")]
    TimedOut(String),
    /// No node can serve the pod's claims.
    #[error("{0}")]
    Nowhere(Arc<PodExplanation>),
}

/// Verdict on a node.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "yes or no")]
pub enum NodeVerdict {
    /// The pod fits, with this rank.
    Fits(Rank),
    /// The pod does not fit, for these reasons of the one node.
    Refused(PodExplanation),
}

/// Number of times that the searches for a pod or a gang, on all nodes together, may ask if they go on: once for 16 units of
/// work, which is some seconds.
const MAX_QUESTIONS: u64 = 2_000_000;

/// Longest time of the searches for a pod, on all nodes together: that of kube-scheduler's `Filter` on one.
const MAX_TIME: Duration = Duration::from_secs(10);

/// Calls a function with a budget for all searches of a pod together that ends after ten seconds, too.
pub fn with_deadline<T>(search: impl FnOnce(Budget<'_>) -> T) -> T {
    let (begin, questions) = (Instant::now(), AtomicU64::new(0));
    let is_over = || questions.fetch_add(1, Ordering::Relaxed) >= MAX_QUESTIONS || begin.elapsed() >= MAX_TIME;
    search(Budget::default().with_stop(&is_over))
}

/// Calls a function with a budget for all searches of a pod or a gang together.
pub fn with_budget<T>(search: impl FnOnce(Budget<'_>) -> T) -> T {
    let questions = AtomicU64::new(0);
    let is_over = || questions.fetch_add(1, Ordering::Relaxed) >= MAX_QUESTIONS;
    search(Budget::default().with_stop(&is_over))
}

/// Calls a function with a budget for a search, which ends when all searches that count with it have asked `most` times if they
/// go on.
pub fn with_shared_budget<T>(questions: &AtomicU64, most: u64, search: impl FnOnce(Budget<'_>) -> T) -> T {
    let is_over = || questions.fetch_add(1, Ordering::Relaxed) >= most;
    search(Budget::default().with_stop(&is_over))
}

/// Rank of a node that can run a pod: first by the score of alternatives, then by the value of the devices for an objective. The
/// smaller one is better.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    score: Reverse<i64>,
    value: Value,
}

/// Value of the devices on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    /// Number for each level of the objective.
    Known(Vec<u64>),
    /// There is no objective, nothing is to be allocated, or the budget has ended before the value was known.
    None,
}

impl Rank {
    /// Ranks a node with a score of alternatives, where the devices have a score for an objective.
    #[must_use]
    pub fn new(score: i64, choice: Option<&Score>) -> Self {
        Self { score: Reverse(score), value: choice.map_or(Value::None, |choice| Value::Known(choice.value.clone())) }
    }

    /// Returns true if no node is better, where none has a score above the best one.
    #[must_use]
    pub fn is_best(&self, best_score: i64) -> bool {
        let is_least = match &self.value {
            Value::Known(value) => value.iter().all(|number| *number == 0),
            Value::None => true,
        };
        self.score.0 >= best_score && is_least
    }
}

/// Preference among nodes with the same score.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the preferences of the program")]
pub enum Preference<'i> {
    /// The first one.
    First,
    /// The one whose pools have the least room left, the first of several.
    BestFit(&'i Inventory),
}

impl Preference<'_> {
    /// Returns a number that is smaller for nodes that are preferred.
    fn rank(self, cycle: &PodCycle, node: &Node, state: &AllocatedState) -> RoomLeft {
        match self {
            Self::First => RoomLeft::default(),
            Self::BestFit(inventory) => cycle.room_left(node, inventory, state),
        }
    }
}

/// Tries nodes in their order and returns the one with the highest score; of several, the one where the devices have the least
/// value, if the allocator has an objective.
///
/// # Errors
/// No node can run the pod. `explanation` has reasons of nodes that are not tried.
pub fn best_node<'n>(
    cycle: &mut PodCycle,
    nodes: impl IntoIterator<Item = &'n Node>,
    allocator: &Allocator<'_>,
    state: &AllocatedState,
    mut explanation: PodExplanation,
    now: Timestamp,
    preference: Preference<'_>,
) -> Result<String, NoNode> {
    let (mut fitting, mut scores) = (Vec::new(), Vec::new());
    let nodes: Vec<&Node> = nodes.into_iter().collect();
    let verdicts: Vec<FilterVerdict> = with_budget(|budget| {
        let filter = cycle.node_filter(allocator, state);
        let mut is_over = false;
        let verdicts = nodes.iter().map_while(|node| {
            let verdict = (!is_over).then(|| filter.filter(node, now, budget))?;
            is_over = verdict.refusal().is_some_and(ends);
            Some(verdict)
        });
        verdicts.collect()
    });
    for (node, verdict) in nodes.into_iter().zip(verdicts) {
        match take_in(cycle, node, verdict)? {
            NodeVerdict::Fits(rank) => {
                scores.push(rank.score.0);
                fitting.push((node, rank));
            }
            NodeVerdict::Refused(reasons) => explanation.add(&reasons),
        }
    }
    normalize_scores(&mut scores);
    // The first of the best.
    let best = fitting.into_iter().zip(scores).min_by_key(|((node, rank), score)| {
        let rank = Rank { score: Reverse(*score), ..rank.clone() };
        (rank, preference.rank(cycle, node, state))
    });
    best.map(|((node, _), _)| name_in(node).to_owned()).ok_or_else(|| NoNode::Nowhere(Arc::new(explanation)))
}

/// Judges one node, and takes the verdict into the cycle.
///
/// # Errors
/// The search could not be carried out.
pub fn judge(
    cycle: &mut PodCycle,
    node: &Node,
    allocator: &Allocator<'_>,
    state: &AllocatedState,
    now: Timestamp,
    budget: Budget<'_>,
) -> Result<NodeVerdict, NoNode> {
    let verdict = cycle.filter(node, allocator, state, now, budget);
    take_in(cycle, node, verdict)
}

/// Returns true if the refusal of a node ends the search.
const fn ends(refusal: &NodeFilterError) -> bool {
    matches!(refusal, NodeFilterError::TimedOut { .. }) || matches!(refusal.code(), StatusCode::Error)
}

/// Takes the verdict for a node into the cycle.
///
/// # Errors
/// The verdict is that the search could not be carried out.
pub fn take_in(cycle: &mut PodCycle, node: &Node, verdict: FilterVerdict) -> Result<NodeVerdict, NoNode> {
    let name = name_in(node);
    let failed = |error: &dyn std::fmt::Display| NoNode::Failed(error.to_string());
    if let Some(refusal) = verdict.refusal() {
        if matches!(refusal, NodeFilterError::TimedOut { .. }) {
            return Err(NoNode::TimedOut(refusal.to_string()));
        }
        if refusal.code() == StatusCode::Error {
            return Err(failed(refusal));
        }
        let mut reasons = PodExplanation::default();
        reasons.add_verdict(name, &verdict);
        cycle.record(name, verdict);
        return Ok(NodeVerdict::Refused(reasons));
    }
    cycle.record(name, verdict);
    let score = cycle.score(name).map_err(|error| failed(&error))?;
    Ok(NodeVerdict::Fits(Rank::new(score, cycle.choice_on(name))))
}

fn name_in(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}
