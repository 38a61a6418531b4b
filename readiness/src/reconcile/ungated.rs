//! Record of `TimeoutExceeded` conditions and taints that a node had before a gate for them was added.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::recorded_condition::RecordedCondition;
use crate::taint::TaintId;

/// `TimeoutExceeded` conditions and taints that were on the node while no gate had them. A gate that is added later did
/// not cause them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Ungated {
    /// `TimeoutExceeded` conditions for which the node has no gate, by condition type.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) timeouts: BTreeMap<String, RecordedCondition>,
    /// Taints on the node that no gate has and the reconciler did not add.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) taints: BTreeSet<TaintId>,
}

impl Ungated {
    /// Returns true if no condition and no taint is recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.timeouts.is_empty() && self.taints.is_empty()
    }
}
