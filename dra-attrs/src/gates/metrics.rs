//! Feature gates of a running component, as its metrics tell them.

use super::GateSet;
use crate::gate::Gate;
use crate::profile::Profile;

/// Name of the metric that has each gate of a component: 1 if the gate is on, 0 if it is off.
const METRIC: &str = "kubernetes_feature_enabled";

/// Reason why the metrics of a component do not tell its feature gates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateMetricsError {
    /// No line has the metric `kubernetes_feature_enabled`: the text is not that of a Kubernetes component.
    #[error("no metric {METRIC}")]
    Missing,
    /// A line of the metric has no name of a gate, or a value that is neither 0 nor 1.
    #[error("line {line}: not {METRIC}{{name=\"NAME\"}} with the value 0 or 1")]
    Malformed {
        /// Number of the line, from 1.
        line: usize,
    },
}

impl GateSet {
    /// Reads the gates of a running component from its metrics, the text that `/metrics` serves. A gate that the
    /// component does not list is off: it does not have the feature.
    ///
    /// # Errors
    /// The text has no line of the metric `kubernetes_feature_enabled`, or one that can't be read.
    ///
    /// # Complexity
    /// Linear in the length of the text.
    ///
    /// ```
    /// use dra_attrs::{Gate, GateSet, Profile};
    /// let metrics = r#"
    /// ## TYPE kubernetes_feature_enabled gauge
    /// kubernetes_feature_enabled{name="DRADeviceTaints",stage="BETA"} 0
    /// kubernetes_feature_enabled{name="DRAListTypeAttributes",stage="ALPHA"} 1
    /// "#;
    /// let gates = GateSet::from_metrics(metrics, Profile::V1_37)?;
    /// assert!(gates.has(Gate::ListTypeAttributes) && !gates.has(Gate::DeviceTaints));
    /// # Ok::<(), dra_attrs::GateMetricsError>(())
    /// ```
    pub fn from_metrics(text: &str, profile: Profile) -> Result<Self, GateMetricsError> {
        let (mut gates, mut found) = (Self::NONE, false);
        for (index, line) in text.lines().enumerate() {
            let Some(sample) = line.trim_start().strip_prefix(METRIC).filter(|rest| !continues_name(rest)) else {
                continue;
            };
            let malformed = GateMetricsError::Malformed { line: index.saturating_add(1) };
            let (name, is_on) = read(sample).ok_or(malformed)?;
            found = true;
            if let Some(gate) = Gate::ALL.iter().find(|gate| gate.name(profile) == name) {
                gates = gates.with_value(*gate, is_on);
            }
        }
        if found { Ok(gates) } else { Err(GateMetricsError::Missing) }
    }
}

/// Returns true if the metric's name goes on, and is that of another metric.
fn continues_name(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'))
}

/// Reads a sample after the metric's name: its labels, its value, and perhaps a timestamp.
fn read(sample: &str) -> Option<(&str, bool)> {
    let (labels, value) = sample.trim_start().strip_prefix('{')?.split_once('}')?;
    let mut labels = labels.split(',').filter_map(|label| label.split_once('='));
    let (_, quoted) = labels.find(|(label, _)| label.trim() == "name")?;
    let name = quoted.trim().strip_prefix('"')?.strip_suffix('"')?;
    match value.split_whitespace().next()? {
        "0" => Some((name, false)),
        "1" => Some((name, true)),
        _ => None,
    }
}
