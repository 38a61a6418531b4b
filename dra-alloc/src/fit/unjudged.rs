//! Rules of a pod that are not judged here: volumes, other pods near it, spread.

use std::fmt;

use k8s_openapi::api::core::v1::{Pod, TopologySpreadConstraint, Volume};
use serde::Serialize;

/// Rule of a pod that only a whole scheduler judges. A scheduler without it tells the pod so, once, and leaves it to others.
///
/// Wishes are no rules: preferred affinity, and constraints with `ScheduleAnyway`. Nor is a volume that no node is chosen by,
/// such as `configMap` or `emptyDir`. The reverse of anti-affinity is not seen here: that of pods which run already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "rule")]
#[non_exhaustive]
pub enum UnjudgedRule {
    /// A volume that may be bound to some nodes, or counted.
    Volume {
        /// Name of the volume in the spec.
        name: String,
    },
    /// Required pod affinity.
    PodAffinity,
    /// Required pod anti-affinity.
    PodAntiAffinity,
    /// A topology spread constraint that must hold.
    TopologySpread,
}

impl UnjudgedRule {
    /// Returns the rules of a pod that are not judged here, in the order of the variants.
    ///
    /// ```
    /// use dra_alloc::fit::UnjudgedRule;
    /// let pod = serde_json::from_str(r#"{"spec": {"containers": [], "volumes": [
    ///     {"name": "settings", "configMap": {"name": "c"}},
    ///     {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}}"#)?;
    /// let rules = UnjudgedRule::of_pod(&pod);
    /// assert_eq!(rules[0].to_string(), "spec.volumes: \"data\"");
    /// assert_eq!(rules.len(), 1);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Complexity
    /// Linear in the volumes and constraints of the pod.
    #[must_use]
    pub fn of_pod(pod: &Pod) -> Vec<Self> {
        let Some(spec) = &pod.spec else { return Vec::new() };
        let affinity = spec.affinity.as_ref();
        let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref()).and_then(|affinity| {
            affinity.required_during_scheduling_ignored_during_execution.as_ref().filter(|terms| !terms.is_empty())
        });
        let apart = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref()).and_then(|affinity| {
            affinity.required_during_scheduling_ignored_during_execution.as_ref().filter(|terms| !terms.is_empty())
        });
        let must_spread = |spread: &TopologySpreadConstraint| spread.when_unsatisfiable == "DoNotSchedule";
        let spread = spec.topology_spread_constraints.iter().flatten().find(|spread| must_spread(spread));
        let volumes = spec.volumes.iter().flatten().filter(|volume| chooses_nodes(volume));
        let volumes = volumes.map(|volume| Self::Volume { name: volume.name.clone() });
        let others = [
            near.map(|_| Self::PodAffinity),
            apart.map(|_| Self::PodAntiAffinity),
            spread.map(|_| Self::TopologySpread),
        ];
        volumes.chain(others.into_iter().flatten()).collect()
    }
}

impl fmt::Display for UnjudgedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume { name } => write!(f, "spec.volumes: {name:?}"),
            Self::PodAffinity => f.write_str("spec.affinity.podAffinity"),
            Self::PodAntiAffinity => f.write_str("spec.affinity.podAntiAffinity"),
            Self::TopologySpread => f.write_str("spec.topologySpreadConstraints"),
        }
    }
}

/// Returns true for a volume by which kube-scheduler's plugins `VolumeBinding`, `VolumeRestrictions`, `VolumeZone` or
/// `NodeVolumeLimits` choose a node.
const fn chooses_nodes(volume: &Volume) -> bool {
    volume.persistent_volume_claim.is_some()
        || volume.ephemeral.is_some()
        || volume.aws_elastic_block_store.is_some()
        || volume.azure_disk.is_some()
        || volume.cinder.is_some()
        || volume.gce_persistent_disk.is_some()
        || volume.iscsi.is_some()
        || volume.portworx_volume.is_some()
        || volume.rbd.is_some()
        || volume.vsphere_volume.is_some()
}
