//! Evictions and their reasons.

use std::collections::BTreeSet;
use std::fmt;

use dra_attrs::Index;
use jiff::Timestamp;
use k8s_openapi::api::resource::v1::DeviceTaint;

/// Taint that evicts a pod. Ordered as the controller lists reasons: rules by name, then taints of slices by device and
/// position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EvictionReason<'a> {
    /// A `DeviceTaintRule` that selects a device of the pod.
    Rule {
        /// Name of the rule.
        name: &'a str,
        /// UID of the rule; empty if it has none.
        uid: &'a str,
    },
    /// A taint of a device in its slice.
    Slice {
        /// Name of the driver.
        driver: &'a str,
        /// Name of the pool.
        pool: &'a str,
        /// Name of the device.
        device: &'a str,
        /// Position of the taint among those of the device.
        taint: Index<DeviceTaint>,
    },
}

impl fmt::Display for EvictionReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { name, .. } => write!(f, "rule {name}"),
            Self::Slice { driver, pool, device, taint } => write!(f, "slice {driver}/{pool}/{device}#{taint}"),
        }
    }
}

/// Eviction of a pod, or of all pods that use a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Eviction<'a> {
    /// Time from which on the pod is evicted: the earliest of all taints.
    pub at: Timestamp,
    /// All taints that are not tolerated for ever, also those that evict later.
    pub reasons: BTreeSet<EvictionReason<'a>>,
}

impl<'a> Eviction<'a> {
    /// Returns true if the rule is among the reasons.
    #[must_use]
    pub fn is_by_rule(&self, name: &str, uid: &str) -> bool {
        self.reasons.contains(&EvictionReason::Rule { name, uid })
    }

    /// Adds the reasons of another eviction; the earlier time counts.
    pub(super) fn join(self, other: &Self) -> Self {
        let mut reasons: BTreeSet<EvictionReason<'a>> = self.reasons;
        reasons.extend(&other.reasons);
        Self { at: self.at.min(other.at), reasons }
    }
}
