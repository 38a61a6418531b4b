//! Solution of a search: the chosen devices, and the alternative of each request.

use smallvec::SmallVec;

use super::ix::{AlternativeIx, ByClaim, Place};
use super::partial_assignment::Chosen;
use super::request::{Claim, Plan};

/// Alternative that was last tried for each request, for the requests of all claims in order.
#[derive(Clone, Debug)]
pub(crate) struct Selected(SmallVec<[AlternativeIx; 8]>);

impl Selected {
    /// Collects the alternatives of the requests of all claims, in order.
    pub(crate) fn new(alternatives: impl IntoIterator<Item = AlternativeIx>) -> Self {
        Self(alternatives.into_iter().collect())
    }

    /// Returns the alternatives of the requests of all claims, in order.
    pub(crate) fn alternatives(&self) -> &[AlternativeIx] {
        &self.0
    }

    pub(super) fn firsts(claims: &ByClaim<Claim<'_>>) -> Self {
        Self(claims.iter().flat_map(|claim| &claim.requests).map(|request| request.alternatives.start).collect())
    }

    pub(super) fn set(&mut self, claims: &ByClaim<Claim<'_>>, (claim, request): Place, alternative: AlternativeIx) {
        let before: usize = claims.iter().take(claim.into()).map(|claim| claim.requests.len()).sum();
        if let Some(selected) = self.0.get_mut(before + usize::from(request)) {
            *selected = alternative;
        }
    }
}

/// Solution of the search: the chosen devices in the order of their choice, and the chosen alternative of each request.
#[derive(Clone, Copy)]
pub(crate) struct Solution<'w> {
    pub(crate) chosen: &'w [Chosen],
    pub(crate) selected: &'w Selected,
}

impl<'w> Solution<'w> {
    /// Returns each claim with the alternatives of its requests and its devices. Relies on the search completing one
    /// claim after the other.
    pub(crate) fn by_claim<'p>(
        self,
        plan: &'p Plan<'p>,
    ) -> impl Iterator<Item = (&'p Claim<'p>, &'w [AlternativeIx], &'w [Chosen])> {
        let (mut selected, mut chosen) = (self.selected.0.as_slice(), self.chosen);
        plan.claims.enumerate().map(move |(index, claim)| {
            let is_own =
                |chosen: &Chosen| plan.alternatives.at(chosen.alternative).is_some_and(|asked| asked.claim == index);
            let devices = chosen.partition_point(is_own);
            (claim, split_off(&mut selected, claim.requests.len()), split_off(&mut chosen, devices))
        })
    }
}

/// Removes and returns the first `count` elements of a list.
fn split_off<'l, T>(list: &mut &'l [T], count: usize) -> &'l [T] {
    let (first, rest) = list.split_at_checked(count).unwrap_or((*list, &[]));
    *list = rest;
    first
}
