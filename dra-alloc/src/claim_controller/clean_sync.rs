//! Work on a claim: consumers that are gone or done lose it.

use std::collections::{BTreeSet, VecDeque};

use dra_device::claims::ClaimKey;
use dra_device::internal::{PodFields, controller as controller_of};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference};

use super::call::{ControllerCall, ControllerResponse};
use super::clean::{CleanStep, OwnerPhase};
use super::controller::{ClaimController, is_done};
use super::error::SyncError;
use super::step::SyncStep;

/// Fate of an entry of `status.reservedFor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    Goes,
    /// The cache does not have the consumer, perhaps not yet: the API server must be asked.
    Unknown,
}

/// Work on a claim.
#[derive(Clone, Debug)]
pub(super) struct CleanSync {
    claim: Box<ResourceClaim>,
    owner: OwnerPhase,
    fates: Vec<Fate>,
    /// Steps that are left; `None` while a fate is unknown.
    steps: Option<VecDeque<CleanStep>>,
    failed: Option<SyncError>,
}

impl CleanSync {
    pub(super) fn new(controller: &ClaimController, claim: &ResourceClaim) -> Self {
        let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
        let fates = consumers(claim).iter().map(|consumer| controller.fate_of(namespace, consumer)).collect();
        let owner = controller.fate_of_owner(namespace, claim);
        Self { claim: Box::new(claim.clone()), owner, fates, steps: None, failed: None }
    }

    pub(super) fn next_step(&mut self) -> SyncStep {
        if let Some(error) = &self.failed {
            return SyncStep::Failed(error.clone());
        }
        if let Some(consumer) = self.unknown() {
            let namespace = self.claim.metadata.namespace.clone().unwrap_or_default();
            return SyncStep::Call(ControllerCall::GetConsumer { namespace, consumer });
        }
        let (claim, fates, owner) = (&self.claim, &self.fates, self.owner);
        let steps = self.steps.get_or_insert_with(|| {
            let going = consumers(claim).iter().zip(fates).filter(|(_, fate)| **fate == Fate::Goes);
            // The API server keeps entries unique by UID.
            let going: BTreeSet<&str> = going.map(|(consumer, _)| consumer.uid.as_str()).collect();
            CleanStep::of_claim(claim, |consumer| !going.contains(consumer.uid.as_str()), owner).into()
        });
        while let Some(step) = steps.front() {
            if let Some(call) = step.call(&self.claim) {
                return SyncStep::Call(call);
            }
            steps.pop_front();
        }
        SyncStep::Done
    }

    pub(super) fn answer(&mut self, answer: ControllerResponse) {
        let unknown = self.unknown();
        if let ControllerResponse::Failed(text) = answer {
            let is_deletion = self.steps.as_ref().is_some_and(|steps| steps.front() == Some(&CleanStep::Delete));
            let claim = ClaimKey::from_metadata(&self.claim.metadata);
            self.failed =
                Some(if is_deletion { SyncError::NotDeleted { claim, text } } else { SyncError::Call { text } });
        } else if let Some(consumer) = unknown {
            let found = matches!(answer, ControllerResponse::Consumer(Some(uid)) if uid == consumer.uid);
            let fate = if found { Fate::Stays } else { Fate::Goes };
            let unknown = self.fates.iter_mut().find(|fate| **fate == Fate::Unknown);
            if let Some(unknown) = unknown {
                *unknown = fate;
            }
        } else {
            self.steps.iter_mut().for_each(|steps| drop(steps.pop_front()));
            if let ControllerResponse::Claim(claim) = answer {
                self.claim = claim;
            }
        }
    }

    /// Returns the first consumer whose fate is unknown.
    fn unknown(&self) -> Option<ResourceClaimConsumerReference> {
        let mut unknown = consumers(&self.claim).iter().zip(&self.fates).filter(|(_, fate)| **fate == Fate::Unknown);
        unknown.next().map(|(consumer, _)| consumer.clone())
    }
}

impl ClaimController {
    /// Determines the fate of an entry. A pod goes if it is gone, replaced or done; a group if it is gone or replaced.
    fn fate_of(&self, namespace: &str, consumer: &ResourceClaimConsumerReference) -> Fate {
        let key = ClaimKey::new(namespace, &consumer.name);
        let (known_uid, is_over) = match (consumer.api_group.as_deref().unwrap_or_default(), consumer.resource.as_str())
        {
            ("", "pods") => {
                let pod = self.pods.get(&key);
                (pod.map(|pod| pod.uid()), pod.is_some_and(|pod| is_done(pod)))
            }
            ("scheduling.k8s.io", "podgroups") if self.has_groups() => {
                let group = self.groups.get(&key);
                (group.map(|group| group.metadata.uid.as_deref().unwrap_or_default()), false)
            }
            _ => return Fate::Stays,
        };
        match known_uid {
            _ if self.deleted.contains(&consumer.uid) => Fate::Goes,
            None => Fate::Unknown,
            Some(uid) if uid != consumer.uid || is_over => Fate::Goes,
            Some(_) => Fate::Stays,
        }
    }

    /// Determines the fate of the pod that owns a claim.
    fn fate_of_owner(&self, namespace: &str, claim: &ResourceClaim) -> OwnerPhase {
        let owner = controller_of(&claim.metadata).filter(|owner| owner.api_version == "v1" && owner.kind == "Pod");
        let pod = owner.and_then(|owner| Some((owner, self.pods.get(&ClaimKey::new(namespace, &owner.name))?)));
        match pod {
            Some((owner, pod)) if pod.uid() != owner.uid || is_done(pod) => OwnerPhase::Done,
            _ => OwnerPhase::Stays,
        }
    }
}

fn consumers(claim: &ResourceClaim) -> &[ResourceClaimConsumerReference] {
    claim.status.as_ref().and_then(|status| status.reserved_for.as_deref()).unwrap_or_default()
}
