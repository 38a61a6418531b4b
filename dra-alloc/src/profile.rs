//! What the profiles decide in this crate.

use dra_attrs::matching::ListTypes;
use dra_attrs::profile::Profile;

use crate::validate::GatePolicy;

/// What happens to a device whose slice skips node operations while the gate is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkipGateOff {
    /// It may be chosen, and fails the claim that it was chosen for.
    FailClaim,
    /// It is passed over.
    PassOver,
}

/// What tells that a pod needs a node that can skip node operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inference {
    /// The allocations of its claims.
    FromClaims,
    /// Nothing: allocations are not known early enough.
    Never,
}

/// The form of `skipNodeOperations` that is validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkipForm {
    /// A bool, which is always valid.
    Bool,
    /// A set of operation names.
    Operations,
}

/// Where the text of the KEPs and Kubernetes 1.37 differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decisions {
    /// A list-typed attribute under a constraint while the gate for lists is off.
    pub(crate) lists_off: ListTypes,
    pub(crate) skip_gate_off: SkipGateOff,
    /// The feature that a node must declare before a device that skips node operations is used on it.
    pub(crate) skip_needs: Option<&'static str>,
    /// The name under which a node declares that its kubelet can skip node operations.
    pub(crate) declared_feature: &'static str,
    pub(crate) inference: Inference,
    pub(crate) skip_form: SkipForm,
    /// What the API server does with `skipNodeOperations` while the gate is off.
    pub(crate) skip_api_gate_off: GatePolicy,
}

const KEP: Decisions = Decisions {
    lists_off: ListTypes::off(Profile::Kep),
    skip_gate_off: SkipGateOff::FailClaim,
    skip_needs: None,
    declared_feature: "DraOptionalNodePreparation",
    inference: Inference::FromClaims,
    skip_form: SkipForm::Bool,
    skip_api_gate_off: GatePolicy::Reject,
};

const SHIPPED_FEATURE: &str = "DRAOptionalNodeOperations";

const V1_37: Decisions = Decisions {
    lists_off: ListTypes::off(Profile::V1_37),
    skip_gate_off: SkipGateOff::PassOver,
    skip_needs: Some(SHIPPED_FEATURE),
    declared_feature: SHIPPED_FEATURE,
    inference: Inference::Never,
    skip_form: SkipForm::Operations,
    skip_api_gate_off: GatePolicy::Drop,
};

impl Decisions {
    pub(crate) const fn of(profile: Profile) -> Self {
        match profile {
            Profile::V1_37 => V1_37,
            // Profiles other than the shipped release follow the KEPs.
            _ => KEP,
        }
    }
}
