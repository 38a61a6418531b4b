//! Maps: those of the device, and those that an expression makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::device;
pub(crate) use super::key::Key;
use super::{Answer, Value, nested, order};
use crate::device::names::{self, Part};
use crate::fault::Fault;
use crate::input::SelectorInput;

/// Map of values. Keys are in the order of [`Key`].
#[derive(Clone, Debug)]
pub(crate) enum Map<'v> {
    Table(Table<'v>),
    /// The variable `device`.
    Device(&'v SelectorInput<'v>),
    /// `device.attributes` or `device.capacity`: has an empty map for each domain that the device has not.
    Domains(&'v SelectorInput<'v>, Part),
    /// Attributes or capacities of a domain.
    Names(&'v SelectorInput<'v>, Part, &'v str),
}

/// Map that an expression made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table<'v>(Arc<Data<'v>>);

#[derive(Clone, Debug, Default)]
struct Data<'v> {
    entries: BTreeMap<Key<'v>, Value<'v>>,
    depth: u16,
}

impl<'v> Table<'v> {
    /// Makes a map.
    pub(crate) fn new(entries: BTreeMap<Key<'v>, Value<'v>>) -> Result<Self, Box<Fault>> {
        let depth = nested(entries.values().map(Value::depth).max().unwrap_or_default())?;
        Ok(Self(Arc::new(Data { entries, depth })))
    }

    /// Returns the map with an entry more; false if the key was there.
    pub(crate) fn inserted(mut self, key: Key<'v>, value: Value<'v>) -> Result<(Self, bool), Box<Fault>> {
        let depth = nested(value.depth())?;
        let data = Arc::make_mut(&mut self.0);
        data.depth = data.depth.max(depth);
        let is_new = data.entries.insert(key, value).is_none();
        Ok((self, is_new))
    }

    /// Returns the work of looking for a key: it is compared with one on each level.
    pub(crate) fn work_of(&self, key: &Value<'_>) -> usize {
        let levels = usize::BITS - self.0.entries.len().leading_zeros();
        levels as usize * (6 + key.weight() / 8)
    }

    fn find(&self, key: &Value<'v>) -> Option<Value<'v>> {
        let exact = |key: Value<'v>| self.0.entries.get(&Key::new(key).ok()?).cloned();
        exact(key.clone()).or_else(|| order::alike(key).find_map(exact))
    }
}

impl<'v> Map<'v> {
    pub(super) fn depth(&self) -> u16 {
        match self {
            Self::Table(table) => table.0.depth,
            Self::Device(_) => 4,
            Self::Domains(..) => 3,
            Self::Names(..) => 2,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Table(table) => table.0.entries.len(),
            Self::Device(_) => device::FIELDS.len(),
            Self::Domains(input, part) => names::domains(input, *part).len(),
            Self::Names(input, part, domain) => names::ids(input, *part, domain).len(),
        }
    }

    /// Returns the work of looking at the map: the names of a device are looked through.
    pub(crate) fn work(&self) -> usize {
        match self {
            Self::Table(_) | Self::Device(_) => 1,
            Self::Domains(input, _) | Self::Names(input, ..) => {
                let attributes = input.device.attributes.as_ref().map_or(0, BTreeMap::len);
                1 + attributes + input.device.capacity.as_ref().map_or(0, BTreeMap::len)
            }
        }
    }

    /// Returns the work of looking for a key.
    pub(crate) fn work_of(&self, key: &Value<'_>) -> usize {
        if let Self::Table(table) = self { table.work_of(key) } else { self.work() }
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
