//! Keys and values of labels, with the API server's messages.
//!
//! Source: `k8s.io/apimachinery/pkg/util/validation`, Kubernetes 1.37.

use crate::dns::declared_subdomain_problems;

/// Largest length of a label value, and of the name in a label key, in bytes.
const MAX_LEN: usize = 63;

const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
                     start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
                     for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                    character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// Returns the API server's messages for a text that is not a label key (`name` or `domain/name`); empty if it is one.
pub(crate) fn key_problems(key: &str) -> Vec<String> {
    match key.split_once('/') {
        None => name_problems(key),
        Some((_, name)) if name.contains('/') => {
            vec![format!(
                "a valid label key {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )]
        }
        Some((prefix, name)) => prefix_problems(prefix).into_iter().chain(name_problems(name)).collect(),
    }
}

/// Returns the API server's messages for an invalid prefix of a label key (the part before the slash); empty if it is
/// valid.
pub(crate) fn prefix_problems(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    declared_subdomain_problems(prefix).into_iter().map(|problem| format!("prefix part {problem}")).collect()
}

/// Returns the API server's messages for an invalid name in a label key (the part after the slash); empty if it is
/// valid.
pub(crate) fn name_problems(name: &str) -> Vec<String> {
    let of_length = match name.len() {
        0 => Some("name part must be non-empty".to_owned()),
        length => (length > MAX_LEN).then(|| format!("name part must be no more than {MAX_LEN} bytes")),
    };
    let of_form = (!is_name(name)).then(|| format!("name part {NAME}"));
    of_length.into_iter().chain(of_form).collect()
}

/// Returns the API server's messages for an invalid value of a label or taint; empty if it is valid.
pub(crate) fn value_problems(value: &str) -> Vec<String> {
    let of_length = (value.len() > MAX_LEN).then(|| format!("must be no more than {MAX_LEN} bytes"));
    let of_form = (!value.is_empty() && !is_name(value)).then(|| VALUE.to_owned());
    of_length.into_iter().chain(of_form).collect()
}

/// Returns true if the text has only letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit.
fn is_name(text: &str) -> bool {
    let is_inner = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    let is_end = |c: Option<u8>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    is_end(text.bytes().next()) && is_end(text.bytes().last()) && text.bytes().all(is_inner)
}
