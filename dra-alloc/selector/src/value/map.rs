//! Maps: those of the device, and those that an expression makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::nesting::nested;
use super::{Answer, Key, Map, Table, TableData, Value, device, order};
use crate::device::names;
use crate::fault::Fault;

impl<'v> Table<'v> {
    /// Makes a map.
    pub(crate) fn new(entries: BTreeMap<Key<'v>, Value<'v>>) -> Result<Self, Box<Fault>> {
        let depth = nested(entries.values().map(Value::depth).max().unwrap_or_default())?;
        Ok(Self(Arc::new(TableData { entries, depth })))
    }

    /// Returns the map with an entry more; false if the key was there.
    pub(crate) fn inserted(mut self, key: Key<'v>, value: Value<'v>) -> Result<(Self, bool), Box<Fault>> {
        let depth = nested(value.depth())?;
        let data = Arc::make_mut(&mut self.0);
        data.depth = data.depth.max(depth);
        let is_new = data.entries.insert(key, value).is_none();
        Ok((self, is_new))
    }

    fn find(&self, key: &Value<'v>) -> Option<Value<'v>> {
        let exact = |key: Value<'v>| self.0.entries.get(&Key::new(key).ok()?).cloned();
        exact(key.clone()).or_else(|| order::alike(key).find_map(exact))
    }
}

impl<'v> Map<'v> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Table(table) => table.0.entries.len(),
            Self::Device(_) => device::FIELDS.len(),
            Self::Domains(input, part) => names::domains(input, *part).len(),
            Self::Names(input, part, domain) => names::ids(input, *part, domain).len(),
        }
    }

    /// Returns the keys in their order.
    pub(crate) fn keys(&self) -> Vec<Value<'v>> {
        let texts = |names: Vec<&'v str>| names.into_iter().map(Value::borrowed).collect();
        match self {
            Self::Table(table) => table.0.entries.keys().map(|key| key.value().clone()).collect(),
            Self::Device(_) => device::FIELDS.iter().map(|name| Value::borrowed(name)).collect(),
            Self::Domains(input, part) => texts(names::domains(input, *part)),
            Self::Names(input, part, domain) => texts(names::ids(input, *part, domain)),
        }
    }

    /// Returns the value of a key, as an index or a field reads it. Numbers of different types are one key.
    pub(crate) fn read(&self, key: &Value<'v>) -> Result<Option<Value<'v>>, Box<Fault>> {
        match self.find(key)? {
            None if matches!(self, Self::Domains(..)) => Ok(Some(Value::Map(Self::Table(Table::default())))),
            found => Ok(found),
        }
    }

    /// Returns the value of a key that the map has.
    pub(crate) fn find(&self, key: &Value<'v>) -> Result<Option<Value<'v>>, Box<Fault>> {
        Ok(match (self, key) {
            (Self::Table(table), key) => table.find(key),
            (Self::Device(input), Value::String(name)) => device::field(input, name),
            (Self::Domains(input, part), Value::String(domain)) => {
                let domain = names::domain(input, *part, domain);
                domain.map(|domain| Value::Map(Self::Names(input, *part, domain)))
            }
            (Self::Names(input, part, domain), Value::String(name)) => device::value(input, *part, domain, name)?,
            _ => None,
        })
    }

    /// Returns the value of a key of the map itself.
    pub(crate) fn value(&self, key: &Value<'v>) -> Answer<'v> {
        Ok(self.find(key)?.unwrap_or(Value::Null))
    }
}
