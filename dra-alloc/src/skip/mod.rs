//! `skipNodeOperations`: which calls to a driver's node plugin a device does without (KEP-5945).
//!
//! The KEP's text makes it a bool, Kubernetes 1.37 ships a list of operation names. One model serves both. A
//! *declaration* is what stands in the object, kept without loss, because an allocation copies it verbatim. A *set* is
//! what a decision asks: two operations, unknown names ignored.
//!
//! | declaration | prepare | unprepare |
//! |---|---|---|
//! | absent, `false`, `[]` | called | called |
//! | `true`, `["*"]` | skipped | skipped |
//! | `["NodePrepareResources"]` | skipped | called |
//! | `["NodeUnprepareResources"]` | called | skipped |
//! | names unknown to this version | no effect | no effect |
//!
//! Only the spec of a `ResourceSlice` and a device of an allocation result carry the field.

pub mod aggregate;
pub mod wire;

use dra_attrs::profile::Profile;
use serde::{Deserialize, Serialize};

/// The call by which the kubelet has a driver prepare a claim's devices.
pub const PREPARE: &str = "NodePrepareResources";

/// The call by which the kubelet has a driver clean up after a claim.
pub const UNPREPARE: &str = "NodeUnprepareResources";

/// Every operation, also those that later versions add.
pub const ALL: &str = "*";

/// A declaration as it stands in an object: order, repetitions and unknown names are kept, and absent is not `false` and
/// not the empty list.
///
/// Reads and writes both wire forms as JSON; `null` is absent.
///
/// ```
/// use dra_alloc::skip::SkipDeclaration;
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
    /// The field is not there: nothing is skipped.
    #[default]
    Absent,
    /// The KEP's form.
    Bool(bool),
    /// The form that Kubernetes 1.37 ships.
    List(Vec<String>),
}

/// The operations that are skipped, as decisions see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[expect(clippy::exhaustive_structs, reason = "a new operation is a new decision for every caller")]
pub struct SkipSet {
    /// [`PREPARE`] is skipped.
    pub prepare: bool,
    /// [`UNPREPARE`] is skipped.
    pub unprepare: bool,
    /// Operations of later versions are skipped too: `true` or [`ALL`].
    pub future: bool,
}

/// How the field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "these two forms exist")]
pub enum WireForm {
    /// `true` or absent.
    Bool,
    /// Operation names, or absent.
    List,
}

/// A set of operations that a wire form has no value for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("skipNodeOperations: the bool form can't say that only {operation} is skipped")]
#[non_exhaustive]
pub struct NotExpressible {
    /// The operation that alone is skipped.
    pub operation: &'static str,
}

impl WireForm {
    /// The form that a profile writes. Both read either.
    #[must_use]
    pub const fn of(profile: Profile) -> Self {
        match profile {
            Profile::V1_37 => Self::List,
            // Profiles other than the shipped release follow the KEP.
            _ => Self::Bool,
        }
    }
}

impl SkipSet {
    /// Nothing is skipped.
    pub const NONE: Self = Self { prepare: false, unprepare: false, future: false };

    /// Everything is skipped.
    pub const EVERYTHING: Self = Self { prepare: true, unprepare: true, future: true };

    /// Whether no operation is skipped.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// What a list of names skips.
    pub(crate) fn listed(names: &[String]) -> Self {
        names.iter().map(|name| operation(name)).fold(Self::NONE, Self::union)
    }

    /// The operations skipped in both sets: what several devices of one driver do without together.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self {
            prepare: self.prepare && other.prepare,
            unprepare: self.unprepare && other.unprepare,
            future: self.future && other.future,
        }
    }

    /// The operations skipped in at least one of the sets.
    #[must_use]
    const fn union(self, other: Self) -> Self {
        Self {
            prepare: self.prepare || other.prepare,
            unprepare: self.unprepare || other.unprepare,
            future: self.future || other.future,
        }
    }

    /// The declaration that says this in a wire form. Nothing skipped is absent; in a list, everything is [`ALL`], and
    /// names come in the order prepare, unprepare.
    ///
    /// # Errors
    /// The bool form can't say that only one of the operations is skipped. A caller may then write absent: calling a
    /// driver that needs no call is safe.
    ///
    /// ```
    /// use dra_alloc::skip::{NotExpressible, SkipDeclaration, SkipSet, WireForm};
    /// let only_unprepare = SkipSet { unprepare: true, ..SkipSet::NONE };
    /// let refused = only_unprepare.declaration(WireForm::Bool).unwrap_err();
    /// assert_eq!(refused.operation, "NodeUnprepareResources");
    /// let list = only_unprepare.declaration(WireForm::List)?;
    /// assert_eq!(list, SkipDeclaration::List(vec!["NodeUnprepareResources".to_owned()]));
    /// # Ok::<(), NotExpressible>(())
    /// ```
    pub fn declaration(self, form: WireForm) -> Result<SkipDeclaration, NotExpressible> {
        match (form, self.prepare, self.unprepare) {
            (_, false, false) => Ok(SkipDeclaration::Absent),
            (WireForm::Bool, true, true) => Ok(SkipDeclaration::Bool(true)),
            (WireForm::Bool, true, false) => Err(NotExpressible { operation: PREPARE }),
            (WireForm::Bool, false, true) => Err(NotExpressible { operation: UNPREPARE }),
            (WireForm::List, ..) if self.future => Ok(SkipDeclaration::List(vec![ALL.to_owned()])),
            (WireForm::List, prepare, unprepare) => {
                let names = [(prepare, PREPARE), (unprepare, UNPREPARE)];
                let skipped = names.into_iter().filter(|(skipped, _)| *skipped);
                Ok(SkipDeclaration::List(skipped.map(|(_, name)| name.to_owned()).collect()))
            }
        }
    }
}

impl SkipDeclaration {
    /// The declaration in a field of a k8s-openapi type, which knows the list only.
    #[must_use]
    pub fn from_kube(field: Option<&[String]>) -> Self {
        field.map_or(Self::Absent, |names| Self::List(names.to_vec()))
    }

    /// The declaration for a field of a k8s-openapi type: `true` is `["*"]`, `false` is the empty list, and absent stays
    /// absent.
    #[must_use]
    pub fn to_kube(&self) -> Option<Vec<String>> {
        match self {
            Self::Absent => None,
            Self::Bool(false) => Some(Vec::new()),
            Self::Bool(true) => Some(vec![ALL.to_owned()]),
            Self::List(names) => Some(names.clone()),
        }
    }

    /// The operations that are skipped. Names that this version does not know have no effect.
    #[must_use]
    pub fn set(&self) -> SkipSet {
        match self {
            Self::Absent | Self::Bool(false) => SkipSet::NONE,
            Self::Bool(true) => SkipSet::EVERYTHING,
            Self::List(names) => SkipSet::listed(names),
        }
    }

    /// The names that this version does not know, in their order.
    pub fn unknown_names(&self) -> impl Iterator<Item = &str> {
        let names: &[String] = if let Self::List(names) = self { names } else { &[] };
        names.iter().map(String::as_str).filter(|name| operation(name).is_empty())
    }

    /// The declaration in a wire form. One that has the form already stays as it is, unknown names included; absent
    /// stays absent.
    ///
    /// # Errors
    /// The bool form can't say that only one of the operations is skipped.
    pub fn written_as(&self, form: WireForm) -> Result<Self, NotExpressible> {
        match (self, form) {
            (Self::Absent, _) | (Self::Bool(_), WireForm::Bool) | (Self::List(_), WireForm::List) => Ok(self.clone()),
            (Self::Bool(false), WireForm::List) => Ok(Self::List(Vec::new())),
            (Self::List(_), WireForm::Bool) if self.set().is_empty() => Ok(Self::Bool(false)),
            (Self::Bool(true) | Self::List(_), _) => self.set().declaration(form),
        }
    }
}

/// What one name of a list skips.
fn operation(name: &str) -> SkipSet {
    match name {
        PREPARE => SkipSet { prepare: true, ..SkipSet::NONE },
        UNPREPARE => SkipSet { unprepare: true, ..SkipSet::NONE },
        ALL => SkipSet::EVERYTHING,
        _ => SkipSet::NONE,
    }
}
