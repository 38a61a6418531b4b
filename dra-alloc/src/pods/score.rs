//! Scores of nodes by the alternatives of prioritized lists that the allocation takes (KEP-4816).
//!
//! Source: `computeScore` of the plugin, `DefaultNormalizeScore` of the framework.

use std::collections::BTreeSet;

use dra_attrs::Gate;
use dra_attrs::internal::release::ClaimScores;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::cycle::{NodeResults, PodCycle};
use super::lookup::{allocation_of, requests_of};

/// Largest score of a node after [`normalize_scores`].
const MAX_NODE_SCORE: i64 = 100;

/// Points for the first alternative of a prioritized list; each later one has one less.
const FIRST_ALTERNATIVE: i64 = 8;

/// Error of a score that lacks the allocation of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("number of allocations {allocations} is smaller than number of claims needing allocation")]
#[non_exhaustive]
pub struct ScoreError {
    /// Number of allocations.
    pub allocations: usize,
}

/// Returns the score of allocations: for each request with `firstAvailable`, 8 points for the first subrequest that has
/// devices, 7 for the second and so on. `results` are for the claims without an allocation, in the order of the claims.
///
/// # Errors
/// There are fewer results than claims without an allocation.
///
/// ```
/// use dra_alloc::pods::claims_score;
/// use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
/// use serde_json::{from_value, json};
/// let claim: ResourceClaim = from_value(json!({"spec": {"devices": {"requests": [{"name": "gpu", "firstAvailable": [
///     {"name": "big", "deviceClassName": "big"}, {"name": "small", "deviceClassName": "small"}]}]}}}))?;
/// let result: AllocationResult = from_value(json!({"devices": {"results": [
///     {"request": "gpu/small", "driver": "d.example.com", "pool": "p", "device": "a"}]}}))?;
/// assert_eq!(claims_score([&claim], [&result]), Ok(7));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn claims_score<'c>(
    claims: impl IntoIterator<Item = &'c ResourceClaim>,
    results: impl IntoIterator<Item = &'c AllocationResult>,
) -> Result<i64, ScoreError> {
    let (mut results, mut taken, mut score) = (results.into_iter(), 0, 0_i64);
    for claim in claims {
        let allocation = match allocation_of(claim) {
            Some(allocation) => allocation,
            None => results.next().ok_or(ScoreError { allocations: taken })?,
        };
        taken += usize::from(allocation_of(claim).is_none());
        score = score.saturating_add(claim_score(claim, allocation));
    }
    Ok(score)
}

fn claim_score(claim: &ResourceClaim, allocation: &AllocationResult) -> i64 {
    let results = allocation.devices.iter().flat_map(|devices| devices.results.iter().flatten());
    let served: BTreeSet<&str> = results.map(|result| result.request.as_str()).collect();
    let lists = requests_of(claim).filter(|request| request.exactly.is_none());
    let alternatives = lists.flat_map(|request| {
        let points = (0..=FIRST_ALTERNATIVE).rev();
        request
            .first_available
            .iter()
            .flatten()
            .zip(points)
            .map(move |(alternative, points)| (format!("{}/{}", request.name, alternative.name), points))
    });
    alternatives.filter(|(name, _)| served.contains(name.as_str())).map(|(_, points)| points).sum()
}

/// Scales scores to at most 100, cutting fractions; all stay if none is positive. The worst node does not
/// get 0, unlike the KEP's text.
///
/// ```
/// use dra_alloc::pods::normalize_scores;
/// let mut scores = [8, 7, 1];
/// normalize_scores(&mut scores);
/// assert_eq!(scores, [100, 87, 12]);
/// ```
pub fn normalize_scores(scores: &mut [i64]) {
    let Some(best) = scores.iter().copied().max().filter(|best| *best > 0) else { return };
    for score in scores {
        let scaled = i128::from(MAX_NODE_SCORE) * i128::from(*score) / i128::from(best);
        *score = i64::try_from(scaled).unwrap_or(i64::MIN);
    }
}

impl PodCycle {
    /// Returns the score of a node (`Score`), for [`normalize_scores`]. Zero if nothing is to be allocated: claims that
    /// are allocated already count alike on all nodes.
    ///
    /// # Errors
    /// A claim has no result on the node.
    pub fn score(&self, node: &str) -> Result<i64, ScoreError> {
        self.nodes.get(node).map_or(Ok(0), |found| self.score_of(found))
    }

    /// Returns the score of a node with these results.
    pub(super) fn score_of(&self, found: &NodeResults) -> Result<i64, ScoreError> {
        if !self.has_scores() {
            return Ok(0);
        }
        // The claim for extended resources has no alternatives, and no result where the node provides them.
        let of_entries = self.claims.iter().filter(|claim| !claim.is_for_extended_resources());
        claims_score(of_entries.map(|claim| &*claim.claim), found.allocations())
    }

    fn has_scores(&self) -> bool {
        match self.options.profile().rules().plugin.scores {
            ClaimScores::Never => false,
            ClaimScores::Always => true,
            ClaimScores::WithPrioritizedList => self.options.has(Gate::PrioritizedList),
        }
    }

    /// Returns a score that no node exceeds: that of the first alternative of each prioritized list. A caller that tries
    /// nodes in the order of its preference may stop at a node that has it.
    #[must_use]
    pub fn best_score(&self) -> i64 {
        if !self.needs_allocation() || !self.has_scores() {
            return 0;
        }
        let lists = self.claims.iter().flat_map(|claim| requests_of(&claim.claim));
        let lists = lists.filter(|request| request.exactly.is_none());
        lists.map(|_| FIRST_ALTERNATIVE).fold(0, i64::saturating_add)
    }
}
