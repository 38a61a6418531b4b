//! Alternatives of `firstAvailable` requests.

use super::ground::Ground;
use super::measure::{Facts, Measure, wide};
use super::partial::Partial;
use crate::search::ix::{AlternativeIx, ByAlternative, DeviceIx};

/// Sum over requests of the position of the subrequest taken.
pub(super) struct Alternative {
    positions: ByAlternative<u64>,
}

impl Alternative {
    pub(super) fn new(ground: &Ground<'_, '_>) -> Self {
        let requests = ground.table.plan.claims.iter().flat_map(|claim| claim.requests.iter());
        let positions = requests.flat_map(|request| 0..request.alternatives.len()).map(wide);
        Self { positions: positions.collect() }
    }

    fn position(&self, alternative: AlternativeIx) -> u64 {
        self.positions.at(alternative).copied().unwrap_or(0)
    }
}

impl Measure for Alternative {
    fn at_least(&self, partial: &Partial<'_>) -> u64 {
        let is_begun = |request: usize| request < partial.picked.len();
        let open = partial.wants.iter().filter(|want| !is_begun(want.request));
        let least = open.map(|want| want.options.iter().map(|open| self.position(open.alternative)).min().unwrap_or(0));
        let picked = partial.picked.iter().map(|alternative| self.position(*alternative));
        picked.chain(least).fold(0, u64::saturating_add)
    }

    fn tell(&self, _: DeviceIx, _: &mut Facts) {}
}
