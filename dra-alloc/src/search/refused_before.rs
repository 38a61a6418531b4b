//! Devices that a request need not look at, since an earlier request that asks the same has just been refused them.
//!
//! A request starts at the first device, and passes over what is taken, not selected, tainted or too small. A request that
//! asks the same after it would pass over the same devices again: 32 requests of one device would look at 32 devices each.
//! It starts behind them instead.
//!
//! *Argument.* Let request `b` ask the same as request `a` of its claim, which has its devices. Each device before the
//! position that is kept for `a` was refused to `a`, or given to it. A refusal counts here only if its reason stays as long
//! as what was chosen then is chosen: a claim or an earlier request has the device, the selectors, taints, the size of a
//! capacity, a switch of the node. It holds for `b`, and no check of `b` comes further than that of `a`, so that none ends
//! in an error. What was given to `a` is taken for `b`, unless it can be shared: then `b` starts there.
//! Counters, constraints and shares of a capacity are no such reasons. A device that `a` gave back is looked at again.

use smallvec::SmallVec;

use super::ix::{AlternativeIx, DeviceIx};

/// For each alternative: the position before which all devices are refused to it, or taken.
#[derive(Default)]
pub(crate) struct RefusedBefore(SmallVec<[DeviceIx; 4]>);

/// Duration for which a device stays refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// As long as the choices stay that were made before.
    Stays,
    /// As long as a constraint has its values.
    Conflict,
    /// Perhaps for this request alone.
    Unknown,
}

impl RefusedBefore {
    /// Starts without a refusal. Nothing is ever kept if there are no alternatives.
    pub(crate) fn new(alternatives: usize) -> Self {
        Self(SmallVec::from_elem(DeviceIx::FIRST, alternatives))
    }

    /// Returns the position from which an alternative starts: what was kept for `same`, an earlier one that asks the same.
    pub(crate) fn begin(&mut self, alternative: AlternativeIx, same: Option<AlternativeIx>) -> DeviceIx {
        let from = same.map_or(DeviceIx::FIRST, |same| self.end(same));
        self.set(alternative, from);
        from
    }

    /// Returns the position that is kept for an alternative.
    pub(crate) fn end(&self, alternative: AlternativeIx) -> DeviceIx {
        self.0.get(usize::from(alternative)).copied().unwrap_or(DeviceIx::FIRST)
    }

    /// Keeps a position: all devices before it are refused, or taken.
    pub(crate) fn set(&mut self, alternative: AlternativeIx, end: DeviceIx) {
        if let Some(kept) = self.0.get_mut(usize::from(alternative)) {
            *kept = end;
        }
    }

    /// Forgets what was kept of a device, which was given back, and of those behind it.
    pub(crate) fn give_back(&mut self, alternative: AlternativeIx, device: DeviceIx) {
        self.set(alternative, self.end(alternative).min(device));
    }
}
