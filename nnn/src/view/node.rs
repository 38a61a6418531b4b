//! A node as an autoscaler sees it: pods, devices, utilisation and removability.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use dra_attrs::{Quantity, Resources};
use serde::Serialize;

use crate::pod::PodKey;

/// Reason why a pod counts on a node. Of several reasons the first one is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReservedBy {
    /// The pod is bound.
    Bound,
    /// The scheduler has assumed the pod on the node. Known only inside the scheduler.
    Assumed,
    /// The pod is nominated to the node.
    Nominated,
}

/// A pod that counts on a node, with its requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PodUse {
    /// Pod that counts on the node.
    pub pod: PodKey,
    /// Reason why the pod counts on the node.
    pub reserved_by: ReservedBy,
    /// Priority of the pod.
    pub priority: i32,
    /// Requests of the pod, with the node resources that its claims take.
    pub requests: Resources,
    /// True if the pod is being deleted by a preemption.
    pub(crate) is_victim: bool,
    /// True if the pod belongs to the node: a `DaemonSet` pod or a mirror pod.
    pub(crate) is_node_owned: bool,
    /// True if the pod is still there 30 s after the end of its grace period.
    pub(crate) is_overdue: bool,
    /// Reason why the pod prevents the removal of the node.
    pub(crate) blocking_reason: Option<BlockingPodReason>,
}

/// Reason why a pod prevents the removal of its node, as in cluster-autoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockingPodReason {
    /// No controller would recreate the pod.
    NoController,
    /// The annotation `cluster-autoscaler.kubernetes.io/safe-to-evict` is `false`.
    NotSafeToEvict,
}

/// An allocated device of a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct DeviceUse {
    /// UID of the claim.
    pub claim: String,
    /// Name of the driver.
    pub driver: String,
    /// Name of the pool.
    pub pool: String,
    /// Name of the device.
    pub device: String,
}

/// Presence of a node in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AutoscalerNodePresence {
    /// The cluster has the node.
    Present,
    /// The node is being created.
    Upcoming,
    /// The node does not exist, but pods are nominated to it.
    Missing,
}

/// Inconsistency between the objects of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum NodeWarning {
    /// An assumed or nominated pod has a claim without an allocation, so that its devices are not known.
    DraUnknown {
        /// Pod with the claim that has no allocation.
        pod: PodKey,
    },
    /// A claim of a pod on the node has an allocation whose node selector excludes the node.
    Inconsistent {
        /// Pod that uses the claim.
        pod: PodKey,
        /// UID of the claim.
        claim: String,
    },
    /// A pod bound to this node has a nomination to another node, which is ignored.
    StaleNomination {
        /// Bound pod with the ignored nomination.
        pod: PodKey,
        /// Node in `status.nominatedNodeName`.
        nominated: String,
    },
}

/// Reason why a node can't be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum UnremovableReason {
    /// The node does not exist, or is being created.
    NotPresent {
        /// Presence of the node.
        presence: AutoscalerNodePresence,
    },
    /// A pod is nominated to the node.
    Nominated {
        /// Pod that is nominated to the node.
        pod: PodKey,
    },
    /// A pod is assumed on the node.
    Assumed {
        /// Pod that is assumed on the node.
        pod: PodKey,
    },
    /// A pod that is assumed on or nominated to the node has a claim without an allocation.
    DraUnknown {
        /// Pod with the claim that has no allocation.
        pod: PodKey,
    },
    /// The utilisation of the node is at or above its threshold.
    InUse {
        /// Utilisation of the node in thousandths.
        permille: u32,
        /// Utilisation at or above which the node is not removed, in thousandths.
        threshold: u32,
    },
    /// A pod on the node can't be moved to another node.
    NotMovable {
        /// Pod that can't be moved.
        pod: PodKey,
        /// Reason why the pod can't be moved.
        why: BlockingPodReason,
    },
}

/// A node with the pods and devices that count on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AutoscalerNode {
    /// Name of the node.
    pub name: String,
    /// Presence of the node in the cluster.
    pub presence: AutoscalerNodePresence,
    /// `status.allocatable`
    pub allocatable: Resources,
    /// Pods that count on the node: bound pods first, then sorted by UID.
    pub pods: Vec<PodUse>,
    /// Allocated devices of the pods' claims. A shared claim counts once.
    pub devices: Vec<DeviceUse>,
    /// Those of the devices that only pods which belong to the node hold.
    #[serde(skip)]
    pub(crate) own_devices: BTreeSet<DeviceUse>,
    /// Devices that the node's own pools offer, by driver and pool.
    #[serde(skip)]
    pub(crate) local_devices: BTreeMap<(String, String), BTreeSet<String>>,
    /// Inconsistencies of the node's objects. In JSON the field is `findings`.
    #[serde(rename = "findings")]
    pub warnings: Vec<NodeWarning>,
    /// Resources that alone determine the utilisation of the node if it has any of them.
    #[serde(skip)]
    pub(crate) accelerators: Vec<String>,
    /// Utilisation at or above which the node is not removed, in thousandths.
    #[serde(skip)]
    pub(crate) threshold: u32,
}

impl AutoscalerNode {
    /// Builds a node without pods.
    pub(super) fn empty(name: &str, presence: AutoscalerNodePresence) -> Self {
        Self {
            name: name.to_owned(),
            presence,
            allocatable: Resources::default(),
            pods: Vec::new(),
            devices: Vec::new(),
            own_devices: BTreeSet::new(),
            local_devices: BTreeMap::new(),
            warnings: Vec::new(),
            accelerators: Vec::new(),
            threshold: 0,
        }
    }

    /// Returns the pods that count on the node for the given reason.
    pub fn pods_reserved_by(&self, reserved_by: ReservedBy) -> impl Iterator<Item = &PodUse> {
        self.pods.iter().filter(move |pod| pod.reserved_by == reserved_by)
    }

    /// Returns the sum of the requests of all pods. May exceed `allocatable` while preemption victims terminate.
    #[must_use]
    pub fn committed(&self) -> Resources {
        sum(self.pods.iter())
    }

    /// Returns the sum of the requests of all pods without the victims of preemptions.
    #[must_use]
    pub fn expected(&self) -> Resources {
        sum(self.pods.iter().filter(|pod| !pod.is_victim))
    }

    /// Returns the resources that remain for a new pod of the given priority. A resource may be negative.
    ///
    /// Bound and assumed pods count, and nominated pods of at least that priority.
    #[must_use]
    pub fn free_for(&self, priority: i32) -> Resources {
        let counts = |pod: &&PodUse| pod.reserved_by != ReservedBy::Nominated || pod.priority >= priority;
        self.allocatable.minus(&sum(self.pods.iter().filter(counts)))
    }

    /// Returns the utilisation of the node in thousandths, as cluster-autoscaler computes it.
    ///
    /// If the node has accelerators, they alone count. Otherwise, if it has pools of local devices, the most used pool
    /// counts; each device is one unit, partitions too. Otherwise the larger share of CPU and memory counts. Pods that
    /// belong to the node count neither as used nor as available.
    #[must_use]
    pub fn utilisation_permille(&self) -> u32 {
        let movable = sum(self.pods.iter().filter(|pod| !pod.is_node_owned && !pod.is_overdue));
        let own = sum(self.pods.iter().filter(|pod| pod.is_node_owned));
        let mut accelerators = self.accelerators.iter().map(|name| (name, self.allocatable.quantity(name)));
        if let Some((name, whole)) = accelerators.find(|(_, whole)| *whole > Quantity::ZERO) {
            return permille(movable.quantity(name).nanos(), whole.saturating_sub(own.quantity(name)).nanos());
        }
        if !self.local_devices.is_empty() {
            return self.device_permille();
        }
        let whole = self.allocatable.minus(&own);
        ["cpu", "memory"]
            .map(|name| permille(movable.quantity(name).nanos(), whole.quantity(name).nanos()))
            .into_iter()
            .max()
            .unwrap_or_default()
    }

    fn device_permille(&self) -> u32 {
        let count = |len: usize| i128::try_from(len).unwrap_or(i128::MAX);
        let of_pool = |((driver, pool), all): (&(String, String), &BTreeSet<String>)| {
            let held = self.devices.iter().filter(|it| it.driver == *driver && it.pool == *pool);
            let held = held.filter(|it| all.contains(&it.device));
            let (own, used): (BTreeSet<&DeviceUse>, BTreeSet<_>) = held.partition(|it| self.own_devices.contains(*it));
            permille(count(used.len()), count(all.len().saturating_sub(own.len())))
        };
        self.local_devices.iter().map(of_pool).max().unwrap_or_default()
    }

    /// Returns the reasons why the node can't be removed; empty if it can. A node with a nominated pod can't (KEP-5278, Story
    /// 1). The caller must check that the node's pods fit on other nodes.
    #[must_use]
    pub fn unremovable_reasons(&self) -> Vec<UnremovableReason> {
        self.absence().into_iter().chain(self.promises()).chain(self.own_reasons()).collect()
    }

    /// Like [`Self::unremovable_reasons`], but a nominated pod only adds to the utilisation of its node, as in
    /// cluster-autoscaler.
    #[must_use]
    pub fn unremovable_reasons_without_nominations(&self) -> Vec<UnremovableReason> {
        self.absence().into_iter().chain(self.own_reasons()).collect()
    }

    fn absence(&self) -> Option<UnremovableReason> {
        let is_present = self.presence == AutoscalerNodePresence::Present;
        (!is_present).then_some(UnremovableReason::NotPresent { presence: self.presence })
    }

    /// Returns the reasons that a node which exists has without its nominations.
    fn own_reasons(&self) -> Vec<UnremovableReason> {
        if self.presence != AutoscalerNodePresence::Present {
            return Vec::new();
        }
        let permille = self.utilisation_permille();
        let in_use = UnremovableReason::InUse { permille, threshold: self.threshold };
        let moved = self.pods.iter().filter(|pod| !pod.is_node_owned && !pod.is_overdue);
        let fixed = moved
            .filter_map(|it| it.blocking_reason.map(|why| UnremovableReason::NotMovable { pod: it.pod.clone(), why }));
        (permille >= self.threshold).then_some(in_use).into_iter().chain(fixed).collect()
    }

    fn promises(&self) -> impl Iterator<Item = UnremovableReason> {
        let nominated =
            self.pods_reserved_by(ReservedBy::Nominated).map(|it| UnremovableReason::Nominated { pod: it.pod.clone() });
        let assumed =
            self.pods_reserved_by(ReservedBy::Assumed).map(|it| UnremovableReason::Assumed { pod: it.pod.clone() });
        let unknown = self.warnings.iter().filter_map(|warning| match warning {
            NodeWarning::DraUnknown { pod } => Some(UnremovableReason::DraUnknown { pod: pod.clone() }),
            _ => None,
        });
        assumed.chain(nominated).chain(unknown)
    }
}

/// Returns `part / whole` in thousandths; 1000 if `part` is positive and `whole` is zero or negative.
fn permille(part: i128, whole: i128) -> u32 {
    if part <= 0 {
        return 0;
    }
    let permille = part.saturating_mul(1000).checked_div(whole.max(0));
    permille.map_or(1000, |permille| u32::try_from(permille).unwrap_or(u32::MAX))
}

fn sum<'a>(pods: impl Iterator<Item = &'a PodUse>) -> Resources {
    let mut sum = Resources::default();
    pods.for_each(|pod| sum.add(&pod.requests));
    sum
}

impl BlockingPodReason {
    const fn text(self) -> &'static str {
        match self {
            Self::NoController => "no controller would make it anew",
            Self::NotSafeToEvict => "it is marked as not safe to evict",
        }
    }
}

impl AutoscalerNodePresence {
    const fn text(self) -> &'static str {
        match self {
            Self::Present => "is there",
            Self::Upcoming => "is being created",
            Self::Missing => "is not there",
        }
    }
}

impl fmt::Display for UnremovableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPresent { presence } => write!(f, "the node {}", presence.text()),
            Self::Nominated { pod } => write!(f, "{pod} is expected here"),
            Self::Assumed { pod } => write!(f, "{pod} is on its way here"),
            Self::DraUnknown { pod } => write!(f, "the devices of {pod} are not known yet"),
            Self::InUse { permille, threshold } => {
                write!(f, "{} in use, from {} on it stays", Percent(*permille), Percent(*threshold))
            }
            Self::NotMovable { pod, why } => write!(f, "{pod} can't be moved: {}", why.text()),
        }
    }
}

impl fmt::Display for NodeWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DraUnknown { pod } => write!(f, "the devices of {pod} are not known yet"),
            Self::Inconsistent { pod, claim } => {
                write!(f, "claim {claim} of {pod} is allocated for other nodes")
            }
            Self::StaleNomination { pod, nominated } => {
                write!(f, "{pod} is bound here; its nomination to {nominated} means nothing")
            }
        }
    }
}

/// Utilisation in thousandths, displayed as a percentage.
struct Percent(u32);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 10, self.0 % 10) {
            (whole, 0) => write!(f, "{whole}%"),
            (whole, tenth) => write!(f, "{whole}.{tenth}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Percent, permille};

    #[test]
    fn thousandths_are_displayed_as_a_percentage() {
        let texts = [0, 5, 750, 666, 1000].map(|permille| Percent(permille).to_string());
        assert_eq!(texts, ["0%", "0.5%", "75%", "66.6%", "100%"]);
    }

    #[test]
    fn permille_saturates_and_takes_all_of_nothing() {
        assert_eq!([permille(1, 4), permille(0, 0), permille(-1, 4), permille(1, 0)], [250, 0, 0, 1000]);
        assert_eq!(permille(i128::MAX, 1), u32::MAX);
    }
}
