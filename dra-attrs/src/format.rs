//! Text formats that Kubernetes declares on its types (`+k8s:format=`), with the messages of the generated checks.
//!
//! Kubernetes also has hand-written rules for some of these texts, with other messages and other limits: a driver's
//! name has at most 63 bytes in a `ResourceSlice`, and 253 in a `ResourcePoolStatusRequest`.
//!
//! Source: `k8s.io/apimachinery/pkg/api/validate`, 1.37.

use crate::dns::declared_subdomain_problems;
use crate::field::{FieldError, FieldErrors, FieldPath, Quoted};
use crate::label::key_problems;
use crate::name::{QualifiedName, is_identifier};

/// Largest length of a pool's name, in bytes.
const MAX_POOL_NAME_LEN: usize = 253;

const C_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
                            alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for \
                            validation is '[A-Za-z_][A-Za-z0-9_]*')";
/// Part of the names of resources that are not extended.
const NATIVE_DOMAIN: &str = "kubernetes.io/";
/// Prefix of an extended resource in a quota.
const QUOTA_PREFIX: &str = "requests.";
const NOT_FULLY_QUALIFIED: &str = "a fully qualified name must be a domain and a name separated by a slash";

/// Returns the messages for a text that is not of the format `k8s-uuid`.
pub(crate) fn uuid_problems(text: &str) -> Vec<String> {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let is_digit = |c: u8| c.is_ascii_digit() || matches!(c, b'a'..=b'f');
    let fits = text.split('-').map(str::len).eq(GROUPS) && text.split('-').all(|group| group.bytes().all(is_digit));
    if fits { Vec::new() } else { vec!["must be a lowercase UUID in 8-4-4-4-12 format".to_owned()] }
}

/// Returns the messages for a text that is not of the format `k8s-extended-resource-name`: the key of a label with a
/// domain other than `kubernetes.io`, short enough to stand after `requests.` in a quota.
pub(crate) fn extended_resource_name_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if !text.contains('/') {
        problems.push("a name must be a domain-prefixed path, such as 'example.com/my-prop'".to_owned());
    } else if text.contains(NATIVE_DOMAIN) {
        problems.push(format!("must not have {} domain", Quoted(NATIVE_DOMAIN)));
    }
    if text.starts_with(QUOTA_PREFIX) {
        problems.push(format!("must not have {} prefix", Quoted(QUOTA_PREFIX)));
    }
    problems.extend(key_problems(&format!("{QUOTA_PREFIX}{text}")));
    problems
}

/// Checks the format `k8s-resource-pool-name`: DNS subdomains joined by slashes. Each invalid segment is an error of
/// its own.
pub(crate) fn resource_pool_name(text: &str, at: &FieldPath<'_>) -> FieldErrors {
    let mut errors = too_long(text, MAX_POOL_NAME_LEN, at);
    for (index, segment) in text.split('/').enumerate() {
        if segment.is_empty() {
            errors.push(FieldError::invalid(at, text, format!("segment {index}: must not be empty")));
        } else {
            let problems = declared_subdomain_problems(segment).into_iter();
            errors.extend(invalid(segment, problems.map(|problem| format!("segment {index}: {problem}")), at));
        }
    }
    errors
}

/// Checks the format `k8s-resource-fully-qualified-name`: the name of an attribute with its domain. As in Kubernetes, a
/// text with several slashes passes; [`crate::name::FullyQualifiedName`] rejects it.
pub(crate) fn resource_fully_qualified_name(text: &str, at: &FieldPath<'_>) -> FieldErrors {
    let parts: Vec<&str> = text.split('/').collect();
    match parts.as_slice() {
        [id] => identifier(id, at).into_iter().chain([FieldError::invalid(at, text, NOT_FULLY_QUALIFIED)]).collect(),
        [domain, id] => prefix(domain, at).into_iter().chain(after_prefix(id, at)).collect(),
        _ => FieldErrors::new(),
    }
}

/// Checks the id of an attribute or a capacity: a C identifier of at most [`QualifiedName::MAX_ID_LEN`] bytes.
pub(crate) fn identifier(text: &str, at: &FieldPath<'_>) -> FieldErrors {
    let mut errors = too_long(text, QualifiedName::MAX_ID_LEN, at);
    if !is_identifier(text) {
        errors.push(FieldError::invalid(at, text, C_IDENTIFIER));
    }
    errors
}

fn prefix(domain: &str, at: &FieldPath<'_>) -> FieldErrors {
    if domain.is_empty() {
        return invalid("", ["prefix must not be empty".to_owned()], at);
    }
    let mut errors = too_long(domain, QualifiedName::MAX_DOMAIN_LEN, at);
    let problems = declared_subdomain_problems(domain).into_iter();
    errors.extend(invalid(domain, problems.map(|problem| format!("prefix: {problem}")), at));
    errors
}

fn after_prefix(id: &str, at: &FieldPath<'_>) -> FieldErrors {
    if id.is_empty() { invalid("", ["name must not be empty".to_owned()], at) } else { identifier(id, at) }
}

fn too_long(text: &str, max: usize, at: &FieldPath<'_>) -> FieldErrors {
    (text.len() > max).then(|| FieldError::too_long(at, max)).into_iter().collect()
}

/// Makes an error of each problem of a value.
pub(crate) fn invalid(value: &str, problems: impl IntoIterator<Item = String>, at: &FieldPath<'_>) -> FieldErrors {
    problems.into_iter().map(|problem| FieldError::invalid(at, value, problem)).collect()
}
