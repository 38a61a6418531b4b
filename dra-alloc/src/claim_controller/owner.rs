//! A pod or pod group whose entries name templates, as the controller sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_attrs::Gate;
use dra_device::claims::{ClaimKey, ClaimOrigin, PodClaim, PodClaimError};
use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::{Pod, PodResourceClaim};
use k8s_openapi::api::resource::v1::{DeviceRequest, ResourceClaim, ResourceClaimTemplate};
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, PodGroupResourceClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::controller::ClaimController;
use super::error::ClaimMakingError;
use super::made_claim::make_claim;
use crate::pods::{
    Consumer, GroupClaimError, block_owner_deletion, check_group_owner, check_owner, claim_of_group_entry,
};

/// Situation of an entry of a pod or group.
pub(super) enum EntrySituation {
    /// Nothing is to be done: the claim is there, no claim is needed, or the pod waits for a claim of its group.
    Settled,
    /// The claim was made before, and its name is not recorded.
    Made(String),
    /// The claim is to be made.
    Missing(Box<ResourceClaim>),
}

impl ClaimController {
    /// Determines the situation of an entry of a pod.
    pub(super) fn pod_entry(&self, pod: &Pod, entry: &PodResourceClaim) -> Result<EntrySituation, ClaimMakingError> {
        let named = match PodClaim::of_entry(pod, entry) {
            Err(PodClaimError::NotCreated { .. }) => None,
            Err(error) => return Err(ClaimMakingError::Name(error)),
            Ok(None) => return Ok(EntrySituation::Settled),
            Ok(named) => named,
        };
        let is_owned = |claim: &ResourceClaim| check_owner(pod, claim, self.options).is_ok();
        let (Some(template), false) = (&entry.resource_claim_template_name, self.is_there(named, is_owned)) else {
            return Ok(EntrySituation::Settled);
        };
        let group = self.group_of(pod)?;
        match Consumer::of_entry(pod, entry, group.map(|group| &**group), self.options)? {
            Consumer::PodGroup { uid, .. } => {
                let made = self.made_claim(pod.namespace(), &uid, &entry.name);
                Ok(made.map_or(EntrySituation::Settled, made_already))
            }
            Consumer::Pod { .. } => {
                let name = pod.metadata.name.clone().unwrap_or_default();
                let owner = self.owner_reference("v1", "Pod", name, pod.uid().to_owned());
                self.make(pod.namespace(), template, &entry.name, owner)
            }
        }
    }

    /// Determines the situation of an entry of a pod group.
    pub(super) fn group_entry(
        &self,
        group: &PodGroup,
        entry: &PodGroupResourceClaim,
    ) -> Result<EntrySituation, ClaimMakingError> {
        let named = match claim_of_group_entry(group, entry) {
            Err(GroupClaimError::NotCreated { .. }) => None,
            Err(error) => return Err(ClaimMakingError::GroupName(error)),
            Ok(None) => return Ok(EntrySituation::Settled),
            Ok(named) => named,
        };
        let is_owned = |claim: &ResourceClaim| check_group_owner(group, claim).is_ok();
        let (Some(template), false) = (&entry.resource_claim_template_name, self.is_there(named, is_owned)) else {
            return Ok(EntrySituation::Settled);
        };
        let metadata = &group.metadata;
        let (name, uid) = (metadata.name.clone().unwrap_or_default(), metadata.uid.clone().unwrap_or_default());
        let owner = self.owner_reference(self.group_version.api_version(), "PodGroup", name, uid);
        self.make(metadata.namespace.as_deref().unwrap_or_default(), template, &entry.name, owner)
    }

    /// Returns true if the claim that an entry names is there and is its own. An empty name is none.
    fn is_there(&self, named: Option<PodClaim>, is_owned: impl Fn(&ResourceClaim) -> bool) -> bool {
        let named = named.filter(|named| !named.claim.name.is_empty());
        named.is_some_and(|PodClaim { claim, origin }| {
            self.claims.get(&claim).is_some_and(|claim| origin == ClaimOrigin::Named || is_owned(claim))
        })
    }

    /// Returns the group of a pod, if groups count.
    pub(super) fn group_of(&self, pod: &Pod) -> Result<Option<&Arc<PodGroup>>, ClaimMakingError> {
        let Some(name) = pod.group_name().filter(|_| self.has_groups()) else { return Ok(None) };
        let group = self.groups.get(&ClaimKey::new(pod.namespace(), name));
        group.map(Some).ok_or_else(|| ClaimMakingError::GroupNotFound { group: name.to_owned() })
    }

    /// Finds the claim of an entry that its owner has already, or makes it from the template.
    fn make(
        &self,
        namespace: &str,
        template: &str,
        entry: &str,
        owner: OwnerReference,
    ) -> Result<EntrySituation, ClaimMakingError> {
        if let Some(made) = self.made_claim(namespace, &owner.uid, entry) {
            return Ok(made_already(made));
        }
        let found = self.templates.get(&ClaimKey::new(namespace, template));
        let template = found.ok_or_else(|| ClaimMakingError::TemplateNotFound { template: template.to_owned() })?;
        self.check_gates(template)?;
        Ok(EntrySituation::Missing(Box::new(make_claim(template, entry, owner))))
    }

    fn owner_reference(&self, api_version: &str, kind: &str, name: String, uid: String) -> OwnerReference {
        OwnerReference {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name,
            uid,
            controller: Some(true),
            block_owner_deletion: block_owner_deletion(self.options.profile().rules().plugin.owners),
        }
    }

    fn check_gates(&self, template: &ResourceClaimTemplate) -> Result<(), ClaimMakingError> {
        let spec = template.spec.as_ref().and_then(|spec| spec.spec.as_ref());
        let devices = spec.and_then(|spec| spec.devices.as_ref());
        let requests = devices.and_then(|devices| devices.requests.as_deref()).unwrap_or_default();
        let is_admin = |request: &DeviceRequest| {
            request.exactly.as_ref().is_some_and(|exactly| exactly.admin_access == Some(true))
        };
        let has_list =
            |request: &DeviceRequest| request.first_available.as_ref().is_some_and(|choices| !choices.is_empty());
        if requests.iter().any(is_admin) && !self.options.has(Gate::AdminAccess) {
            return Err(ClaimMakingError::AdminAccessOff);
        }
        if requests.iter().any(has_list) && !self.options.has(Gate::PrioritizedList) {
            return Err(ClaimMakingError::PrioritizedListOff);
        }
        Ok(())
    }
}

fn made_already(claim: &ResourceClaim) -> EntrySituation {
    EntrySituation::Made(claim.metadata.name.clone().unwrap_or_default())
}

/// Returns the status entries of an apply, by the names of the entries.
pub(super) fn recorded(names: &BTreeMap<String, String>) -> Vec<serde_json::Value> {
    let entry = |(name, claim): (&String, &String)| serde_json::json!({"name": name, "resourceClaimName": claim});
    names.iter().map(entry).collect()
}
