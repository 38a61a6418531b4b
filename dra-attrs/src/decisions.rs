//! Decisions of the allocator that depend on the profile (KEP or Kubernetes 1.37).

use crate::matching::ListTypes;
use crate::profile::Profile;

/// Treatment of devices that skip node operations while the gate `Gate::OptionalNodeOperations` is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "read by the packages of the family alone")]
pub enum SkipGateOff {
    /// The search may choose the device; the allocation of its claim then fails on the node.
    FailClaim,
    /// The search never chooses the device.
    PassOver,
}

/// Source from which a pod's need for a node that can skip node operations is inferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "read by the packages of the family alone")]
pub enum Inference {
    /// Allocations of the pod's claims.
    FromClaims,
    /// No source: the need is not inferred, because allocations are not known early enough.
    Never,
}

/// Decisions in which the KEPs and Kubernetes 1.37 differ.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "read by the packages of the family alone")]
pub struct Decisions {
    /// Treatment of a list-typed attribute in a constraint while the gate `DRAListTypeAttributes` is off.
    pub lists_off: ListTypes,
    /// Treatment of devices that skip node operations while their gate is off.
    pub skip_gate_off: SkipGateOff,
    /// Feature by which a node declares that its kubelet can skip node operations. Other nodes get no device that skips
    /// them.
    pub declared_feature: &'static str,
    /// Source from which the need for that feature is inferred.
    pub inference: Inference,
}

const KEP_FEATURE: &str = "DraOptionalNodePreparation";

const KEP: Decisions = Decisions {
    lists_off: ListTypes::off(Profile::Kep),
    skip_gate_off: SkipGateOff::FailClaim,
    declared_feature: KEP_FEATURE,
    inference: Inference::FromClaims,
};

const SHIPPED_FEATURE: &str = "DRAOptionalNodeOperations";

const V1_37: Decisions = Decisions {
    lists_off: ListTypes::off(Profile::V1_37),
    skip_gate_off: SkipGateOff::PassOver,
    declared_feature: SHIPPED_FEATURE,
    inference: Inference::Never,
};

impl Decisions {
    /// Returns the decisions of a profile.
    #[must_use]
    pub const fn from_profile(profile: Profile) -> Self {
        match profile {
            Profile::V1_34 | Profile::V1_35 | Profile::V1_36 | Profile::V1_37 => V1_37,
            Profile::Kep => KEP,
        }
    }
}
