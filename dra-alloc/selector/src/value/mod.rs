//! Values of an evaluation. Texts of the device and of the expression are borrowed.

pub(super) mod device;
pub(super) mod equality;
mod key;
pub(super) mod list;
pub(super) mod map;
pub(super) mod order;
pub(super) mod text;

use std::net::IpAddr;
use std::sync::Arc;

use dra_attrs::Version;

use super::fault::Fault;
use super::functions::amount::Amount;
use super::functions::cidr::Network;
use super::functions::formats::NamedFormat;
use super::functions::url::Url;
use super::types::{CIDR, FORMAT, IP, QUANTITY, SEMVER, URL};
pub(super) use list::List;
pub(super) use map::Map;
pub(super) use text::Text;

/// Largest nesting of lists, maps and optional values.
const MOST_NESTED: u16 = 250;

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

/// Where a quantity comes from: Kubernetes does not compare with one that was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Read,
    Computed,
}

/// Instant with the offset of the zone in which it was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timestamp {
    /// Seconds since 1970.
    pub(super) seconds: i64,
    pub(super) nanos: u32,
    /// Seconds east of UTC.
    pub(super) offset: i32,
}

impl<'v> Value<'v> {
    pub(super) const NONE: Self = Self::Optional(None);

    /// Returns a value as an optional that holds it.
    pub(super) fn held(self) -> Answer<'v> {
        let depth = nested(self.depth())?;
        Ok(Self::Optional(Some(Arc::new(Held { value: self, depth }))))
    }

    pub(super) fn owned(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Owned(text.into()))
    }

    pub(super) const fn borrowed(text: &'v str) -> Self {
        Self::String(Text::Borrowed(text))
    }

    /// Returns the work of reading a value once, without the elements of a list or the entries of a map.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::String(text) => 1 + text.len() / 4,
            Self::Bytes(bytes) => 1 + bytes.len() / 4,
            Self::Map(map) => map.work(),
            Self::Quantity(amount, _) => 1 + amount.weight(),
            Self::Url(url) => 1 + url.len(),
            _ => 1,
        }
    }

    /// Returns how deeply lists, maps and optional values nest in a value.
    fn depth(&self) -> u16 {
        match self {
            Self::List(list) => list.depth(),
            Self::Map(map) => map.depth(),
            Self::Optional(Some(held)) => held.depth,
            _ => 0,
        }
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

/// Returns the nesting of something around what nests so deeply.
fn nested(depth: u16) -> Result<u16, Box<Fault>> {
    if depth < MOST_NESTED { Ok(depth + 1) } else { Err(Fault::too_much()) }
}
