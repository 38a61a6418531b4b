//! Policy of the API server for the fields of a disabled feature.

use dra_attrs::{Gate, Profile};

/// Treatment of the fields of a disabled feature by the API server.
///
/// ```
/// use dra_validate::GatePolicy;
/// use dra_attrs::Gate;
/// use dra_attrs::Profile;
///
/// let skip = Gate::OptionalNodeOperations;
/// assert_eq!(GatePolicy::for_gate(skip, Profile::Kep), GatePolicy::Reject);
/// assert_eq!(GatePolicy::for_gate(skip, Profile::V1_37), GatePolicy::Drop);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a request is refused, or it is changed")]
pub enum GatePolicy {
    /// A new value is an error; a stored value is preserved.
    Reject,
    /// The API server removes values silently, unless the stored object uses the feature.
    Drop,
}

impl GatePolicy {
    /// Returns the policy for the fields of a gate. Only KEP-5945 rejects values; all other features, and Kubernetes
    /// 1.37 in general, drop them.
    #[must_use]
    pub const fn for_gate(feature: Gate, profile: Profile) -> Self {
        match (feature, profile) {
            (Gate::OptionalNodeOperations, Profile::Kep) => Self::Reject,
            _ => Self::Drop,
        }
    }
}
