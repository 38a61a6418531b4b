//! Files of a claim: the CDI spec of its devices, and the metadata of its requests with the specs that mount it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dra_node::driver::{
    CdiDevice, CdiSpec, DeviceMetadata, HeldDevice, Ledger, LedgerEntry, MetadataFile, MetadataOwner, MetadataRequest,
};
use k8s_openapi::api::resource::v1::Device;
use serde::Serialize;

use super::{MetadataSettings, PreparedClaims, PreparedClaimsError};
use crate::plugin::Plugin;
use crate::state_file::{StateFile, UNFINISHED};

impl<P: Plugin> PreparedClaims<P> {
    pub(super) fn cdi_file(&self, claim_uid: &str) -> StateFile {
        StateFile::new(self.settings.cdi.join(self.kind.file_name(claim_uid)))
    }

    /// Returns the qualified CDI names of each device of a claim, in order. The first device of a request has the one that
    /// mounts its metadata.
    pub(super) fn cdi_ids(&self, uid: &str, ledger: &Ledger) -> Result<Vec<Vec<String>>, PreparedClaimsError> {
        let Some(entry) = ledger.entries().get(uid) else { return Ok(Vec::new()) };
        let names = CdiDevice::names(uid, &entry.devices).into_iter();
        let mut ids: Vec<Vec<String>> =
            names.map(|name| Ok(vec![self.kind.device_id(&name)?])).collect::<Result<_, PreparedClaimsError>>()?;
        let mut mounted = BTreeSet::new();
        for (file, document) in self.documents(uid, entry)? {
            let requests: BTreeSet<&str> = document.requests.iter().map(|request| request.name.as_str()).collect();
            let mut devices = entry.devices.iter().zip(&mut ids);
            if let Some((_, ids)) = devices.find(|(held, _)| requests.contains(held.request.as_str()))
                && mounted.insert(file.cdi_id.clone())
            {
                ids.push(file.cdi_id);
            }
        }
        Ok(ids)
    }

    /// Writes the spec of a claim, unless the file has it. A file that was cut or zeroed is written anew like one that is
    /// missing.
    pub(super) fn ensure_cdi(&self, uid: &str, devices: &[HeldDevice]) -> Result<(), PreparedClaimsError> {
        let names = CdiDevice::names(uid, devices).into_iter().zip(devices);
        let devices = names.map(|(name, held)| CdiDevice::new(&name, self.plugin.edits(held, uid))).collect();
        ensure_json(&self.cdi_file(uid), &CdiSpec::new(&self.kind, devices)?)
    }

    /// Writes the metadata of a claim's requests, and the specs that mount it, unless the files have them.
    pub(super) fn ensure_metadata(&self, uid: &str, entry: &LedgerEntry) -> Result<(), PreparedClaimsError> {
        let Some(MetadataSettings { versions, .. }) = &self.settings.metadata else { return Ok(()) };
        let known: Vec<&str> = versions.iter().map(|version| version.api_version()).collect();
        for (file, document) in self.documents(uid, entry)? {
            let path = PathBuf::from(&file.host_path);
            let folder = path.parent().unwrap_or(&path);
            fs::create_dir_all(folder).map_err(|error| PreparedClaimsError::io(folder, error))?;
            let stored = StateFile::new(path.clone());
            let text = stored.read()?.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
            // A container may have a file that can be read: another one would not reach it.
            if DeviceMetadata::from_stream(&text, &known).is_err() {
                stored.write(&document.to_stream(versions))?;
            }
            ensure_json(&StateFile::new(PathBuf::from(&file.cdi_file)), &file.cdi_spec()?)?;
        }
        Ok(())
    }

    /// Removes the metadata of claims, and the specs that mount it, by their UIDs.
    pub(super) fn remove_metadata(&self, is_meant: &dyn Fn(&str) -> bool) -> Result<(), PreparedClaimsError> {
        let Some(MetadataSettings { plugin_dir, .. }) = &self.settings.metadata else { return Ok(()) };
        let of_file = |name: &str| MetadataFile::claim_of_cdi_file(&self.settings.driver, name).is_some_and(is_meant);
        for name in self.cdi_file_names()?.iter().filter(|name| of_file(name)) {
            StateFile::new(self.settings.cdi.join(name)).remove()?;
        }
        let folder = plugin_dir.join(MetadataFile::HOST_DIRECTORY);
        if !folder.exists() {
            return Ok(());
        }
        for name in names_in(&folder)?.iter().filter(|name| MetadataFile::claim_of_folder(name).is_some_and(is_meant)) {
            let path = folder.join(name);
            fs::remove_dir_all(&path).map_err(|error| PreparedClaimsError::io(&path, error))?;
        }
        Ok(())
    }

    /// Returns the metadata files of a claim with their documents; none if containers get none.
    fn documents(
        &self,
        uid: &str,
        entry: &LedgerEntry,
    ) -> Result<Vec<(MetadataFile, DeviceMetadata)>, PreparedClaimsError> {
        let Some(MetadataSettings { plugin_dir, .. }) = &self.settings.metadata else { return Ok(Vec::new()) };
        let pools = self.plugin.pools().unwrap_or_default();
        let published = |pool: &str, name: &str| -> Option<&Device> {
            let pool = pools.iter().find(|found| found.name == pool)?;
            pool.devices.iter().find(|device| device.name == name)
        };
        let mut requests = MetadataRequest::from_held(&self.settings.driver, &entry.devices);
        for device in requests.iter_mut().flat_map(|request| &mut request.devices) {
            let found = published(&device.pool, &device.name);
            device.attributes = found.and_then(|found| found.attributes.clone()).unwrap_or_default();
        }
        let owner = MetadataOwner {
            driver: &self.settings.driver,
            plugin_dir: &plugin_dir.display().to_string(),
            cdi_dir: &self.settings.cdi.display().to_string(),
            namespace: &entry.namespace,
            claim: &entry.name,
            uid,
            pod_claim_name: entry.pod_claim_name.as_deref(),
        };
        Ok(owner.documents(&requests)?)
    }

    pub(super) fn cdi_file_names(&self) -> Result<Vec<String>, PreparedClaimsError> {
        names_in(&self.settings.cdi)
    }

    /// Removes files of this driver that a crash has left half-written.
    pub(super) fn remove_unfinished(&self, names: &[String]) -> Result<(), PreparedClaimsError> {
        let is_ours = |name: &&String| {
            let written = name.strip_suffix(UNFINISHED);
            written.is_some_and(|name| {
                self.kind.claim_of_file(name).is_some()
                    || MetadataFile::claim_of_cdi_file(&self.settings.driver, name).is_some()
            })
        };
        for name in names.iter().filter(is_ours) {
            let path = self.settings.cdi.join(name);
            fs::remove_file(&path).map_err(|error| PreparedClaimsError::io(&path, error))?;
        }
        Ok(())
    }
}

fn names_in(folder: &Path) -> Result<Vec<String>, PreparedClaimsError> {
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let names = fs::read_dir(folder).and_then(|entries| entries.map(name).collect());
    names.map_err(|error| PreparedClaimsError::io(folder, error))
}

/// Writes an object, unless the file has it.
fn ensure_json(file: &StateFile, object: &impl Serialize) -> Result<(), PreparedClaimsError> {
    let text = serde_json::to_string_pretty(object)?;
    if file.read()?.as_deref() == Some(text.as_bytes()) { Ok(()) } else { Ok(file.write(&text)?) }
}
