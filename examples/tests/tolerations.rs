//! Shared table of taints and tolerations, if it exists.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use dra_alloc::taint::tolerates;
use k8s_openapi::api::resource::v1::{DeviceTaint, DeviceToleration};
use serde_json::Value;

#[test]
fn shared_table() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/tolerations.json");
    let Ok(text) = fs::read(file) else {
        println!("skipped: no shared corpus beside the project");
        return;
    };
    let rows: Vec<Value> = serde_json::from_slice(&text).unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let toleration: DeviceToleration = serde_json::from_value(row["toleration"].clone()).unwrap();
        let taint: DeviceTaint = serde_json::from_value(row["taint"].clone()).unwrap();
        assert_eq!(Value::Bool(tolerates(&toleration, &taint)), row["actual"], "{row}");
    }
}
