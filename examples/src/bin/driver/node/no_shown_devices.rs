//! Stands in for `shown_devices` in a program that was built without the feature: no devices are published.

use dra_live::plugin::{PluginError, Pool};

/// Devices that the driver publishes: none.
#[derive(Debug)]
pub(super) enum ShownDevices {}

impl ShownDevices {
    /// Returns the pools as they are now.
    pub(super) const fn pools(&self) -> Result<Vec<Pool>, PluginError> {
        match *self {}
    }
}
