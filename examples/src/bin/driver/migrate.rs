//! Migration of vendors' slices to the standard attribute `numaNode` (KEP-6072, Current Driver Attribute Names).

use dra_attrs::{VendorDriver, VendorMigration};
use examples::manifest::Manifests;
use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::Value;

/// Slices with the standard attribute, and a note for each device.
#[derive(Debug, Default)]
pub(crate) struct Migrated {
    pub(crate) slices: Vec<ResourceSlice>,
    pub(crate) notes: Vec<String>,
    /// Number of objects that could not be read; the notes say why.
    pub(crate) unread: usize,
}

/// Reads `DRIVER=VENDOR`.
pub(crate) fn vendor(text: &str) -> Result<(String, VendorDriver), String> {
    let (driver, vendor) = text.split_once('=').ok_or("not DRIVER=VENDOR")?;
    let vendor = serde_json::from_value(Value::String(vendor.to_owned())).map_err(|error| error.to_string())?;
    Ok((driver.to_owned(), vendor))
}

/// Adds the standard attribute to the devices of each slice whose driver's vendor is known.
pub(crate) fn migrate(files: &[String], vendors: &[(String, VendorDriver)]) -> Migrated {
    let mut manifests = Manifests::default();
    for file in files {
        manifests.read_argument(file);
    }
    let mut migrated = Migrated { unread: manifests.problems.len(), ..Migrated::default() };
    migrated.notes.extend(manifests.problems.iter().chain(&manifests.notes).map(ToString::to_string));
    migrated.notes.extend(manifests.ignored_lines("driver", &["ResourceSlice"]));
    for mut slice in manifests.slices {
        let driver = slice.spec.driver.clone();
        let Some((_, vendor)) = vendors.iter().find(|(name, _)| *name == driver) else {
            migrated.notes.push(format!("{driver}: no --vendor for this driver, left as it is"));
            migrated.slices.push(slice);
            continue;
        };
        for device in slice.spec.devices.iter_mut().flatten() {
            let attributes = device.attributes.get_or_insert_default();
            let note = text(VendorDriver::add_standard_numa_node(*vendor, &driver, attributes));
            migrated.notes.push(format!("{driver}/{}: {note}", device.name));
        }
        migrated.slices.push(slice);
    }
    migrated
}

fn text(migration: VendorMigration) -> String {
    match migration {
        VendorMigration::Added { from, node } => format!("numaNode {node}, from {from}"),
        VendorMigration::AlreadyStandard => "has numaNode".to_owned(),
        VendorMigration::NotANode { from, node: Some(node) } => format!("no numaNode: {from} is {node}"),
        VendorMigration::NotANode { from, .. } => format!("no numaNode: {from} is not a number"),
        _ => "no numaNode: none of the vendor's names".to_owned(),
    }
}
