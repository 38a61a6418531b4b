//! What a kubelet remembers of the claims on its node.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::skip::SkipSet;

/// Namespace and name of a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a name has these two parts")]
pub struct ClaimKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ClaimKey {
    /// The key of a claim.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for ClaimKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A device that a driver has prepared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "made by the caller from a driver's response, which has these fields")]
pub struct PreparedDevice {
    /// Name of the pool.
    pub pool: String,
    /// Name of the device.
    pub device: String,
    /// The share of a device that several claims share.
    pub share_id: Option<String>,
    /// The requests of the claim that the device is for. Empty: all of them.
    pub requests: Vec<String>,
    /// CDI ids that go into the containers.
    pub cdi_ids: Vec<String>,
}

/// One driver's part of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DriverState {
    /// The operations that the driver is not called for: those that all its devices in the claim skip.
    pub skips: SkipSet,
    /// What the driver has prepared. Empty until it answered, and for a driver that is not called.
    pub devices: Vec<PreparedDevice>,
}

/// What a kubelet remembers of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClaimInfo {
    /// UID of the claim.
    pub uid: String,
    /// UIDs of the pods on the node that use the claim.
    pub pods: BTreeSet<String>,
    /// The drivers with a device in the claim.
    pub drivers: BTreeMap<String, DriverState>,
    /// Whether everything that must be called has been called since the kubelet started. Not part of the checkpoint.
    pub prepared: bool,
    /// Whether drivers are told to clean up for the last pod. No pod takes the claim up until that has succeeded and the
    /// claim is gone. Not part of the checkpoint.
    pub unpreparing: bool,
}

/// The claims that a kubelet knows: filled by prepare and by reading a checkpoint, emptied by unprepare.
///
/// ```
/// use dra_alloc::kubelet::ClaimCache;
/// let cache = ClaimCache::default();
/// assert!(cache.claims().is_empty() && !cache.may_need_unprepare("pod-1"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ClaimCache {
    pub(super) claims: BTreeMap<ClaimKey, ClaimInfo>,
    /// Whether kubelet would write its checkpoint now.
    pub(super) write_due: bool,
}

impl ClaimCache {
    /// The claims by namespace and name.
    #[must_use]
    pub const fn claims(&self) -> &BTreeMap<ClaimKey, ClaimInfo> {
        &self.claims
    }

    /// Whether a claim is there that names the pod: the status manager holds back the terminal phase of such a pod.
    /// Linear in the number of claims.
    #[must_use]
    pub fn may_need_unprepare(&self, pod_uid: &str) -> bool {
        self.claims.values().any(|info| info.pods.contains(pod_uid))
    }

    /// The number of prepared claims for each driver, skipped drivers included; the entry [`ANY_DRIVER`] counts each
    /// claim once. It is the gauge `dra_resource_claims_in_use`.
    #[must_use]
    pub fn in_use(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::from([(ANY_DRIVER, 0)]);
        for info in self.claims.values().filter(|info| info.prepared) {
            let drivers = info.drivers.keys().map(String::as_str);
            for driver in drivers.chain([ANY_DRIVER]) {
                *counts.entry(driver).or_default() += 1;
            }
        }
        counts
    }
}

/// Stands for all drivers in [`ClaimCache::in_use`].
pub const ANY_DRIVER: &str = "<any>";
