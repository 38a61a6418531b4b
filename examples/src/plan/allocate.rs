//! Claims as they are once a plan is carried out: for programs that come after the scheduler.

use std::cmp::Reverse;

use dra_alloc::objective::Objective;
use dra_alloc::pods::PodOptions;
use dra_attrs::Component;

use super::accept::Objects;
use super::place::Cluster;
use super::{PlanError, PlannedWorkload, Rules, admit};
use crate::manifest::{Manifests, name_of};
use crate::workload::{Made, Workload, make};

/// Pods and claims that were made, and the fate of the pods.
#[derive(Debug)]
#[non_exhaustive]
pub struct Allocated {
    /// Pods and claims that were made.
    pub made: Made,
    /// Namespaces and names of pods with a place, each with its node.
    pub placed: Vec<(String, String)>,
    /// Namespaces and names of pods without a place, each with the reason.
    pub waiting: Vec<(String, String)>,
}

/// Makes the pods and claims of manifests, and allocates the claims of the pods that a plan has a place for. Pods and claims stay
/// in the manifests; what decides about the places is taken out.
///
/// # Errors
/// See [`PlanError`].
///
/// ```
/// use dra_alloc::{GateSet, Profile};
/// use examples::manifest::Manifests;
/// use examples::plan::{Rules, allocate};
/// use examples::preempt::Who;
/// let mut manifests = Manifests::default();
/// manifests.read("all.yaml", r#"
/// {kind: Node, metadata: {name: n}}
/// ---
/// {kind: ResourceSlice, metadata: {name: s}, spec: {driver: gpu.example.com, nodeName: n,
///   pool: {name: n, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}}
/// ---
/// {kind: DeviceClass, metadata: {name: gpu}, spec: {}}
/// ---
/// {kind: ResourceClaimTemplate, metadata: {name: one}, spec: {spec: {devices: {requests: [
///   {name: r, exactly: {deviceClassName: gpu}}]}}}}
/// ---
/// {kind: StatefulSet, metadata: {name: db}, spec: {replicas: 2, podManagementPolicy: Parallel, template: {spec: {containers: [],
///   resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]}}}}
/// "#);
/// let rules = Rules { profile: Profile::V1_37, gates: GateSet::of(Profile::V1_37), who: Who::Room };
/// let allocated = allocate(&mut manifests, rules)?;
/// assert_eq!(allocated.placed, [("db-0".to_owned(), "n".to_owned())]);
/// assert_eq!(allocated.waiting[0].0, "db-1");
/// let is_allocated = |name: &str| {
///     let claim = manifests.claims.iter().find(|claim| claim.metadata.name.as_deref() == Some(name));
///     claim.and_then(|claim| claim.status.as_ref()?.allocation.as_ref()).is_some()
/// };
/// assert!(is_allocated("db-0-gpu-1") && !is_allocated("db-1-gpu-1"));
/// # Ok::<(), examples::plan::PlanError>(())
/// ```
pub fn allocate(manifests: &mut Manifests, rules: Rules) -> Result<Allocated, PlanError> {
    let made = make(manifests, PodOptions::new(Component::new(rules.profile, rules.gates)));
    admit(manifests);
    let first = Objective::default();
    let (mut cluster, objects) = (Cluster::new(manifests, rules, &first)?, Objects::default());
    let (mut placed, mut waiting) = (Vec::new(), Vec::new());
    let mut order: Vec<&Workload> = made.workloads.iter().collect();
    order.sort_by_key(|workload| Reverse(cluster.priority(workload)));
    for workload in order {
        let mut planned = PlannedWorkload::of(workload, String::new());
        cluster.place(workload, &made, &objects, &mut planned);
        placed.extend(planned.placed.into_iter().map(|pod| (beside(workload, &pod.name), pod.node)));
        for group in planned.waiting {
            waiting.extend(group.pods.iter().map(|pod| (beside(workload, pod), group.reason.clone())));
        }
    }
    cluster.give_back(manifests);
    Ok(Allocated { made, placed, waiting })
}

/// Returns the full name of a pod in the namespace of its workload.
fn beside(workload: &Workload, pod: &str) -> String {
    match workload.namespace() {
        "" => pod.to_owned(),
        namespace => format!("{namespace}/{pod}"),
    }
}

impl Cluster<'_> {
    /// Puts pods and claims back into manifests: the pods with the claims for their extended resources.
    fn give_back(self, manifests: &mut Manifests) {
        let (pods, claims, mut of_pods) = self.into_pods_and_claims();
        manifests.pods = pods;
        for pod in &mut manifests.pods {
            if let Some(claim) = of_pods.remove(&name_of(&pod.metadata)) {
                pod.status.get_or_insert_default().extended_resource_claim_status = Some(claim);
            }
        }
        manifests.claims = claims;
    }
}
