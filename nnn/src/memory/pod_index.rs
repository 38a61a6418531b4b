//! Pods by something that they name in their own namespace: a claim, or a group.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;

use crate::pod::PodKey;

/// Pods by the name of something, in each namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct PodIndex {
    by_namespace: BTreeMap<String, BTreeMap<String, BTreeSet<PodKey>>>,
}

impl PodIndex {
    pub(super) fn add<'p>(&mut self, pod: &PodKey, names: impl IntoIterator<Item = &'p str>) {
        for name in names {
            let by_name = self.by_namespace.entry(pod.namespace.clone()).or_default();
            by_name.entry(name.to_owned()).or_default().insert(pod.clone());
        }
    }

    pub(super) fn remove<'p>(&mut self, pod: &PodKey, names: impl IntoIterator<Item = &'p str>) {
        for name in names {
            let Some(by_name) = self.by_namespace.get_mut(&pod.namespace) else { return };
            let Some(pods) = by_name.get_mut(name) else { continue };
            pods.remove(pod);
            if pods.is_empty() {
                by_name.remove(name);
            }
            if by_name.is_empty() {
                self.by_namespace.remove(&pod.namespace);
            }
        }
    }

    pub(super) fn of(&self, namespace: &str, name: &str) -> impl Iterator<Item = &PodKey> {
        self.by_namespace.get(namespace).and_then(|by_name| by_name.get(name)).into_iter().flatten()
    }
}

/// Returns the names of the claims of a pod: those in its spec, and those that were made for it.
pub(super) fn claims_of(pod: &Pod) -> impl Iterator<Item = &str> {
    let named = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten());
    let made = pod.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten());
    let extended = pod.status.iter().filter_map(|status| status.extended_resource_claim_status.as_ref());
    let named = named.filter_map(|claim| claim.resource_claim_name.as_deref());
    let made = made.filter_map(|claim| claim.resource_claim_name.as_deref());
    named.chain(made).chain(extended.map(|status| status.resource_claim_name.as_str()))
}

/// Returns the name of the group of a pod.
pub(super) fn group_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.scheduling_group.as_ref()?.pod_group_name.as_deref()
}
