//! A gate that rejects: what is stored may stay, what is new may not (KEP-5945).

use std::collections::BTreeMap;

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim, ResourceSlice};

use super::findings::Findings;
use super::skip_operations::FIELD;
use crate::allocated::of_claim;
use crate::skip::SkipSet;

/// Checks that a slice does not newly skip node operations.
pub(super) fn check_slice(new: &ResourceSlice, old: Option<&ResourceSlice>, gate: &str, findings: &mut Findings) {
    let old = old.and_then(|old| old.spec.skip_node_operations.as_deref());
    let spec = FieldPath::new("spec");
    check(new.spec.skip_node_operations.as_deref(), &[old], gate, &spec.child(FIELD), findings);
}

/// Checks that no result of an allocation newly skips node operations. Results are the same if they are for the same
/// request, device and share, wherever they stand; nothing forbids that several are.
pub(super) fn check_claim(new: &ResourceClaim, old: &ResourceClaim, gate: &str, findings: &mut Findings) {
    let mut stored: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for result in of_claim(old) {
        stored.entry(identity(result)).or_default().push(result.skip_node_operations.as_deref());
    }
    let status = FieldPath::new("status");
    let allocation = status.child("allocation");
    let devices = allocation.child("devices");
    let at_results = devices.child("results");
    for (index, result) in of_claim(new).iter().enumerate() {
        let old = stored.get(&identity(result)).map(Vec::as_slice).unwrap_or_default();
        let at = at_results.index(index);
        check(result.skip_node_operations.as_deref(), old, gate, &at.child(FIELD), findings);
    }
}

fn check(new: Option<&[String]>, old: &[Option<&[String]>], gate: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    let set = |names: Option<&[String]>| names.map_or(SkipSet::NONE, SkipSet::listed);
    let wanted = set(new);
    if !wanted.is_empty() && !old.iter().any(|old| set(*old) == wanted) {
        let detail = format!("must not be set while the feature gate {gate} is disabled");
        findings.push(FieldError::forbidden(at, detail));
    }
}

fn identity(result: &DeviceRequestAllocationResult) -> (&str, &str, &str, &str, Option<&str>) {
    (&result.request, &result.driver, &result.pool, &result.device, result.share_id.as_deref())
}
