//! Replica sets of deployments: one for each template.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::revision::template_hash;

/// Label with which a deployment tells the pods of its templates apart.
pub const TEMPLATE_HASH: &str = "pod-template-hash";

/// Returns the replica set that a deployment has for its template as it is now, with all of its pods. The name ends in a hash of
/// the template.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use workload_pods::{TEMPLATE_HASH, replica_set_of};
/// let web: Deployment = serde_json::from_value(serde_json::json!({"metadata": {"name": "web"}, "spec": {
///     "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}}}}))?;
/// let set = replica_set_of(&web);
/// let hash = &set.metadata.labels.as_ref().unwrap()[TEMPLATE_HASH];
/// assert_eq!(set.metadata.name, Some(format!("web-{hash}")));
/// assert_eq!(set.spec.replicas, Some(3));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn replica_set_of(deployment: &Deployment) -> ReplicaSet {
    let Deployment { metadata, spec, .. } = deployment;
    let hash = template_hash(&spec.template);
    let own = metadata.name.clone().unwrap_or_default();
    let mut template = spec.template.clone();
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(TEMPLATE_HASH.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut selector = spec.selector.clone();
    selector.match_labels.get_or_insert_default().insert(TEMPLATE_HASH.to_owned(), hash.clone());
    let owner = OwnerReference {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        name: own.clone(),
        uid: metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    ReplicaSet {
        metadata: ObjectMeta {
            namespace: metadata.namespace.clone(),
            name: Some(format!("{own}-{hash}")),
            labels: Some(labels),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: ReplicaSetSpec {
            replicas: Some(spec.replicas.unwrap_or(1)),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        },
        status: None,
    }
}
