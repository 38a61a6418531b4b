//! Pods and their claims as scheduler, kubelet and API server read them: nothing panics, who is in a claim has it, a claim that a pod
//! owns is in its namespace, a pod is bound once, and each node fits a pod or is rejected.
#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_alloc::claims::{ClaimKey, PodClaim};
use dra_alloc::declared_features::{CandidateNodes, DeclaredFeature};
use dra_alloc::kubelet::{ClaimCache, ContainerError};
use dra_alloc::pods::{
    Consumer, PodOptions, QueueHint, can_reserve, check_group_owner, check_owner, claim_amounts_from_json,
    claim_of_group_entry, is_reserved_for, pre_enqueue, with_node_allocatable_resources,
};
use dra_alloc::{Gate, GateSet, Profile};
use dra_attrs::{Component, Version};
use k8s_openapi::api::core::v1::{Binding, Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use nnn::PodSnapshot;
use nnn::binding::{BindingError, apply_binding};
use serde_json::Value;

type Input = (u32, Vec<Pod>, Vec<ResourceClaim>, Option<PodGroup>, Binding, Vec<Node>, Value);

fuzz_target!(|text: &[u8]| {
    let Ok((minor, pods, claims, group, binding, nodes, other)) = serde_json::from_slice::<Input>(text) else { return };
    let component = Component::new(Profile::of_minor(minor), GateSet::all());
    let options = PodOptions::new(component);
    let known: BTreeMap<_, _> = claims.iter().map(|claim| (key_of(claim), Arc::new(claim.clone()))).collect();
    for pod in pods.iter().take(4) {
        consume(pod, &claims, group.as_ref(), options);
        let _ = QueueHint::after_pod_change(&pods[0], pod, &known, options);
        if pre_enqueue(pod, &known, options).is_ok() {
            let entries = pod.spec.iter().filter_map(|spec| spec.resource_claims.as_ref()).flatten();
            let found = entries.filter_map(|entry| PodClaim::of_entry(pod, entry).ok().flatten());
            assert!(found.into_iter().all(|found| known.contains_key(&found.claim)));
        }
        run(pod, component);
        bind(pod, &binding);
        require(pod, &claims, &nodes);
    }
    for claim in &claims {
        let Some(group) = &group else { continue };
        let _ = check_group_owner(group, claim);
        group.spec.resource_claims.iter().flatten().for_each(|entry| drop(claim_of_group_entry(group, entry)));
    }
    let _ = claim_amounts_from_json(&other);
    let converted = with_node_allocatable_resources(other);
    assert_eq!(with_node_allocatable_resources(converted.clone()), converted);
});

fn key_of(claim: &ResourceClaim) -> ClaimKey {
    let ObjectMeta { namespace, name, .. } = &claim.metadata;
    ClaimKey::new(namespace.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default())
}

fn pod_entries(pod: &Pod) -> usize {
    pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_ref()).map_or(0, Vec::len)
}

/// A consumer that is written into a claim is in it.
fn consume(pod: &Pod, claims: &[ResourceClaim], group: Option<&PodGroup>, options: PodOptions) {
    for claim in claims.iter().take(4) {
        assert!(check_owner(pod, claim, options).is_err() || pod.metadata.namespace == claim.metadata.namespace);
        for entry in pod.spec.iter().filter_map(|spec| spec.resource_claims.as_ref()).flatten().take(4) {
            let Ok(consumer) = Consumer::of_entry(pod, entry, group, options) else { continue };
            let mut claim = claim.clone();
            claim.status.get_or_insert_default().reserved_for.get_or_insert_default().push(consumer.reference());
            assert_eq!(can_reserve(&claim, &consumer), Ok(()));
            assert!(is_reserved_for(pod, &claim, options), "{consumer:?}");
        }
    }
}

/// Nothing is prepared, so that a container that uses a claim has no devices.
fn run(pod: &Pod, kubelet: Component) {
    assert!(ClaimCache::claims_of_pod(pod, kubelet).count() <= pod_entries(pod) + 1);
    let cache = ClaimCache::default();
    for container in pod.spec.iter().flat_map(|spec| &spec.containers).take(4) {
        match cache.container_devices(pod, container, kubelet) {
            Ok(devices) => assert_eq!(devices, [] as [&str; 0]),
            Err(ContainerError::NoClaimInfo { name, namespace }) => assert!(
                ClaimCache::claims_of_pod(pod, kubelet)
                    .flatten()
                    .any(|found| found.claim.name == name && found.claim.namespace == namespace)
            ),
            Err(_) => assert!(ClaimCache::claims_of_pod(pod, kubelet).any(|found| found.is_err())),
        }
    }
}

fn bind(pod: &Pod, binding: &Binding) {
    let (gates, now) = (GateSet::of(Profile::V1_37), Timestamp::UNIX_EPOCH);
    let Ok(bound) = apply_binding(pod, binding, gates, now) else { return };
    let snapshot = PodSnapshot::from_pod(&bound);
    assert!(snapshot.is_ok() || PodSnapshot::from_pod(pod).is_err());
    let node = bound.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    assert_eq!(node, Some(binding.target.name.as_deref().unwrap_or_default()));
    let again = apply_binding(&bound, binding, gates.without(Gate::ClearingNominatedNodeNameAfterBinding), now);
    assert!(matches!(again, Err(BindingError::Bound { .. })), "{again:?}");
}

fn require(pod: &Pod, claims: &[ResourceClaim], nodes: &[Node]) {
    let feature = DeclaredFeature::new(Profile::Kep);
    let required = "1.37.0".parse::<Version>().ok().and_then(|version| feature.required_by(pod, claims, &version));
    let required: Vec<&str> = required.into_iter().collect();
    let candidates = CandidateNodes::from_nodes(nodes, &required);
    let _ = candidates.message();
    assert_eq!(candidates.fitting.len() + candidates.rejected.len(), nodes.len());
    for node in nodes.iter().filter_map(|node| node.status.as_ref()?.declared_features.as_deref()) {
        let is_admitted = DeclaredFeature::check_admission(&required, node).is_ok();
        assert_eq!(is_admitted, DeclaredFeature::missing(&required, node).is_empty());
    }
}
