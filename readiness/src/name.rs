//! Names: condition types of gates, label keys and values, in the rules of Kubernetes (KEP-5233, API Validation and Labels
//! for Readiness Gates).

/// Prefix of the names that Kubernetes itself defines for its network (KEP-5233, Standardized Condition Patterns).
pub const NETWORK_PREFIX: &str = "network.kubernetes.io/";

/// The pod network is configured and works.
pub const CNI_READY: &str = "network.kubernetes.io/CNIReady";

/// The network proxy works.
pub const NETWORK_PROXY_READY: &str = "network.kubernetes.io/NetworkProxyReady";

/// Longest domain of a label key.
pub(crate) const MAX_DOMAIN: usize = 253;
/// Longest name of a label key, longest value of a label.
pub(crate) const MAX_NAME: usize = 63;

/// Whether a condition type belongs to Kubernetes: its domain is `kubernetes.io` or below it.
///
/// ```
/// use readiness::name::{CNI_READY, is_standard};
/// assert!(is_standard(CNI_READY) && is_standard("kubernetes.io/Anything"));
/// assert!(!is_standard("mykubernetes.io/Anything") && !is_standard("kubernetes.io"));
/// ```
#[must_use]
pub fn is_standard(condition_type: &str) -> bool {
    domain(condition_type).is_some_and(|domain| is_below(domain, "kubernetes.io"))
}

/// Whether a condition type is one of those that the KEP names.
#[must_use]
pub fn is_known(condition_type: &str) -> bool {
    [CNI_READY, NETWORK_PROXY_READY].contains(&condition_type)
}

/// What is before the slash.
pub(crate) fn domain(key: &str) -> Option<&str> {
    key.split_once('/').map(|(domain, _)| domain)
}

/// Whether a domain is another one or below it.
pub(crate) fn is_below(domain: &str, parent: &str) -> bool {
    domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// What is wrong with a name after the slash of a label key, in the API server's words.
pub(crate) fn name_problems(name: &str) -> impl Iterator<Item = &'static str> {
    const FORM: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                        alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let of_length = match name.len() {
        0 => Some("name part must be non-empty"),
        length => (length > MAX_NAME).then_some("name part must be no more than 63 bytes"),
    };
    of_length.into_iter().chain((!is_name(name)).then_some(FORM))
}

/// What is wrong with a domain, in the API server's words.
pub(crate) fn domain_problems(domain: &str) -> impl Iterator<Item = &'static str> {
    const FORM: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
                        or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                        validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let of_length = match domain.len() {
        0 => Some("prefix part must be non-empty"),
        length => (length > MAX_DOMAIN).then_some("prefix part must be no more than 253 bytes"),
    };
    let is_malformed = !domain.is_empty() && !domain.split('.').all(is_domain_label);
    of_length.into_iter().chain(is_malformed.then_some(FORM))
}

/// What is wrong with a label key: a name, or a domain, a slash and a name.
pub(crate) fn key_problems(key: &str) -> Vec<&'static str> {
    const FORM: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                        with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                        validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and \
                        '/' (e.g. 'example.com/MyName')";
    match key.split_once('/') {
        None => name_problems(key).collect(),
        Some((_, name)) if name.contains('/') => vec![FORM],
        Some((domain, name)) => domain_problems(domain).chain(name_problems(name)).collect(),
    }
}

/// What is wrong with the value of a label or taint.
pub(crate) fn value_problems(value: &str) -> impl Iterator<Item = &'static str> {
    const FORM: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                        must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                        regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let is_long = value.len() > MAX_NAME;
    let is_malformed = !value.is_empty() && !is_name(value);
    is_long.then_some("must be no more than 63 bytes").into_iter().chain(is_malformed.then_some(FORM))
}

/// Ends are letters or digits, `-`, `_` and `.` stand in between.
fn is_name(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(is_inner)
}

/// A part of a domain. The API server bounds the length of the whole only; a part that DNS can't have is left to it.
fn is_domain_label(label: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = label.as_bytes();
    let is_inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(is_inner)
}
