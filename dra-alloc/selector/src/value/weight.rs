//! Work of reading values.

use std::collections::BTreeMap;

use super::{List, Map, Table, Value};

impl Value<'_> {
    /// Returns the work of reading a value once, without the elements of a list or the entries of a map.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::String(text) => 1 + text.len() / 4,
            Self::Bytes(bytes) => 1 + bytes.len() / 4,
            Self::Map(map) => map.work(),
            Self::Quantity(amount, _) => 1 + amount.weight(),
            Self::Url(url) => 1 + url.len(),
            _ => 1,
        }
    }
}

impl List<'_> {
    /// Returns the work of reading all elements once.
    pub(crate) fn weight(&self) -> usize {
        self.0.items.iter().map(Value::weight).fold(0, usize::saturating_add)
    }
}

impl Table<'_> {
    /// Returns the work of looking for a key: it is compared with one on each level.
    pub(crate) fn work_of(&self, key: &Value<'_>) -> usize {
        let levels = usize::BITS - self.0.entries.len().leading_zeros();
        levels as usize * (6 + key.weight() / 8)
    }
}

impl Map<'_> {
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
}
