//! Preview of a taint rule: devices that it selects, and pods that it would evict.

use std::collections::BTreeMap;

use dra_device::allocated_devices;
use dra_device::internal::PodFields;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim};

use super::evictions::{Evictions, is_allocated};
use super::rules::{DeviceNames, RulesBySelector, name_of, uid_of};
use super::taint_index::TaintIndex;
use super::time::NO_EXECUTE;
use crate::pods::PodOptions;

/// Counts of what a taint rule does with the effect `NoExecute`, whatever its effect is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RulePreview {
    /// Number of selected devices in the newest generations of all pools.
    pub published: usize,
    /// Number of selected devices in the allocations of all claims. A device counts once for each result that has it.
    pub allocated: usize,
    /// Pods that the rule evicts, now or later, by time and name. Pods that are being deleted are left out.
    pub pods: Vec<PendingPod>,
}

/// Pod that is to be evicted. Ordered by time, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct PendingPod {
    /// Time of the eviction.
    pub at: Timestamp,
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// UID of the pod.
    pub uid: String,
}

impl RulePreview {
    /// Counts what a rule does beside `taints`, where it replaces a rule of its name. A rule without `timeAdded` evicts
    /// nobody by itself; an API server sets the time when it stores the rule.
    ///
    /// # Complexity
    /// n log n in devices, claims, results and pods.
    pub fn new<'a>(
        rule: &DeviceTaintRule,
        taints: &TaintIndex<'a>,
        claims: impl IntoIterator<Item = &'a ResourceClaim>,
        pods: impl IntoIterator<Item = &'a Pod>,
        options: PodOptions,
    ) -> Self {
        let mut evicting = rule.clone();
        NO_EXECUTE.clone_into(&mut evicting.spec.taint.effect);
        let mut alone = RulesBySelector::default();
        alone.insert(&evicting);
        let selects = |names: DeviceNames<'_>| alone.of_device(names).next().is_some();

        let claims: Vec<&ResourceClaim> = claims.into_iter().filter(|claim| is_allocated(claim)).collect();
        let results = claims.iter().flat_map(|claim| allocated_devices(claim));
        let allocated = results.filter(|result| selects([&result.driver, &result.pool, &result.device])).count();
        let published = taints.count(selects);

        let evictions = Evictions::new(&taints.clone().with_rules([&evicting]), claims, options);
        let staying = pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let pending = staying.filter_map(|pod| {
            let eviction = evictions.of_pod(pod)?;
            let is_by_rule = eviction.is_by_rule(name_of(rule), uid_of(rule));
            is_by_rule.then(|| PendingPod::new(pod, eviction.at))
        });
        let mut pods: Vec<PendingPod> = pending.collect();
        pods.sort();
        Self { published, allocated, pods }
    }

    /// Returns the number of pods by namespace.
    #[must_use]
    pub fn by_namespace(&self) -> BTreeMap<&str, usize> {
        counted(self.pods.iter().map(|pod| pod.namespace.as_str()))
    }

    /// Returns the number of pods by the time of their eviction.
    #[must_use]
    pub fn by_time(&self) -> BTreeMap<Timestamp, usize> {
        counted(self.pods.iter().map(|pod| pod.at))
    }
}

impl PendingPod {
    fn new(pod: &Pod, at: Timestamp) -> Self {
        let name = pod.metadata.name.clone().unwrap_or_default();
        Self { at, namespace: pod.namespace().to_owned(), name, uid: pod.uid().to_owned() }
    }
}

fn counted<K: Ord>(keys: impl Iterator<Item = K>) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    counts
}
