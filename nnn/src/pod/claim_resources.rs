//! Node resources of a pod's claims, read from status fields that only the Kubernetes 1.37 types have.

use k8s_openapi::api::core::v1::PodStatus;

use dra_attrs::QuantityError;

use super::resources::Resources;

/// Node resources that a claim of a pod takes.
pub(crate) struct ClaimResources {
    /// Name of the claim.
    pub(crate) claim: String,
    /// Resources that the claim takes once, however many pods use it.
    pub(crate) shared: Resources,
    /// Resources that the claim takes for this pod alone, in addition to `shared`.
    pub(crate) own: Resources,
}

k8s_openapi::k8s_if_ge_1_37! {
    use k8s_openapi::api::core::v1::NodeAllocatableResourceClaimStatus;
    use dra_attrs::Quantity;

    pub(crate) fn claim_resources(status: &PodStatus) -> Result<Vec<ClaimResources>, QuantityError> {
        status.node_allocatable_resource_claim_statuses.iter().flatten().map(read).collect()
    }

    fn read(status: &NodeAllocatableResourceClaimStatus) -> Result<ClaimResources, QuantityError> {
        let (mut shared, mut own) = (Resources::default(), Resources::default());
        for mapped in status.mapping.iter().flatten() {
            shared.add(&Resources::new([(mapped.name.as_str(), Quantity::from_kube(&mapped.quantity)?)]));
        }
        for overhead in status.overhead.iter().flatten() {
            let name = overhead.name.as_str();
            if let Some(quantity) = &overhead.per_pod {
                own.add(&Resources::new([(name, Quantity::from_kube(quantity)?)]));
            }
            for quantity in status.containers.iter().flatten().filter_map(|_| overhead.per_container.as_ref()) {
                own.add(&Resources::new([(name, Quantity::from_kube(quantity)?)]));
            }
        }
        Ok(ClaimResources { claim: status.resource_claim_name.clone(), shared, own })
    }
}

k8s_openapi::k8s_if_le_1_36! {
    compile_error!(
        "nnn needs the Kubernetes 1.37 types: enable the feature `v1_37` or `latest` of k8s-openapi in the binary that uses it"
    );

    /// Returns the node resources of a pod's claims: a stub for a build without the Kubernetes 1.37 types.
    pub(crate) fn claim_resources(_: &PodStatus) -> Result<Vec<ClaimResources>, QuantityError> {
        Ok(Vec::new())
    }
}
