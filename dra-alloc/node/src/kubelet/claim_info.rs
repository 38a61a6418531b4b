//! Claim cache of a kubelet: the state of the claims on its node.

use std::collections::{BTreeMap, BTreeSet};

use dra_device::claims::ClaimKey;
use dra_device::skip::SkipSet;
use serde::Serialize;

/// A device that a driver has prepared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "made by the caller from a driver's response, which has these fields")]
pub struct PreparedDevice {
    /// Name of the pool.
    pub pool: String,
    /// Name of the device.
    pub device: String,
    /// Share ID of a device that several claims share.
    pub share_id: Option<String>,
    /// Names of the claim's requests that the device serves; all requests if empty.
    pub requests: Vec<String>,
    /// CDI device IDs for the containers.
    pub cdi_ids: Vec<String>,
}

/// State of one driver with devices in a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DriverState {
    /// Operations for which the kubelet does not call the driver, because all its devices in the claim skip them.
    pub skips: SkipSet,
    /// Devices that the driver reported as prepared. Empty before its response, and for a driver that is not called.
    pub devices: Vec<PreparedDevice>,
}

/// State of one claim in the cache of a kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClaimInfo {
    /// UID of the claim.
    pub uid: String,
    /// UIDs of the pods on the node that use the claim.
    pub pods: BTreeSet<String>,
    /// State of each driver with a device in the claim, by driver name.
    pub drivers: BTreeMap<String, DriverState>,
    /// True if all drivers that must be called have prepared the claim since the kubelet started. Not part of the
    /// checkpoint.
    pub prepared: bool,
    /// True while the drivers unprepare the claim for its last pod. No pod can use the claim until that has succeeded,
    /// which removes the claim from the cache. Not part of the checkpoint.
    pub unpreparing: bool,
}

/// Claim cache of a kubelet. Prepare and reading a checkpoint add claims, unprepare removes them.
///
/// ```
/// use dra_node::kubelet::ClaimCache;
/// let cache = ClaimCache::default();
/// assert!(cache.claims().is_empty() && !cache.may_need_unprepare("pod-1"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ClaimCache {
    pub(super) claims: BTreeMap<ClaimKey, ClaimInfo>,
    /// True if the cache has changed since the checkpoint was last written.
    pub(super) write_due: bool,
}

impl ClaimCache {
    /// Returns the claims by namespace and name.
    #[must_use]
    pub const fn claims(&self) -> &BTreeMap<ClaimKey, ClaimInfo> {
        &self.claims
    }

    /// Returns true if a pod uses a claim in the cache, so that unprepare must come before the pod's terminal phase is
    /// reported. Linear in the number of claims.
    #[must_use]
    pub fn may_need_unprepare(&self, pod_uid: &str) -> bool {
        self.claims.values().any(|info| info.pods.contains(pod_uid))
    }

    /// Returns the number of prepared claims of each driver, skipped drivers included: the gauge
    /// `dra_resource_claims_in_use`. The entry `<any>` counts each claim once.
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

/// Key for all drivers together in [`ClaimCache::in_use`].
const ANY_DRIVER: &str = "<any>";
