//! Node resources of a pod's claims, read from status fields that only the Kubernetes 1.37 types have.

use dra_attrs::{ClaimAmounts, QuantityError};
use k8s_openapi::api::core::v1::PodStatus;

k8s_openapi::k8s_if_ge_1_37! {
    use dra_attrs::{DeviceOverhead, Quantity};
    use k8s_openapi::api::core::v1::NodeAllocatableResourceClaimStatus;
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

    /// Returns the node resources that the claims of a pod take, as its status reports them.
    pub(crate) fn claim_amounts(status: &PodStatus) -> Result<Vec<ClaimAmounts>, QuantityError> {
        status.node_allocatable_resource_claim_statuses.iter().flatten().map(read).collect()
    }

    fn read(status: &NodeAllocatableResourceClaimStatus) -> Result<ClaimAmounts, QuantityError> {
        let mut amounts = ClaimAmounts::new(status.resource_claim_name.clone());
        amounts.containers = status.containers.clone().unwrap_or_default();
        for mapped in status.mapping.iter().flatten() {
            let sum = amounts.mapping.entry(mapped.name.clone()).or_default();
            *sum = sum.saturating_add(Quantity::from_kube(&mapped.quantity)?);
        }
        let read = |amount: &Option<KubeQuantity>| amount.as_ref().map(Quantity::from_kube).transpose();
        for overhead in status.overhead.iter().flatten() {
            let (per_pod, per_container) = (read(&overhead.per_pod)?, read(&overhead.per_container)?);
            amounts.overhead.entry(overhead.name.clone()).or_default().add(DeviceOverhead { per_pod, per_container });
        }
        Ok(amounts)
    }
}

k8s_openapi::k8s_if_le_1_36! {
    compile_error!(
        "nnn needs the Kubernetes 1.37 types: enable the feature `v1_37` or `latest` of k8s-openapi in the binary that uses it"
    );

    /// Returns the node resources of a pod's claims: a stub for a build without the Kubernetes 1.37 types.
    pub(crate) fn claim_amounts(_: &PodStatus) -> Result<Vec<ClaimAmounts>, QuantityError> {
        Ok(Vec::new())
    }
}
