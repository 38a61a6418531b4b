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
    /// Prefix of the condition types that Kubernetes itself defines for the network of a node.
    pub const NETWORK_PREFIX: &'static str = "network.kubernetes.io/";

    /// Combines the conditions of all gates whose type begins with `prefix` into one status; `None` if there is no such
    /// gate. Made for an external controller: kubelet itself does not aggregate conditions.
    ///
    /// ```
    /// use readiness::GatedNode;
    /// use readiness::network::Aggregate;
    /// let node: GatedNode = serde_json::from_str(r#"{
    ///     "spec": {"readinessGates": [{"conditionType": "network.kubernetes.io/CNIReady"}]},
    ///     "status": {"conditions": [{"type": "network.kubernetes.io/CNIReady", "status": "True"}]}}"#)?;
    /// assert_eq!(Aggregate::from_gates(&node.view(), Aggregate::NETWORK_PREFIX), Some(Aggregate::True));
    /// assert_eq!(Aggregate::from_gates(&node.view(), "storage.kubernetes.io/"), None);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn from_gates(view: &GatedNodeView<'_>, prefix: &str) -> Option<Self> {
        let gates = view.distinct_gates().filter(|gate| gate.condition_type.starts_with(prefix));
        let each = gates.map(|gate| {
            let name = &gate.condition_type;
            match ConditionStatus::from_condition(view.condition(name)) {
                ConditionStatus::True => Self::True,
                ConditionStatus::False => Self::False(name.clone()),
                _ => Self::Unknown(name.clone()),
            }
        });
        each.reduce(|all, one| match (&all, &one) {
            (Self::False(_), _) | (Self::Unknown(_), Self::True | Self::Unknown(_)) => all,
            (Self::True, _) | (Self::Unknown(_), Self::False(_)) => one,
        })
    }

    /// Returns the value for the field `status` of a condition: `True`, `False` or `Unknown`.
    pub(super) const fn status(&self) -> &'static str {
        match self {
            Self::True => crate::condition::TRUE,
            Self::False(_) => crate::condition::FALSE,
            Self::Unknown(_) => crate::condition::UNKNOWN,
        }
    }
}
