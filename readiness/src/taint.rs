//! Taints of nodes and tolerations of pods, in the rules of `core/v1`.

use k8s_openapi::api::core::v1::{PodSpec, Taint, Toleration};
use serde::{Deserialize, Serialize};

use crate::gate::NodeReadinessGate;
use crate::name::{domain, key_problems, value_problems};

/// Effect that keeps new pods away.
pub const NO_SCHEDULE: &str = "NoSchedule";
/// Effect that makes a node the last choice.
pub const PREFER_NO_SCHEDULE: &str = "PreferNoSchedule";
/// Effect that keeps new pods away and evicts running ones.
pub const NO_EXECUTE: &str = "NoExecute";

/// Every effect, in the API server's order.
pub(crate) const EFFECTS: [&str; 3] = [NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE];

/// Effects that keep a pod from a node.
const BLOCKING: [&str; 2] = [NO_SCHEDULE, NO_EXECUTE];

/// Keys of taints that the node lifecycle controller adds and removes by itself.
const MANAGED_KEYS: [&str; 7] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
];

/// Domain of taints that cloud providers manage.
const CLOUD_DOMAIN: &str = "node.cloudprovider.kubernetes.io";

/// Whether taints with a key come and go by themselves.
pub(crate) fn is_managed(key: &str) -> bool {
    MANAGED_KEYS.contains(&key) || domain(key) == Some(CLOUD_DOMAIN)
}

/// Whether a gate may bring a taint: the API server takes it, and it does not come and go by itself.
pub(crate) fn is_usable(taint: &Taint) -> bool {
    let value = taint.value.as_deref().unwrap_or_default();
    let is_valid = key_problems(&taint.key).is_empty() && value_problems(value).next().is_none();
    is_valid && !is_managed(&taint.key) && EFFECTS.contains(&taint.effect.as_str())
}

/// What a taint is found by: a node has at most one for a key and an effect. The value does not take part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaintId {
    /// The key.
    pub key: String,
    /// The effect.
    pub effect: String,
}

impl TaintId {
    pub(crate) fn of(taint: &Taint) -> Self {
        Self { key: taint.key.clone(), effect: taint.effect.clone() }
    }

    pub(crate) fn is_of(&self, taint: &Taint) -> bool {
        self.key == taint.key && self.effect == taint.effect
    }
}

/// Whether two taints take one place on a node.
pub(crate) fn is_same(one: &Taint, other: &Taint) -> bool {
    one.key == other.key && one.effect == other.effect
}

/// Whether a toleration covers a taint.
///
/// An empty key or effect covers every one. `Equal`, also when left out, wants the same value, `Exists` any; an operator
/// that this version does not know covers nothing.
///
/// ```
/// use k8s_openapi::api::core::v1::{Taint, Toleration};
/// use readiness::taint::tolerates;
/// let taint = Taint { key: "a.example/agent".into(), effect: "NoSchedule".into(), ..Taint::default() };
/// let everything = Toleration { operator: Some("Exists".into()), ..Toleration::default() };
/// assert!(tolerates(&everything, &taint));
/// assert!(!tolerates(&Toleration { effect: Some("NoExecute".into()), ..everything }, &taint));
/// ```
#[must_use]
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let covers =
        |wanted: &Option<String>, actual: &str| wanted.as_deref().is_none_or(|text| text.is_empty() || text == actual);
    let value_fits = match toleration.operator.as_deref().unwrap_or_default() {
        "Exists" => true,
        "" | "Equal" => toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default(),
        _ => false,
    };
    covers(&toleration.effect, &taint.effect) && covers(&toleration.key, &taint.key) && value_fits
}

/// The first taint that keeps a pod with these tolerations from a node.
#[must_use]
pub fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    let is_blocking = |taint: &&Taint| BLOCKING.contains(&taint.effect.as_str());
    taints.iter().filter(is_blocking).find(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

/// Taints of gates that would keep a pod away, so that an agent which is to meet a gate could never come to the node.
///
/// Tolerations that the `DaemonSet` controller adds do not cover them: it adds those for `not-ready` and `unreachable`
/// with `NoExecute`, for pressure, for `unschedulable`, and on the host's network for `network-unavailable`.
///
/// ```
/// use k8s_openapi::api::core::v1::{PodSpec, Taint};
/// use readiness::gate::NodeReadinessGate;
/// use readiness::taint::missing_tolerations;
/// let taint = Taint { key: "a.example/agent".into(), effect: "NoSchedule".into(), ..Taint::default() };
/// let gate = NodeReadinessGate::new("a.example/Agent", 60).tainting(taint.clone());
/// assert_eq!(missing_tolerations(&PodSpec::default(), &[gate]), [&taint]);
/// ```
#[must_use]
pub fn missing_tolerations<'g>(pod: &PodSpec, gates: &'g [NodeReadinessGate]) -> Vec<&'g Taint> {
    let tolerations = pod.tolerations.as_deref().unwrap_or_default();
    let taints = gates.iter().filter_map(NodeReadinessGate::taint);
    taints.filter(|taint| untolerated(std::slice::from_ref(taint), tolerations).is_some()).collect()
}
