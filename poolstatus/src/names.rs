//! Validation of required driver and pool names.

use dra_attrs::format::{long_name_caseless, resource_pool_name};
use dra_attrs::{FieldError, FieldErrors, FieldPath};

/// Validates the required name of a driver.
pub(crate) fn check_driver(field: &FieldPath<'_>, name: &str) -> FieldErrors {
    check(field, name, long_name_caseless)
}

/// Validates the required name of a pool.
pub(crate) fn check_pool(field: &FieldPath<'_>, name: &str) -> FieldErrors {
    check(field, name, resource_pool_name)
}

fn check(field: &FieldPath<'_>, name: &str, format: impl Fn(&str, &FieldPath<'_>) -> FieldErrors) -> FieldErrors {
    if name.is_empty() { [FieldError::required(field, "")].into_iter().collect() } else { format(name, field) }
}
