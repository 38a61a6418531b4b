//! Which texts are names, as the API server sees it.

use dra_attrs::field::{FieldError, FieldPath};

/// The longest DNS subdomain, in bytes.
const MAX_SUBDOMAIN_LEN: usize = 253;

/// The longest pool name, in bytes.
const MAX_POOL_NAME_LEN: usize = 253;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                         and must start and end with an alphanumeric character (e.g. 'example.com')";
const CASELESS: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end \
                        with an alphanumeric character (e.g. 'example.com')";
const POOL_NAME: &str =
    "a resource pool name must consist of one or more lowercase RFC 1123 subdomains separated by '/'";

pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= MAX_SUBDOMAIN_LEN && text.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
}

/// What is wrong with the name of an object or node.
pub(crate) fn check_subdomain(field: &FieldPath<'_>, name: &str) -> Option<FieldError> {
    (!is_subdomain(name)).then(|| FieldError::invalid(field, name, SUBDOMAIN))
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
