//! Validation of quantities.

use dra_attrs::{FieldError, FieldPath, Quantity};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

use super::context::ValidationContext;

const FORM: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Parses a quantity; an empty text is zero. The API server rejects an invalid quantity when it decodes the object,
/// before validation.
pub(super) fn read(amount: &KubeQuantity, at: &FieldPath<'_>, context: &mut ValidationContext) -> Option<Quantity> {
    if amount.0.is_empty() {
        return Some(Quantity::ZERO);
    }
    let read = Quantity::from_kube(amount).ok();
    if read.is_none() {
        context.push(FieldError::invalid(at, &amount.0, FORM));
    }
    read
}

/// Parses a quantity that may be absent.
pub(super) fn read_optional(
    amount: Option<&KubeQuantity>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) -> Option<Quantity> {
    amount.and_then(|amount| read(amount, at, context))
}
