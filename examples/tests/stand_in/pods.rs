//! Pods with claims, as a scheduler leaves them.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::Api;
use kube::api::PostParams;
use serde_json::{from_value, json};

use super::StandIn;

const POST: PostParams = PostParams { dry_run: false, field_manager: None };

/// Creates a claim with a device of a driver, and a pod on the node that has it.
pub(crate) async fn bound_pod(server: &StandIn, name: &str, driver: &str) {
    let client = server.client();
    let claims: Api<ResourceClaim> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client);
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
    let claim = json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}});
    let mut claim: ResourceClaim = claims.create(&POST, &from_value(claim).unwrap()).await.unwrap();
    let container = json!({"name": "c", "image": "none", "resources": {"claims": [{"name": "r"}]}});
    let spec = json!({"nodeName": "node-1", "containers": [container],
        "resourceClaims": [{"name": "r", "resourceClaimName": name}]});
    let pod = json!({"metadata": {"name": name}, "spec": spec});
    let pod: Pod = pods.create(&POST, &from_value(pod).unwrap()).await.unwrap();
    let device = json!({"request": "r", "driver": driver, "pool": "node-1", "device": name});
    let consumer = json!({"resource": "pods", "name": name, "uid": pod.metadata.uid});
    let status = json!({"allocation": {"devices": {"results": [device]}}, "reservedFor": [consumer]});
    claim.status = from_value(status).unwrap();
    claims.replace_status(name, &POST, &claim).await.unwrap();
}
