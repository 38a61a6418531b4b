//! Text formats that Kubernetes declares on its types (`+k8s:format=`), with the messages of the generated checks.
//!
//! Kubernetes also has hand-written rules for some of these texts, with other messages and other limits: a driver's
//! name has at most 63 bytes in a `ResourceSlice`, and 253 in a `ResourcePoolStatusRequest`.
//!
//! Source: `k8s.io/apimachinery/pkg/api/validate`, 1.37.

use crate::dns::{caseless_subdomain_problems, declared_label_problems, declared_subdomain_problems};
use crate::field::{FieldError, FieldErrors, FieldPath, Quoted};
use crate::label::key_problems;
use crate::name::{MAX_DOMAIN_LEN, MAX_ID_LEN, is_identifier};

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

/// Checks the format `k8s-short-name`: a DNS label, such as the name of a counter set.
///
/// ```
/// use dra_attrs::format::short_name;
/// use dra_attrs::FieldPath;
/// let at = FieldPath::new("name");
/// assert!(short_name("gpu-0", &at).is_empty());
/// assert_eq!(short_name("gpu.0", &at).to_string(), "name: Invalid value: \"gpu.0\": must not contain dots");
/// ```
#[must_use]
pub fn short_name(text: &str, at: &FieldPath<'_>) -> FieldErrors {
    invalid(text, declared_label_problems(text), at)
}

/// Checks the format `k8s-uuid`: a UUID in lower case, such as the ID of a share.
///
/// ```
/// use dra_attrs::format::uuid;
/// use dra_attrs::FieldPath;
/// let at = FieldPath::new("shareID");
/// assert!(uuid("12345678-90ab-cdef-1234-567890abcdef", &at).is_empty());
/// assert!(uuid("12345678-90AB-cdef-1234-567890abcdef", &at).to_string().ends_with("8-4-4-4-12 format"));
/// ```
#[must_use]
pub fn uuid(text: &str, at: &FieldPath<'_>) -> FieldErrors {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let is_digit = |c: u8| c.is_ascii_digit() || matches!(c, b'a'..=b'f');
    let fits = text.split('-').map(str::len).eq(GROUPS) && text.split('-').all(|group| group.bytes().all(is_digit));
    invalid(text, (!fits).then(|| "must be a lowercase UUID in 8-4-4-4-12 format".to_owned()), at)
}

/// Checks the format `k8s-extended-resource-name`: the key of a label with a domain other than `kubernetes.io`, short
/// enough to stand after `requests.` in a quota.
///
/// ```
/// use dra_attrs::format::extended_resource_name;
/// use dra_attrs::FieldPath;
/// let at = FieldPath::new("extendedResourceName");
/// assert!(extended_resource_name("example.com/gpu", &at).is_empty());
/// assert_eq!(
///     extended_resource_name("gpu", &at).to_string(),
///     "extendedResourceName: Invalid value: \"gpu\": a name must be a domain-prefixed path, such as 'example.com/my-prop'"
/// );
/// ```
#[must_use]
pub fn extended_resource_name(text: &str, at: &FieldPath<'_>) -> FieldErrors {
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
    invalid(text, problems, at)
}

/// Checks the format `k8s-long-name`: a DNS subdomain, such as the name of a node.
///
/// ```
/// use dra_attrs::format::long_name;
/// use dra_attrs::FieldPath;
/// let at = FieldPath::new("nodeName");
/// assert!(long_name("node-1", &at).is_empty());
/// assert!(long_name("Node", &at).to_string().starts_with("nodeName: Invalid value: \"Node\": a lowercase RFC 1123"));
/// ```
#[must_use]
pub fn long_name(text: &str, at: &FieldPath<'_>) -> FieldErrors {
    invalid(text, declared_subdomain_problems(text), at)
}

/// Checks the format `k8s-long-name-caseless`: a DNS subdomain that may have upper case, such as the name of a driver.
///
/// ```
/// use dra_attrs::format::long_name_caseless;
/// use dra_attrs::FieldPath;
/// let at = FieldPath::new("driver");
/// assert!(long_name_caseless("GPU.example.com", &at).is_empty());
/// assert!(long_name_caseless("a_b", &at).to_string().starts_with("driver: Invalid value: \"a_b\": an RFC 1123"));
/// ```
#[must_use]
pub fn long_name_caseless(text: &str, at: &FieldPath<'_>) -> FieldErrors {
    invalid(text, caseless_subdomain_problems(text), at)
}

/// Checks the format `k8s-resource-pool-name`: DNS subdomains joined by slashes. Each invalid segment is an error of
/// its own.
///
/// ```
/// use dra_attrs::format::resource_pool_name;
/// use dra_attrs::FieldPath;
/// let at = FieldPath::new("poolName");
/// assert!(resource_pool_name("rack-1/node-1", &at).is_empty());
/// let errors = resource_pool_name("rack-1//node-1", &at).to_string();
/// assert_eq!(errors, "poolName: Invalid value: \"rack-1//node-1\": segment 1: must not be empty");
/// ```
#[must_use]
pub fn resource_pool_name(text: &str, at: &FieldPath<'_>) -> FieldErrors {
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
///
/// ```
/// use dra_attrs::format::resource_fully_qualified_name;
/// use dra_attrs::FieldPath;
/// let at = FieldPath::new("attribute");
/// assert!(resource_fully_qualified_name("gpu.example.com/profile", &at).is_empty());
/// assert_eq!(
///     resource_fully_qualified_name("profile", &at).to_string(),
///     "attribute: Invalid value: \"profile\": a fully qualified name must be a domain and a name separated by a slash"
/// );
/// ```
#[must_use]
pub fn resource_fully_qualified_name(text: &str, at: &FieldPath<'_>) -> FieldErrors {
    let parts: Vec<&str> = text.split('/').collect();
    match parts.as_slice() {
        [id] => identifier(id, at).into_iter().chain([FieldError::invalid(at, text, NOT_FULLY_QUALIFIED)]).collect(),
        [domain, id] => prefix(domain, at).into_iter().chain(after_prefix(id, at)).collect(),
        _ => FieldErrors::new(),
    }
}

/// Checks the id of an attribute or a capacity: a C identifier of at most [`MAX_ID_LEN`] bytes.
///
/// ```
/// use dra_attrs::format::identifier;
/// use dra_attrs::FieldPath;
/// let at = FieldPath::new("id");
/// assert!(identifier("numaNode", &at).is_empty());
/// assert_eq!(identifier(&"i".repeat(33), &at).to_string(), "id: Too long: may not be more than 32 bytes");
/// ```
#[must_use]
pub fn identifier(text: &str, at: &FieldPath<'_>) -> FieldErrors {
    let mut errors = too_long(text, MAX_ID_LEN, at);
    if !is_identifier(text) {
        errors.push(FieldError::invalid(at, text, C_IDENTIFIER));
    }
    errors
}

fn prefix(domain: &str, at: &FieldPath<'_>) -> FieldErrors {
    if domain.is_empty() {
        return invalid("", ["prefix must not be empty".to_owned()], at);
    }
    let mut errors = too_long(domain, MAX_DOMAIN_LEN, at);
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

fn invalid(value: &str, problems: impl IntoIterator<Item = String>, at: &FieldPath<'_>) -> FieldErrors {
    problems.into_iter().map(|problem| FieldError::invalid(at, value, problem)).collect()
}
