//! Step "allocate": the scheduler allocates claims on one NUMA node (KEP-6072), and explains failures.

use dra_alloc::explain::Detail;
use dra_alloc::selector::SelectorCache;
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Inventory, Outcome, Verdict, cluster_summary};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{
    AllocationResult, ResourceClaim, ResourceClaimConsumerReference, ResourceClaimStatus,
};

use super::cluster::{Cluster, PROFILE, gates, name};
use super::error::TourError;
use super::page::Page;

pub(super) fn allocate(cluster: &mut Cluster, page: &mut Page) -> Result<(), TourError> {
    page.step("The scheduler allocates the claims");
    let inventory = Inventory::new(cluster.slices.iter().cloned());
    let selectors = SelectorCache::default();
    let mut state = AllocatedState::new(Component::new(Profile::V1_37, gates()));
    for claim in &mut cluster.claims {
        let classes = Classes::new(cluster.classes.iter().cloned());
        let allocator = Allocator::new(Component::new(PROFILE, gates()), &inventory, &classes)
            .with_selector_cache(&selectors)
            .with_explanation(Detail::Summary);
        let verdicts = allocator.allocate_each(&state, &cluster.nodes, std::slice::from_ref(claim), Budget::default());
        let verdicts = verdicts.collect::<Result<Vec<_>, _>>()?;
        page.input(asked(claim));
        if let Some((node, result)) = first(&cluster.nodes, &verdicts) {
            state.assume(claim, result)?;
            page.decision(format!("allocated on {node}: {}", devices(result).join(", ")));
            page.reason(
                "The first combination in kube-scheduler's order whose lists of NUMA nodes have one in common.",
            );
            claim.status = Some(status(result, &cluster.pod));
        } else {
            page.decision(format!("not allocated: {}", cluster_summary(&verdicts)));
            page.reason(reasons(&cluster.nodes, &verdicts).join("\n"));
        }
    }
    Ok(())
}

/// Returns the first node that can serve the claim.
fn first<'v>(nodes: &'v [Node], verdicts: &'v [Verdict]) -> Option<(&'v str, &'v AllocationResult)> {
    nodes.iter().zip(verdicts).find_map(|(node, verdict)| match &verdict.outcome {
        Outcome::Allocated(results) => Some((name(&node.metadata), results.first()?)),
        _ => None,
    })
}

fn asked(claim: &ResourceClaim) -> String {
    let spec = claim.spec.as_ref().and_then(|spec| spec.devices.as_ref());
    let requests = spec.and_then(|devices| devices.requests.as_deref()).unwrap_or_default();
    let requests = requests.iter().filter_map(|request| {
        let exactly = request.exactly.as_ref()?;
        Some(format!("{} of class {}", exactly.count.unwrap_or(1), exactly.device_class_name))
    });
    let requests: Vec<String> = requests.collect();
    format!("claim {}: {}, on one NUMA node", name(&claim.metadata), requests.join(", "))
}

fn devices(result: &AllocationResult) -> Vec<&str> {
    let results = result.devices.iter().flat_map(|devices| devices.results.iter().flatten());
    results.map(|result| result.device.as_str()).collect()
}

fn reasons(nodes: &[Node], verdicts: &[Verdict]) -> Vec<String> {
    let told = nodes.iter().zip(verdicts).filter_map(|(node, verdict)| Some((node, verdict.explanation.as_ref()?)));
    told.map(|(node, explanation)| format!("{}: {explanation}", name(&node.metadata))).collect()
}

/// Returns the claim status that the scheduler writes: the allocation, and the pod that uses it.
fn status(result: &AllocationResult, pod: &Pod) -> ResourceClaimStatus {
    let consumer = ResourceClaimConsumerReference {
        resource: "pods".to_owned(),
        name: name(&pod.metadata).to_owned(),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        ..ResourceClaimConsumerReference::default()
    };
    ResourceClaimStatus { allocation: Some(result.clone()), reserved_for: Some(vec![consumer]), devices: None }
}
