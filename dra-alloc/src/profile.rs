//! Decisions of this crate that depend on the profile.

use dra_attrs::{ListTypes, Profile};

use crate::skip::WireForm;
use crate::validate::GatePolicy;

/// Treatment of a device whose slice skips node operations while the gate is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkipGateOff {
    /// The device may be chosen, and the allocation of its claim then fails.
    FailClaim,
    /// The device is never chosen.
    PassOver,
}

/// Source of a pod's requirement for a node that can skip node operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inference {
    /// The allocations of the pod's claims.
    FromClaims,
    /// None: the requirement is not inferred, because allocations are not known early enough.
    Never,
}

/// Decisions in which the KEPs and Kubernetes 1.37 differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decisions {
    /// Treatment of a list-typed attribute in a constraint while the gate for lists is off.
    pub(crate) lists_off: ListTypes,
    pub(crate) skip_gate_off: SkipGateOff,
    /// Feature that a node must declare before a device that skips node operations is allocated on it.
    pub(crate) skip_needs: Option<&'static str>,
    /// Name of the feature by which a node declares that its kubelet can skip node operations.
    pub(crate) declared_feature: &'static str,
    pub(crate) inference: Inference,
    pub(crate) skip_form: WireForm,
    /// Treatment of `skipNodeOperations` by the API server while the gate is off.
    pub(crate) skip_api_gate_off: GatePolicy,
}

const KEP: Decisions = Decisions {
    lists_off: ListTypes::off(Profile::Kep),
    skip_gate_off: SkipGateOff::FailClaim,
    skip_needs: None,
    declared_feature: "DraOptionalNodePreparation",
    inference: Inference::FromClaims,
    skip_form: WireForm::Bool,
    skip_api_gate_off: GatePolicy::Reject,
};

const SHIPPED_FEATURE: &str = "DRAOptionalNodeOperations";

const V1_37: Decisions = Decisions {
    lists_off: ListTypes::off(Profile::V1_37),
    skip_gate_off: SkipGateOff::PassOver,
    skip_needs: Some(SHIPPED_FEATURE),
    declared_feature: SHIPPED_FEATURE,
    inference: Inference::Never,
    skip_form: WireForm::List,
    skip_api_gate_off: GatePolicy::Drop,
};

impl Decisions {
    pub(crate) const fn from_profile(profile: Profile) -> Self {
        match profile {
            Profile::V1_37 => V1_37,
            // Profiles other than the shipped release follow the KEPs.
            _ => KEP,
        }
    }
}
