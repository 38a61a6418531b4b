//! Devices that the driver publishes: those of a machine, or those of a file that a user may edit meanwhile.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use dra_live::plugin::{PluginError, Pool};
use examples::manifest::Manifests;
use k8s_openapi::api::resource::v1::ResourceSlice;

use crate::MachineArgs;
use crate::note;
use crate::survey::{Survey, SurveyError};

/// Reason that there are no devices to publish.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShownDevicesError {
    #[error(transparent)]
    Machine(#[from] SurveyError),
    #[error("{0}")]
    File(String),
}

/// Devices that the driver publishes.
#[derive(Debug)]
pub(super) enum ShownDevices {
    /// Devices of a machine, as they were at the start.
    Machine(Pool),
    /// Slices of a file.
    File(DeviceFile),
}

/// File with slices, and the pools that were read last.
#[derive(Debug)]
pub(super) struct DeviceFile {
    path: String,
    node: String,
    read: Mutex<Option<(Option<SystemTime>, Vec<Pool>)>>,
}

impl ShownDevices {
    /// Looks at a machine.
    ///
    /// # Errors
    /// It has no bus, or one that can't be read.
    pub(super) fn of_machine(machine: &MachineArgs, node: &str) -> Result<Self, ShownDevicesError> {
        let survey = Survey::of_machine(machine)?;
        survey.notes().for_each(|line| note(&line));
        Ok(Self::Machine(Pool { name: node.to_owned(), devices: survey.devices, ..Pool::default() }))
    }

    /// Reads a file for the first time.
    ///
    /// # Errors
    /// The file can't be read, or something in it.
    pub(super) fn of_file(path: &str, node: &str) -> Result<Self, ShownDevicesError> {
        let file = DeviceFile { path: path.to_owned(), node: node.to_owned(), read: Mutex::default() };
        file.pools().map_err(ShownDevicesError::File)?;
        Ok(Self::File(file))
    }

    /// Returns the pools as they are now.
    ///
    /// # Errors
    /// The file can't be read any more, or something in it.
    pub(super) fn pools(&self) -> Result<Vec<Pool>, PluginError> {
        match self {
            Self::Machine(pool) => Ok(vec![pool.clone()]),
            Self::File(file) => Ok(file.pools()?),
        }
    }
}

impl DeviceFile {
    /// Returns the pools of the file, which is read again when it has changed.
    fn pools(&self) -> Result<Vec<Pool>, String> {
        let changed_at = fs::metadata(&self.path).and_then(|found| found.modified()).ok();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        // What comes from stdin comes once.
        if let Some((_, pools)) = read.as_ref().filter(|(known, _)| *known == changed_at) {
            return Ok(pools.clone());
        }
        let mut manifests = Manifests::default();
        manifests.read_argument(&self.path);
        manifests.notes.iter().for_each(note);
        manifests.ignored_lines("driver", &["ResourceSlice"]).iter().for_each(note);
        if let Some(problem) = manifests.problems.first() {
            return Err(problem.to_string());
        }
        let pools = pools_of(manifests.slices, &self.node);
        *read = Some((changed_at, pools.clone()));
        Ok(pools)
    }
}

/// Returns the pools of slices. A pool with the name of its node gets the name of the driver's node; another one has it
/// before its own: `node-1/nics`.
fn pools_of(slices: Vec<ResourceSlice>, node: &str) -> Vec<Pool> {
    let mut pools: Vec<Pool> = vec![Pool { name: node.to_owned(), ..Pool::default() }];
    for slice in slices {
        let spec = slice.spec;
        let name = match &spec.node_name {
            Some(other) if *other != spec.pool.name => format!("{node}/{}", spec.pool.name),
            _ => node.to_owned(),
        };
        let index = pools.iter().position(|pool| pool.name == name).unwrap_or_else(|| {
            pools.push(Pool { name, ..Pool::default() });
            pools.len().saturating_sub(1)
        });
        let Some(pool) = pools.get_mut(index) else { continue };
        pool.devices.extend(spec.devices.unwrap_or_default());
        pool.counter_sets.extend(spec.shared_counters.unwrap_or_default());
        pool.partition_type_attribute = pool.partition_type_attribute.take().or(spec.partition_type_attribute);
        pool.skip_node_operations = pool.skip_node_operations.take().or(spec.skip_node_operations);
    }
    pools
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::{from_value, json};

    use super::pools_of;

    #[test]
    fn pools_keep_apart() {
        let slice = |pool: &str, device: &str| {
            from_value(json!({"metadata": {"name": device}, "spec": {"driver": "d", "nodeName": "file",
                "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": device}]}}))
            .unwrap()
        };
        let pools = pools_of(vec![slice("file", "gpu-0"), slice("nics", "nic-0"), slice("file", "gpu-1")], "node-1");
        let shown: Vec<(&str, Vec<&str>)> = pools
            .iter()
            .map(|pool| (pool.name.as_str(), pool.devices.iter().map(|device| device.name.as_str()).collect()))
            .collect();
        assert_eq!(shown, [("node-1", vec!["gpu-0", "gpu-1"]), ("node-1/nics", vec!["nic-0"])]);
    }
}
