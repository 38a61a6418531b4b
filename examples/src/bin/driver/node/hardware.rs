//! Stand-in for hardware: a directory with a file for each device that is set up, which names the claim. It survives the
//! driver, and a boot begins with an empty one.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dra_alloc::driver::HeldDevice;
use examples::state_file::{StateFile, StateFileError};

/// Devices of the node.
#[derive(Clone, Debug)]
pub(super) struct Hardware(pub(super) PathBuf);

impl Hardware {
    /// Empties the directory if it is of an earlier boot.
    ///
    /// # Errors
    /// The directory, or the file next to it with the id of the boot, can't be read or written.
    pub(super) fn begin_boot(&self, boot_id: &str) -> Result<(), StateFileError> {
        let boot = StateFile::new(self.0.with_extension("boot"));
        let known = boot.read()?;
        if known.as_ref().is_some_and(|known| known != boot_id.as_bytes()) {
            self.reset()?;
        }
        if known.as_deref() != Some(boot_id.as_bytes()) {
            // Last, so that a run that was killed meanwhile is made up for.
            boot.write(boot_id)?;
        }
        Ok(())
    }

    /// Resets all devices.
    ///
    /// # Errors
    /// The directory can't be read, or a file not removed.
    pub(super) fn reset(&self) -> Result<(), StateFileError> {
        let failed = |error| StateFileError::Io { path: self.0.clone(), error };
        let mut entries = fs::read_dir(&self.0).map_err(failed)?;
        entries.try_for_each(|entry| fs::remove_file(entry?.path())).map_err(failed)
    }

    /// Sets up a device for a claim. A device that is set up for another claim is an error: it would be prepared twice.
    ///
    /// # Errors
    /// The device is set up already, or its file can't be written.
    pub(super) fn set_up(&self, device: &HeldDevice, claim_uid: &str) -> io::Result<()> {
        if device.admin_access {
            return Ok(());
        }
        let path = self.path(device);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => file.write_all(claim_uid.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let holder = holder(&path)?.unwrap_or_default();
                Err(io::Error::other(format!("{} is set up for {holder:?} already", path.display())))
            }
            Err(error) => Err(error),
        }
    }

    /// Takes back the set-up of a device, of which some or all may be missing.
    ///
    /// # Errors
    /// The device is set up for another claim, or its file can't be removed.
    pub(super) fn undo(&self, device: &HeldDevice, claim_uid: &str) -> io::Result<()> {
        let path = self.path(device);
        if device.admin_access {
            return Ok(());
        }
        match holder(&path)? {
            None => Ok(()),
            // Set-up that was interrupted has not written its name.
            Some(holder) if claim_uid.starts_with(&holder) => fs::remove_file(&path),
            Some(holder) => Err(io::Error::other(format!("{} is set up for {holder:?}", path.display()))),
        }
    }

    fn path(&self, device: &HeldDevice) -> PathBuf {
        let share = device.share_id.as_deref().unwrap_or("whole");
        self.0.join(format!("{}+{}+{share}", device.pool.replace('/', "+"), device.device))
    }
}

/// Returns the claim that a device is set up for.
fn holder(path: &Path) -> io::Result<Option<String>> {
    let bytes = StateFile::new(path.to_owned()).read().map_err(io::Error::other)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
