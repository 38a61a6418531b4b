//! Paths of fields within an object.

use std::fmt;

/// Path of a field: `spec.devices[3].attributes[numaNode].int`.
///
/// A path is a chain of borrowed steps on the stack: it is cheap to extend, and becomes a text only when an error is
/// found. It has no equality, order or hash; compare the text.
///
/// ```
/// use dra_attrs::FieldPath;
/// let spec = FieldPath::new("spec");
/// let devices = spec.child("devices");
/// assert_eq!(devices.index(3).child("attributes").key("numaNode").to_string(), "spec.devices[3].attributes[numaNode]");
/// assert_eq!(FieldPath::root().child("kind").to_string(), "kind");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FieldPath<'a> {
    parent: Option<&'a Self>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> FieldPath<'a> {
    /// Returns the path of the object itself, which prints as an empty text.
    #[must_use]
    pub const fn root() -> Self {
        Self { parent: None, step: Step::Root }
    }

    /// Returns the path of a top-level field.
    #[must_use]
    pub const fn new(name: &'a str) -> Self {
        Self { parent: None, step: Step::Field(name) }
    }

    /// Returns the path of the field `name` within the object at this path: appends `.name`.
    #[must_use]
    pub const fn child<'b>(&'b self, name: &'b str) -> FieldPath<'b> {
        FieldPath { parent: Some(self), step: Step::Field(name) }
    }

    /// Returns the path of an item of the list at this path: appends `[3]` for the index 3.
    #[must_use]
    pub const fn index(&self, index: usize) -> FieldPath<'_> {
        FieldPath { parent: Some(self), step: Step::Index(index) }
    }

    /// Returns the path of an entry of the map at this path: appends `[key]`.
    #[must_use]
    pub const fn key<'b>(&'b self, key: &'b str) -> FieldPath<'b> {
        FieldPath { parent: Some(self), step: Step::Key(key) }
    }

    fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) if self.parent.is_none_or(FieldPath::is_root) => f.write_str(name),
            Step::Field(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}
