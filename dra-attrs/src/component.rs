//! A component of a cluster: the release that it runs, and its feature gates.

use crate::gate::Gate;
use crate::gates::{GateError, GateMetricsError, GateSet};
use crate::profile::Profile;
use crate::release::Rules;

/// A component of a cluster, as decisions see it: an API server, a scheduler, a controller manager or a kubelet. In a cluster
/// they may be of different releases, and each has its own gates.
///
/// Whatever models one component takes the same value: the allocator, the state, the tracker and the pods of one scheduler.
/// Gates that the release does not have are off.
///
/// ```
/// use dra_attrs::{Component, Gate, GateSet, Profile};
/// let scheduler = Component::of(Profile::V1_36);
/// assert!(scheduler.has(Gate::DeviceTaints) && scheduler.is_assumed());
/// // A gate that came later does nothing.
/// let gates = scheduler.gates().with(Gate::DerivedAttributes);
/// assert_eq!(Component::new(Profile::V1_36, gates).gates(), scheduler.gates());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Component {
    profile: Profile,
    gates: GateSet,
    is_assumed: bool,
}

impl Component {
    /// Returns a component with its gates.
    #[must_use]
    pub fn new(profile: Profile, gates: GateSet) -> Self {
        Self { profile, gates: gates.of_release(profile), is_assumed: false }
    }

    /// Returns a component with the gates that its release has on by default: nobody has read them.
    #[must_use]
    pub fn of(profile: Profile) -> Self {
        Self { profile, gates: GateSet::of(profile), is_assumed: true }
    }

    /// Returns a component with the gates of its command line: changes of the defaults, as `A=true,B=false`.
    ///
    /// # Errors
    /// As for [`GateSet::parse`].
    pub fn parse(profile: Profile, list: &str) -> Result<Self, GateError> {
        Ok(Self::new(profile, GateSet::parse(list, profile)?))
    }

    /// Returns a component with the gates that its metrics tell, the text that `/metrics` serves.
    ///
    /// # Errors
    /// As for [`GateSet::from_metrics`].
    ///
    /// ```
    /// use dra_attrs::{Component, Gate, Profile};
    /// let metrics = r#"kubernetes_feature_enabled{name="DRADeviceTaints",stage="ALPHA"} 1"#;
    /// let server = Component::from_metrics(Profile::V1_35, metrics)?;
    /// assert!(server.has(Gate::DeviceTaints) && !server.is_assumed());
    /// # Ok::<(), dra_attrs::GateMetricsError>(())
    /// ```
    pub fn from_metrics(profile: Profile, text: &str) -> Result<Self, GateMetricsError> {
        Ok(Self::new(profile, GateSet::from_metrics(text, profile)?))
    }

    /// Returns the component as it is after all updates: it decides by the newest release, in which known defects of earlier
    /// ones are mended, with the gates that it has. Compare both answers to learn if an update would help.
    ///
    /// ```
    /// use dra_attrs::{Component, Gate, Profile};
    /// let scheduler = Component::of(Profile::V1_35);
    /// assert_eq!(scheduler.mended().profile(), Profile::V1_37);
    /// assert!(!scheduler.mended().has(Gate::DeviceTaints), "its gates stay as they are");
    /// ```
    #[must_use]
    pub const fn mended(self) -> Self {
        let profile = match self.profile {
            Profile::Kep => Profile::Kep,
            Profile::V1_34 | Profile::V1_35 | Profile::V1_36 | Profile::V1_37 => Profile::V1_37,
        };
        Self { profile, ..self }
    }

    /// Returns the release, or the text of the KEPs.
    #[must_use]
    pub const fn profile(self) -> Profile {
        self.profile
    }

    /// Returns the rules of the release. They are for the packages of the family.
    #[doc(hidden)]
    #[must_use]
    pub const fn rules(self) -> &'static Rules {
        self.profile.rules()
    }

    /// Returns the gates.
    #[must_use]
    pub const fn gates(self) -> GateSet {
        self.gates
    }

    /// Returns true if a gate and all that it requires are on.
    #[must_use]
    pub fn has(self, gate: Gate) -> bool {
        self.gates.has(gate)
    }

    /// Returns true if a scheduler, or the controller of evictions, reads `DeviceTaintRule`s. Kubernetes 1.34 had no gate of
    /// their own for them.
    ///
    /// ```
    /// use dra_attrs::{Component, Profile};
    /// let reads = |profile| Component::of(profile).reads_taint_rules();
    /// assert_eq!(Profile::RELEASES.map(reads), [false, false, false, true]);
    /// assert!(Component::parse(Profile::V1_34, "DRADeviceTaints=true").unwrap().reads_taint_rules());
    /// ```
    #[must_use]
    pub fn reads_taint_rules(self) -> bool {
        self.has(self.rules().taint_rules)
    }

    /// Returns true if the gates are the defaults of the release, and were not read.
    #[must_use]
    pub const fn is_assumed(self) -> bool {
        self.is_assumed
    }
}

impl From<Profile> for Component {
    fn from(profile: Profile) -> Self {
        Self::of(profile)
    }
}
