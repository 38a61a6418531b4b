//! Feature gates of one release.

use crate::gate::Gate;

/// Stage of a feature gate in one release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a new stage must stop whoever reads it")]
pub enum GateStage {
    /// The release does not know the gate: its fields are unknown fields there.
    Absent,
    /// Alpha: off unless it is switched on.
    Alpha,
    /// Beta, with the default off.
    BetaOff,
    /// Beta, with the default on.
    BetaOn,
    /// Stable: on, and it can still be switched off.
    Stable,
    /// Stable and locked: always on.
    Locked,
}

impl GateStage {
    /// Returns true if the gate is on unless it is switched off.
    pub(crate) const fn is_default(self) -> bool {
        matches!(self, Self::BetaOn | Self::Stable | Self::Locked)
    }

    /// Returns true if the release knows the gate.
    #[must_use]
    pub const fn exists(self) -> bool {
        !matches!(self, Self::Absent)
    }
}

/// Stage of each gate in one release, in the order of the enum: a new gate stops every row.
pub type GateRow = [(Gate, GateStage); Gate::COUNT];
