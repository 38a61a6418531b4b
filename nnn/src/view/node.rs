//! What is on a node, what is promised there, and whether the node could go.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::amount::{Amount, Resources};
use crate::pod::PodKey;

/// Why a pod counts at a node. A pod that could count for several reasons counts for the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Holder {
    /// It is bound.
    Bound,
    /// The scheduler has assumed it, which only the scheduler knows.
    Assumed,
    /// It is nominated.
    Nominated,
}

/// A pod that counts at a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PodUse {
    /// The pod.
    pub pod: PodKey,
    /// Why it counts.
    pub holder: Holder,
    /// Its priority.
    pub priority: i32,
    /// What it requests, with the node resources that its claims take.
    pub requests: Resources,
    /// A preemption ends it.
    pub is_victim: bool,
    /// It belongs to the node itself: a `DaemonSet`'s pod or a mirror pod.
    pub is_node_owned: bool,
    /// It has been terminating for longer than it may.
    pub is_overdue: bool,
    /// Why it can't be moved to another node.
    pub stays: Option<Stays>,
}

/// Why a pod can't be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stays {
    /// No controller would make it anew.
    NoController,
    /// Its annotation says that it is not safe to evict.
    NotSafeToEvict,
}

/// A device of an allocation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct DeviceUse {
    /// The claim's UID.
    pub claim: String,
    /// The driver.
    pub driver: String,
    /// The pool.
    pub pool: String,
    /// The device.
    pub device: String,
}

/// Whether the cluster has a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Presence {
    /// The cluster has it.
    Present,
    /// It is being created.
    Upcoming,
    /// Nobody knows it but pods that are nominated there.
    Missing,
}

/// Something that does not fit together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum Finding {
    /// Not all claims of a pod that is expected here are allocated: which devices it takes is not known.
    DraUnknown {
        /// The pod.
        pod: PodKey,
    },
    /// A claim of a pod that is expected here is allocated for other nodes.
    Inconsistent {
        /// The pod.
        pod: PodKey,
        /// The claim's UID.
        claim: String,
    },
    /// A pod that is bound here has another node as its nomination, which means nothing.
    StaleNomination {
        /// The pod.
        pod: PodKey,
        /// The nomination.
        nominated: String,
    },
}

/// How careful a removal is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum Mode {
    /// A promise keeps a node (KEP-5278, Story 1).
    #[default]
    Strict,
    /// As cluster-autoscaler: a promise counts as use, and a pod that waits is moved like any other.
    Lenient,
}

/// Why a node can't be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum Reason {
    /// It is not there.
    NotPresent {
        /// What is known.
        presence: Presence,
    },
    /// A pod is expected here.
    Nominated {
        /// The pod.
        pod: PodKey,
    },
    /// A pod is on its way here, as the scheduler knows.
    Assumed {
        /// The pod.
        pod: PodKey,
    },
    /// What a pod that is expected here takes is not known.
    DraUnknown {
        /// The pod.
        pod: PodKey,
    },
    /// Too much of it is in use, in thousandths.
    InUse {
        /// How much is used.
        permille: u32,
        /// From where on a node stays.
        threshold: u32,
    },
    /// A pod can't be moved.
    NotMovable {
        /// The pod.
        pod: PodKey,
        /// Why.
        why: Stays,
    },
}

/// Whether a node could be removed. Whether its pods find room elsewhere is for the caller to find out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Removability {
    /// Why not; nothing, if it could.
    pub reasons: Vec<Reason>,
}

impl Removability {
    /// Nothing keeps the node.
    #[must_use]
    pub fn is_removable(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// A node with all that counts there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NodeView {
    /// The name.
    pub name: String,
    /// Whether it is there.
    pub presence: Presence,
    /// What it has to give.
    pub allocatable: Resources,
    /// The pods that count here: bound ones first, then by UID.
    pub pods: Vec<PodUse>,
    /// The devices of their claims, each claim once.
    pub devices: Vec<DeviceUse>,
    /// The devices that each driver's pools offer on this node alone, by driver and pool.
    #[serde(skip)]
    pub local_devices: BTreeMap<(String, String), BTreeSet<String>>,
    /// What does not fit together.
    pub findings: Vec<Finding>,
    /// Resources that decide alone about utilisation if the node has any.
    #[serde(skip)]
    pub accelerators: Vec<String>,
    /// The utilisation in thousandths from which on a node stays.
    #[serde(skip)]
    pub threshold: u32,
}

impl NodeView {
    /// A node with nothing on it.
    pub(super) fn empty(name: &str, presence: Presence) -> Self {
        Self {
            name: name.to_owned(),
            presence,
            allocatable: Resources::default(),
            pods: Vec::new(),
            devices: Vec::new(),
            local_devices: BTreeMap::new(),
            findings: Vec::new(),
            accelerators: Vec::new(),
            threshold: 0,
        }
    }

    /// The pods that count for a reason.
    pub fn held_by(&self, holder: Holder) -> impl Iterator<Item = &PodUse> {
        self.pods.iter().filter(move |pod| pod.holder == holder)
    }

    /// What all pods here request together. It may be more than the node has while victims terminate.
    #[must_use]
    pub fn committed(&self) -> Resources {
        sum(self.pods.iter())
    }

    /// The same without the victims of preemptions: what will be requested.
    #[must_use]
    pub fn expected(&self) -> Resources {
        sum(self.pods.iter().filter(|pod| !pod.is_victim))
    }

    /// What is left for a pod of a priority that is not here: bound and assumed pods count, and nominated ones of at least
    /// that priority. May be below zero.
    #[must_use]
    pub fn free_for(&self, priority: i32) -> Resources {
        let counts = |pod: &&PodUse| pod.holder != Holder::Nominated || pod.priority >= priority;
        self.allocatable.minus(&sum(self.pods.iter().filter(counts)))
    }

    /// How much of the node is in use, in thousandths, as cluster-autoscaler has it: of its accelerators alone if it has
    /// any; else of the pool of local devices that is used most, if there is one; else of CPU or memory, whichever is
    /// more. The node's own pods count neither as use nor as room. Each device of a pool counts as one, partitions too.
    #[must_use]
    pub fn utilisation_permille(&self) -> u32 {
        let movable = sum(self.pods.iter().filter(|pod| !pod.is_node_owned && !pod.is_overdue));
        let own = sum(self.pods.iter().filter(|pod| pod.is_node_owned));
        let mut accelerators = self.accelerators.iter().map(|name| (name, self.allocatable.of(name)));
        if let Some((name, whole)) = accelerators.find(|(_, whole)| *whole > Amount::ZERO) {
            return movable.of(name).permille_of(whole.minus(own.of(name)));
        }
        if !self.local_devices.is_empty() {
            return self.device_permille();
        }
        let whole = self.allocatable.minus(&own);
        ["cpu", "memory"].map(|name| movable.of(name).permille_of(whole.of(name))).into_iter().max().unwrap_or_default()
    }

    fn device_permille(&self) -> u32 {
        let units = |count: usize| Amount::from_units(i64::try_from(count).unwrap_or(i64::MAX));
        let of_pool = |((driver, pool), all): (&(String, String), &BTreeSet<String>)| {
            let held = self.devices.iter().filter(|it| it.driver == *driver && it.pool == *pool);
            let used: BTreeSet<&str> = held.map(|it| it.device.as_str()).filter(|name| all.contains(*name)).collect();
            units(used.len()).permille_of(units(all.len()))
        };
        self.local_devices.iter().map(of_pool).max().unwrap_or_default()
    }

    /// Whether the node could be removed, and everything that speaks against it.
    #[must_use]
    pub fn removable(&self, mode: Mode) -> Removability {
        let mut reasons = Vec::new();
        if self.presence != Presence::Present {
            reasons.push(Reason::NotPresent { presence: self.presence });
        }
        if mode == Mode::Strict {
            reasons.extend(self.promises());
        }
        if self.presence != Presence::Present {
            return Removability { reasons };
        }
        let permille = self.utilisation_permille();
        if permille >= self.threshold {
            reasons.push(Reason::InUse { permille, threshold: self.threshold });
        }
        let moved = self.pods.iter().filter(|pod| !pod.is_node_owned && !pod.is_overdue);
        reasons.extend(moved.filter_map(|it| it.stays.map(|why| Reason::NotMovable { pod: it.pod.clone(), why })));
        Removability { reasons }
    }

    fn promises(&self) -> impl Iterator<Item = Reason> {
        let nominated = self.held_by(Holder::Nominated).map(|it| Reason::Nominated { pod: it.pod.clone() });
        let assumed = self.held_by(Holder::Assumed).map(|it| Reason::Assumed { pod: it.pod.clone() });
        let unknown = self.findings.iter().filter_map(|finding| match finding {
            Finding::DraUnknown { pod } => Some(Reason::DraUnknown { pod: pod.clone() }),
            _ => None,
        });
        assumed.chain(nominated).chain(unknown)
    }
}

fn sum<'a>(pods: impl Iterator<Item = &'a PodUse>) -> Resources {
    let mut sum = Resources::default();
    pods.for_each(|pod| sum.add(&pod.requests));
    sum
}

impl fmt::Display for Stays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoController => "no controller would make it anew",
            Self::NotSafeToEvict => "it is marked as not safe to evict",
        })
    }
}

impl fmt::Display for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Present => "is there",
            Self::Upcoming => "is being created",
            Self::Missing => "is not there",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPresent { presence } => write!(f, "the node {presence}"),
            Self::Nominated { pod } => write!(f, "{pod} is expected here"),
            Self::Assumed { pod } => write!(f, "{pod} is on its way here"),
            Self::DraUnknown { pod } => write!(f, "the devices of {pod} are not known yet"),
            Self::InUse { permille, threshold } => {
                write!(f, "{} in use, from {} on it stays", Percent(*permille), Percent(*threshold))
            }
            Self::NotMovable { pod, why } => write!(f, "{pod} can't be moved: {why}"),
        }
    }
}

impl fmt::Display for Finding {
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

/// Thousandths as percent.
struct Percent(u32);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 10, self.0 % 10) {
            (whole, 0) => write!(f, "{whole}%"),
            (whole, tenth) => write!(f, "{whole}.{tenth}%"),
        }
    }
}
