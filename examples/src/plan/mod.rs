//! The question `plan`: what a cluster would do with manifests.
//!
//! Workloads and templates become pods and claims ([`workload`](crate::workload)); the API server of a release accepts or
//! refuses what they name; a scheduler places the pods in the order of the manifests, each on the first node that can run
//! it; what has no place says why, and what would help.

mod accept;
mod place;
mod question;
mod text;

use dra_alloc::Profile;
use dra_alloc::objective::Objective;
use dra_alloc::pods::PodOptions;
use dra_alloc::{GateSet, StateError};
use dra_attrs::{Component, QuantityError};
use serde::Serialize;

pub use question::{Devices, TermAnswer, frequent, terms_of_claims};

use crate::manifest::Manifests;
use crate::workload::{Made, Workload, make_with_lone_claims};

/// Answer about manifests.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Plan {
    /// Release whose rules decide.
    pub release: &'static str,
    /// Workloads, in the order of the manifests.
    pub workloads: Vec<PlannedWorkload>,
    /// Objects that the API server refuses, and documents that can't be read.
    pub refused: Vec<Refused>,
    /// Number of pods that have a place.
    pub placed: usize,
    /// Number of pods.
    pub pods: usize,
    /// Number of pods that workloads ask for, and that are too many to plan.
    pub left_out: usize,
    /// True if names of pods and claims were made up.
    pub has_made_names: bool,
    /// Remarks about the answer as a whole.
    pub notes: Vec<String>,
}

/// An object that is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Refused {
    /// Kind and name, or the place of the document.
    pub object: String,
    /// Reason.
    pub reason: String,
    /// Releases whose API server accepts it, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// True if the plan does without it; false if it does without a field of it.
    pub is_gone: bool,
}

/// Fate of a workload in the cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PlannedWorkload {
    /// Kind of the object.
    pub kind: String,
    /// Namespace and name.
    pub name: String,
    /// Releases whose API server accepts the claims and templates that it names, in words.
    pub accepted: String,
    /// Number of its pods that are there already.
    pub running: usize,
    /// Reason that it makes no pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<&'static str>,
    /// Pods with a place.
    pub placed: Vec<PlacedPod>,
    /// Pods without one, with the reason; pods with the same reason together.
    pub waiting: Vec<WaitingPods>,
    /// Wishes of its pods that are not looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<&'static str>,
}

/// A pod with a place.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct PlacedPod {
    /// Name.
    pub name: String,
    /// Node.
    pub node: String,
    /// Devices, as driver, pool and name.
    pub devices: Vec<String>,
    /// Reason why these devices are better than the first ones that fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
}

/// Pods without a place, for one reason.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WaitingPods {
    /// Names.
    pub pods: Vec<String>,
    /// Reason.
    pub reason: String,
    /// Terms of selectors that are false on devices, with the values that there are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selectors: Vec<TermAnswer>,
    /// Changes with which a pod could use nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub help: Vec<String>,
}

/// Reason that there is no plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// An amount of a node or a pod is not a quantity.
    #[error(transparent)]
    Amount(#[from] QuantityError),
    /// An allocation of the cluster can't be counted.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Rules that decide.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "arguments with names")]
pub struct Rules {
    /// Release.
    pub profile: Profile,
    /// Feature gates.
    pub gates: GateSet,
}

impl Rules {
    fn options(self) -> PodOptions {
        PodOptions::new(Component::new(self.profile, self.gates))
    }
}

/// Plans manifests: makes their pods and claims, and places them on their nodes.
///
/// # Errors
/// See [`PlanError`].
pub fn plan(manifests: Manifests, rules: Rules) -> Result<Plan, PlanError> {
    plan_best(manifests, rules, &Objective::default())
}

/// Plans manifests as [`plan`] does, with the best devices for an objective, each pod on the node where they are best.
///
/// # Errors
/// See [`PlanError`].
pub fn plan_best(mut manifests: Manifests, rules: Rules, objective: &Objective) -> Result<Plan, PlanError> {
    let objects = accept::Objects::judge(&mut manifests, rules);
    let made: Made = make_with_lone_claims(&mut manifests, rules.options());
    let used = [&USED[..], &crate::workload::KINDS[..]].concat();
    let mut notes: Vec<String> = manifests.ignored_lines("plan", &used);
    notes.extend(made.cut_notes("plan"));
    let mark = manifests.mark();
    notes.extend((!mark.is_empty()).then(|| mark.trim_end().to_owned()));
    let mut cluster = place::Cluster::new(&mut manifests, rules, objective)?;
    notes.extend(cluster.note());
    let workloads: Vec<PlannedWorkload> = made
        .workloads
        .iter()
        .filter(|workload| is_shown(workload))
        .map(|workload| {
            let mut planned = PlannedWorkload {
                kind: workload.kind.clone(),
                name: workload.name.clone(),
                accepted: objects.accepted(workload),
                running: workload.running,
                idle: workload.idle.map(crate::workload::Idle::as_str),
                placed: Vec::new(),
                waiting: Vec::new(),
                unchecked: Vec::new(),
            };
            cluster.place(workload, &made, &objects, &mut planned);
            planned
        })
        .collect();
    let placed = workloads.iter().map(|workload| workload.placed.len()).sum();
    let waiting: usize = workloads.iter().flat_map(|workload| &workload.waiting).map(|group| group.pods.len()).sum();
    Ok(Plan {
        release: rules.profile.name(),
        workloads,
        refused: objects.refused,
        placed,
        pods: placed + waiting,
        left_out: made.workloads.iter().map(|workload| workload.left_out).fold(0, usize::saturating_add),
        has_made_names: made.has_made_pods(),
        notes,
    })
}

/// Kinds of objects that a plan uses, beside those of workloads.
const USED: [&str; 5] = ["DeviceClass", "DeviceTaintRule", "Node", "ResourceClaim", "ResourceSlice"];

/// A replica set that a deployment owns is told with the deployment.
fn is_shown(workload: &Workload) -> bool {
    workload.idle != Some(crate::workload::Idle::Owned)
}

impl Plan {
    /// Leaves out the pods that have a place, and of the others those that do not have a name, nor a workload of the name.
    pub fn keep_waiting(&mut self, name: Option<&str>) {
        for workload in &mut self.workloads {
            let is_named = name.is_none_or(|name| workload.name.rsplit('/').next() == Some(name));
            workload.placed.clear();
            for group in &mut workload.waiting {
                group.pods.retain(|pod| is_named || Some(pod.as_str()) == name);
            }
            workload.waiting.retain(|group| !group.pods.is_empty());
        }
        self.workloads.retain(|workload| !workload.waiting.is_empty());
        let waiting = self.workloads.iter().flat_map(|workload| &workload.waiting).map(|group| group.pods.len());
        (self.placed, self.pods) = (0, waiting.sum());
    }

    /// Returns true if all pods have a place, and nothing is refused.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.placed == self.pods && self.left_out == 0 && self.refused.is_empty()
    }
}
