//! Names that must be there.

use dra_attrs::field::{FieldError, FieldErrors, FieldPath};
use dra_attrs::format::{long_name_caseless, resource_pool_name};

/// What is wrong with the name of a driver.
pub(crate) fn check_driver(field: &FieldPath<'_>, name: &str) -> FieldErrors {
    check(field, name, long_name_caseless)
}

/// What is wrong with the name of a pool.
pub(crate) fn check_pool(field: &FieldPath<'_>, name: &str) -> FieldErrors {
    check(field, name, resource_pool_name)
}

fn check(field: &FieldPath<'_>, name: &str, format: impl Fn(&str, &FieldPath<'_>) -> FieldErrors) -> FieldErrors {
    if name.is_empty() { [FieldError::required(field, "")].into_iter().collect() } else { format(name, field) }
}
