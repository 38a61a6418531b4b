//! Tests of the public API, one module per concept.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod claim_amounts;
mod dns;
mod dropped_field;
mod field;
mod format;
mod gates;
mod label;
mod laws;
mod matching;
mod names;
mod node_selector;
mod numa;
mod numa_sysfs;
mod pci;
mod positions;
mod quantity;
mod resources;
mod semver;
mod time_range;
mod traits;
mod values;
mod vendor;

use std::hash::{DefaultHasher, Hash, Hasher};

use k8s_openapi::api::resource::v1::DeviceAttribute;

fn int(value: i64) -> DeviceAttribute {
    DeviceAttribute { int: Some(value), ..DeviceAttribute::default() }
}

fn ints(values: &[i64]) -> DeviceAttribute {
    DeviceAttribute { ints: Some(values.to_vec()), ..DeviceAttribute::default() }
}

fn string(value: &str) -> DeviceAttribute {
    DeviceAttribute { string: Some(value.to_owned()), ..DeviceAttribute::default() }
}

fn version(value: &str) -> DeviceAttribute {
    DeviceAttribute { version: Some(value.to_owned()), ..DeviceAttribute::default() }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
