//! Aggregation of the network conditions of a node into one status.

use crate::condition::ConditionStatus;
use crate::node::GatedNodeView;

/// Combined status of several node conditions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Aggregate {
    /// Every condition is True.
    True,
    /// At least one condition is False. Holds the type of the first such condition.
    False(String),
    /// No condition is False, but at least one is Unknown or missing. Holds the type of the first such condition.
    Unknown(String),
}

impl Aggregate {
    /// Returns the value for the field `status` of a condition: `True`, `False` or `Unknown`.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        match self {
            Self::True => crate::condition::TRUE,
            Self::False(_) => crate::condition::FALSE,
            Self::Unknown(_) => crate::condition::UNKNOWN,
        }
    }
}

/// Combines the conditions of all gates whose type begins with `prefix` into one status; `None` if there is no such
/// gate. Made for an external controller: kubelet itself does not aggregate conditions.
///
/// ```
/// use readiness::GatedNode;
/// use readiness::condition::NETWORK_PREFIX;
/// use readiness::network::{Aggregate, aggregate};
/// let node: GatedNode = serde_json::from_str(r#"{
///     "spec": {"readinessGates": [{"conditionType": "network.kubernetes.io/CNIReady"}]},
///     "status": {"conditions": [{"type": "network.kubernetes.io/CNIReady", "status": "True"}]}}"#)?;
/// assert_eq!(aggregate(&node.view(), NETWORK_PREFIX), Some(Aggregate::True));
/// assert_eq!(aggregate(&node.view(), "storage.kubernetes.io/"), None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn aggregate(view: &GatedNodeView<'_>, prefix: &str) -> Option<Aggregate> {
    let gates = view.distinct_gates().filter(|gate| gate.condition_type.starts_with(prefix));
    let each = gates.map(|gate| {
        let name = &gate.condition_type;
        match ConditionStatus::from_condition(view.condition(name)) {
            ConditionStatus::True => Aggregate::True,
            ConditionStatus::False => Aggregate::False(name.clone()),
            _ => Aggregate::Unknown(name.clone()),
        }
    });
    each.reduce(|all, one| match (&all, &one) {
        (Aggregate::False(_), _) | (Aggregate::Unknown(_), Aggregate::True | Aggregate::Unknown(_)) => all,
        (Aggregate::True, _) | (Aggregate::Unknown(_), Aggregate::False(_)) => one,
    })
}
