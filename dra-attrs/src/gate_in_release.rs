//! A feature gate in a release: its stage, its default, its name.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::gate::Gate;
use crate::profile::Profile;
use crate::release::{GateStage, SkipForm};

/// Name of the gate [`Gate::OptionalNodeOperations`] in KEP-5945.
const OPTIONAL_NODE_PREPARATION: &str = "DRAOptionalNodePreparation";

impl Gate {
    /// Returns the stage of the gate in the release of a profile.
    ///
    /// ```
    /// use dra_attrs::GateStage;
    /// use dra_attrs::{Gate, Profile};
    /// assert_eq!(Gate::DeviceTaints.stage(Profile::V1_35), GateStage::Alpha);
    /// assert_eq!(Gate::ListTypeAttributes.stage(Profile::V1_35), GateStage::Absent);
    /// ```
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "a row has the order of the enum, as a test asserts")]
    pub const fn stage(self, profile: Profile) -> GateStage {
        profile.rules().gates[self as usize].1
    }

    /// Returns the name of the gate in `--feature-gates`. A KEP and the release may spell it differently.
    #[must_use]
    pub const fn name(self, profile: Profile) -> &'static str {
        match profile.rules().skip.form {
            SkipForm::Bool if matches!(self, Self::OptionalNodeOperations) => OPTIONAL_NODE_PREPARATION,
            SkipForm::Bool | SkipForm::List => self.row().1,
        }
    }

    /// Returns true if the release of a profile has the gate on by default.
    #[must_use]
    pub const fn is_default(self, profile: Profile) -> bool {
        self.stage(profile).is_default()
    }
}

/// A feature gate with its name in the profile of the allocator. Displayed and serialized as the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct GateName {
    /// The gate.
    pub gate: Gate,
    /// Name of the gate in `--feature-gates`.
    pub name: &'static str,
}

impl GateName {
    /// Returns a gate with its name in a profile.
    #[must_use]
    pub fn new(gate: Gate, profile: Profile) -> Self {
        Self { gate, name: gate.name(profile) }
    }
}

impl fmt::Display for GateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for GateName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_order_of_the_enum() {
        assert!(Gate::ALL.iter().all(|gate| gate.row().0 == *gate));
        for profile in Profile::ALL {
            assert!(profile.rules().gates.iter().map(|(gate, _)| *gate).eq(Gate::ALL), "{profile}");
        }
    }
}
