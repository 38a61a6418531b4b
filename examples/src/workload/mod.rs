//! From workloads to devices: pods of workloads, and claims of templates, as the controllers of a cluster make them.
//!
//! Programs that read manifests decide about pods and claims. What people write are Deployments, Jobs and templates; this
//! module makes the pods and claims that a cluster would have. Quotas, and pods that a controller would replace, are not
//! looked at.
//!
//! Names are by rule where Kubernetes fixes them (the pods of a `StatefulSet`). Others are a prefix and a number: the same at
//! each run, and free of clashes.

mod claims;
mod lone;
mod names;
mod pods;

use std::collections::BTreeMap;
use std::ops::Range;

use clap::Args;
use dra_alloc::pods::PodOptions;
use dra_attrs::Profile;
use k8s_openapi::api::core::v1::Node;

pub use workload_pods::{Idle, controller, node_of};

use crate::manifest::{Manifests, TemplatePath};

/// Kinds of objects that this module reads.
pub const KINDS: [&str; 8] =
    ["CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ResourceClaimTemplate", "StatefulSet", "Pod"];

/// Flags about workloads.
#[derive(Args, Clone, Debug, Default)]
#[non_exhaustive]
pub struct WorkloadArgs {
    /// Namespace of objects that are written without one
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Place of the pod template in objects of a kind, such as MPIJob=spec.mpiReplicaSpecs.*.template; may be repeated
    #[arg(long = "pod-template", value_name = "KIND=PATH")]
    pub templates: Vec<TemplatePath>,
}

impl WorkloadArgs {
    /// Returns an empty collection that reads as the API server of a release does, with these flags.
    #[must_use]
    pub fn of_release(&self, profile: Profile) -> Manifests {
        Manifests::of_release(profile).in_namespace(self.namespace.clone()).with_templates(self.templates.clone())
    }
}

/// Pods and claims that were made.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Made {
    /// Workloads, in the order in which they were read.
    pub workloads: Vec<Workload>,
    /// Number of claims that were made of templates.
    pub claims: usize,
    /// Reasons why claims of pods can't be made, by namespace and name of the pod.
    pub failures: BTreeMap<String, String>,
    /// Number of templates that no pod names.
    pub unused_templates: usize,
}

/// A workload, with the pods that were made of it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Workload {
    /// Kind of the object.
    pub kind: String,
    /// Namespace and name.
    pub name: String,
    /// Positions of its pods among those of the manifests.
    pub pods: Range<usize>,
    /// Number of its pods that were there.
    pub running: usize,
    /// True if its next pod is only made when the one before is ready.
    pub one_by_one: bool,
    /// Reason that it makes no pods.
    pub idle: Option<Idle>,
    /// Number of its pods that are not made, since 10,000 of a workload and 20,000 in all are the most.
    pub left_out: usize,
    /// Number of pods of a job that are made when the first ones have ended.
    pub later: usize,
    /// Templates and claims that its pods name.
    pub names: Vec<Named>,
}

impl Workload {
    /// Returns its namespace; empty if it has none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.name.rsplit_once('/').map(|(namespace, _)| namespace).unwrap_or_default()
    }

    /// Returns true if its pods were made, and not read.
    fn is_made(&self) -> bool {
        !matches!(self.kind.as_str(), "Pod" | "ResourceClaim" | "ResourceClaimTemplate")
    }
}

/// A claim or template that the pods of a workload name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "a pod names one or the other")]
pub enum Named {
    /// A template, of which each pod has a claim of its own.
    Template(String),
    /// A claim.
    Claim(String),
}

/// Returns true if manifests have workloads or templates, of which pods or claims are made.
#[must_use]
pub fn is_needed(manifests: &Manifests) -> bool {
    KINDS.iter().any(|kind| *kind != "Pod" && manifests.number_of(kind) > 0) || !manifests.workloads.others.is_empty()
}

/// Makes the pods of all workloads that are not there yet, and the claims of templates of all pending pods. Gives pods
/// without a UID one.
///
/// ```
/// use dra_alloc::Profile;
/// use dra_alloc::pods::PodOptions;
/// use examples::manifest::Manifests;
/// use examples::workload;
/// let mut manifests = Manifests::default();
/// manifests.read("web.yaml", "
/// {kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {}, template: {spec: {containers: [],
///   resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]}}}}
/// ---
/// {kind: ResourceClaimTemplate, metadata: {name: one}, spec: {spec: {devices: {requests: [
///   {name: r, exactly: {deviceClassName: gpu}}]}}}}
/// ");
/// let made = workload::make(&mut manifests, PodOptions::new(Profile::V1_37));
/// assert_eq!((manifests.pods.len(), manifests.claims.len()), (2, 2));
/// assert_eq!(manifests.claims[1].metadata.name.as_deref(), Some("web-2-gpu-1"));
/// let line = made.line("scheduler").unwrap();
/// assert_eq!(line, "scheduler: made 2 pods of Deployment web and 2 claims of templates, as a cluster would; names are made up");
/// ```
pub fn make(manifests: &mut Manifests, options: PodOptions) -> Made {
    make_with_nodes(manifests, &[], options)
}

/// Like [`make`], with the pods of daemon sets for nodes that are not there yet as well.
pub fn make_with_nodes(manifests: &mut Manifests, new_nodes: &[&Node], options: PodOptions) -> Made {
    manifests.fill_pod_uids();
    let workloads = pods::make(manifests, new_nodes);
    let unnamed = lone::unnamed(manifests, &workloads);
    let unused_templates = unnamed.iter().filter(|(_, named)| matches!(named, Named::Template(_))).count();
    let claims = claims::make(manifests, options);
    Made { workloads, claims: claims.count, failures: claims.failures, unused_templates }
}

/// Like [`make`], and makes a pod for each pending claim and each template that no pod names, to ask what it would get. These
/// are workloads of the kinds `ResourceClaim` and `ResourceClaimTemplate`.
pub fn make_with_lone_claims(manifests: &mut Manifests, options: PodOptions) -> Made {
    manifests.fill_pod_uids();
    let mut workloads = pods::make(manifests, &[]);
    workloads.extend(lone::make(manifests, &workloads));
    let claims = claims::make(manifests, options);
    Made { workloads, claims: claims.count, failures: claims.failures, unused_templates: 0 }
}

impl Made {
    /// Returns the lines in which a program says what was made, and what was not and why.
    #[must_use]
    pub fn lines(&self, program: &str) -> Vec<String> {
        let failures =
            self.failures.iter().map(|(pod, reason)| format!("{program}: no claims for pod {pod}: {reason}"));
        self.line(program).into_iter().chain(self.notes(program)).chain(failures).collect()
    }

    /// Returns true if names of pods were made up: Kubernetes fixes those of a stateful set.
    #[must_use]
    pub fn has_made_names(&self) -> bool {
        let is_made_up = |workload: &Workload| workload.is_made() && workload.kind != "StatefulSet";
        self.workloads.iter().any(|workload| is_made_up(workload) && !workload.pods.is_empty())
    }

    /// Returns the line in which a program says what was made; `None` if nothing was.
    #[must_use]
    pub fn line(&self, program: &str) -> Option<String> {
        let makers: Vec<&Workload> =
            self.workloads.iter().filter(|workload| workload.is_made() && !workload.pods.is_empty()).collect();
        let pods: usize = makers.iter().map(|workload| workload.pods.len()).sum();
        let pods = (pods > 0).then(|| {
            let of = match makers.as_slice() {
                [one] => format!("{} {}", one.kind, one.name),
                several => format!("{} workloads", several.len()),
            };
            format!("{} of {of}", counted(pods, "pod"))
        });
        let claims = (self.claims > 0).then(|| format!("{} of templates", counted(self.claims, "claim")));
        let parts: Vec<String> = pods.into_iter().chain(claims).collect();
        if parts.is_empty() {
            return None;
        }
        let names = match (self.has_made_names(), self.claims > 0) {
            (true, _) => "; names are made up",
            (false, true) => "; names of claims are made up",
            (false, false) => "",
        };
        Some(format!("{program}: made {}, as a cluster would{names}", parts.join(" and ")))
    }

    /// Returns a line for each workload of which not all pods are made.
    #[must_use]
    pub fn cut_notes(&self, program: &str) -> Vec<String> {
        let cut = self.workloads.iter().filter(|workload| workload.left_out > 0);
        let cut = cut.map(|Workload { kind, name, left_out, .. }| {
            format!("{program}: {kind} {name}: {left_out} more pods are not made: at most 10000 of a workload and 20000 in all are")
        });
        cut.collect()
    }

    /// Returns a line for each workload without pods, with the reason, or with more than are made.
    #[must_use]
    pub fn notes(&self, program: &str) -> Vec<String> {
        let idle = self.workloads.iter().filter_map(|workload| Some((workload, workload.idle?)));
        let shown = idle.filter(|(_, idle)| *idle != Idle::Owned);
        let line = |(workload, idle): (&Workload, Idle)| {
            format!("{program}: no pods of {} {}: {}", workload.kind, workload.name, idle.as_str())
        };
        let cut = self.cut_notes(program);
        let unused = (self.unused_templates > 0)
            .then(|| format!("{program}: ignored: ResourceClaimTemplate ({}): no pod names it", self.unused_templates));
        shown.map(line).chain(cut).chain(unused).collect()
    }
}

/// Returns a number with its noun in singular or plural.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
