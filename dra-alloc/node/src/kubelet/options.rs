//! Feature gates and profile of one kubelet.

use dra_attrs::{DraGate, FeatureGate, GateSet, Profile};
use dra_device::skip::{SkipSet, WireForm};

/// A feature gate that decides how a kubelet handles claims.
///
/// ```
/// use dra_node::kubelet::KubeletGate;
/// use dra_attrs::Profile;
/// use dra_attrs::FeatureGate;
/// assert_eq!(KubeletGate::OptionalNodeOperations.name(Profile::Kep), "DRAOptionalNodePreparation");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum KubeletGate {
    /// Driver calls may be skipped (KEP-5945). Off: a claim with a device that skips node operations can't be prepared;
    /// unprepare ignores the gate.
    OptionalNodeOperations,
    /// The claim that kube-scheduler created for a pod's extended resources is prepared too (KEP-5004).
    ExtendedResource,
    /// A claim may be owned by, and reserved for, the pod's group instead of the pod itself (KEP-5729).
    WorkloadResourceClaims,
}

impl dra_attrs::internal::Sealed for KubeletGate {}

impl FeatureGate for KubeletGate {
    const ALL: &'static [Self] = &[Self::OptionalNodeOperations, Self::ExtendedResource, Self::WorkloadResourceClaims];

    fn name(self, profile: Profile) -> &'static str {
        match self {
            Self::OptionalNodeOperations => DraGate::OptionalNodeOperations.name(profile),
            Self::ExtendedResource => "DRAExtendedResource",
            Self::WorkloadResourceClaims => "DRAWorkloadResourceClaims",
        }
    }

    fn is_default(self, _: Profile) -> bool {
        self == Self::ExtendedResource
    }

    fn position(self) -> u32 {
        self as u32
    }
}

/// Configuration of one kubelet. Gates of other components have no influence on it.
///
/// ```
/// use dra_node::kubelet::{KubeletGate, KubeletOptions};
/// use dra_attrs::{GateSet, Profile};
/// let options = KubeletOptions::new(Profile::V1_37);
/// assert!(options.has(KubeletGate::ExtendedResource) && !options.has(KubeletGate::OptionalNodeOperations));
/// let gates = GateSet::parse("DRAOptionalNodeOperations=true", Profile::V1_37)?;
/// assert!(options.with_gates(gates).has(KubeletGate::OptionalNodeOperations));
/// # Ok::<(), dra_attrs::GateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KubeletOptions {
    profile: Profile,
    gates: GateSet<KubeletGate>,
}

impl KubeletOptions {
    /// Builds the configuration of a kubelet with the default gates of Kubernetes 1.37.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self { profile, gates: GateSet::default() }
    }

    /// Sets the feature gates.
    #[must_use]
    pub const fn with_gates(self, gates: GateSet<KubeletGate>) -> Self {
        Self { gates, ..self }
    }

    /// Returns the profile.
    #[must_use]
    pub const fn profile(self) -> Profile {
        self.profile
    }

    /// Returns the feature gates.
    #[must_use]
    pub const fn gates(self) -> GateSet<KubeletGate> {
        self.gates
    }

    /// Returns true if a gate is on.
    #[must_use]
    pub fn has(self, gate: KubeletGate) -> bool {
        self.gates.has(gate)
    }

    /// Returns the operations that this kubelet skips, given those that all devices of a driver skip. A kubelet that
    /// reads `skipNodeOperations` as a bool (KEP) skips both operations or none.
    pub(super) fn honoured(self, skips: SkipSet) -> SkipSet {
        match WireForm::from_profile(self.profile) {
            WireForm::List => skips,
            WireForm::Bool if skips.prepare && skips.unprepare => SkipSet::EVERYTHING,
            WireForm::Bool => SkipSet::NONE,
        }
    }
}
