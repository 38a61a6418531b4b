//! State of one node that the reconciler keeps from one step to the next.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::gate_state::GateState;
use super::readiness_counters::ReadinessCounters;
use super::stored_state_error::{STATE_VERSION, StoredStateError, check_version};
use super::ungated::Ungated;
use crate::taint::TaintId;

/// State of one node that the reconciler keeps between two steps. The default is the state before the first step.
///
/// The caller stores it where it survives a restart. The ownership of taints and labels is recorded nowhere else, and
/// neither is the boot ID of the last step: without a state, a boot can't be told from a start of the evaluator. The
/// first step after a boot then takes a condition that is still True from before for a fresh one, and opens the node
/// before its agents have reported again. Where a state may get lost with a boot,
/// [`Policy::max_heartbeat_age`](crate::Policy::max_heartbeat_age) bounds the age of such a report.
///
/// The JSON form is camelCase and begins with `"version": 1`; missing fields have their default. Another version is a
/// [`StoredStateError`], also through serde:
///
/// ```
/// use readiness::{NodeState, StoredStateError};
/// let state = NodeState::from_json(r#"{"version": 1, "bootId": "b1"}"#)?;
/// assert!(serde_json::to_string(&state)?.starts_with(r#"{"version":1,"uid":"","bootId":"b1","#));
/// let newer = NodeState::from_json(r#"{"version": 2}"#);
/// assert!(matches!(newer, Err(StoredStateError::UnknownVersion { known: 1, .. })));
/// # Ok::<(), StoredStateError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeState {
    /// UID of the node. Another UID discards the state.
    pub(crate) uid: String,
    /// Boot ID of the node at the last step.
    pub(crate) boot_id: String,
    /// kubelet process at the last step, as set by `GatedNodeView::with_kubelet_instance`.
    pub(crate) kubelet_instance: Option<String>,
    /// True if kubelet's condition Ready was True at the last step.
    pub(crate) ready: bool,
    /// True if the node was schedulable at the last step: Ready was True and no gate blocked pods.
    pub(crate) open: bool,
    /// State of each gate, by condition type.
    pub gates: BTreeMap<String, GateState>,
    /// Taints that the reconciler has to remove later.
    pub(crate) owned_taints: BTreeSet<TaintId>,
    /// Taints whose removal was requested, but which were still on the node at the last step.
    pub(crate) leaving_taints: BTreeSet<TaintId>,
    /// Keys of labels that the reconciler set, and removes when their gate is gone.
    pub(crate) owned_labels: BTreeSet<String>,
    /// Keys of labels whose removal was requested, but which were still on the node at the last step.
    pub(crate) leaving_labels: BTreeSet<String>,
    /// `TimeoutExceeded` conditions and taints on the node that belong to no gate.
    pub(crate) ungated: Ungated,
    /// Counts of gate events on this node, for metrics.
    pub counters: ReadinessCounters,
    /// True if at least one step was made with this state.
    pub(crate) is_warm: bool,
}

impl NodeState {
    /// Parses the JSON form of a stored node state.
    ///
    /// # Errors
    /// A version that this release does not read, a missing version, or malformed JSON.
    pub fn from_json(text: &str) -> Result<Self, StoredStateError> {
        Self::from_value(serde_json::from_str(text)?)
    }

    fn from_value(tree: Value) -> Result<Self, StoredStateError> {
        check_version(&tree)?;
        Ok(serde_json::from_value::<WireState<'_>>(tree)?.into())
    }
}

impl Serialize for NodeState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WireState::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for NodeState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// JSON form of [`NodeState`]. Borrows the fields when serialised, and owns them when deserialised.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireState<'s> {
    version: u32,
    uid: Cow<'s, str>,
    boot_id: Cow<'s, str>,
    kubelet_instance: Option<Cow<'s, str>>,
    ready: bool,
    open: bool,
    gates: Cow<'s, BTreeMap<String, GateState>>,
    owned_taints: Cow<'s, BTreeSet<TaintId>>,
    leaving_taints: Cow<'s, BTreeSet<TaintId>>,
    owned_labels: Cow<'s, BTreeSet<String>>,
    leaving_labels: Cow<'s, BTreeSet<String>>,
    #[serde(skip_serializing_if = "is_empty")]
    ungated: Cow<'s, Ungated>,
    counters: Cow<'s, ReadinessCounters>,
    is_warm: bool,
}

fn is_empty(ungated: &Ungated) -> bool {
    ungated.is_empty()
}

impl<'s> From<&'s NodeState> for WireState<'s> {
    fn from(state: &'s NodeState) -> Self {
        Self {
            version: STATE_VERSION,
            uid: Cow::Borrowed(&state.uid),
            boot_id: Cow::Borrowed(&state.boot_id),
            kubelet_instance: state.kubelet_instance.as_deref().map(Cow::Borrowed),
            ready: state.ready,
            open: state.open,
            gates: Cow::Borrowed(&state.gates),
            owned_taints: Cow::Borrowed(&state.owned_taints),
            leaving_taints: Cow::Borrowed(&state.leaving_taints),
            owned_labels: Cow::Borrowed(&state.owned_labels),
            leaving_labels: Cow::Borrowed(&state.leaving_labels),
            ungated: Cow::Borrowed(&state.ungated),
            counters: Cow::Borrowed(&state.counters),
            is_warm: state.is_warm,
        }
    }
}

impl From<WireState<'_>> for NodeState {
    fn from(wire: WireState<'_>) -> Self {
        Self {
            uid: wire.uid.into_owned(),
            boot_id: wire.boot_id.into_owned(),
            kubelet_instance: wire.kubelet_instance.map(Cow::into_owned),
            ready: wire.ready,
            open: wire.open,
            gates: wire.gates.into_owned(),
            owned_taints: wire.owned_taints.into_owned(),
            leaving_taints: wire.leaving_taints.into_owned(),
            owned_labels: wire.owned_labels.into_owned(),
            leaving_labels: wire.leaving_labels.into_owned(),
            ungated: wire.ungated.into_owned(),
            counters: wire.counters.into_owned(),
            is_warm: wire.is_warm,
        }
    }
}
