//! Profile, gates and times of a scheduler that decides about pods.

use dra_attrs::{Component, Gate, GateSet, Profile};
use dra_device::internal::PodFields;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;

/// Time that devices may take to become ready for a binding, unless the plugin's argument `bindingTimeout` says
/// otherwise: ten minutes.
const DEFAULT_BINDING_TIMEOUT: SignedDuration = SignedDuration::from_secs(600);

/// Configuration of a scheduler's decisions about pods.
///
/// ```
/// use dra_alloc::pods::PodOptions;
/// use dra_alloc::{Component, Gate, Profile};
/// let options = PodOptions::new(Profile::V1_37);
/// let scheduler = options.scheduler();
/// assert!(scheduler.has(Gate::PrioritizedList) && !scheduler.has(Gate::WorkloadResourceClaims));
/// let gates = scheduler.gates().with(Gate::WorkloadResourceClaims);
/// let options = PodOptions::new(Component::new(Profile::V1_37, gates));
/// assert!(options.scheduler().has(Gate::WorkloadResourceClaims));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodOptions {
    scheduler: Component,
    binding_timeout: SignedDuration,
    accepts_group_allocations: bool,
}

impl PodOptions {
    /// Builds the configuration of a scheduler: its release with its gates, or a profile alone with the default gates.
    #[must_use]
    pub fn new(scheduler: impl Into<Component>) -> Self {
        Self { scheduler: scheduler.into(), binding_timeout: DEFAULT_BINDING_TIMEOUT, accepts_group_allocations: false }
    }

    /// Sets the time that devices may take to become ready for a binding; ten minutes by default.
    #[must_use]
    pub const fn with_binding_timeout(self, timeout: SignedDuration) -> Self {
        Self { binding_timeout: timeout, ..self }
    }

    /// Lets a binding go on if another pod of the same group has allocated a claim in the meantime just as this pod was going
    /// to. Otherwise it fails, as in kube-scheduler 1.36 and 1.37 (`got allocated elsewhere in the meantime`).
    #[must_use]
    pub const fn accepting_group_allocations(self) -> Self {
        Self { accepts_group_allocations: true, ..self }
    }

    /// Returns the scheduler: what its allocator, state and tracker take.
    #[must_use]
    pub const fn scheduler(self) -> Component {
        self.scheduler
    }

    /// Returns the profile.
    pub(crate) const fn profile(self) -> Profile {
        self.scheduler.profile()
    }

    /// Returns the feature gates.
    pub(crate) const fn gates(self) -> GateSet {
        self.scheduler.gates()
    }

    /// Returns the time that devices may take to become ready for a binding.
    pub(super) const fn binding_timeout(self) -> SignedDuration {
        self.binding_timeout
    }

    /// Returns true if an allocation by another pod of the group is accepted.
    pub(super) const fn accepts_group_allocations(self) -> bool {
        self.accepts_group_allocations
    }

    /// Returns true if a gate is on.
    pub(crate) fn has(self, gate: Gate) -> bool {
        self.scheduler.has(gate)
    }

    /// Returns the name of the pod's group, if groups count ([`Gate::WorkloadResourceClaims`]).
    pub(super) fn group_of(self, pod: &Pod) -> Option<&str> {
        pod.group_name().filter(|_| self.has(Gate::WorkloadResourceClaims))
    }
}
