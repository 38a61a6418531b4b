//! Reading of a device by direct forms, as far as it is small.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use dra_attrs::Version;
use dra_attrs::internal::AttributeValue;
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};

use crate::device::content::Content;
use crate::device::names::{self, Part};
use crate::device::plain;
use crate::input::SelectorInput;

/// Longest text in bytes that a test reads. With this limit, [`MOST_NAMES`] and that of list elements, a test costs the
/// program at most 210 units, and at most 2500 tests fit in an expression.
const LONGEST_TEXT: usize = 2_048;
/// Largest number of attribute or capacity names of a device among which a test looks one up.
const MOST_NAMES: usize = 128;
/// Largest additional cost of a pattern search, in units. At most 700 searches fit in an expression.
pub(super) const DEAREST_MATCH: u64 = 512;

/// Literal of a type that scalar attributes have.
#[derive(Debug)]
pub(super) enum Literal {
    Bool(bool),
    Int(i64),
    Text(String),
}

impl Literal {
    const fn content(&self) -> Content<'_> {
        match self {
            Self::Bool(value) => Content::Bool(*value),
            Self::Int(value) => Content::Int(*value),
            Self::Text(value) => Content::String(value.as_str()),
        }
    }

    /// Compares a value with the literal, if they have one type.
    pub(super) fn order_of(&self, value: Content<'_>) -> Option<Ordering> {
        match (value, self) {
            (Content::Bool(value), Self::Bool(literal)) => Some(value.cmp(literal)),
            (Content::Int(value), Self::Int(literal)) => Some(value.cmp(literal)),
            (Content::String(value), Self::Text(literal)) => Some(value.cmp(literal)),
            _ => None,
        }
    }
}

/// Location of a scalar.
#[derive(Debug)]
pub(super) enum Source {
    Driver,
    AllowMultipleAllocations,
    Attribute(Key),
    /// Value of an attribute, or a default: `device.attributes['domain'].?id.orValue(literal)`
    AttributeOr(Key, Literal),
}

impl Source {
    /// Returns the value if it is a text.
    pub(super) fn text<'a>(&'a self, input: SelectorInput<'a>) -> Option<&'a str> {
        if let Content::String(text) = self.read(input)? { Some(text) } else { None }
    }

    pub(super) fn read<'a>(&'a self, input: SelectorInput<'a>) -> Option<Content<'a>> {
        let value = match self {
            Self::Driver => Content::String(input.driver),
            Self::AllowMultipleAllocations => {
                Content::Bool(input.device.allow_multiple_allocations.unwrap_or_default())
            }
            Self::Attribute(key) => key.content(input)?,
            Self::AttributeOr(key, literal) => match key.attribute(input) {
                Some(attribute) => Content::of(attribute)?,
                None => return Some(literal.content()),
            },
        };
        is_small(&value).then_some(value)
    }
}

/// Domain and id of an attribute or capacity, with the names that a device may use for them.
#[derive(Debug)]
pub(super) struct Key {
    domain: String,
    /// Id without the domain, if the domain is the driver's.
    bare: Option<String>,
    /// Name with its domain: `domain/id`.
    qualified: Option<String>,
}

impl Key {
    pub(super) fn new(domain: &str, id: &str) -> Self {
        let bare = (!id.contains('/')).then(|| id.to_owned());
        let qualified = (!domain.contains('/')).then(|| format!("{domain}/{id}"));
        Self { domain: domain.to_owned(), bare, qualified }
    }

    /// Returns the value that a device has for the key. A name without a domain is preferred to one with the driver's
    /// domain.
    pub(super) fn find<'d, T>(&self, driver: &str, values: &'d BTreeMap<String, T>) -> Option<&'d T> {
        let bare = self.bare.as_ref().filter(|_| self.domain == driver);
        let bare = bare.and_then(|name| values.get(name));
        bare.or_else(|| values.get(self.qualified.as_ref()?))
    }

    fn attribute<'a>(&self, input: SelectorInput<'a>) -> Option<&'a DeviceAttribute> {
        self.find(input.driver, input.device.attributes.as_ref()?)
    }

    pub(super) fn content<'a>(&self, input: SelectorInput<'a>) -> Option<Content<'a>> {
        Content::of(self.attribute(input)?)
    }

    pub(super) fn is_present(&self, part: Part, input: SelectorInput<'_>) -> Option<bool> {
        let SelectorInput { driver, device } = input;
        if count(part, device) > MOST_NAMES {
            return None;
        }
        match part {
            Part::Attributes => match self.attribute(input) {
                Some(attribute) => is_small(&Content::of(attribute)?).then_some(true),
                None => Some(false),
            },
            Part::Capacity => {
                let capacity = device.capacity.as_ref().and_then(|capacity| self.find(driver, capacity));
                Some(capacity.is_some())
            }
        }
    }
}

fn count(part: Part, device: &Device) -> usize {
    match part {
        Part::Attributes => device.attributes.as_ref().map_or(0, BTreeMap::len),
        Part::Capacity => device.capacity.as_ref().map_or(0, BTreeMap::len),
    }
}

pub(super) fn has_domain(part: Part, domain: &str, input: SelectorInput<'_>) -> Option<bool> {
    let small = count(part, input.device) <= MOST_NAMES;
    small.then(|| names::all(&input, part).any(|(known, _)| known == domain))
}

/// Returns true if the program can read the attribute at small cost.
fn is_small(content: &Content<'_>) -> bool {
    match content {
        Content::String(text) => text.len() <= LONGEST_TEXT,
        Content::Strings(texts) => {
            texts.len() <= AttributeValue::MAX_PER_DEVICE
                && texts.iter().map(String::len).sum::<usize>() <= LONGEST_TEXT
        }
        Content::Ints(list) => list.len() <= AttributeValue::MAX_PER_DEVICE,
        Content::Bools(list) => list.len() <= AttributeValue::MAX_PER_DEVICE,
        Content::Versions(list) => list.len() <= AttributeValue::MAX_PER_DEVICE,
        Content::Int(_) | Content::Bool(_) | Content::Version(_) => true,
    }
}

/// Returns true if a list of the literal's type contains the literal; `None` for other types.
pub(super) fn holds(content: &Content<'_>, literal: &Literal) -> Option<bool> {
    if !is_small(content) {
        return None;
    }
    match (content, literal) {
        (Content::Ints(list), Literal::Int(value)) => Some(list.contains(value)),
        (Content::Bools(list), Literal::Bool(value)) => Some(list.contains(value)),
        (Content::Strings(list), Literal::Text(value)) => Some(list.contains(value)),
        _ => None,
    }
}

/// Compares the version in `text` with `bound`; `None` if the text is not a version. Most versions have only numbers,
/// and most differ in one.
pub(super) fn compare_version(text: &str, bound: &Version) -> Option<Ordering> {
    let own = plain::version(text).map(|parts| parts.map(plain::number));
    match own.map(|own| own.cmp(&[bound.major(), bound.minor(), bound.patch()])) {
        Some(order) if order.is_ne() => Some(order),
        _ => text.parse::<Version>().ok().map(|version| version.cmp(bound)),
    }
}
