//! Label keys, label values and label selectors, with the API server's messages.
//!
//! Source: `k8s.io/apimachinery/pkg/util/validation` and `pkg/apis/meta/v1`, Kubernetes 1.37.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::dns::declared_subdomain_problems;
use crate::index::Index;

/// Largest length of a label value, and of the name in a label key, in bytes.
pub const MAX_LEN: usize = 63;

const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
                     start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
                     for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                    character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// Returns the API server's messages for a text that is not a label key (`name` or `domain/name`); empty if it is one.
///
/// ```
/// use dra_attrs::label::key_problems;
/// assert!(key_problems("example.com/MyName").is_empty());
/// assert_eq!(key_problems("/MyName"), ["prefix part must be non-empty"]);
/// ```
#[must_use]
pub fn key_problems(key: &str) -> Vec<String> {
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
#[must_use]
pub fn prefix_problems(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    declared_subdomain_problems(prefix).into_iter().map(|problem| format!("prefix part {problem}")).collect()
}

/// Returns the API server's messages for an invalid name in a label key (the part after the slash); empty if it is
/// valid.
#[must_use]
pub fn name_problems(name: &str) -> Vec<String> {
    let of_length = match name.len() {
        0 => Some("name part must be non-empty".to_owned()),
        length => (length > MAX_LEN).then(|| format!("name part must be no more than {MAX_LEN} bytes")),
    };
    let of_form = (!is_name(name)).then(|| format!("name part {NAME}"));
    of_length.into_iter().chain(of_form).collect()
}

/// Returns the API server's messages for an invalid value of a label or taint; empty if it is valid.
///
/// ```
/// use dra_attrs::label::value_problems;
/// assert!(value_problems("").is_empty() && value_problems("a.b").is_empty());
/// assert_eq!(value_problems(&"a".repeat(64)), ["must be no more than 63 bytes"]);
/// ```
#[must_use]
pub fn value_problems(value: &str) -> Vec<String> {
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

/// Error of a label selector with an unknown operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("matchExpressions[{index}]: unknown operator {operator:?}")]
#[non_exhaustive]
pub struct LabelSelectorError {
    /// Position of the requirement in `matchExpressions`.
    pub index: Index<LabelSelectorRequirement>,
    /// The unknown operator.
    pub operator: String,
}

/// Returns true if a label selector matches a set of labels: every `matchLabels` entry and every requirement. The empty
/// selector matches everything.
///
/// # Errors
/// The first requirement with an unknown operator.
///
/// # Complexity
/// Linear in the number of requirements and their values, logarithmic in the number of labels.
///
/// ```
/// use dra_attrs::label::selector_matches;
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
/// let selector = LabelSelector {
///     match_labels: Some([("pool".to_owned(), "gpu".to_owned())].into()),
///     ..Default::default()
/// };
/// assert!(selector_matches(&selector, &[("pool".to_owned(), "gpu".to_owned())].into())?);
/// assert!(!selector_matches(&selector, &Default::default())?);
/// # Ok::<(), dra_attrs::label::LabelSelectorError>(())
/// ```
pub fn selector_matches(
    selector: &LabelSelector,
    labels: &BTreeMap<String, String>,
) -> Result<bool, LabelSelectorError> {
    let mut matches = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    for (index, requirement) in selector.match_expressions.iter().flatten().enumerate() {
        let holds = requirement_holds(requirement, labels.get(&requirement.key));
        matches &= holds
            .ok_or_else(|| LabelSelectorError { index: Index::from(index), operator: requirement.operator.clone() })?;
    }
    Ok(matches)
}

/// Returns true if a label's value, `None` if the label is missing, satisfies a requirement. Returns `None` for an
/// unknown operator.
fn requirement_holds(requirement: &LabelSelectorRequirement, value: Option<&String>) -> Option<bool> {
    let is_listed = || value.is_some_and(|value| requirement.values.iter().flatten().any(|listed| listed == value));
    match requirement.operator.as_str() {
        "In" => Some(is_listed()),
        "NotIn" => Some(!is_listed()),
        "Exists" => Some(value.is_some()),
        "DoesNotExist" => Some(value.is_none()),
        _ => None,
    }
}
