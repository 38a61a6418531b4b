//! Part of a claim that is read where the rest can't be.

use serde_json::{Value, json};

/// Returns the part of a claim that holds devices: its identity, allocation and reservations. `None` if it has no
/// allocation. Where a claim can't be read for other fields, this part may be.
#[must_use]
pub fn allocation_part(claim: &Value) -> Option<Value> {
    let field = |path: &str| claim.pointer(path).cloned().unwrap_or_default();
    let allocation = claim.pointer("/status/allocation").filter(|allocation| !allocation.is_null())?;
    Some(json!({
        "metadata": {
            "namespace": field("/metadata/namespace"),
            "name": field("/metadata/name"),
            "uid": field("/metadata/uid"),
            "resourceVersion": field("/metadata/resourceVersion"),
        },
        "spec": {},
        "status": {"allocation": allocation, "reservedFor": field("/status/reservedFor")},
    }))
}
