//! Keys of maps.

use std::cmp::Ordering;
use std::sync::Arc;

use super::order::order;
use super::{Key, Value};
use crate::fault::Fault;

impl<'v> Key<'v> {
    /// Makes a key; values that consist of parts are none.
    pub(crate) fn new(value: Value<'v>) -> Result<Self, Box<Fault>> {
        if rank(&value).is_some() { Ok(Self(value)) } else { Err(Fault::unhashable(value.inner_type_name())) }
    }

    pub(crate) const fn value(&self) -> &Value<'v> {
        &self.0
    }
}

/// Returns the place of a key among those of other types; `None` for values that are no key.
const fn rank(value: &Value<'_>) -> Option<u8> {
    Some(match value {
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
        Value::Cidr(_) => 10,
        Value::Quantity(..) => 11,
        Value::Url(_) => 12,
        _ => return None,
    })
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Value::String(one), Value::String(other)) => (**one).cmp(other),
            (Value::Double(one), Value::Double(other)) => one.total_cmp(other),
            (Value::Type(one), Value::Type(other)) => one.cmp(other),
            (Value::Ip(one), Value::Ip(other)) => one.cmp(other),
            (Value::Cidr(one), Value::Cidr(other)) => one.cmp(other),
            // These are keys as objects, not by value.
            (Value::Quantity(one, _), Value::Quantity(other, _)) => {
                one.compare(other).then(Arc::as_ptr(one).cmp(&Arc::as_ptr(other)))
            }
            (Value::Url(one), Value::Url(other)) => {
                one.to_string().cmp(&other.to_string()).then(Arc::as_ptr(one).cmp(&Arc::as_ptr(other)))
            }
            (one, other) => {
                let by_value = || order(one, other).flatten().unwrap_or(Ordering::Equal);
                rank(one).cmp(&rank(other)).then_with(by_value)
            }
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
