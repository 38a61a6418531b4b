//! Taints of nodes and tolerations of pods, by the rules of `core/v1`.

use dra_attrs::NameFormat;
use k8s_openapi::api::core::v1::Taint;
use serde::{Deserialize, Serialize};

use crate::condition::domain;

/// Effect of a taint that keeps new pods away from its node.
pub(crate) const NO_SCHEDULE: &str = "NoSchedule";
/// Effect of a taint that makes the scheduler avoid its node if possible.
pub(crate) const PREFER_NO_SCHEDULE: &str = "PreferNoSchedule";
/// Effect of a taint that keeps new pods away from its node and evicts running pods.
pub(crate) const NO_EXECUTE: &str = "NoExecute";

/// Every effect of a taint, in the API server's order.
pub(crate) const EFFECTS: [&str; 3] = [NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE];

/// Keys of taints that the node lifecycle controller adds and removes.
const MANAGED_KEYS: [&str; 7] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
];

/// Domain of taints that cloud providers add and remove.
const CLOUD_DOMAIN: &str = "node.cloudprovider.kubernetes.io";

/// Returns true if the node lifecycle controller or a cloud provider manages taints with this key.
pub(crate) fn is_managed(key: &str) -> bool {
    MANAGED_KEYS.contains(&key) || domain(key) == Some(CLOUD_DOMAIN)
}

/// Returns true if a gate may use a taint: the API server accepts it, and no other component manages its key.
pub(crate) fn is_usable(taint: &Taint) -> bool {
    let value = taint.value.as_deref().unwrap_or_default();
    let is_valid =
        NameFormat::LabelKey.problems(&taint.key).is_empty() && NameFormat::LabelValue.problems(value).is_empty();
    is_valid && !is_managed(&taint.key) && EFFECTS.contains(&taint.effect.as_str())
}

/// Identity of a taint on a node: key and effect. A node has at most one taint with both; the value does not count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct TaintId {
    pub(crate) key: String,
    pub(crate) effect: String,
}

impl TaintId {
    /// Returns key and effect.
    pub(crate) fn pair(&self) -> (&str, &str) {
        (&self.key, &self.effect)
    }

    /// Returns true if `taint` has this key and effect.
    pub(crate) fn matches(&self, taint: &Taint) -> bool {
        self.key == taint.key && self.effect == taint.effect
    }
}

impl From<&Taint> for TaintId {
    fn from(taint: &Taint) -> Self {
        Self { key: taint.key.clone(), effect: taint.effect.clone() }
    }
}

/// Returns true if two taints have the same key and effect.
pub(crate) fn is_same(one: &Taint, other: &Taint) -> bool {
    one.key == other.key && one.effect == other.effect
}
