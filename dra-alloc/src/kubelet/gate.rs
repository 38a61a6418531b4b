//! The gates of a kubelet, and the profile that it follows.

use dra_attrs::profile::Profile;

use crate::features::Feature;
use crate::skip::{SkipSet, WireForm};

/// A part of the kubelet's work with claims that a feature gate switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Gate {
    /// Calls to drivers may be skipped (KEP-5945). Off: a claim that asks for it is not prepared. Unprepare does not look.
    OptionalNodeOperations,
    /// The claim that kube-scheduler made for a pod's extended resources is prepared too (KEP-5004).
    ExtendedResource,
    /// A claim may belong to the pod's group instead of the pod (KEP-5729).
    WorkloadResourceClaims,
}

/// Gate, name in 1.37, whether 1.37 has it on by default.
const GATES: [(Gate, &str, bool); 3] = [
    (Gate::OptionalNodeOperations, "DRAOptionalNodeOperations", false),
    (Gate::ExtendedResource, "DRAExtendedResource", true),
    (Gate::WorkloadResourceClaims, "DRAWorkloadResourceClaims", false),
];

impl Gate {
    /// The name of the gate.
    ///
    /// ```
    /// use dra_alloc::kubelet::gate::Gate;
    /// use dra_attrs::profile::Profile;
    /// assert_eq!(Gate::OptionalNodeOperations.name(Profile::Kep), "DRAOptionalNodePreparation");
    /// ```
    #[must_use]
    pub fn name(self, profile: Profile) -> &'static str {
        if self == Self::OptionalNodeOperations {
            return Feature::OptionalNodeOperations.gates(profile).first().copied().unwrap_or_default();
        }
        GATES.iter().find(|(gate, ..)| *gate == self).map_or("", |(_, name, _)| name)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// How one kubelet is set up. Gates of other components have no influence on it.
///
/// ```
/// use dra_alloc::kubelet::Settings;
/// use dra_alloc::kubelet::gate::Gate;
/// use dra_attrs::profile::Profile;
/// let settings = Settings::new(Profile::V1_37);
/// assert!(settings.has(Gate::ExtendedResource) && !settings.has(Gate::OptionalNodeOperations));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    profile: Profile,
    gates: u8,
}

impl Settings {
    /// The defaults of Kubernetes 1.37, under the names of a profile.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        let on = GATES.iter().filter(|(.., on)| *on);
        on.fold(Self { profile, gates: 0 }, |settings, (gate, ..)| settings.with(*gate))
    }

    /// Gates by their names. What `is_on` has no value for keeps its default; names that the profile does not have are
    /// not asked for.
    ///
    /// ```
    /// use dra_alloc::kubelet::Settings;
    /// use dra_alloc::kubelet::gate::Gate;
    /// use dra_attrs::profile::Profile;
    /// let is_on = |gate: &str| (gate == "DRAOptionalNodePreparation").then_some(true);
    /// assert!(Settings::from_gates(Profile::Kep, is_on).has(Gate::OptionalNodeOperations));
    /// assert!(!Settings::from_gates(Profile::V1_37, is_on).has(Gate::OptionalNodeOperations));
    /// ```
    #[must_use]
    pub fn from_gates(profile: Profile, is_on: impl Fn(&str) -> Option<bool>) -> Self {
        GATES.iter().fold(Self::new(profile), |settings, (gate, ..)| match is_on(gate.name(profile)) {
            Some(true) => settings.with(*gate),
            Some(false) => settings.without(*gate),
            None => settings,
        })
    }

    /// The profile.
    #[must_use]
    pub const fn profile(self) -> Profile {
        self.profile
    }

    /// Whether a gate is on.
    #[must_use]
    pub const fn has(self, gate: Gate) -> bool {
        self.gates & gate.bit() != 0
    }

    /// With a gate on.
    #[must_use]
    pub const fn with(self, gate: Gate) -> Self {
        Self { gates: self.gates | gate.bit(), ..self }
    }

    /// With a gate off.
    #[must_use]
    pub const fn without(self, gate: Gate) -> Self {
        Self { gates: self.gates & !gate.bit(), ..self }
    }

    /// What the kubelet makes of the operations that all devices of a driver skip. Where the field is a bool, it is both
    /// operations or none.
    pub(super) fn honoured(self, skips: SkipSet) -> SkipSet {
        match WireForm::of(self.profile) {
            WireForm::List => skips,
            WireForm::Bool if skips.prepare && skips.unprepare => SkipSet::EVERYTHING,
            WireForm::Bool => SkipSet::NONE,
        }
    }
}
