//! Taints of nodes that keep pods away, and tolerations of pods.
//!
//! Source: `component-helpers/scheduling/corev1`, Kubernetes 1.37; KEP-5471 for `Lt` and `Gt`.

use k8s_openapi::api::core::v1::{Taint, Toleration};

/// Effects of taints that keep new pods away. `PreferNoSchedule` is a wish.
const BLOCKING: [&str; 2] = ["NoSchedule", "NoExecute"];

/// Operators of tolerations that a component knows. An operator that it does not know tolerates nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TolerationOperators {
    /// `Equal` and `Exists`: the feature gate `TaintTolerationComparisonOperators` is off, its default since 1.35.
    #[default]
    Equality,
    /// `Lt` and `Gt`, too: the gate is on. The value of the taint is less, or more, than that of the toleration; both are
    /// whole numbers of 64 bits without leading zeros or a plus sign.
    Comparison,
}

/// Returns the first of some taints that keeps a pod with these tolerations away from their node.
///
/// An empty key or effect of a toleration stands for every key or effect.
///
/// # Complexity
/// Linear in the number of taints, times that of tolerations.
///
/// ```
/// use dra_attrs::{TolerationOperators, first_untolerated_taint};
/// use k8s_openapi::api::core::v1::{Taint, Toleration};
/// let taint = |value: &str| Taint {
///     key: "example.com/sla".into(), value: Some(value.into()), effect: "NoSchedule".into(), ..Taint::default()
/// };
/// let above: Toleration = serde_json::from_str(r#"{"key": "example.com/sla", "operator": "Gt", "value": "950"}"#)?;
/// let (taints, tolerations) = ([taint("990"), taint("900")], [above]);
/// let first = |operators| first_untolerated_taint(&taints, &tolerations, operators).and_then(|taint| taint.value.as_deref());
/// assert_eq!(first(TolerationOperators::Comparison), Some("900"));
/// assert_eq!(first(TolerationOperators::Equality), Some("990"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn first_untolerated_taint<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    operators: TolerationOperators,
) -> Option<&'a Taint> {
    let is_blocking = |taint: &&Taint| BLOCKING.contains(&taint.effect.as_str());
    let is_tolerated = |taint: &Taint| tolerations.iter().any(|toleration| tolerates(toleration, taint, operators));
    taints.iter().filter(is_blocking).find(|taint| !is_tolerated(taint))
}

fn tolerates(toleration: &Toleration, taint: &Taint, operators: TolerationOperators) -> bool {
    let covers =
        |wanted: &Option<String>, actual: &str| wanted.as_deref().is_none_or(|text| text.is_empty() || text == actual);
    let own = toleration.value.as_deref().unwrap_or_default();
    let of_taint = taint.value.as_deref().unwrap_or_default();
    let compares = operators == TolerationOperators::Comparison;
    let value_fits = match toleration.operator.as_deref().unwrap_or_default() {
        "Exists" => true,
        "" | "Equal" => own == of_taint,
        "Lt" if compares => numbers(of_taint, own).is_some_and(|(of_taint, own)| of_taint < own),
        "Gt" if compares => numbers(of_taint, own).is_some_and(|(of_taint, own)| of_taint > own),
        _ => false,
    };
    covers(&toleration.effect, &taint.effect) && covers(&toleration.key, &taint.key) && value_fits
}

fn numbers(one: &str, other: &str) -> Option<(i64, i64)> {
    Some((number(one)?, number(other)?))
}

/// Reads a whole number in the one form that it has: `7`, not `+7` or `07`.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}
