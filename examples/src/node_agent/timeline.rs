//! What happens to nodes, and when.

use readiness::gate::NodeReadinessGate;
use serde::Deserialize;

/// One thing or several that happen at an instant.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "the format of a file")]
pub struct Entry {
    /// Seconds from the beginning.
    pub at: i64,
    /// The node; every one if it is not named.
    pub node: Option<String>,
    /// kubelet's own condition.
    pub ready: Option<Said>,
    /// A condition of an agent.
    pub report: Option<Report>,
    /// Type of a condition that is deleted.
    pub delete: Option<String>,
    /// The node boots.
    pub reboot: bool,
    /// kubelet restarts.
    pub restart: bool,
    /// The list of gates is replaced.
    pub gates: Option<Vec<NodeReadinessGate>>,
    /// The evaluator's clock is set forward, or back, by so many seconds.
    pub clock: Option<i64>,
}

/// What a condition says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "the format of a file")]
pub struct Said {
    /// Its status.
    pub status: String,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
}

/// A condition and what it says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "the format of a file")]
pub struct Report {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// Its status.
    pub status: String,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
}

/// Reads a timeline: a YAML or JSON list of entries, sorted by time; entries of one instant keep their order.
///
/// ```
/// use examples::node_agent::timeline::read_timeline;
/// let timeline = read_timeline("- {at: 20, reboot: true}\n- {at: 10, clock: -5}\n").unwrap();
/// assert_eq!(timeline[0].clock, Some(-5));
/// ```
///
/// # Errors
/// Text that is none, or an unknown field, with its place.
pub fn read_timeline(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}
