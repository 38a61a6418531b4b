//! Evaluates a direct form on a device whose attributes and capacities are valid.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use dra_attrs::{MAX_VALUES_PER_DEVICE, Quantity, QuantityFormat, Version};
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};

use super::{Direct, Key, Literal, Relation, Source, TextTest, plain};
use crate::selector::SelectorInput;
use crate::selector::value::device::{Content, Part, split};

/// Longest text in bytes that a test reads. With this limit, [`MOST_NAMES`] and that of list elements, a test costs the
/// program at most 210 units, and at most 2500 tests fit in an expression.
const LONGEST_TEXT: usize = 2_048;
/// Largest number of attribute or capacity names of a device among which a test looks one up.
const MOST_NAMES: usize = 128;
/// Largest additional cost of a pattern search, in units. At most 700 searches fit in an expression.
const DEAREST_MATCH: u64 = 512;

/// Scalar of an attribute, of the device or of a literal.
#[derive(Clone, Copy)]
enum Scalar<'a> {
    Bool(bool),
    Int(i64),
    Text(&'a str),
}

impl Direct {
    /// Returns the result of the expression for a device; `None` if only the program can evaluate it.
    pub(in crate::selector) fn evaluate(&self, input: SelectorInput<'_>) -> Option<bool> {
        match self {
            Self::Constant(value) => Some(*value),
            Self::Not(operand) => operand.evaluate(input).map(|value| !value),
            Self::And(left, right) => {
                if left.evaluate(input)? {
                    right.evaluate(input)
                } else {
                    Some(false)
                }
            }
            Self::Or(left, right) => {
                if left.evaluate(input)? {
                    Some(true)
                } else {
                    right.evaluate(input)
                }
            }
            Self::Truth(source) => match source.read(input)? {
                Scalar::Bool(value) => Some(value),
                Scalar::Int(_) | Scalar::Text(_) => None,
            },
            Self::Compare { source, relation, literal } => {
                source.read(input)?.compare(literal.scalar()).map(|order| relation.holds(order))
            }
            Self::OneOf { source, literals } => {
                let scalar = source.read(input)?;
                any(literals, |literal| scalar.equals(literal.scalar()))
            }
            Self::Text { source, test } => match source.read(input)? {
                Scalar::Text(text) => test.holds(text),
                Scalar::Bool(_) | Scalar::Int(_) => None,
            },
            Self::Includes { key, literal } => {
                let content = key.content(input)?;
                holds(&content, literal).or_else(|| Scalar::of(&content)?.equals(literal.scalar()))
            }
            Self::Member { key, literal } => holds(&key.content(input)?, literal),
            Self::Present { part, key } => key.is_present(*part, input),
            Self::DomainPresent { part, domain } => has_domain(*part, domain, input),
            Self::Version { key, bound, relation, to } => {
                let Content::Version(text) = key.content(input)? else { return None };
                let order = compare_version(text, bound)?;
                Some(relation.holds((order as i64).cmp(to)))
            }
            Self::Capacity { key, bound, relation, to } => {
                let capacity = key.find(input.driver, input.device.capacity.as_ref()?)?;
                let quantity = match plain::units(&capacity.value.0) {
                    Some(units) => Quantity::from_units(units, QuantityFormat::DecimalSi),
                    None => Quantity::from_kube(&capacity.value).ok()?,
                };
                Some(relation.holds((quantity.cmp(bound) as i64).cmp(to)))
            }
        }
    }
}

impl Relation {
    fn holds(self, order: Ordering) -> bool {
        (self.0)(order)
    }
}

impl Literal {
    fn scalar(&self) -> Scalar<'_> {
        match self {
            Self::Bool(value) => Scalar::Bool(*value),
            Self::Int(value) => Scalar::Int(*value),
            Self::Text(value) => Scalar::Text(value),
        }
    }
}

impl<'a> Scalar<'a> {
    fn of(content: &Content<'a>) -> Option<Self> {
        match content {
            Content::Bool(value) => Some(Self::Bool(*value)),
            Content::Int(value) => Some(Self::Int(*value)),
            Content::String(value) => Self::text(value),
            _ => None,
        }
    }

    fn text(text: &'a str) -> Option<Self> {
        (text.len() <= LONGEST_TEXT).then_some(Self::Text(text))
    }

    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(left), Self::Bool(right)) => Some(left.cmp(&right)),
            (Self::Int(left), Self::Int(right)) => Some(left.cmp(&right)),
            (Self::Text(left), Self::Text(right)) => Some(left.cmp(right)),
            _ => None,
        }
    }

    fn equals(self, other: Self) -> Option<bool> {
        self.compare(other).map(Ordering::is_eq)
    }
}

impl Source {
    fn read<'a>(&'a self, input: SelectorInput<'a>) -> Option<Scalar<'a>> {
        match self {
            Self::Driver => Scalar::text(input.driver),
            Self::AllowMultipleAllocations => {
                Some(Scalar::Bool(input.device.allow_multiple_allocations.unwrap_or_default()))
            }
            Self::Attribute(key) => Scalar::of(&key.content(input)?),
            Self::AttributeOr(key, literal) => match key.attribute(input) {
                Some(attribute) => Scalar::of(&Content::of(attribute)?),
                None => Some(literal.scalar()),
            },
        }
    }
}

impl TextTest {
    fn holds(&self, text: &str) -> Option<bool> {
        Some(match self {
            Self::StartsWith(start) => text.starts_with(start),
            Self::EndsWith(end) => text.ends_with(end),
            Self::Contains(part) => text.contains(part),
            Self::Matches(pattern) => return (pattern.cost(text) <= DEAREST_MATCH).then(|| pattern.is_match(text)),
        })
    }
}

impl Key {
    fn attribute<'a>(&self, input: SelectorInput<'a>) -> Option<&'a DeviceAttribute> {
        self.find(input.driver, input.device.attributes.as_ref()?)
    }

    fn content<'a>(&self, input: SelectorInput<'a>) -> Option<Content<'a>> {
        Content::of(self.attribute(input)?)
    }

    fn is_present(&self, part: Part, input: SelectorInput<'_>) -> Option<bool> {
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

fn has_domain(part: Part, domain: &str, input: SelectorInput<'_>) -> Option<bool> {
    let SelectorInput { driver, device } = input;
    let is_in = |name: &String| split(name, driver).0 == domain;
    let small = count(part, device) <= MOST_NAMES;
    small.then(|| match part {
        Part::Attributes => device.attributes.iter().flatten().any(|(name, _)| is_in(name)),
        Part::Capacity => device.capacity.iter().flatten().any(|(name, _)| is_in(name)),
    })
}

/// Returns true if the program can read the attribute at small cost.
fn is_small(content: &Content<'_>) -> bool {
    match content {
        Content::String(text) => text.len() <= LONGEST_TEXT,
        Content::Strings(texts) => {
            texts.len() <= MAX_VALUES_PER_DEVICE && texts.iter().map(String::len).sum::<usize>() <= LONGEST_TEXT
        }
        Content::Ints(list) => list.len() <= MAX_VALUES_PER_DEVICE,
        Content::Bools(list) => list.len() <= MAX_VALUES_PER_DEVICE,
        Content::Versions(list) => list.len() <= MAX_VALUES_PER_DEVICE,
        Content::Int(_) | Content::Bool(_) | Content::Version(_) => true,
    }
}

/// Returns true if a list of the literal's type contains the literal; `None` for other types.
fn holds(content: &Content<'_>, literal: &Literal) -> Option<bool> {
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

/// Returns true if `is_so` holds for an item. Returns `None` if `is_so` returns `None` for an earlier item.
fn any<T>(items: &[T], is_so: impl Fn(&T) -> Option<bool>) -> Option<bool> {
    for item in items {
        if is_so(item)? {
            return Some(true);
        }
    }
    Some(false)
}

/// Compares the version in `text` with `bound`; `None` if the text is not a version. Most versions have only numbers,
/// and most differ in one.
fn compare_version(text: &str, bound: &Version) -> Option<Ordering> {
    let own = plain::version(text).map(|parts| parts.map(plain::number));
    match own.map(|own| own.cmp(&[bound.major(), bound.minor(), bound.patch()])) {
        Some(order) if order.is_ne() => Some(order),
        _ => text.parse::<Version>().ok().map(|version| version.cmp(bound)),
    }
}
