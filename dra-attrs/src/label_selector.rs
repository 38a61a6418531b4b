//! Selectors of labels.
//!
//! Source: `k8s.io/apimachinery/pkg/apis/meta/v1`, Kubernetes 1.37.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::index::Index;

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
/// use dra_attrs::label_selector_matches;
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
/// let selector = LabelSelector {
///     match_labels: Some([("pool".to_owned(), "gpu".to_owned())].into()),
///     ..Default::default()
/// };
/// assert!(label_selector_matches(&selector, &[("pool".to_owned(), "gpu".to_owned())].into())?);
/// assert!(!label_selector_matches(&selector, &Default::default())?);
/// # Ok::<(), dra_attrs::LabelSelectorError>(())
/// ```
pub fn label_selector_matches(
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
