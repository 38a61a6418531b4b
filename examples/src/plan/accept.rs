//! Answers of API servers about the claims, templates and classes that workloads name.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::validate::{Accepted, ApiServer, Write};
use dra_alloc::{GateSet, Profile};
use dra_attrs::{Component, FieldErrors};
use k8s_openapi::Metadata;
use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Refused, Rules};
use crate::manifest::{Manifests, name_of, span, title};
use crate::workload::{Named, Workload};

/// Answers about objects, by kind and name.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Releases that accept an object as it is.
    releases: BTreeMap<(&'static str, String), Vec<Profile>>,
    /// Refusals, in the order of the kinds.
    pub(super) refused: Vec<Refused>,
}

impl Objects {
    /// Asks the API servers of all releases. What that of the rules refuses is left out of the manifests, and what it drops of
    /// an object is dropped.
    pub(super) fn judge(manifests: &mut Manifests, rules: Rules) -> Self {
        let mut objects = Self::default();
        for problem in &manifests.problems {
            let reason = problem.to_string();
            objects.refused.push(Refused { object: "can't be read".to_owned(), reason, accepted: None, is_gone: true });
        }
        let strict = manifests.notes.iter().filter(|note| note.is_unknown_field);
        for note in strict {
            let reason = format!("not made by kubectl apply: unknown field {}; planned without it", note.field);
            objects.refused.push(Refused { object: note.object.clone(), reason, accepted: None, is_gone: false });
        }
        for problem in &manifests.unversioned {
            let reason =
                format!("kubectl apply refuses it: {}: {}; planned all the same", problem.field, problem.reason);
            objects.refused.push(Refused { object: problem.object.clone(), reason, accepted: None, is_gone: false });
        }
        objects.ask(&mut manifests.classes, rules, |_| false, ApiServer::validate_class);
        objects.ask(&mut manifests.claim_templates, rules, |_| false, ApiServer::validate_claim_template);
        objects.ask(&mut manifests.claims, rules, |claim| claim.status.is_some(), ApiServer::validate_claim);
        objects
    }

    fn ask<T: Resource + Metadata<Ty = ObjectMeta> + Clone>(
        &mut self,
        list: &mut Vec<T>,
        rules: Rules,
        has_lived: impl Fn(&T) -> bool,
        validate: impl Fn(ApiServer, Write<'_, T>) -> Result<Accepted<T>, FieldErrors>,
    ) {
        list.retain_mut(|object| {
            // What a cluster has stored is accepted.
            if object.metadata().resource_version.is_some() || has_lived(object) {
                return true;
            }
            let ask = |profile: Profile| {
                let gates = if profile == rules.profile { rules.gates } else { GateSet::of(profile) };
                validate(ApiServer::new(Component::new(profile, gates)), Write::create(object))
            };
            let is_whole = |profile: &Profile| ask(*profile).is_ok_and(|accepted| accepted.dropped.is_empty());
            let releases: Vec<Profile> = Profile::RELEASES.into_iter().filter(is_whole).collect();
            let (name, accepted) = (name_of(object.metadata()), span(&releases));
            let told = format!("{} {name}", T::KIND);
            let answer = ask(rules.profile);
            self.releases.insert((T::KIND, name), releases);
            match answer {
                Ok(stored) => {
                    let dropped = stored.dropped.iter().map(|lost| {
                        let reason =
                            format!("{} drops {}: feature gate {} is off", title(rules.profile), lost.field, lost.gate);
                        Refused { object: told.clone(), reason, accepted: accepted.clone(), is_gone: false }
                    });
                    self.refused.extend(dropped);
                    *object = stored.object;
                    true
                }
                Err(errors) => {
                    let reason = without_pictures(&errors.to_string());
                    self.refused.push(Refused { object: told, reason, accepted, is_gone: true });
                    false
                }
            }
        });
    }

    /// Returns the reason why an object that a pod names is not there: the API server refuses it.
    pub(super) fn refusal(&self, workload: &Workload) -> Option<String> {
        workload.names.iter().find_map(|named| {
            let told = named.told(workload.namespace());
            let is_gone = self.refused.iter().any(|refused| refused.object == told && refused.is_gone);
            is_gone.then(|| format!("no claim is made, because {told} is refused"))
        })
    }

    /// Returns the releases that accept what a workload names, in words.
    pub(super) fn accepted(&self, workload: &Workload) -> String {
        let namespace = workload.namespace();
        let (mut all, mut is_known) = (Profile::RELEASES.to_vec(), workload.names.is_empty());
        for named in &workload.names {
            let key = match named {
                Named::Template(name) => ("ResourceClaimTemplate", full(namespace, name)),
                Named::Claim(name) => ("ResourceClaim", full(namespace, name)),
            };
            if let Some(releases) = self.releases.get(&key) {
                is_known = true;
                all.retain(|release| releases.contains(release));
            }
        }
        if !is_known {
            return "no claim to check".to_owned();
        }
        // The workload itself is accepted by each of them.
        let what = if workload.names.is_empty() { "accepted" } else { "claims accepted" };
        match span(&all) {
            None => format!("{what} by no release"),
            Some(_) if all.len() == Profile::RELEASES.len() => {
                let number = |release: &Profile| release.name().trim_start_matches('v').to_owned();
                let [oldest, .., newest] = Profile::RELEASES;
                format!("{what} by Kubernetes {} to {}", number(&oldest), number(&newest))
            }
            Some(span) => format!("{what} as written by Kubernetes {span}"),
        }
    }
}

/// Returns the reason why an API server refuses a pod: a container uses a claim that the pod does not have.
pub(super) fn unknown_claim(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let known: BTreeSet<&str> = spec.resource_claims.iter().flatten().map(|entry| entry.name.as_str()).collect();
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    containers.into_iter().find_map(|container| {
        let used = container.resources.iter().flat_map(|resources| resources.claims.iter().flatten());
        let unknown = used.into_iter().find(|used| !known.contains(used.name.as_str()))?;
        let known = match known.iter().copied().collect::<Vec<_>>().as_slice() {
            [] => "none".to_owned(),
            known => known.join(", "),
        };
        let (container, claim) = (&container.name, &unknown.name);
        Some(format!("no pod is made: container {container} uses claim {claim}, and spec.resourceClaims has {known}"))
    })
}

/// Returns an error on one line, without the lines that point into an expression.
fn without_pictures(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('|'));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

fn full(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}
