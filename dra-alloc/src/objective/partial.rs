//! Part of a solution: the devices chosen so far, and what is open.

use smallvec::SmallVec;

use super::ground::{Asked, Ground};
use crate::search::device_set::DeviceSet;
use crate::search::ix::AlternativeIx;
use crate::search::partial_assignment::Chosen;

/// Part of a solution.
pub(super) struct Partial<'p> {
    /// Chosen devices that count, in the order of their choice.
    pub(super) chosen: SmallVec<[Chosen; 16]>,
    /// Chosen devices with admin access, which count nowhere but take counters while devices are chosen.
    pub(super) admin: SmallVec<[Chosen; 16]>,
    /// Alternatives of the requests that have begun, in their order.
    pub(super) picked: &'p [AlternativeIx],
    /// Requests that need devices that count, in their order.
    pub(super) wants: SmallVec<[Want; 4]>,
}

/// Request that needs devices.
pub(super) struct Want {
    /// Number of the request among those of all claims.
    pub(super) request: usize,
    /// Alternatives that may still serve it.
    pub(super) options: SmallVec<[Open; 1]>,
}

/// Alternative that needs devices.
pub(super) struct Open {
    pub(super) alternative: AlternativeIx,
    pub(super) missing: usize,
    /// Devices that it may still get, at least as many.
    pub(super) devices: DeviceSet,
}

impl<'p> Partial<'p> {
    /// Reads a part of a solution: its devices, and the alternatives of the requests that have begun.
    pub(super) fn new(ground: &Ground<'_, '_>, chosen: &[Chosen], picked: &'p [AlternativeIx]) -> Self {
        let (chosen, admin) = chosen.iter().copied().partition(|chosen| ground.counts(chosen.alternative));
        Self { chosen, admin, picked, wants: SmallVec::new() }
    }

    /// Returns true if nothing is open: the part is a solution.
    pub(super) fn is_whole(&self) -> bool {
        self.wants.is_empty()
    }

    /// Sums up what each request that needs devices adds at least, with its cheapest alternative.
    pub(super) fn at_least(&self, of: impl Fn(&Open) -> u64) -> u64 {
        let least = self.wants.iter().map(|want| want.options.iter().map(&of).min().unwrap_or(0));
        least.fold(0, u64::saturating_add)
    }
}

impl Want {
    /// Returns what a request needs beside the taken devices; `None` if no alternative can be served.
    pub(super) fn new(ground: &Ground<'_, '_>, request: usize, asked: &Asked, taken: &DeviceSet) -> Option<Self> {
        let open = |alternative| {
            let (missing, devices) = (ground.missing(alternative, 0)?, ground.open_to(alternative, taken));
            (devices.len() >= missing).then_some(Open { alternative, missing, devices })
        };
        let options: SmallVec<[Open; 1]> = asked.options.into_iter().filter_map(open).collect();
        (!options.is_empty()).then_some(Self { request, options })
    }
}
