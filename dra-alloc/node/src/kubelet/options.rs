//! Feature gates and profile of one kubelet.

use dra_attrs::{Component, Gate, GateSet, Profile};
use dra_device::skip::{SkipSet, WireForm};

/// Configuration of one kubelet. Gates of other components have no influence on it.
///
/// ```
/// use dra_attrs::Component;
/// use dra_node::kubelet::KubeletOptions;
/// use dra_attrs::Gate;
/// use dra_attrs::{GateSet, Profile};
/// let options = KubeletOptions::new(Profile::V1_37);
/// assert!(options.has(Gate::ExtendedResource) && !options.has(Gate::OptionalNodeOperations));
/// let gates = GateSet::parse("DRAOptionalNodeOperations=true", Profile::V1_37)?;
/// assert!(KubeletOptions::new(Component::new(options.profile(), gates)).has(Gate::OptionalNodeOperations));
/// # Ok::<(), dra_attrs::GateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KubeletOptions {
    kubelet: Component,
}

impl KubeletOptions {
    /// Builds the configuration of a kubelet: its release with its gates, or a profile alone with the default gates.
    #[must_use]
    pub fn new(kubelet: impl Into<Component>) -> Self {
        Self { kubelet: kubelet.into() }
    }

    /// Returns the profile.
    #[must_use]
    pub const fn profile(self) -> Profile {
        self.kubelet.profile()
    }

    /// Returns the feature gates.
    #[must_use]
    pub const fn gates(self) -> GateSet {
        self.kubelet.gates()
    }

    /// Returns true if a gate is on.
    #[must_use]
    pub fn has(self, gate: Gate) -> bool {
        self.kubelet.gates().has(gate)
    }

    /// Returns the operations that this kubelet skips, given those that all devices of a driver skip. A kubelet that
    /// reads `skipNodeOperations` as a bool (KEP) skips both operations or none.
    pub(super) fn honoured(self, skips: SkipSet) -> SkipSet {
        match WireForm::from_profile(self.kubelet.profile()) {
            WireForm::List => skips,
            WireForm::Bool if skips.prepare && skips.unprepare => SkipSet::EVERYTHING,
            WireForm::Bool => SkipSet::NONE,
        }
    }
}
