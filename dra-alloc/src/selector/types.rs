//! What is known about the type of an expression before it is evaluated.

use std::fmt;

/// A type without parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    /// Not inferred. Anything may be there.
    Unknown,
    /// The value of an attribute: known only when evaluated, also to Kubernetes' type checker.
    Dyn,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Null,
    Type,
    Quantity,
    Semver,
    Map,
    List,
}

/// `attributes` or `capacity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Attributes,
    Capacity,
}

/// The inferred type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    One(Plain),
    ListOf(Plain),
    /// The variable `device`.
    Device,
    /// `device.attributes`, `device.capacity`.
    Domains(Part),
    /// `device.attributes[domain]`, `device.capacity[domain]`.
    Domain(Part),
}

impl Ty {
    pub(super) const UNKNOWN: Self = Self::One(Plain::Unknown);
    pub(super) const BOOL: Self = Self::One(Plain::Bool);
    pub(super) const INT: Self = Self::One(Plain::Int);
    pub(super) const STRING: Self = Self::One(Plain::String);

    /// As an element of a list.
    pub(super) const fn plain(self) -> Plain {
        match self {
            Self::One(plain) => plain,
            Self::ListOf(_) => Plain::List,
            Self::Device | Self::Domains(_) | Self::Domain(_) => Plain::Map,
        }
    }

    /// Whether anything may be there at run time.
    pub(super) const fn is_open(self) -> bool {
        matches!(self, Self::One(Plain::Unknown | Plain::Dyn))
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown | Self::Dyn => "dyn",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Null => "null",
            Self::Type => "type",
            Self::Quantity => "kubernetes.Quantity",
            Self::Semver => "kubernetes.Semver",
            Self::Map => "map",
            Self::List => "list",
        })
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(plain) => plain.fmt(f),
            Self::ListOf(element) => write!(f, "list({element})"),
            Self::Device => f.write_str("kubernetes.DRADevice"),
            Self::Domains(Part::Attributes) => f.write_str("map(string, map(string, dyn))"),
            Self::Domains(Part::Capacity) => f.write_str("map(string, map(string, kubernetes.Quantity))"),
            Self::Domain(Part::Attributes) => f.write_str("map(string, dyn)"),
            Self::Domain(Part::Capacity) => f.write_str("map(string, kubernetes.Quantity)"),
        }
    }
}
