//! Claims and templates that no pod names: a pod for each, to ask what it would get.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Pod, PodResourceClaim, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Named, Workload};
use crate::manifest::{Manifests, name_of};

/// Name of the entry of such a pod.
const ENTRY: &str = "claim";

/// Returns the pending claims and the templates that no pod names.
pub(super) fn unnamed(manifests: &Manifests, workloads: &[Workload]) -> Vec<(ObjectMeta, Named)> {
    let of_pods = manifests.pods.iter().flat_map(|pod| {
        let entries = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten());
        entries.filter_map(|entry| Some((pod.metadata.namespace.clone().unwrap_or_default(), Named::of(entry)?)))
    });
    let of_workloads = workloads
        .iter()
        .flat_map(|workload| workload.names.iter().map(|named| (workload.namespace().to_owned(), named.clone())));
    let used: BTreeSet<(String, Named)> = of_pods.chain(of_workloads).collect();
    let claims = manifests.claims.iter().filter(|claim| claim.status.is_none());
    let claims = claims.map(|claim| (&claim.metadata, Named::Claim as fn(String) -> Named));
    let templates = manifests.claim_templates.iter();
    let templates = templates.map(|template| (&template.metadata, Named::Template as fn(String) -> Named));
    let lone = claims.chain(templates).filter_map(|(metadata, named)| {
        let named = named(metadata.name.clone().unwrap_or_default());
        let key = (metadata.namespace.clone().unwrap_or_default(), named);
        (!used.contains(&key)).then_some((metadata.clone(), key.1))
    });
    lone.collect()
}

/// Makes the pods, behind those that are there.
pub(super) fn make(manifests: &mut Manifests, workloads: &[Workload]) -> Vec<Workload> {
    let lone = unnamed(manifests, workloads);
    lone.into_iter()
        .map(|(metadata, named)| {
            let begin = manifests.pods.len();
            manifests.pods.push(pod_with(&metadata, &named));
            Workload {
                kind: named.kind().to_owned(),
                name: name_of(&metadata),
                pods: begin..begin.saturating_add(1),
                running: 0,
                one_by_one: false,
                idle: None,
                left_out: 0,
                later: 0,
                names: vec![named],
            }
        })
        .collect()
}

fn pod_with(of: &ObjectMeta, named: &Named) -> Pod {
    let mut entry = PodResourceClaim { name: ENTRY.to_owned(), ..PodResourceClaim::default() };
    match named {
        Named::Template(name) => entry.resource_claim_template_name = Some(name.clone()),
        Named::Claim(name) => entry.resource_claim_name = Some(name.clone()),
    }
    let mut metadata =
        ObjectMeta { namespace: of.namespace.clone(), name: Some("a pod".to_owned()), ..ObjectMeta::default() };
    metadata.uid = Some(format!("{}/{}", named.kind(), name_of(of)));
    let spec = PodSpec { resource_claims: Some(vec![entry]), ..PodSpec::default() };
    Pod { metadata, spec: Some(spec), status: None }
}

impl Named {
    /// Returns what an entry of a pod names.
    pub(super) fn of(entry: &PodResourceClaim) -> Option<Self> {
        let template = entry.resource_claim_template_name.clone().map(Self::Template);
        template.or_else(|| entry.resource_claim_name.clone().map(Self::Claim))
    }

    /// Returns kind, namespace and name of what pods of a namespace name.
    #[must_use]
    pub fn told(&self, namespace: &str) -> String {
        let (Self::Template(name) | Self::Claim(name)) = self;
        let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        format!("{} {place}{name}", self.kind())
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::Template(_) => "ResourceClaimTemplate",
            Self::Claim(_) => "ResourceClaim",
        }
    }
}
