//! Kinds that the server stores, one row each.

/// Kind of objects.
#[derive(Debug)]
pub(crate) struct Kind {
    /// API group; empty for the core group.
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) name: &'static str,
    /// Name in URLs, which no two kinds of this server share.
    pub(crate) plural: &'static str,
    pub(crate) short: &'static [&'static str],
    pub(crate) scope: Scope,
    pub(crate) status: Status,
    /// Fields that select objects, beside name and namespace.
    pub(crate) selectable: &'static [&'static str],
}

/// Place of the objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Cluster,
    Namespace,
}

/// Way in which the status of a kind is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// There is none, or it is written with the rest.
    Plain,
    /// By the status subresource alone.
    Subresource,
}

/// API group of devices.
pub(crate) const RESOURCE: &str = "resource.k8s.io";

const fn kind(
    group: &'static str,
    version: &'static str,
    name: &'static str,
    plural: &'static str,
    scope: Scope,
    status: Status,
) -> Kind {
    Kind { group, version, name, plural, short: &[], scope, status, selectable: &[] }
}

use Scope::{Cluster, Namespace};
use Status::{Plain, Subresource};

/// Fields that select slices.
const OF_SLICES: &[&str] = &["spec.driver", "spec.nodeName"];

/// All kinds in all versions, in the order of discovery. A release has some of them.
pub(crate) static KINDS: [Kind; 31] = [
    Kind {
        short: &["ns"],
        selectable: &["status.phase"],
        ..kind("", "v1", "Namespace", "namespaces", Cluster, Subresource)
    },
    Kind {
        short: &["no"],
        selectable: &["spec.unschedulable"],
        ..kind("", "v1", "Node", "nodes", Cluster, Subresource)
    },
    Kind {
        short: &["po"],
        selectable: &[
            "spec.nodeName",
            "spec.schedulerName",
            "spec.restartPolicy",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ..kind("", "v1", "Pod", "pods", Namespace, Subresource)
    },
    Kind {
        short: &["ev"],
        selectable: &[
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "type",
        ],
        ..kind("", "v1", "Event", "events", Namespace, Plain)
    },
    Kind { short: &["sa"], ..kind("", "v1", "ServiceAccount", "serviceaccounts", Namespace, Plain) },
    Kind { short: &["ds"], ..kind("apps", "v1", "DaemonSet", "daemonsets", Namespace, Subresource) },
    Kind { short: &["deploy"], ..kind("apps", "v1", "Deployment", "deployments", Namespace, Subresource) },
    Kind { short: &["rs"], ..kind("apps", "v1", "ReplicaSet", "replicasets", Namespace, Subresource) },
    Kind { short: &["sts"], ..kind("apps", "v1", "StatefulSet", "statefulsets", Namespace, Subresource) },
    Kind { short: &["cj"], ..kind("batch", "v1", "CronJob", "cronjobs", Namespace, Subresource) },
    kind("batch", "v1", "Job", "jobs", Namespace, Subresource),
    kind("coordination.k8s.io", "v1", "Lease", "leases", Namespace, Plain),
    Kind {
        short: &["pdb"],
        ..kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", Namespace, Subresource)
    },
    Kind { short: &["pc"], ..kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", Cluster, Plain) },
    kind(RESOURCE, "v1", "DeviceClass", "deviceclasses", Cluster, Plain),
    kind(RESOURCE, "v1", "DeviceTaintRule", "devicetaintrules", Cluster, Subresource),
    kind(RESOURCE, "v1", "ResourceClaim", "resourceclaims", Namespace, Subresource),
    kind(RESOURCE, "v1", "ResourceClaimTemplate", "resourceclaimtemplates", Namespace, Plain),
    Kind { selectable: OF_SLICES, ..kind(RESOURCE, "v1", "ResourceSlice", "resourceslices", Cluster, Plain) },
    kind(RESOURCE, "v1beta2", "DeviceClass", "deviceclasses", Cluster, Plain),
    kind(RESOURCE, "v1beta2", "DeviceTaintRule", "devicetaintrules", Cluster, Subresource),
    kind(RESOURCE, "v1beta2", "ResourceClaim", "resourceclaims", Namespace, Subresource),
    kind(RESOURCE, "v1beta2", "ResourceClaimTemplate", "resourceclaimtemplates", Namespace, Plain),
    Kind { selectable: OF_SLICES, ..kind(RESOURCE, "v1beta2", "ResourceSlice", "resourceslices", Cluster, Plain) },
    kind(RESOURCE, "v1beta1", "DeviceClass", "deviceclasses", Cluster, Plain),
    kind(RESOURCE, "v1beta1", "ResourceClaim", "resourceclaims", Namespace, Subresource),
    kind(RESOURCE, "v1beta1", "ResourceClaimTemplate", "resourceclaimtemplates", Namespace, Plain),
    Kind { selectable: OF_SLICES, ..kind(RESOURCE, "v1beta1", "ResourceSlice", "resourceslices", Cluster, Plain) },
    kind(RESOURCE, "v1alpha3", "DeviceTaintRule", "devicetaintrules", Cluster, Subresource),
    kind(RESOURCE, "v1alpha3", "ResourcePoolStatusRequest", "resourcepoolstatusrequests", Cluster, Subresource),
    // As the text of its KEP has it; no release has this version.
    kind(RESOURCE, "v1alpha1", "ResourcePoolStatusRequest", "resourcepoolstatusrequests", Cluster, Subresource),
];

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.plural == other.plural
    }
}

impl Kind {
    /// Returns the kind at a place of the API.
    pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| (kind.group, kind.version, kind.plural) == (group, version, plural))
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the name of the kind in messages: `resourceclaims.resource.k8s.io`.
    pub(crate) fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Returns the name of the kind in messages that name the kind: `ResourceClaim.resource.k8s.io`.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.name, self.group) }
    }

    pub(crate) fn is_namespaced(&self) -> bool {
        self.scope == Namespace
    }

    pub(crate) fn has_status(&self) -> bool {
        self.status == Subresource
    }
}
