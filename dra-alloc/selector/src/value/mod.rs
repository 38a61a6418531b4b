//! Values of an evaluation. Texts of the device and of the expression are borrowed.
//!
//! The types hold each other and are all here; what is done with them is in the modules, which import them.
//!
//! Tests: `tests/it/values.rs`.

mod device;
pub(super) mod equality;
mod key;
mod list;
mod map;
mod nesting;
pub(super) mod order;
pub(super) mod shown;
mod text;
mod weight;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use dra_attrs::Version;

use super::device::names::Part;
use super::fault::Fault;
use super::input::SelectorInput;
use super::scalar::amount::Amount;
use super::scalar::format::NamedFormat;
use super::scalar::network::Network;
use super::scalar::time::Timestamp;
use super::scalar::url::Url;
use super::types::{CIDR, FORMAT, IP, QUANTITY, SEMVER, URL};
pub(super) use text::Text;

/// Value, or why there is none.
pub(super) type Answer<'v> = Result<Value<'v>, Box<Fault>>;

/// Value of an expression.
#[derive(Clone, Debug)]
pub(super) enum Value<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'v>),
    Bytes(Arc<[u8]>),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    List(List<'v>),
    Map(Map<'v>),
    /// Type by its name.
    Type(&'static str),
    Optional(Option<Arc<Held<'v>>>),
    Quantity(Arc<Amount>, Origin),
    Version(Arc<Version>),
    Ip(IpAddr),
    Cidr(Network),
    Url(Arc<Url>),
    Format(&'static NamedFormat),
}

/// Value within an optional, and how deeply it nests.
#[derive(Clone, Debug)]
pub(super) struct Held<'v> {
    pub(super) value: Value<'v>,
    depth: u16,
}

/// List of values.
#[derive(Clone, Debug)]
pub(super) struct List<'v>(Arc<ListData<'v>>);

#[derive(Clone, Debug)]
struct ListData<'v> {
    items: Vec<Value<'v>>,
    depth: u16,
    /// Made by `+`: its comparison is an error when that of an element is.
    is_sum: bool,
}

/// Map of values. Keys are in the order of [`Key`].
#[derive(Clone, Debug)]
pub(super) enum Map<'v> {
    Table(Table<'v>),
    /// The variable `device`.
    Device(&'v SelectorInput<'v>),
    /// `device.attributes` or `device.capacity`: has an empty map for each domain that the device has not.
    Domains(&'v SelectorInput<'v>, Part),
    /// Attributes or capacities of a domain.
    Names(&'v SelectorInput<'v>, Part, &'v str),
}

/// Map that an expression made.
#[derive(Clone, Debug, Default)]
pub(super) struct Table<'v>(Arc<TableData<'v>>);

#[derive(Clone, Debug, Default)]
struct TableData<'v> {
    entries: BTreeMap<Key<'v>, Value<'v>>,
    depth: u16,
}

/// Key of a map. Keys of different types differ.
#[derive(Clone, Debug)]
pub(super) struct Key<'v>(Value<'v>);

/// Where a quantity comes from: Kubernetes does not compare with one that was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Read,
    Computed,
}

impl<'v> Value<'v> {
    pub(super) const NONE: Self = Self::Optional(None);

    pub(super) fn owned(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Owned(text.into()))
    }

    pub(super) const fn borrowed(text: &'v str) -> Self {
        Self::String(Text::Borrowed(text))
    }

    /// Returns the name of the value's type.
    pub(super) const fn type_name(&self) -> &'static str {
        self.type_names().0
    }

    /// Returns the name of the value's type in upstream's source, as some messages have it.
    pub(super) const fn inner_type_name(&self) -> &'static str {
        self.type_names().1
    }

    const fn type_names(&self) -> (&'static str, &'static str) {
        match self {
            Self::Null => ("null_type", "types.Null"),
            Self::Bool(_) => ("bool", "types.Bool"),
            Self::Int(_) => ("int", "types.Int"),
            Self::Uint(_) => ("uint", "types.Uint"),
            Self::Double(_) => ("double", "types.Double"),
            Self::String(_) => ("string", "types.String"),
            Self::Bytes(_) => ("bytes", "types.Bytes"),
            Self::Duration(_) => ("google.protobuf.Duration", "types.Duration"),
            Self::Timestamp(_) => ("google.protobuf.Timestamp", "types.Timestamp"),
            Self::List(_) => ("list", "*types.baseList"),
            Self::Map(_) => ("map", "*types.baseMap"),
            Self::Type(_) => ("type", "*types.Type"),
            Self::Optional(_) => ("optional_type", "*types.Optional"),
            Self::Quantity(..) => (QUANTITY, "cel.Quantity"),
            Self::Version(_) => (SEMVER, "cel.Semver"),
            Self::Ip(_) => (IP, "cel.IP"),
            Self::Cidr(..) => (CIDR, "cel.CIDR"),
            Self::Url(_) => (URL, "cel.URL"),
            Self::Format(_) => (FORMAT, "cel.Format"),
        }
    }

    /// Returns true for values that are compared only with those of their type, at one price.
    pub(super) const fn is_opaque(&self) -> bool {
        matches!(
            self,
            Self::Quantity(..) | Self::Version(_) | Self::Ip(_) | Self::Cidr(..) | Self::Url(_) | Self::Format(_)
        )
    }

    /// Returns true for values that an index or a key of a map can be written as.
    pub(super) const fn is_index(&self) -> bool {
        matches!(self, Self::String(_) | Self::Int(_) | Self::Uint(_) | Self::Bool(_) | Self::Double(_))
    }
}
