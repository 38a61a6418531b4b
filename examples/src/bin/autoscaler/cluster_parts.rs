//! Parts of a cluster about which a question is.

use dra_alloc::pods::ClaimTracker;
use dra_alloc::{Classes, Inventory};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

/// Cluster about which a question is: that of manifests, or one that is watched.
pub(crate) struct ClusterParts<'a> {
    pub(crate) nodes: Vec<&'a Node>,
    pub(crate) pods: Vec<&'a Pod>,
    pub(crate) pod_groups: &'a [PodGroup],
    pub(crate) budgets: Vec<&'a PodDisruptionBudget>,
    pub(crate) inventory: &'a mut Inventory,
    pub(crate) classes: &'a Classes,
    pub(crate) claims: &'a ClaimTracker,
}
