//! DNS labels and subdomains (RFC 1123) by the rules of Kubernetes: names of objects, nodes, drivers and devices.
//!
//! The API server has each rule twice, in code and declared on types; the messages differ in the unit of the length.
//!
//! Source: `k8s.io/apimachinery/pkg/util/validation` and `pkg/api/validate/content`, 1.37.

/// Largest length of a label, in bytes.
pub(crate) const MAX_LABEL_LEN: usize = 63;

/// Largest length of a subdomain, in bytes.
pub(crate) const MAX_SUBDOMAIN_LEN: usize = 253;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                         '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used \
                         for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const CASELESS_SUBDOMAIN: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start \
                                  and end with an alphanumeric character (e.g. 'Example.com', regex used for validation \
                                  is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Returns the API server's messages for a text that is not a DNS label; empty if it is one.
pub(crate) fn label_problems(text: &str) -> Vec<String> {
    label_problems_in(text, "characters")
}

/// As [`label_problems`], with the messages of the declared rule.
pub(crate) fn declared_label_problems(text: &str) -> Vec<String> {
    label_problems_in(text, "bytes")
}

fn label_problems_in(text: &str, unit: &str) -> Vec<String> {
    let form = if has_labels(text) { "must not contain dots" } else { LABEL };
    problems(text, MAX_LABEL_LEN, unit, (!is_label(text)).then_some(form))
}

/// Returns the API server's messages for a text that is not a DNS subdomain (labels joined by dots); empty if it is
/// one.
pub(crate) fn subdomain_problems(text: &str) -> Vec<String> {
    problems(text, MAX_SUBDOMAIN_LEN, "characters", (!has_labels(text)).then_some(SUBDOMAIN))
}

/// As [`subdomain_problems`], with the messages of the declared rule.
pub(crate) fn declared_subdomain_problems(text: &str) -> Vec<String> {
    problems(text, MAX_SUBDOMAIN_LEN, "bytes", (!has_labels(text)).then_some(SUBDOMAIN))
}

/// Returns the API server's messages for a text that is not a DNS subdomain, with upper case allowed; empty if it is
/// one. This rule is only declared.
pub(crate) fn caseless_subdomain_problems(text: &str) -> Vec<String> {
    let is_well_formed = has_labels(&text.to_ascii_lowercase());
    problems(text, MAX_SUBDOMAIN_LEN, "bytes", (!is_well_formed).then_some(CASELESS_SUBDOMAIN))
}

/// Returns true if the text has the form of a DNS subdomain. Does not check its length.
pub(crate) fn has_labels(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Returns the message for a text that is too long, and that of its form.
fn problems(text: &str, max: usize, unit: &str, form: Option<&str>) -> Vec<String> {
    let long = (text.len() > max).then(|| format!("must be no more than {max} {unit}"));
    long.into_iter().chain(form.map(str::to_owned)).collect()
}
