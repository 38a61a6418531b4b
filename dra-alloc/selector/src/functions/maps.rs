//! The function with which loops build maps.

use super::function::functions;
use crate::fault::Fault;
use crate::meter::Meter;
use crate::value::shown::plain;
use crate::value::{Answer, Key, Map, Table, Value};

functions! { meter;
    "cel.@mapInsert" {
        "(map(A, B), A, B) -> map(A, B)" One:
            [map, key, value] => insert(meter, vec![map.clone(), key.clone(), value.clone()]);
        "(map(A, B), map(A, B)) -> map(A, B)" One: [map, other] => insert(meter, vec![map.clone(), other.clone()]);
    }
}

/// Largest memory of an entry of a map.
const ENTRY: usize = 100;

/// Adds a key with its value, or all of another map, to a map. A map that nobody else has grows in place.
pub(crate) fn insert<'v>(meter: &mut Meter<'_>, arguments: Vec<Value<'v>>) -> Answer<'v> {
    let mut arguments = arguments.into_iter();
    let (target, first, second) = (arguments.next(), arguments.next(), arguments.next());
    let Some(Value::Map(Map::Table(table))) = target else { return Err(Fault::no_overload()) };
    let table = match (first, second) {
        (Some(key), Some(value)) => add(meter, table, key, value)?,
        (Some(Value::Map(map)), None) => {
            let mut keys = map.keys().into_iter();
            keys.try_fold(table, |table, key| {
                let value = map.value(&key)?;
                add(meter, table, key, value)
            })?
        }
        _ => return Err(Fault::no_overload()),
    };
    Ok(Value::Map(Map::Table(table)))
}

fn add<'v>(meter: &mut Meter<'_>, table: Table<'v>, key: Value<'v>, value: Value<'v>) -> Result<Table<'v>, Box<Fault>> {
    meter.make(ENTRY)?;
    meter.work(ENTRY / 10 + table.work_of(&key))?;
    let key = Key::new(key)?;
    let (table, is_new) = table.inserted(key.clone(), value)?;
    if is_new {
        return Ok(table);
    }
    let shown = plain(key.value()).unwrap_or_default();
    Err(Fault::text(format!("insert failed: key {shown} already exists")))
}
