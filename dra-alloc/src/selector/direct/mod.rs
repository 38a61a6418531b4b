//! Common forms of selectors, evaluated without a program.
//!
//! A direct form answers only ordinary cases. It has no answer if an attribute is missing, has another type than the
//! literal it is compared with, or is large; then the program decides, which also words the errors. A mistake here
//! can therefore only be a wrong answer, never another error. The generated tests of this module look for such
//! mistakes.
//!
//! # Cost
//! An expression is short, and every test in it reads one value that is not large ([`evaluate`] has the limits), so
//! that the program could not reach the limit of costs where there is a direct answer.

mod evaluate;
pub(super) mod plain;
mod recognize;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use dra_attrs::{Quantity, Version};

use super::functions::regex::Pattern;
use super::value::device::Part;

pub(super) use recognize::recognize;

/// Boolean expression in a direct form.
#[derive(Debug)]
pub(super) enum Direct {
    Constant(bool),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    /// Test of a boolean attribute or literal.
    Truth(Source),
    /// Comparison of a scalar with a literal: `scalar == literal`
    Compare {
        source: Source,
        relation: Relation,
        literal: Literal,
    },
    /// Test that a scalar is one of several literals: `scalar in [literals]`
    OneOf {
        source: Source,
        literals: Vec<Literal>,
    },
    /// Test of a text, such as `text.startsWith('literal')`
    Text {
        source: Source,
        test: TextTest,
    },
    /// Test that the value of an attribute is or contains a literal: `attribute.includes(literal)`
    Includes {
        key: Key,
        literal: Literal,
    },
    /// Test that a list-typed attribute contains a literal: `literal in attribute`
    Member {
        key: Key,
        literal: Literal,
    },
    /// Test that an attribute or capacity exists: `has(device.attributes['domain'].id)` or
    /// `'id' in device.attributes['domain']`
    Present {
        part: Part,
        key: Key,
    },
    /// Test that a domain is a key of the attributes or capacities: `'domain' in device.attributes`
    DomainPresent {
        part: Part,
        domain: String,
    },
    /// Comparison of a version with a literal: `attribute.compareTo(semver('1.2.3')) >= to`, and equivalent forms.
    Version {
        key: Key,
        bound: Version,
        relation: Relation,
        to: i64,
    },
    /// Comparison of a capacity with a literal: `capacity.compareTo(quantity('1Gi')) >= to`, and equivalent forms.
    Capacity {
        key: Key,
        bound: Quantity,
        relation: Relation,
        to: i64,
    },
}

/// Comparison operator, as a function of an order: [`Ordering::is_lt`] is `<`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relation(fn(Ordering) -> bool);

/// Location of a scalar.
#[derive(Debug)]
pub(super) enum Source {
    Driver,
    AllowMultipleAllocations,
    Attribute(Key),
    /// Value of an attribute, or a default: `device.attributes['domain'].?id.orValue(literal)`
    AttributeOr(Key, Literal),
}

/// Literal of a type that scalar attributes have.
#[derive(Debug)]
pub(super) enum Literal {
    Bool(bool),
    Int(i64),
    Text(String),
}

/// Test of a text: prefix, suffix, substring or pattern.
#[derive(Debug)]
pub(super) enum TextTest {
    StartsWith(String),
    EndsWith(String),
    Contains(String),
    Matches(Pattern),
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
    fn new(domain: &str, id: &str) -> Self {
        let bare = (!id.contains('/')).then(|| id.to_owned());
        let qualified = (!domain.contains('/')).then(|| format!("{domain}/{id}"));
        Self { domain: domain.to_owned(), bare, qualified }
    }

    /// Returns the value that a device has for the key. A name without a domain is preferred to one with the driver's
    /// domain.
    fn find<'d, T>(&self, driver: &str, values: &'d BTreeMap<String, T>) -> Option<&'d T> {
        let bare = self.bare.as_ref().filter(|_| self.domain == driver);
        let bare = bare.and_then(|name| values.get(name));
        bare.or_else(|| values.get(self.qualified.as_ref()?))
    }
}
