//! Validation of required driver and pool names.

use dra_attrs::{FieldError, FieldErrors, FieldPath, NameFormat};

/// Validates the required name of a driver.
pub(crate) fn check_driver(field: &FieldPath<'_>, name: &str) -> FieldErrors {
    check(field, name, NameFormat::LongNameCaseless)
}

/// Validates the required name of a pool.
pub(crate) fn check_pool(field: &FieldPath<'_>, name: &str) -> FieldErrors {
    check(field, name, NameFormat::PoolName)
}

fn check(field: &FieldPath<'_>, name: &str, format: NameFormat) -> FieldErrors {
    if name.is_empty() { [FieldError::required(field, "")].into_iter().collect() } else { format.check(name, field) }
}
