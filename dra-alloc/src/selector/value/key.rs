//! Keys of maps.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Timestamp, Value};
use crate::selector::fault::Fault;

/// Key of a map. Keys of different types differ.
#[derive(Clone, Debug)]
pub(in crate::selector) struct Key<'v>(Value<'v>);

impl<'v> Key<'v> {
    /// Makes a key; values that consist of parts are none.
    pub(in crate::selector) fn new(value: Value<'v>) -> Result<Self, Box<Fault>> {
        match value {
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
            | Value::Type(_)
            | Value::Ip(_)
            | Value::Cidr(..)
            | Value::Quantity(..)
            | Value::Url(_) => Ok(Self(value)),
            other => Err(Fault::unhashable(&other)),
        }
    }

    pub(in crate::selector) const fn value(&self) -> &Value<'v> {
        &self.0
    }

    const fn rank(&self) -> u8 {
        match self.0 {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::Int(_) => 2,
            Value::Uint(_) => 3,
            Value::Double(_) => 4,
            Value::String(_) => 5,
            Value::Duration(_) => 6,
            Value::Timestamp(_) => 7,
            Value::Type(_) => 8,
            Value::Ip(_) => 9,
            Value::Cidr(..) => 10,
            Value::Quantity(..) => 11,
            _ => 12,
        }
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let instant = |time: &Timestamp| (time.seconds, time.nanos);
        match (&self.0, &other.0) {
            (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
            (Value::Int(one), Value::Int(other)) | (Value::Duration(one), Value::Duration(other)) => one.cmp(other),
            (Value::Uint(one), Value::Uint(other)) => one.cmp(other),
            (Value::Double(one), Value::Double(other)) => one.total_cmp(other),
            (Value::String(one), Value::String(other)) => (**one).cmp(other),
            (Value::Timestamp(one), Value::Timestamp(other)) => instant(one).cmp(&instant(other)),
            (Value::Type(one), Value::Type(other)) => one.cmp(other),
            (Value::Ip(one), Value::Ip(other)) => one.cmp(other),
            (Value::Cidr(one, length), Value::Cidr(other, other_length)) => (one, length).cmp(&(other, other_length)),
            // These are keys as objects, not by value.
            (Value::Quantity(one, _), Value::Quantity(other, _)) => {
                one.cmp(other).then(Arc::as_ptr(one).cmp(&Arc::as_ptr(other)))
            }
            (Value::Url(one), Value::Url(other)) => {
                one.to_string().cmp(&other.to_string()).then(Arc::as_ptr(one).cmp(&Arc::as_ptr(other)))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key<'_> {}
