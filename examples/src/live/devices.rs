//! Devices of a cluster, and who has them, listed once.

use dra_live::connect::Cluster;
use dra_live::failure::LiveError;
use dra_live::listing::{list, list_taint_rules};

use crate::manifest::Manifests;

/// Lists slices, claims and taint rules.
///
/// # Errors
/// A kind can't be listed. A server without taint rules has none.
pub async fn list_devices(cluster: &Cluster) -> Result<Manifests, LiveError> {
    let mut objects = Manifests::default();
    objects.slices = list(&cluster.client, "resourceslices").await?;
    objects.claims = list(&cluster.client, "resourceclaims").await?;
    objects.taint_rules = list_taint_rules(&cluster.client).await?;
    Ok(objects)
}

/// Lists slices, claims and taint rules, and the pods that use claims.
///
/// # Errors
/// A kind can't be listed.
pub async fn list_devices_and_pods(cluster: &Cluster) -> Result<Manifests, LiveError> {
    let mut objects = list_devices(cluster).await?;
    objects.pods = list(&cluster.client, "pods").await?;
    Ok(objects)
}
