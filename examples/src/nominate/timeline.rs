//! Timeline of events in a cluster.

use nnn::FailedStage;
use serde::Deserialize;

/// Event at one instant.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Entry {
    /// Seconds since the start of the timeline.
    pub at: u64,
    /// Event at that time.
    #[serde(rename = "do")]
    pub event: Event,
}

/// Event in the cluster. Pods and nodes are named, and come from the manifests.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Event {
    /// A user creates a pod.
    Create(String),
    /// A pod is gone from the API server.
    Delete(String),
    /// A node joins the cluster.
    AddNode(String),
    /// Another component writes the pod's nomination.
    Nominate {
        /// Name of the pod.
        pod: String,
        /// Node of the nomination.
        node: String,
        /// Field manager of the component.
        by: String,
    },
    /// The scheduling gates of a pod are removed.
    Ungate(String),
    /// The `PreBind` plugins of a pod have done their work.
    Prebound(String),
    /// The binding cycle of a pod fails.
    FailBinding {
        /// Name of the pod.
        pod: String,
        /// Stage at which it fails.
        stage: FailedStage,
    },
    /// The scheduler restarts with these feature gates.
    Restart(String),
}

/// Reads a timeline: a YAML or JSON list of entries, sorted by time; entries of one instant keep their order.
///
/// # Errors
/// Text that is not YAML or JSON, or an unknown field, with its place.
pub fn read_timeline(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}
