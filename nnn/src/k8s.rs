//! The one place that asks which Kubernetes version the types are of.

use k8s_openapi::api::core::v1::PodStatus;

use crate::amount::{AmountError, Resources};

/// Resources of the node that a claim of a pod takes.
pub(crate) struct ClaimResources {
    /// The claim's name.
    pub(crate) claim: String,
    /// What the claim takes, once for all pods that use it.
    pub(crate) shared: Resources,
    /// What it takes for this pod.
    pub(crate) own: Resources,
}

k8s_openapi::k8s_if_ge_1_37! {
    use k8s_openapi::api::core::v1::NodeAllocatableResourceClaimStatus;
    use crate::amount::Amount;

    pub(crate) fn claim_resources(status: &PodStatus) -> Result<Vec<ClaimResources>, AmountError> {
        status.node_allocatable_resource_claim_statuses.iter().flatten().map(read).collect()
    }

    fn read(status: &NodeAllocatableResourceClaimStatus) -> Result<ClaimResources, AmountError> {
        let (mut shared, mut own) = (Resources::default(), Resources::default());
        for mapped in status.mapping.iter().flatten() {
            shared.add(&Resources::new([(mapped.name.as_str(), Amount::parse(&mapped.quantity.0)?)]));
        }
        for overhead in status.overhead.iter().flatten() {
            let name = overhead.name.as_str();
            if let Some(quantity) = &overhead.per_pod {
                own.add(&Resources::new([(name, Amount::parse(&quantity.0)?)]));
            }
            for quantity in status.containers.iter().flatten().filter_map(|_| overhead.per_container.as_ref()) {
                own.add(&Resources::new([(name, Amount::parse(&quantity.0)?)]));
            }
        }
        Ok(ClaimResources { claim: status.resource_claim_name.clone(), shared, own })
    }
}

k8s_openapi::k8s_if_le_1_36! {
    compile_error!(
        "nnn needs the Kubernetes 1.37 types: enable the feature `v1_37` or `latest` of k8s-openapi in the binary that uses it"
    );

    /// Stands in, so that the sentence above is the only error.
    pub(crate) fn claim_resources(_: &PodStatus) -> Result<Vec<ClaimResources>, AmountError> {
        Ok(Vec::new())
    }
}
