//! Which texts are names, as the API server sees it.

use dra_attrs::dns::{is_subdomain, subdomain_problems};
use dra_attrs::field::{FieldError, FieldPath};

/// The longest pool name, in bytes.
const MAX_POOL_NAME_LEN: usize = 253;

const CASELESS: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end \
                        with an alphanumeric character (e.g. 'example.com')";
const POOL_NAME: &str =
    "a resource pool name must consist of one or more lowercase RFC 1123 subdomains separated by '/'";

/// What is wrong with the name of an object or node.
pub(crate) fn check_subdomain(field: &FieldPath<'_>, name: &str) -> Option<FieldError> {
    subdomain_problems(name).into_iter().next().map(|problem| FieldError::invalid(field, name, problem))
}

/// What is wrong with the name of a driver.
pub(crate) fn check_driver(field: &FieldPath<'_>, name: &str) -> Option<FieldError> {
    if name.is_empty() {
        return Some(FieldError::required(field, ""));
    }
    (!is_subdomain(&name.to_ascii_lowercase())).then(|| FieldError::invalid(field, name, CASELESS))
}

/// What is wrong with the name of a pool.
pub(crate) fn check_pool(field: &FieldPath<'_>, name: &str) -> Option<FieldError> {
    if name.len() > MAX_POOL_NAME_LEN {
        return Some(FieldError::too_long(field, MAX_POOL_NAME_LEN));
    }
    (!name.split('/').all(is_subdomain)).then(|| FieldError::invalid(field, name, POOL_NAME))
}
