//! Stand-in for hardware: a directory with a file for each device that is set up, which names the claim. It survives the
//! driver, and a boot begins with an empty one.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use dra_alloc::driver::HeldDevice;
use examples::durable::DurableFile;

/// Devices of the node.
#[derive(Clone, Debug)]
pub(super) struct Hardware(pub(super) PathBuf);

/// File with the id of the boot in which the devices were set up.
const BOOT: &str = ".boot";

impl Hardware {
    /// Takes the directory, which is created if it is missing and emptied if it is of an earlier boot.
    ///
    /// # Errors
    /// The directory can't be read or written.
    pub(super) fn of_boot(folder: PathBuf, boot_id: &str) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        let boot = DurableFile::new(folder.join(BOOT));
        let known = boot.read()?;
        if known.as_deref() != Some(boot_id.as_bytes()) {
            let is_earlier = known.is_some();
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                if is_earlier && !entry.file_name().to_string_lossy().starts_with(BOOT) {
                    fs::remove_file(entry.path())?;
                }
            }
            // Last, so that a run that was killed meanwhile is made up for.
            boot.write(boot_id)?;
        }
        Ok(Self(folder))
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
                let holder = fs::read_to_string(&path)?;
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
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            // Set-up that was interrupted has not written its name.
            Ok(holder) if claim_uid.starts_with(&holder) => fs::remove_file(&path),
            Ok(holder) => Err(io::Error::other(format!("{} is set up for {holder:?}", path.display()))),
        }
    }

    fn path(&self, device: &HeldDevice) -> PathBuf {
        let share = device.share_id.as_deref().unwrap_or("whole");
        self.0.join(format!("{}+{}+{share}", device.pool.replace('/', "+"), device.device))
    }
}
