//! Work on a pod or pod group: claims are made, recorded, and for a pod on a node reserved.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use dra_device::claims::{ClaimKey, ClaimOrigin, PodClaim};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use serde_json::json;

use super::call::{ControllerCall, ControllerResponse};
use super::controller::{ClaimController, group_entries, is_allocated, is_on_node, pod_entries};
use super::error::{ClaimMakingError, SyncError};
use super::owner::{EntrySituation, recorded};
use super::queue::{QueueKey, QueueKind};
use super::step::SyncStep;
use crate::pods::{Consumer, can_reserve, check_owner, is_reserved_for};

/// Work on a pod or group.
#[derive(Clone, Debug)]
pub(super) struct OwnerSync {
    owner: QueueKey,
    api_version: &'static str,
    steps: VecDeque<Step>,
    /// Names to record, by entry.
    names: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
enum Step {
    Create { entry: String, claim: Box<ResourceClaim> },
    Record,
    Reserve { claim: Box<ResourceClaim> },
    Fail(SyncError),
}

impl OwnerSync {
    fn new(owner: QueueKey, api_version: &'static str) -> Self {
        Self { owner, api_version, steps: VecDeque::new(), names: BTreeMap::new() }
    }

    pub(super) fn of_pod(controller: &ClaimController, key: &QueueKey, pod: &Pod) -> Self {
        let mut sync = Self::new(key.clone(), "v1");
        let entries = pod_entries(pod).iter();
        let is_planned = sync.plan(entries.map(|entry| (entry.name.as_str(), controller.pod_entry(pod, entry))));
        if is_planned && is_on_node(pod) {
            sync.plan_reservations(controller, pod);
        }
        sync
    }

    pub(super) fn of_group(controller: &ClaimController, key: &QueueKey, group: &PodGroup) -> Self {
        let mut sync = Self::new(key.clone(), controller.group_version.api_version());
        sync.plan(group_entries(group).iter().map(|entry| (entry.name.as_str(), controller.group_entry(group, entry))));
        sync
    }

    /// Plans the claims to make and to record, until the first entry with an error. Returns true if there was none.
    fn plan<'e>(&mut self, entries: impl Iterator<Item = (&'e str, Result<EntrySituation, ClaimMakingError>)>) -> bool {
        for (entry, situation) in entries {
            match situation {
                Ok(EntrySituation::Settled) => {}
                Ok(EntrySituation::Made(name)) => drop(self.names.insert(entry.to_owned(), name)),
                Ok(EntrySituation::Missing(claim)) => {
                    self.steps.push_back(Step::Create { entry: entry.to_owned(), claim });
                }
                Err(error) => {
                    self.steps.push_back(Step::Fail(self.not_made(entry, error)));
                    return false;
                }
            }
        }
        self.steps.push_back(Step::Record);
        true
    }

    /// Plans the reservations of a pod on a node. Names that have just been recorded count from the next look on.
    fn plan_reservations(&mut self, controller: &ClaimController, pod: &Pod) {
        for entry in pod_entries(pod) {
            let named = match PodClaim::of_entry(pod, entry) {
                Ok(Some(named)) => named,
                Ok(None) => continue,
                Err(error) => return self.steps.push_back(Step::Fail(SyncError::Name(error))),
            };
            let Some(claim) = controller.claims.get(&named.claim) else { return };
            let is_owned = match named.origin {
                ClaimOrigin::Template => check_owner(pod, claim, controller.options),
                ClaimOrigin::Named => Ok(()),
            };
            if let Err(error) = is_owned {
                return self.steps.push_back(Step::Fail(SyncError::Owner(error)));
            }
            if !is_allocated(claim) || is_reserved_for(pod, claim, controller.options) {
                continue;
            }
            let consumer = controller.group_of(pod).map_err(|error| self.not_made(&entry.name, error));
            let consumer = consumer.and_then(|group| {
                let group: Option<&PodGroup> = group.map(Arc::as_ref);
                let consumer = Consumer::of_entry(pod, entry, group, controller.options)?;
                can_reserve(claim, &consumer)
                    .map_err(|full| SyncError::Full { claim: ClaimKey::from_metadata(&claim.metadata), full })?;
                Ok(consumer)
            });
            match consumer {
                Err(error) => return self.steps.push_back(Step::Fail(error)),
                Ok(consumer) => {
                    let mut claim = Box::new(ResourceClaim::clone(claim));
                    let status = claim.status.get_or_insert_default();
                    status.reserved_for.get_or_insert_default().push(consumer.reference());
                    self.steps.push_back(Step::Reserve { claim });
                }
            }
        }
    }

    pub(super) fn next_step(&mut self) -> SyncStep {
        if matches!(self.steps.front(), Some(Step::Record)) && self.names.is_empty() {
            self.steps.pop_front();
        }
        match self.steps.front() {
            None => SyncStep::Done,
            Some(Step::Create { claim, .. }) => SyncStep::Call(ControllerCall::CreateClaim { claim: claim.clone() }),
            Some(Step::Record) => {
                let owner = &self.owner;
                let kind = if owner.kind == QueueKind::Pod { "Pod" } else { "PodGroup" };
                let body = json!({"apiVersion": self.api_version, "kind": kind,
                    "metadata": {"name": owner.name, "namespace": owner.namespace},
                    "status": {"resourceClaimStatuses": recorded(&self.names)}});
                SyncStep::Call(ControllerCall::RecordClaims { owner: owner.clone(), body })
            }
            Some(Step::Reserve { claim }) => SyncStep::Call(ControllerCall::UpdateStatus { claim: claim.clone() }),
            Some(Step::Fail(error)) => SyncStep::Failed(error.clone()),
        }
    }

    pub(super) fn answer(&mut self, answer: ControllerResponse) {
        let step = if matches!(self.steps.front(), Some(Step::Fail(_))) { None } else { self.steps.pop_front() };
        let Some(step) = step else { return };
        match (step, answer) {
            (step, ControllerResponse::Failed(text)) => self.fail(step, text),
            (Step::Create { entry, .. }, ControllerResponse::Claim(claim)) => {
                self.names.insert(entry, claim.metadata.name.unwrap_or_default());
            }
            _ => {}
        }
    }

    fn fail(&mut self, step: Step, text: String) {
        let error = match step {
            Step::Create { entry, .. } => self.not_made(&entry, ClaimMakingError::Refused { text }),
            Step::Reserve { claim } => SyncError::NotReserved { claim: ClaimKey::from_metadata(&claim.metadata), text },
            Step::Record | Step::Fail(_) => SyncError::NotRecorded { owner: self.shown_owner(), text },
        };
        self.steps = VecDeque::from([Step::Fail(error)]);
    }

    fn not_made(&self, entry: &str, error: ClaimMakingError) -> SyncError {
        let kind = if self.owner.kind == QueueKind::Pod { "PodResourceClaim" } else { "PodGroupResourceClaim" };
        SyncError::NotMade { owner: self.shown_owner(), entry: format!("{kind} {entry}"), error }
    }

    fn shown_owner(&self) -> String {
        let kind = if self.owner.kind == QueueKind::Pod { "pod" } else { "podgroup" };
        format!("{kind} {}/{}", self.owner.namespace, self.owner.name)
    }
}
