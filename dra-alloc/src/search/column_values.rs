//! Attribute values that constraints compare, by column: the devices that have each value, and those that have none.

use std::collections::BTreeMap;

use dra_attrs::{ListTypes, MatchError, Scalar};

use super::device_set::DeviceSet;
use super::ix::{ByDevice, ColumnIx, DeviceIx};
use super::table::Table;

/// Values of one column.
pub(crate) struct ColumnValues<'s> {
    /// Devices that have each value.
    pub(crate) holders: BTreeMap<Scalar<'s>, DeviceSet>,
    /// Number of values of each device.
    pub(crate) sizes: ByDevice<usize>,
    /// Devices without a usable value, which Kubernetes 1.37 accepts unchecked as the first device of a constraint.
    pub(crate) unseen: DeviceSet,
    /// Devices without a usable value, which violate every constraint on the column.
    pub(crate) lacking: DeviceSet,
    /// Devices on which the expression of a derived attribute fails.
    pub(crate) failing: DeviceSet,
    /// Devices with one value.
    pub(crate) single: DeviceSet,
    /// Devices with several values.
    pub(crate) listed: DeviceSet,
}

impl<'s> ColumnValues<'s> {
    /// Reads the values of some devices.
    pub(crate) fn new(table: &Table<'s>, column: ColumnIx, devices: &DeviceSet) -> Self {
        let range = table.candidates.all();
        let none = || DeviceSet::new(range.end);
        let mut read = Self {
            holders: BTreeMap::new(),
            sizes: range.into_iter().map(|_| 0).collect(),
            unseen: none(),
            lacking: none(),
            failing: none(),
            single: none(),
            listed: none(),
        };
        for device in devices.iter() {
            read.read(table, column, device);
        }
        read
    }

    fn read(&mut self, table: &Table<'s>, column: ColumnIx, device: DeviceIx) {
        let Ok(values) = table.values(column, device) else { return self.failing.insert(device) };
        match values.violation() {
            None => {}
            Some(MatchError::Missing) => return self.lacking.insert(device),
            Some(_) if table.lists() == ListTypes::Disabled => return self.unseen.insert(device),
            Some(_) => return self.lacking.insert(device),
        }
        let end = table.candidates.end();
        for value in values.values() {
            self.holders.entry(*value).or_insert_with(|| DeviceSet::new(end)).insert(device);
        }
        self.sizes[device] = values.values().len();
        match values.values().len() {
            0 => {}
            1 => self.single.insert(device),
            _ => self.listed.insert(device),
        }
    }
}
