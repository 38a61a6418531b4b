//! Reading of fields and elements.

use crate::fault::Fault;
use crate::value::shown::plain;
use crate::value::{Answer, List, Map, Value, order};

/// Reads a field or element; `None` if it is not there. The error is one that also an optional read has.
pub(super) fn read<'v>(value: &Value<'v>, key: &Value<'v>) -> Result<Option<Value<'v>>, Box<Fault>> {
    match value {
        Value::Map(map) => map.read(key),
        Value::List(list) => Ok(position(key)?.and_then(|at| list.items().get(at).cloned())),
        _ => Ok(None),
    }
}

/// Returns the work of reading a field or element.
pub(super) fn work(value: &Value<'_>, key: &Value<'_>) -> usize {
    if let Value::Map(map) = value { map.work_of(key) } else { value.weight() }
}

/// Returns the error for a value that is no key.
pub(super) fn no_key(key: &Value<'_>) -> Box<Fault> {
    Fault::text(format!("invalid qualifier type: {}", key.inner_type_name()))
}

/// Returns the position that a value stands for in a list; `None` if it is negative.
fn position(key: &Value<'_>) -> Result<Option<usize>, Box<Fault>> {
    Ok(match key {
        Value::Int(index) => usize::try_from(*index).ok(),
        Value::Uint(index) => usize::try_from(*index).ok(),
        Value::Double(index) => {
            let whole = order::to_int(*index);
            let shown = || plain(key).unwrap_or_default();
            let whole = whole.ok_or_else(|| Fault::text(format!("unsupported index value {} in list", shown())))?;
            usize::try_from(whole).ok()
        }
        other => {
            let of = other.type_name();
            return Err(Fault::text(format!("unsupported index type '{of}' in list")));
        }
    })
}

/// Returns the error for what is not there.
pub(super) fn missing(value: &Value<'_>, key: &Value<'_>) -> Box<Fault> {
    let shown = plain(key).unwrap_or_default();
    match value {
        Value::List(_) => Fault::text(format!("index out of bounds: {shown}")),
        _ => Fault::no_such_key(shown),
    }
}

/// Returns the error of upstream's functions that do not look whether they got a list.
pub(super) fn not_a_list(answer: &Answer<'_>) -> Box<Fault> {
    let (of, method) = match answer {
        Err(_) => ("*types.Err", "Add"),
        Ok(value @ (Value::String(_) | Value::Int(_) | Value::Double(_) | Value::Uint(_) | Value::Bytes(_))) => {
            (value.inner_type_name(), "Contains")
        }
        Ok(value) => (value.inner_type_name(), "Add"),
    };
    Fault::internal(&format!("interface conversion: {of} is not traits.Lister: missing method {method}"))
}

/// Elements that a loop goes through.
#[derive(Debug)]
pub(super) enum Elements<'v> {
    List(List<'v>, usize),
    Map(Map<'v>, std::vec::IntoIter<Value<'v>>),
}

impl<'v> Elements<'v> {
    /// Begins to go through a value, by itself or with two variables.
    pub(super) fn of(value: Value<'v>, has_second: bool) -> Result<Self, Box<Fault>> {
        match value {
            Value::List(list) => Ok(Self::List(list, 0)),
            Value::Map(map) => {
                let keys = map.keys().into_iter();
                Ok(Self::Map(map, keys))
            }
            other => {
                let of = other.inner_type_name();
                Err(Fault::text(if has_second {
                    format!("unsupported comprehension range type: {of}")
                } else {
                    format!("got '{of}', expected iterable type")
                }))
            }
        }
    }

    /// Returns the next element: position and value of a list's, key and value of a map's.
    pub(super) fn next(&mut self) -> Option<(Value<'v>, Answer<'v>)> {
        match self {
            Self::List(list, next) => {
                let value = list.items().get(*next)?.clone();
                let index = Value::Int(i64::try_from(*next).unwrap_or(i64::MAX));
                *next += 1;
                Some((index, Ok(value)))
            }
            Self::Map(map, keys) => {
                let key = keys.next()?;
                let value = map.value(&key);
                Some((key, value))
            }
        }
    }

    /// Returns the work of a round.
    pub(super) fn work(&self, key: &Value<'_>) -> usize {
        match self {
            Self::List(..) => 1,
            Self::Map(map, _) => map.work_of(key),
        }
    }

    /// Returns true if the one variable of a loop has the keys.
    pub(super) const fn has_keys(&self) -> bool {
        matches!(self, Self::Map(..))
    }
}
