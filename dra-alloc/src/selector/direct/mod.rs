//! The selectors that nearly everybody writes, in a form that is evaluated without the interpreter.
//!
//! A direct form answers only where all is ordinary. It has no answer where an attribute is missing, has another type
//! than the literal it is compared with, or is large; then the interpreter decides, which also words the errors. So each
//! answer is the interpreter's, and a mistake here can only be a wrong answer, never another error: that is what the
//! generated tests of this module look for.
//!
//! # Cost
//! An expression is short, and every test in it reads one value that is not large ([`evaluate`] has the limits), so
//! that the interpreter could not exhaust its budget where there is a direct answer.

mod evaluate;
pub(super) mod plain;
mod recognize;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use dra_attrs::quantity::Quantity;
use dra_attrs::semver::Version;

use super::functions::regex::PatternValue;
use super::types::Part;

pub(super) use recognize::recognize;

/// An expression that is true or false.
#[derive(Debug)]
pub(super) enum Direct {
    Constant(bool),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    /// A scalar that is a bool.
    Truth(Source),
    /// `scalar == literal`
    Compare {
        source: Source,
        relation: Relation,
        literal: Literal,
    },
    /// `scalar in [literals]`
    OneOf {
        source: Source,
        literals: Vec<Literal>,
    },
    /// `text.startsWith('literal')`
    Text {
        source: Source,
        test: TextTest,
    },
    /// `attribute.includes(literal)`
    Includes {
        key: Key,
        literal: Literal,
    },
    /// `literal in attribute`
    Member {
        key: Key,
        literal: Literal,
    },
    /// `has(device.attributes['domain'].id)`, `'id' in device.attributes['domain']`
    Present {
        part: Part,
        key: Key,
    },
    /// `'domain' in device.attributes`
    DomainPresent {
        part: Part,
        domain: String,
    },
    /// `attribute.compareTo(semver('1.2.3')) >= to`, and what can be said so.
    Version {
        key: Key,
        bound: Version,
        relation: Relation,
        to: i64,
    },
    /// `capacity.compareTo(quantity('1Gi')) >= to`, and what can be said so.
    Capacity {
        key: Key,
        bound: Quantity,
        relation: Relation,
        to: i64,
    },
}

/// A comparison, as what it makes of an order: [`Ordering::is_lt`] is `<`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relation(fn(Ordering) -> bool);

/// Where a scalar is.
#[derive(Debug)]
pub(super) enum Source {
    Driver,
    AllowMultipleAllocations,
    Attribute(Key),
    /// `device.attributes['domain'].?id.orValue(literal)`
    AttributeOr(Key, Literal),
}

/// A literal of the types that scalar attributes have.
#[derive(Debug)]
pub(super) enum Literal {
    Bool(bool),
    Int(i64),
    Text(String),
}

/// What is asked about a text.
#[derive(Debug)]
pub(super) enum TextTest {
    StartsWith(String),
    EndsWith(String),
    Contains(String),
    Matches(PatternValue),
}

/// An id in a domain, with the names that an attribute or capacity may have for it.
#[derive(Debug)]
pub(super) struct Key {
    domain: String,
    /// The id, where the domain is that of the driver.
    bare: Option<String>,
    /// `domain/id`
    qualified: Option<String>,
}

impl Key {
    fn new(domain: &str, id: &str) -> Self {
        let bare = (!id.contains('/')).then(|| id.to_owned());
        let qualified = (!domain.contains('/')).then(|| format!("{domain}/{id}"));
        Self { domain: domain.to_owned(), bare, qualified }
    }

    /// What is there. A name without a domain counts before one with the driver's domain.
    fn find<'d, T>(&self, driver: &str, values: &'d BTreeMap<String, T>) -> Option<&'d T> {
        let bare = self.bare.as_ref().filter(|_| self.domain == driver);
        let bare = bare.and_then(|name| values.get(name));
        bare.or_else(|| values.get(self.qualified.as_ref()?))
    }
}
