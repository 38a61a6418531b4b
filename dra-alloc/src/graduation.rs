//! Stages of a feature and what they make of its gate (KEP-5945, Graduation Criteria).

/// How far a feature has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "Kubernetes has these stages")]
pub enum Stage {
    /// Off by default.
    Alpha,
    /// On by default.
    Beta,
    /// Always on: the gate is locked.
    Stable,
}

/// A gate was turned off that can't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gate is locked to true: the feature is stable")]
#[non_exhaustive]
pub struct GateLocked;

impl Stage {
    /// Whether a feature is on, given what a component's configuration says about its gate, if anything.
    ///
    /// # Errors
    /// The gate of a stable feature can't be turned off.
    ///
    /// ```
    /// use dra_alloc::graduation::Stage;
    /// assert_eq!(Stage::Alpha.is_on(None), Ok(false));
    /// assert_eq!(Stage::Beta.is_on(None), Ok(true));
    /// assert!(Stage::Stable.is_on(Some(false)).is_err());
    /// ```
    pub const fn is_on(self, configured: Option<bool>) -> Result<bool, GateLocked> {
        match (self, configured) {
            (Self::Stable, Some(false)) => Err(GateLocked),
            (Self::Stable, _) => Ok(true),
            (Self::Alpha | Self::Beta, Some(value)) => Ok(value),
            (stage, None) => Ok(matches!(stage, Self::Beta)),
        }
    }
}
