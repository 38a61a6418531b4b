//! Memory of the controller: objects as watches show them, and what a change gives to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_attrs::Gate;
use dra_attrs::internal::release::{ControllerRules, LateTemplate, SpecialClaim, UnneededEntry};
use dra_device::claims::{ClaimKey, ClaimOrigin, PodClaim};
use dra_device::internal::{PodFields, controller, extended_claim};
use k8s_openapi::api::core::v1::{Pod, PodResourceClaim};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate};
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, PodGroupResourceClaim};

use super::call::PodGroupVersion;
use super::deleted::DeletedUids;
use super::links::Links;
use super::made_claim::ENTRY_ANNOTATION;
use super::queue::{DistinctKeys, QueueKey, QueueKind};
use crate::pods::{PodOptions, check_group_owner, check_owner, claim_of_group_entry, is_reserved_for};

/// Memory of the controller for claims. Every method with which a watch shows an object returns the keys that are to be
/// looked at because of it, each once; see [`ClaimController::sync`].
///
/// # Complexity
/// A change costs log n, and for each pod and group that uses the changed object as much as its claims.
#[derive(Clone, Debug)]
pub struct ClaimController {
    pub(super) options: PodOptions,
    pub(super) group_version: PodGroupVersion,
    pub(super) claims: BTreeMap<ClaimKey, Arc<ResourceClaim>>,
    pub(super) templates: BTreeMap<ClaimKey, Arc<ResourceClaimTemplate>>,
    pub(super) pods: BTreeMap<ClaimKey, Arc<Pod>>,
    pub(super) groups: BTreeMap<ClaimKey, Arc<PodGroup>>,
    pub(super) deleted: DeletedUids,
    /// Claims with the UIDs of the pods and groups that own them.
    owners: Links<ClaimKey, String>,
    /// Pods and groups with what they name.
    uses: Links<QueueKey, Used>,
}

/// Object that a pod or group names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Used {
    Claim(ClaimKey),
    Template(ClaimKey),
    Group(ClaimKey),
}

impl ClaimController {
    /// Creates a controller that has seen nothing. Pod groups have the version of Kubernetes 1.37.
    #[must_use]
    pub fn new(options: PodOptions) -> Self {
        Self {
            options,
            group_version: PodGroupVersion::default(),
            claims: BTreeMap::new(),
            templates: BTreeMap::new(),
            pods: BTreeMap::new(),
            groups: BTreeMap::new(),
            deleted: DeletedUids::default(),
            owners: Links::default(),
            uses: Links::default(),
        }
    }

    /// Sets the version of pod groups, which owner references and applies have.
    #[must_use]
    pub fn with_group_version(self, group_version: PodGroupVersion) -> Self {
        Self { group_version, ..self }
    }

    /// Shows a pod, new or changed.
    pub fn observe_pod(&mut self, pod: impl Into<Arc<Pod>>) -> Vec<QueueKey> {
        let pod = pod.into();
        let key = ClaimKey::from_metadata(&pod.metadata);
        self.uses.set(&QueueKey::new(QueueKind::Pod, &key), used_by_pod(&pod));
        self.pods.insert(key, Arc::clone(&pod));
        let mut keys = DistinctKeys::default();
        self.add_pod(&pod, is_done(&pod), &mut keys);
        keys.into_keys()
    }

    /// Shows that a pod is gone. `pod` is its last state.
    pub fn observe_pod_deleted(&mut self, pod: &Pod) -> Vec<QueueKey> {
        let key = ClaimKey::from_metadata(&pod.metadata);
        self.uses.set(&QueueKey::new(QueueKind::Pod, &key), []);
        self.pods.remove(&key);
        self.deleted.insert(pod.uid());
        let mut keys = DistinctKeys::default();
        self.add_pod(pod, true, &mut keys);
        keys.into_keys()
    }

    /// Shows a pod group, new or changed: its pods may wait for its claims.
    pub fn observe_pod_group(&mut self, group: impl Into<Arc<PodGroup>>) -> Vec<QueueKey> {
        let group = group.into();
        let key = ClaimKey::from_metadata(&group.metadata);
        self.uses.set(&QueueKey::new(QueueKind::PodGroup, &key), used_by_group(&group));
        self.groups.insert(key.clone(), Arc::clone(&group));
        let mut keys = DistinctKeys::default();
        self.add_group(&group, &mut keys);
        if self.has_groups() {
            self.add_users(&Used::Group(key), &mut keys);
        }
        keys.into_keys()
    }

    /// Shows that a pod group is gone. `group` is its last state.
    pub fn observe_pod_group_deleted(&mut self, group: &PodGroup) -> Vec<QueueKey> {
        let key = ClaimKey::from_metadata(&group.metadata);
        self.uses.set(&QueueKey::new(QueueKind::PodGroup, &key), []);
        self.groups.remove(&key);
        if !self.has_groups() {
            return Vec::new();
        }
        self.deleted.insert(group.metadata.uid.as_deref().unwrap_or_default());
        let named = group_entries(group).iter().filter_map(|entry| claim_of_group_entry(group, entry).ok().flatten());
        let mut keys = DistinctKeys::default();
        named.for_each(|named| keys.add(QueueKind::Claim, &named.claim));
        keys.into_keys()
    }

    /// Shows a claim, new or changed, also one that the controller has just created.
    pub fn observe_claim(&mut self, claim: impl Into<Arc<ResourceClaim>>) -> Vec<QueueKey> {
        let claim = claim.into();
        let key = ClaimKey::from_metadata(&claim.metadata);
        self.owners.set(&key, owner_uid(&claim));
        self.claims.insert(key.clone(), claim);
        let mut keys = DistinctKeys::default();
        keys.add(QueueKind::Claim, &key);
        self.add_users(&Used::Claim(key), &mut keys);
        keys.into_keys()
    }

    /// Shows that a claim is gone.
    pub fn observe_claim_deleted(&mut self, namespace: &str, name: &str) -> Vec<QueueKey> {
        let key = ClaimKey::new(namespace, name);
        self.owners.set(&key, None);
        self.claims.remove(&key);
        let mut keys = DistinctKeys::default();
        self.add_users(&Used::Claim(key), &mut keys);
        keys.into_keys()
    }

    /// Shows a template, new or changed: pods and groups may wait for it.
    pub fn observe_template(&mut self, template: impl Into<Arc<ResourceClaimTemplate>>) -> Vec<QueueKey> {
        let template = template.into();
        let key = ClaimKey::from_metadata(&template.metadata);
        self.templates.insert(key.clone(), template);
        let mut keys = DistinctKeys::default();
        match self.rules().late_template {
            LateTemplate::WaitsForRetry => {}
            LateTemplate::WakesPods => self.add_users(&Used::Template(key), &mut keys),
        }
        keys.into_keys()
    }

    /// Shows that a template is gone.
    pub fn observe_template_deleted(&mut self, namespace: &str, name: &str) {
        self.templates.remove(&ClaimKey::new(namespace, name));
    }

    /// Returns the claim that was made for an entry of a pod or group, recorded or not; the first by name of several.
    pub(super) fn made_claim(&self, namespace: &str, owner_uid: &str, entry: &str) -> Option<&ResourceClaim> {
        let owner_uid = owner_uid.to_owned();
        let owned = self.owners.to(&owner_uid).filter_map(|key| self.claims.get(key));
        let mut owned = owned.filter(|claim| claim.metadata.namespace.as_deref().unwrap_or_default() == namespace);
        let is_for_entry = |claim: &&Arc<ResourceClaim>| {
            let annotations = claim.metadata.annotations.as_ref();
            annotations.and_then(|annotations| annotations.get(ENTRY_ANNOTATION)).is_some_and(|name| name == entry)
        };
        owned.find(is_for_entry).map(|claim| &**claim)
    }

    fn rules(&self) -> &'static ControllerRules {
        &self.options.profile().rules().controller
    }

    /// Returns true if pod groups count.
    pub(super) fn has_groups(&self) -> bool {
        self.options.has(Gate::WorkloadResourceClaims)
    }

    /// Adds what the pods and groups that name an object give to do.
    fn add_users(&self, used: &Used, keys: &mut DistinctKeys) {
        for user in self.uses.to(used) {
            let object = user.object();
            if let Some(pod) = self.pods.get(&object).filter(|_| user.kind == QueueKind::Pod) {
                self.add_pod(pod, is_done(pod), keys);
            }
            if let Some(group) = self.groups.get(&object).filter(|_| user.kind == QueueKind::PodGroup) {
                self.add_group(group, keys);
            }
        }
    }

    /// Adds the claims of a pod that needs them no more, and the pod if it needs work.
    fn add_pod(&self, pod: &Pod, is_over: bool, keys: &mut DistinctKeys) {
        if is_over {
            let named = pod_entries(pod).iter().filter_map(|entry| PodClaim::of_entry(pod, entry).ok().flatten());
            let special = match self.rules().special_claim {
                SpecialClaim::StaysWithPod => None,
                SpecialClaim::CleanedUp => extended_claim(pod),
            };
            named.chain(special).for_each(|named| keys.add(QueueKind::Claim, &named.claim));
        }
        if self.pod_needs_work(pod) {
            keys.add(QueueKind::Pod, &ClaimKey::from_metadata(&pod.metadata));
        }
    }

    /// Returns true if a claim of a pod must be made, recorded or reserved. A claim that its user has to make ends the look.
    fn pod_needs_work(&self, pod: &Pod) -> bool {
        if pod.metadata.deletion_timestamp.is_some() {
            return false;
        }
        let mut answers = pod_entries(pod).iter().filter_map(|entry| {
            let has_template = entry.resource_claim_template_name.is_some();
            self.entry_needs_work(PodClaim::of_entry(pod, entry), has_template, |claim, origin| {
                if origin == ClaimOrigin::Template && check_owner(pod, claim, self.options).is_err() {
                    return Some(false);
                }
                let is_missed = is_on_node(pod) && is_allocated(claim) && !is_reserved_for(pod, claim, self.options);
                is_missed.then_some(true)
            })
        });
        answers.next().unwrap_or(false)
    }

    /// Tells if the claim of an entry must be made or recorded, or, if it is there, asks `of_claim`; `None` if the next entry
    /// tells.
    fn entry_needs_work<E>(
        &self,
        named: Result<Option<PodClaim>, E>,
        has_template: bool,
        of_claim: impl FnOnce(&ResourceClaim, ClaimOrigin) -> Option<bool>,
    ) -> Option<bool> {
        let Ok(named) = named else { return Some(true) };
        let Some(named) = named else {
            return match self.rules().unneeded_entry {
                UnneededEntry::EndsTheLook => Some(false),
                UnneededEntry::PassedOver => None,
            };
        };
        match self.claims.get(&named.claim) {
            Some(claim) => of_claim(claim, named.origin),
            None => Some(has_template),
        }
    }

    fn add_group(&self, group: &PodGroup, keys: &mut DistinctKeys) {
        if self.group_needs_work(group) {
            keys.add(QueueKind::PodGroup, &ClaimKey::from_metadata(&group.metadata));
        }
    }

    fn group_needs_work(&self, group: &PodGroup) -> bool {
        if group.metadata.deletion_timestamp.is_some() || !self.has_groups() {
            return false;
        }
        let mut answers = group_entries(group).iter().filter_map(|entry| {
            let has_template = entry.resource_claim_template_name.is_some();
            self.entry_needs_work(claim_of_group_entry(group, entry), has_template, |claim, origin| {
                (origin == ClaimOrigin::Template && check_group_owner(group, claim).is_err()).then_some(false)
            })
        });
        answers.next().unwrap_or(false)
    }
}

pub(super) fn pod_entries(pod: &Pod) -> &[PodResourceClaim] {
    pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref()).unwrap_or_default()
}

pub(super) fn group_entries(group: &PodGroup) -> &[PodGroupResourceClaim] {
    group.spec.resource_claims.as_deref().unwrap_or_default()
}

pub(super) fn is_on_node(pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.is_some_and(|node| !node.is_empty())
}

pub(super) fn is_allocated(claim: &ResourceClaim) -> bool {
    claim.status.as_ref().is_some_and(|status| status.allocation.is_some())
}

/// Returns true if no container of a pod runs or will run: it has ended, or is being deleted and never came to a node.
pub(super) fn is_done(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed")) || pod.metadata.deletion_timestamp.is_some() && !is_on_node(pod)
}

/// Returns the UID of the pod or pod group that owns a claim.
fn owner_uid(claim: &ResourceClaim) -> Option<String> {
    let owner = controller(&claim.metadata)?;
    let is_pod = owner.kind == "Pod" && owner.api_version == "v1";
    let is_group = owner.kind == "PodGroup" && owner.api_version.starts_with("scheduling.k8s.io/");
    (is_pod || is_group).then(|| owner.uid.clone())
}

fn used_by_pod(pod: &Pod) -> Vec<Used> {
    let group = pod.group_name().map(|name| Used::Group(ClaimKey::new(pod.namespace(), name)));
    let entries = pod_entries(pod);
    let templates = entries.iter().filter_map(|entry| entry.resource_claim_template_name.as_deref());
    let templates = templates.map(|name| Used::Template(ClaimKey::new(pod.namespace(), name)));
    let claims = entries.iter().filter_map(|entry| PodClaim::of_entry(pod, entry).ok().flatten());
    let group = group.filter(|_| !entries.is_empty());
    group.into_iter().chain(templates).chain(claims.map(|named| Used::Claim(named.claim))).collect()
}

fn used_by_group(group: &PodGroup) -> Vec<Used> {
    let namespace = group.metadata.namespace.as_deref().unwrap_or_default();
    let entries = group_entries(group);
    let templates = entries.iter().filter_map(|entry| entry.resource_claim_template_name.as_deref());
    let templates = templates.map(|name| Used::Template(ClaimKey::new(namespace, name)));
    let claims = entries.iter().filter_map(|entry| claim_of_group_entry(group, entry).ok().flatten());
    templates.chain(claims.map(|named| Used::Claim(named.claim))).collect()
}
