//! Claims of templates: made as the controller for claims decides.

use std::collections::BTreeMap;

use dra_alloc::claim_controller::{
    ClaimController, ControllerCall, ControllerResponse, ControllerSync, QueueKey, QueueKind, SyncStep,
};
use dra_alloc::pods::PodOptions;
use k8s_openapi::api::core::v1::PodResourceClaimStatus;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::scheduling::v1beta1::PodGroupResourceClaimStatus;
use serde::de::DeserializeOwned;

use super::names::Names;
use crate::candidates::is_pending;
use crate::manifest::{Manifests, name_of};

/// Claims that were made, and pods whose claims can't be.
#[derive(Debug, Default)]
pub(super) struct MadeClaims {
    pub(super) count: usize,
    /// Reasons, by namespace and name of the pod.
    pub(super) failures: BTreeMap<String, String>,
}

/// Makes the claims of all pod groups and pending pods, and records them.
pub(super) fn make(manifests: &mut Manifests, options: PodOptions) -> MadeClaims {
    let mut maker = ClaimMaker {
        controller: ClaimController::new(options),
        names: Names::of(manifests.claims.iter().map(|claim| &claim.metadata)),
        made: Vec::new(),
    };
    for template in &manifests.claim_templates {
        maker.controller.observe_template(template.clone());
    }
    for claim in &manifests.claims {
        maker.controller.observe_claim(claim.clone());
    }
    let mut failures = BTreeMap::new();
    for group in &mut manifests.pod_groups {
        for key in maker.controller.observe_pod_group(group.clone()) {
            let (recorded, failure) = maker.work::<PodGroupResourceClaimStatus>(&key, QueueKind::PodGroup);
            failures.extend(failure.map(|text| (name_of(&group.metadata), text)));
            if let Some(statuses) = recorded {
                group.status.get_or_insert_default().resource_claim_statuses = Some(statuses);
            }
        }
        maker.controller.observe_pod_group(group.clone());
    }
    for pod in manifests.pods.iter_mut().filter(|pod| is_pending(pod, None)) {
        if pod.spec.as_ref().is_none_or(|spec| spec.resource_claims.is_none()) {
            continue;
        }
        for key in maker.controller.observe_pod(pod.clone()) {
            let (recorded, failure) = maker.work::<PodResourceClaimStatus>(&key, QueueKind::Pod);
            failures.extend(failure.map(|text| (name_of(&pod.metadata), text)));
            if let Some(statuses) = recorded {
                let status = pod.status.get_or_insert_default().resource_claim_statuses.get_or_insert_default();
                status.retain(|known| !statuses.iter().any(|new| new.name == known.name));
                status.extend(statuses);
            }
        }
    }
    let count = maker.made.len();
    manifests.claims.extend(maker.made);
    MadeClaims { count, failures }
}

/// The controller, with an API server that only it writes to.
struct ClaimMaker {
    controller: ClaimController,
    names: Names,
    made: Vec<ResourceClaim>,
}

impl ClaimMaker {
    /// Works on a key to its end. Returns what is recorded in the status of its object, and the failure.
    fn work<T: DeserializeOwned>(&mut self, key: &QueueKey, kind: QueueKind) -> (Option<Vec<T>>, Option<String>) {
        let mut recorded = None;
        if key.kind != kind {
            return (recorded, None);
        }
        let mut sync: ControllerSync = self.controller.sync(key);
        loop {
            match sync.next_step() {
                SyncStep::Call(ControllerCall::CreateClaim { claim }) => {
                    let claim = self.create(*claim);
                    sync.answer(ControllerResponse::Claim(Box::new(claim)));
                }
                SyncStep::Call(ControllerCall::RecordClaims { body, .. }) => {
                    let statuses = body.pointer("/status/resourceClaimStatuses").cloned();
                    recorded = statuses.and_then(|statuses| serde_json::from_value(statuses).ok());
                    sync.answer(ControllerResponse::Done);
                }
                SyncStep::Call(_) => sync.answer(ControllerResponse::Done),
                SyncStep::Failed(error) => return (recorded, Some(error.event().unwrap_or_else(|| error.to_string()))),
                _ => return (recorded, None),
            }
        }
    }

    fn create(&mut self, mut claim: ResourceClaim) -> ResourceClaim {
        let namespace = claim.metadata.namespace.clone().unwrap_or_default();
        let prefix = claim.metadata.generate_name.clone().unwrap_or_default();
        claim.metadata.name = Some(self.names.make(&namespace, &prefix));
        claim.metadata.uid = Some(name_of(&claim.metadata));
        self.controller.observe_claim(claim.clone());
        self.made.push(claim.clone());
        claim
    }
}
