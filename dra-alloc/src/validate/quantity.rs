//! Amounts.

use dra_attrs::field::{FieldError, FieldPath};
use dra_attrs::quantity::Quantity;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

use super::findings::Findings;

const FORM: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Reads an amount; a missing one is zero. The API server refuses another text before it validates.
pub(super) fn read(amount: &KubeQuantity, at: &FieldPath<'_>, findings: &mut Findings) -> Option<Quantity> {
    if amount.0.is_empty() {
        return Some(Quantity::ZERO);
    }
    let read = Quantity::from_kube(amount).ok();
    if read.is_none() {
        findings.push(FieldError::invalid(at, &amount.0, FORM));
    }
    read
}

/// Reads an amount that may be absent.
pub(super) fn read_optional(
    amount: Option<&KubeQuantity>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) -> Option<Quantity> {
    amount.and_then(|amount| read(amount, at, findings))
}
