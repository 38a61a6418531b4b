//! Simulated hardware: a directory with a file for each device that is set up, which names the claim. It survives the driver, and
//! a boot begins with an empty one.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dra_alloc::driver::{CdiEdits, DeviceConfig, DeviceHealth, HealthStatus, HeldDevice};
use dra_attrs::Quantity;
use dra_live::plugin::{Plugin, PluginError, Pool};
use dra_live::state_file::{StateFile, StateFileError};
use k8s_openapi::api::resource::v1::{Device, DeviceCounterConsumption};

use super::shown_devices::ShownDevices;

/// Devices of the node.
#[derive(Debug)]
pub(super) struct Hardware {
    folder: PathBuf,
    /// Devices that are published; none for a driver that only prepares claims.
    shown: Option<ShownDevices>,
}

impl Hardware {
    /// Creates the directory, and empties it if it is of an earlier boot.
    ///
    /// # Errors
    /// The directory, or the file next to it with the id of the boot, can't be read or written.
    pub(super) fn new(folder: PathBuf, boot_id: &str, shown: Option<ShownDevices>) -> Result<Self, StateFileError> {
        let hardware = Self { folder, shown };
        hardware.io(fs::create_dir_all(&hardware.folder))?;
        let boot = StateFile::new(hardware.folder.with_extension("boot"));
        let known = boot.read()?;
        if known.as_ref().is_some_and(|known| known != boot_id.as_bytes()) {
            hardware.empty()?;
        }
        if known.as_deref() != Some(boot_id.as_bytes()) {
            // Last, so that a run that was killed meanwhile is made up for.
            boot.write(boot_id)?;
        }
        Ok(hardware)
    }

    fn empty(&self) -> Result<(), StateFileError> {
        let mut entries = self.io(fs::read_dir(&self.folder))?;
        self.io(entries.try_for_each(|entry| fs::remove_file(entry?.path())))
    }

    fn io<T>(&self, outcome: io::Result<T>) -> Result<T, StateFileError> {
        outcome.map_err(|error| StateFileError::Io { path: self.folder.clone(), error })
    }

    fn path(&self, device: &HeldDevice) -> PathBuf {
        let share = device.share_id.as_deref().unwrap_or("whole");
        self.folder.join(format!("{}+{}+{share}", device.pool.replace('/', "+"), device.device))
    }
}

impl Plugin for Hardware {
    fn pools(&self) -> Result<Vec<Pool>, PluginError> {
        self.shown.as_ref().map_or_else(|| Ok(Vec::new()), ShownDevices::pools)
    }

    /// A device that is set up for another claim is an error: it would be prepared twice.
    fn set_up(&self, device: &HeldDevice, claim_uid: &str, _: &[DeviceConfig<'_>]) -> Result<(), PluginError> {
        if device.admin_access {
            return Ok(());
        }
        let path = self.path(device);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => Ok(file.write_all(claim_uid.as_bytes())?),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let holder = holder(&path)?.unwrap_or_default();
                Err(format!("{} is set up for {holder:?} already", path.display()).into())
            }
            Err(error) => Err(format!("{}: {error}", path.display()).into()),
        }
    }

    fn take_down(&self, device: &HeldDevice, claim_uid: &str) -> Result<(), PluginError> {
        let path = self.path(device);
        if device.admin_access {
            return Ok(());
        }
        match holder(&path)? {
            None => Ok(()),
            // Set-up that was interrupted has not written its name.
            Some(holder) if claim_uid.starts_with(&holder) => Ok(fs::remove_file(&path)?),
            Some(holder) => Err(format!("{} is set up for {holder:?}", path.display()).into()),
        }
    }

    fn reset(&self) -> Result<(), PluginError> {
        Ok(self.empty()?)
    }

    /// An environment variable.
    fn edits(&self, device: &HeldDevice, _: &str) -> CdiEdits {
        let name = device.device.replace(['-', '.'], "_").to_uppercase();
        let mut edits = CdiEdits::default();
        edits.env = vec![format!("DRA_DEVICE_{name}={}", device.pool)];
        edits
    }

    /// Devices overlap if a counter set has not enough for both.
    fn overlaps(&self, one: &HeldDevice, other: &HeldDevice) -> bool {
        let pools = self.pools().unwrap_or_default();
        let Some(pool) = pools.iter().find(|pool| pool.name == one.pool && pool.name == other.pool) else {
            return false;
        };
        let find = |held: &HeldDevice| pool.devices.iter().find(|device| device.name == held.device);
        let (Some(one), Some(other)) = (find(one), find(other)) else { return false };
        consumed(one).any(|uses| consumed(other).any(|more| exceeds(pool, uses, more)))
    }

    /// A device that is set up works, also if no pool has it; one with a taint does not.
    fn health(&self) -> Vec<DeviceHealth> {
        let of = |pool: &str, device: &str, health| DeviceHealth {
            pool: pool.to_owned(),
            device: device.to_owned(),
            health,
            ..DeviceHealth::default()
        };
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let set_up = names.filter_map(|name| {
            let (place, _) = name.rsplit_once('+')?;
            let (pool, device) = place.rsplit_once('+')?;
            self.shown.is_none().then(|| of(&pool.replace('+', "/"), device, HealthStatus::Healthy))
        });
        let pools = self.pools().unwrap_or_default();
        let all = pools.iter().flat_map(|pool| pool.devices.iter().map(move |device| (pool, device)));
        let tainted = all.filter(|(_, device)| device.taints.as_ref().is_some_and(|taints| !taints.is_empty()));
        set_up.chain(tainted.map(|(pool, device)| of(&pool.name, &device.name, HealthStatus::Unhealthy))).collect()
    }
}

fn consumed(device: &Device) -> impl Iterator<Item = &DeviceCounterConsumption> {
    device.consumes_counters.iter().flatten()
}

/// Returns true if two devices together need more of a counter than its set has.
fn exceeds(pool: &Pool, one: &DeviceCounterConsumption, other: &DeviceCounterConsumption) -> bool {
    let sets = pool.counter_sets.iter().filter(|set| set.name == one.counter_set && set.name == other.counter_set);
    sets.flat_map(|set| &set.counters).any(|(name, counter)| {
        let part = |consumption: &DeviceCounterConsumption| {
            let counter = consumption.counters.get(name);
            counter.and_then(|counter| Quantity::from_kube(&counter.value).ok()).unwrap_or_default()
        };
        let has = Quantity::from_kube(&counter.value).unwrap_or_default();
        part(one).checked_add(part(other)).is_none_or(|both| both > has)
    })
}

/// Returns the claim that a device is set up for.
fn holder(path: &Path) -> Result<Option<String>, StateFileError> {
    let bytes = StateFile::new(path.to_owned()).read()?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
