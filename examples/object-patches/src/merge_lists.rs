//! Lists whose entries are merged by a key instead of being replaced as a whole, one row each.

/// List that is merged.
#[derive(Debug)]
pub(crate) struct MergeList {
    /// Kind of the object; empty for every kind.
    kind: &'static str,
    /// Path of the list, with dots; entries of outer lists have no step.
    path: &'static str,
    /// Key of a strategic merge patch; empty for a list of texts. `None` if such a patch replaces the list.
    pub(crate) strategic: Option<&'static str>,
    /// Keys of server-side apply; empty for a set of texts. `None` if it replaces the list.
    pub(crate) applied: Option<&'static [&'static str]>,
}

const fn both(kind: &'static str, path: &'static str, key: &'static str, keys: &'static [&'static str]) -> MergeList {
    MergeList { kind, path, strategic: Some(key), applied: Some(keys) }
}

static MERGE_LISTS: [MergeList; 19] = [
    both("", "metadata.ownerReferences", "uid", &["uid"]),
    both("", "metadata.finalizers", "", &[]),
    both("", "status.conditions", "type", &["type"]),
    both("Node", "status.addresses", "type", &["type"]),
    MergeList { kind: "Node", path: "spec.taints", strategic: Some("key"), applied: None },
    both("Pod", "spec.containers", "name", &["name"]),
    both("Pod", "spec.containers.env", "name", &["name"]),
    both("Pod", "spec.containers.ports", "containerPort", &["containerPort", "protocol"]),
    both("Pod", "spec.containers.volumeMounts", "mountPath", &["mountPath"]),
    both("Pod", "spec.containers.resources.claims", "name", &["name"]),
    both("Pod", "spec.initContainers", "name", &["name"]),
    both("Pod", "spec.volumes", "name", &["name"]),
    both("Pod", "spec.resourceClaims", "name", &["name"]),
    both("Pod", "spec.schedulingGates", "name", &["name"]),
    both("Pod", "status.podIPs", "ip", &["ip"]),
    both("Pod", "status.resourceClaimStatuses", "name", &["name"]),
    both("ResourceClaim", "status.reservedFor", "uid", &["uid"]),
    MergeList {
        kind: "ResourceClaim",
        path: "status.devices",
        strategic: None,
        applied: Some(&["driver", "device", "pool", "shareID"]),
    },
    MergeList { kind: "ResourceClaim", path: "status.devices.conditions", strategic: None, applied: Some(&["type"]) },
];

/// Places of pod templates in workloads: what is in them is merged as in a pod.
const TEMPLATES: [&[&str]; 2] = [&["spec", "template"], &["spec", "jobTemplate", "spec", "template"]];

impl MergeList {
    /// Returns the row of a list, if it is merged.
    pub(crate) fn find(kind: &str, path: &[&str]) -> Option<&'static Self> {
        if let Some(in_template) = TEMPLATES.iter().find_map(|template| path.strip_prefix(*template)) {
            return Self::find("Pod", in_template);
        }
        let is_at =
            |row: &&Self| (row.kind.is_empty() || row.kind == kind) && row.path.split('.').eq(path.iter().copied());
        MERGE_LISTS.iter().find(is_at)
    }
}
