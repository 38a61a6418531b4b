//! Field `skipNodeOperations`: names the calls of a driver's node plugin that a device does not need (KEP-5945).
//!
//! The field is a bool in the KEP, and a list of operation names in Kubernetes 1.37. A [`SkipDeclaration`] is the value
//! of the field in either form, kept without loss because an allocation copies it verbatim. A [`SkipSet`] is its
//! meaning: the operations that are skipped, without unknown names.
//!
//! | declaration | prepare | unprepare |
//! |---|---|---|
//! | absent, `false`, `[]` | called | called |
//! | `true`, `["*"]` | skipped | skipped |
//! | `["NodePrepareResources"]` | skipped | called |
//! | `["NodeUnprepareResources"]` | called | skipped |
//! | names unknown to this version | no effect | no effect |
//!
//! Only the spec of a `ResourceSlice` and the device results of an allocation have the field.
//!
//! Tests: `tests/it/skip.rs`, `tests/it/skip_aggregate.rs`.

pub(crate) mod aggregate;
mod diagnosis;
mod wire;

pub use diagnosis::{SkipDiagnosis, SkipEvidence, SkipSymptom};
use dra_attrs::Profile;
use dra_attrs::internal::release::SkipForm;
use serde::{Deserialize, Serialize};
pub use wire::SkipField;

/// Value of `skipNodeOperations` in an object. Order, duplicates and unknown names are kept; absent, `false` and the
/// empty list are different values.
///
/// Serializes as either wire form; `null` is absent.
///
/// ```
/// use dra_device::skip::SkipDeclaration;
/// let read = |json| serde_json::from_str::<SkipDeclaration>(json);
/// assert_eq!(read("true")?, SkipDeclaration::Bool(true));
/// assert_eq!(read("null")?, SkipDeclaration::Absent);
/// assert_eq!(read(r#"["*"]"#)?, SkipDeclaration::List(vec!["*".to_owned()]));
/// assert!(read("1").is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[expect(clippy::exhaustive_enums, reason = "the field is absent or has one of two wire forms")]
pub enum SkipDeclaration {
    /// The field is absent: no operation is skipped.
    #[default]
    Absent,
    /// Value in the form of the KEP.
    Bool(bool),
    /// Value in the form of Kubernetes 1.37: names of operations.
    List(Vec<String>),
}

/// Set of skipped operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[expect(clippy::exhaustive_structs, reason = "a new operation is a new decision for every caller")]
pub struct SkipSet {
    /// True if [`SkipSet::NODE_PREPARE_RESOURCES`] is skipped.
    pub prepare: bool,
    /// True if [`SkipSet::NODE_UNPREPARE_RESOURCES`] is skipped.
    pub unprepare: bool,
    /// True if operations that later versions of Kubernetes add are skipped too, as by `true` and [`SkipSet::ALL_OPERATIONS`].
    pub future: bool,
}

/// Form of the field `skipNodeOperations` in JSON: a bool (KEP) or a list (Kubernetes 1.37).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "these two forms exist")]
pub enum WireForm {
    /// The field is `true` or absent.
    Bool,
    /// The field is a list of operation names, or absent.
    List,
}

/// Reason why `skipNodeOperations` can't be read, or written in a wire form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireFormError {
    /// The bool form can't express that only one operation is skipped.
    #[error("skipNodeOperations: the bool form can't say that only {operation} is skipped")]
    NotExpressible {
        /// The only operation that is skipped.
        operation: &'static str,
    },
    /// The object can't be serialized.
    #[error("{reason}")]
    Json {
        /// Message of the serializer.
        reason: String,
    },
    /// The value is neither bool nor list.
    #[error("{field}: neither a bool nor a list of operation names")]
    NotADeclaration {
        /// Path of the field.
        field: String,
    },
}

impl WireForm {
    /// Returns the wire form that a profile writes. Every profile reads both forms.
    #[must_use]
    pub const fn from_profile(profile: Profile) -> Self {
        match profile.rules().skip.form {
            SkipForm::List => Self::List,
            SkipForm::Bool => Self::Bool,
        }
    }
}

impl SkipSet {
    /// Name in a list that stands for all operations, including operations that later versions of Kubernetes add.
    pub const ALL_OPERATIONS: &str = "*";

    /// Name of the gRPC method that cleans up after a claim.
    pub const NODE_UNPREPARE_RESOURCES: &str = "NodeUnprepareResources";

    /// Name of the gRPC method that prepares a claim's devices.
    pub const NODE_PREPARE_RESOURCES: &str = "NodePrepareResources";

    /// Set without operations.
    pub const NONE: Self = Self { prepare: false, unprepare: false, future: false };

    /// Set of all operations, including those that later versions of Kubernetes add.
    pub const EVERYTHING: Self = Self { prepare: true, unprepare: true, future: true };

    /// Returns true if the set has no operation.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Returns the operations that a list of names stands for.
    pub(crate) fn from_names(names: &[String]) -> Self {
        names.iter().map(|name| operation(name)).fold(Self::NONE, Self::union)
    }

    /// Returns the operations in both sets, as for two devices of one driver.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self {
            prepare: self.prepare && other.prepare,
            unprepare: self.unprepare && other.unprepare,
            future: self.future && other.future,
        }
    }

    /// Returns the operations in at least one of the sets.
    #[must_use]
    const fn union(self, other: Self) -> Self {
        Self {
            prepare: self.prepare || other.prepare,
            unprepare: self.unprepare || other.unprepare,
            future: self.future || other.future,
        }
    }

    /// Returns the set as a declaration in a wire form. The empty set is absent. The list form of a set with future
    /// operations is [`SkipSet::ALL_OPERATIONS`]; other lists name prepare before unprepare.
    ///
    /// # Errors
    /// The bool form can't express that only one of the operations is skipped. A caller may then write the absent
    /// declaration, because an unnecessary call of a driver is safe.
    ///
    /// ```
    /// use dra_device::skip::{WireFormError, SkipDeclaration, SkipSet, WireForm};
    /// let only_unprepare = SkipSet { unprepare: true, ..SkipSet::NONE };
    /// let refused = only_unprepare.to_declaration(WireForm::Bool).unwrap_err();
    /// assert_eq!(refused, WireFormError::NotExpressible { operation: "NodeUnprepareResources" });
    /// let list = only_unprepare.to_declaration(WireForm::List)?;
    /// assert_eq!(list, SkipDeclaration::List(vec!["NodeUnprepareResources".to_owned()]));
    /// # Ok::<(), WireFormError>(())
    /// ```
    pub fn to_declaration(self, form: WireForm) -> Result<SkipDeclaration, WireFormError> {
        match (form, self.prepare, self.unprepare) {
            (_, false, false) => Ok(SkipDeclaration::Absent),
            (WireForm::Bool, true, true) => Ok(SkipDeclaration::Bool(true)),
            (WireForm::Bool, true, false) => {
                Err(WireFormError::NotExpressible { operation: Self::NODE_PREPARE_RESOURCES })
            }
            (WireForm::Bool, false, true) => {
                Err(WireFormError::NotExpressible { operation: Self::NODE_UNPREPARE_RESOURCES })
            }
            (WireForm::List, ..) if self.future => Ok(SkipDeclaration::List(vec![Self::ALL_OPERATIONS.to_owned()])),
            (WireForm::List, prepare, unprepare) => {
                let names = [(prepare, Self::NODE_PREPARE_RESOURCES), (unprepare, Self::NODE_UNPREPARE_RESOURCES)];
                let skipped = names.into_iter().filter(|(skipped, _)| *skipped);
                Ok(SkipDeclaration::List(skipped.map(|(_, name)| name.to_owned()).collect()))
            }
        }
    }
}

impl SkipDeclaration {
    /// Reads the declaration from the field `skipNodeOperations` of a k8s-openapi type, which has only the list form.
    #[must_use]
    pub fn from_kube(field: Option<&[String]>) -> Self {
        field.map_or(Self::Absent, |names| Self::List(names.to_vec()))
    }

    /// Returns the value for the field `skipNodeOperations` of a k8s-openapi type: `true` becomes `["*"]`, `false` the
    /// empty list, and absent stays absent.
    #[must_use]
    pub fn to_kube(&self) -> Option<Vec<String>> {
        match self {
            Self::Absent => None,
            Self::Bool(false) => Some(Vec::new()),
            Self::Bool(true) => Some(vec![SkipSet::ALL_OPERATIONS.to_owned()]),
            Self::List(names) => Some(names.clone()),
        }
    }

    /// Returns the operations that the declaration skips. Unknown names have no effect.
    #[must_use]
    pub fn set(&self) -> SkipSet {
        match self {
            Self::Absent | Self::Bool(false) => SkipSet::NONE,
            Self::Bool(true) => SkipSet::EVERYTHING,
            Self::List(names) => SkipSet::from_names(names),
        }
    }

    /// Converts the declaration to a wire form. A declaration that already has the form, or is absent, stays unchanged.
    ///
    /// # Errors
    /// The bool form can't express that only one of the operations is skipped.
    pub fn to_form(&self, form: WireForm) -> Result<Self, WireFormError> {
        match (self, form) {
            (Self::Absent, _) | (Self::Bool(_), WireForm::Bool) | (Self::List(_), WireForm::List) => Ok(self.clone()),
            (Self::Bool(false), WireForm::List) => Ok(Self::List(Vec::new())),
            (Self::List(_), WireForm::Bool) if self.set().is_empty() => Ok(Self::Bool(false)),
            (Self::Bool(true) | Self::List(_), _) => self.set().to_declaration(form),
        }
    }
}

/// Returns the operations that one name of a list stands for.
fn operation(name: &str) -> SkipSet {
    match name {
        SkipSet::NODE_PREPARE_RESOURCES => SkipSet { prepare: true, ..SkipSet::NONE },
        SkipSet::NODE_UNPREPARE_RESOURCES => SkipSet { unprepare: true, ..SkipSet::NONE },
        SkipSet::ALL_OPERATIONS => SkipSet::EVERYTHING,
        _ => SkipSet::NONE,
    }
}
