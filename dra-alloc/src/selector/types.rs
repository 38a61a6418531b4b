//! Types of expressions, as far as they can be inferred before evaluation.

use std::fmt;

/// Type without parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    /// Type that is not inferred: any value.
    Unknown,
    /// Type of an attribute: known only at evaluation, also to Kubernetes' type checker.
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
    Ip,
    Cidr,
    Map,
    List,
    Optional,
}

/// Part of a device that an expression reads: `attributes` or `capacity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Attributes,
    Capacity,
}

/// Inferred type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    One(Plain),
    ListOf(Plain),
    /// Type of an optional value: `container.?field`.
    OptionalOf(Plain),
    /// Type of the variable `device`.
    Device,
    /// Type of `device.attributes` or `device.capacity`.
    Domains(Part),
    /// Type of `device.attributes[domain]` or `device.capacity[domain]`.
    Domain(Part),
}

impl Ty {
    pub(super) const UNKNOWN: Self = Self::One(Plain::Unknown);
    pub(super) const BOOL: Self = Self::One(Plain::Bool);
    pub(super) const INT: Self = Self::One(Plain::Int);
    pub(super) const STRING: Self = Self::One(Plain::String);

    /// Returns the type without its parameters: any list, for example, becomes `List`.
    pub(super) const fn plain(self) -> Plain {
        match self {
            Self::One(plain) => plain,
            Self::ListOf(_) => Plain::List,
            Self::OptionalOf(_) => Plain::Optional,
            Self::Device | Self::Domains(_) | Self::Domain(_) => Plain::Map,
        }
    }

    /// Returns the content type of an optional value.
    pub(super) const fn content(self) -> Option<Self> {
        match self {
            Self::OptionalOf(content) => Some(Self::One(content)),
            Self::One(Plain::Optional) => Some(Self::UNKNOWN),
            _ => None,
        }
    }

    /// Returns true if `null` may stand for a value of the type in Kubernetes' checker: for all types that are not
    /// CEL's own, and for optional values.
    const fn is_nullable(self) -> bool {
        matches!(self, Self::Device | Self::OptionalOf(_))
            || matches!(
                self,
                Self::One(Plain::Quantity | Plain::Semver | Plain::Ip | Plain::Cidr | Plain::Optional | Plain::Null)
            )
    }

    /// Returns true if one parameter takes values of both types.
    pub(super) fn agrees_with(self, other: Self) -> bool {
        if self.is_open() || other.is_open() {
            return true;
        }
        if let (Some(own), Some(other)) = (self.content(), other.content()) {
            return own.agrees_with(other);
        }
        let null = Self::One(Plain::Null);
        self.plain() == other.plain() || (self == null && other.is_nullable()) || (other == null && self.is_nullable())
    }

    /// Returns the common type of two alternatives.
    pub(super) fn joined(self, other: Self) -> Option<Self> {
        if !self.agrees_with(other) {
            return None;
        }
        let null = Self::One(Plain::Null);
        Some(match (self, other) {
            (one, other) if one == other => one,
            (Self::ListOf(element), Self::ListOf(Plain::Unknown))
            | (Self::ListOf(Plain::Unknown), Self::ListOf(element)) => Self::ListOf(element),
            (Self::OptionalOf(content), Self::OptionalOf(Plain::Unknown))
            | (Self::OptionalOf(Plain::Unknown), Self::OptionalOf(content)) => Self::OptionalOf(content),
            (one, other) if other == null => one,
            (one, other) if one == null => other,
            (Self::OptionalOf(_), Self::OptionalOf(_)) => Self::OptionalOf(Plain::Unknown),
            _ => Self::UNKNOWN,
        })
    }

    /// Returns true if the expression may have a value of any type at run time.
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
            Self::Ip => "net.IP",
            Self::Cidr => "net.CIDR",
            Self::Map => "map",
            Self::List => "list",
            Self::Optional => "optional_type(dyn)",
        })
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(plain) => plain.fmt(f),
            Self::ListOf(element) => write!(f, "list({element})"),
            Self::OptionalOf(content) => write!(f, "optional_type({content})"),
            Self::Device => f.write_str("kubernetes.DRADevice"),
            Self::Domains(Part::Attributes) => f.write_str("map(string, map(string, dyn))"),
            Self::Domains(Part::Capacity) => f.write_str("map(string, map(string, kubernetes.Quantity))"),
            Self::Domain(Part::Attributes) => f.write_str("map(string, dyn)"),
            Self::Domain(Part::Capacity) => f.write_str("map(string, kubernetes.Quantity)"),
        }
    }
}
