//! Validation of quantities.

use dra_attrs::{FieldError, FieldPath, Quantity, QuantityError, QuantityFormat};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

use super::context::ValidationContext;

pub(super) const FORM: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Parses a quantity. The API server rejects an invalid quantity when it decodes the object, before validation. A
/// quantity beyond the range of [`Quantity`] is valid, and counts as the end of the range.
pub(super) fn read(amount: &KubeQuantity, at: &FieldPath<'_>, context: &mut ValidationContext) -> Option<Quantity> {
    match Quantity::from_kube(amount) {
        Ok(quantity) => Some(quantity),
        Err(QuantityError::OutOfRange { text }) => {
            let end = if text.starts_with('-') { i128::MIN } else { i128::MAX };
            Some(Quantity::from_nanos(end, QuantityFormat::DecimalExponent))
        }
        Err(_) => {
            context.push(FieldError::invalid(at, &amount.0, FORM));
            None
        }
    }
}

/// Parses a quantity that may be absent.
pub(super) fn read_optional(
    amount: Option<&KubeQuantity>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) -> Option<Quantity> {
    amount.and_then(|amount| read(amount, at, context))
}
