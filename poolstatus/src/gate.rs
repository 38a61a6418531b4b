//! The feature gates around pool status.

use std::fmt;

/// A part of pool status that a feature gate switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Gate {
    /// The API and its controller (KEP-5677). Off in the API server: requests are inaccessible. Off in the controller
    /// manager: they stay pending.
    ResourcePoolStatus,
    /// Slices and requests may name an attribute that tells types of partitions. Off: a new request that names one is
    /// refused.
    PartitionableDevicesType,
    /// `DeviceTaintRule`s taint devices. Off: only the taints in slices count.
    DeviceTaintRules,
}

/// Gate, name, whether it is on by default in 1.37.
const GATES: [(Gate, &str, bool); 3] = [
    (Gate::ResourcePoolStatus, "DRAResourcePoolStatus", false),
    (Gate::PartitionableDevicesType, "DRAPartitionableDevicesType", false),
    (Gate::DeviceTaintRules, "DRADeviceTaintRules", true),
];

impl Gate {
    /// Every gate, in the order of the enum.
    pub fn all() -> impl Iterator<Item = Self> {
        GATES.iter().map(|(gate, ..)| *gate)
    }

    /// The name of the gate.
    ///
    /// ```
    /// use poolstatus::gate::Gate;
    /// assert_eq!(Gate::ResourcePoolStatus.name(), "DRAResourcePoolStatus");
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        GATES.iter().find(|(gate, ..)| *gate == self).map_or("", |(_, name, _)| name)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The gates of one component. The default is what Kubernetes 1.37 has on.
///
/// ```
/// use poolstatus::gate::{Gate, Gates};
/// let gates = Gates::default().with(Gate::ResourcePoolStatus);
/// assert!(gates.has(Gate::ResourcePoolStatus) && !Gates::NONE.has(Gate::ResourcePoolStatus));
/// assert_eq!(Gates::from_gates(|name| (name == "DRAResourcePoolStatus").then_some(true)), gates);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Gates(u8);

impl Gates {
    /// Everything is off.
    pub const NONE: Self = Self(0);

    /// Gates by their names. What `is_on` has no value for keeps its default.
    #[must_use]
    pub fn from_gates(is_on: impl Fn(&str) -> Option<bool>) -> Self {
        let on = GATES.iter().filter(|(_, name, default)| is_on(name).unwrap_or(*default));
        on.fold(Self::NONE, |gates, (gate, ..)| gates.with(*gate))
    }

    /// Whether a gate is on.
    #[must_use]
    pub const fn has(self, gate: Gate) -> bool {
        self.0 & gate.bit() != 0
    }

    /// With a gate on.
    #[must_use]
    pub const fn with(self, gate: Gate) -> Self {
        Self(self.0 | gate.bit())
    }

    /// With a gate off.
    #[must_use]
    pub const fn without(self, gate: Gate) -> Self {
        Self(self.0 & !gate.bit())
    }
}

impl Default for Gates {
    fn default() -> Self {
        GATES.iter().filter(|(.., on)| *on).fold(Self::NONE, |gates, (gate, ..)| gates.with(*gate))
    }
}

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Gate::all().filter(|gate| self.has(*gate))).finish()
    }
}
