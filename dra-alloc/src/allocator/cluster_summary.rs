//! Summary of the verdicts of many nodes in one line.

use std::collections::BTreeMap;

use super::verdict::Verdict;
use crate::explain::Explanation;
use crate::search::outcome::{NodeError, Outcome};

/// Returns one line about the verdicts of all nodes, like the event of an unschedulable pod: the number of nodes that
/// can serve the claims, then the causes of failure on the rest, the most frequent first.
///
/// ```
/// use dra_alloc::cluster_summary;
/// assert_eq!(cluster_summary(&[]), "0/0 nodes can serve the claims");
/// ```
#[must_use]
pub fn cluster_summary(verdicts: &[Verdict]) -> String {
    let mut lacks: BTreeMap<String, usize> = BTreeMap::new();
    let mut serving = 0;
    for verdict in verdicts {
        match headline(verdict) {
            Some(lack) => *lacks.entry(lack).or_default() += 1,
            None => serving += 1,
        }
    }
    let mut lacks: Vec<_> = lacks.into_iter().collect();
    lacks.sort_by_key(|(_, nodes)| std::cmp::Reverse(*nodes));
    let lacks: Vec<String> = lacks.iter().map(|(lack, nodes)| format!("{nodes} {lack}")).collect();
    let colon = if lacks.is_empty() { "" } else { ": " };
    format!("{serving}/{} nodes can serve the claims{colon}{}", verdicts.len(), lacks.join(", "))
}

/// Returns the cause of a node's failure in few words, which are equal for all nodes with that cause.
fn headline(verdict: &Verdict) -> Option<String> {
    let told = verdict.explanation.as_deref().and_then(Explanation::headline);
    match &verdict.outcome {
        Outcome::Allocated(_) => None,
        Outcome::Stopped(_) => Some("stopped by the budget".to_owned()),
        Outcome::FailedOnNode(failure) => Some(failure_headline(failure)),
        Outcome::Unsatisfied => Some(told.unwrap_or_else(|| "without suitable devices".to_owned())),
    }
}

fn failure_headline(failure: &NodeError) -> String {
    match failure {
        NodeError::PoolIncomplete { .. } => "resource pool being updated".to_owned(),
        NodeError::PoolInvalid { .. } | NodeError::InvalidPools { .. } => "invalid resource pool".to_owned(),
        NodeError::SkipNodeOperationsOff { gate, .. } => format!("feature gate {gate} off"),
    }
}
