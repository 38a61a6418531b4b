//! Fields that a release does not know.

use dra_attrs::GateName;

/// A field that a release does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownField {
    /// Path of the field.
    pub field: String,
    /// Gate with which a later release knows the field; `None` if no release does.
    pub gate: Option<GateName>,
}
