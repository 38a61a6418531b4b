//! The question `plan`: what a cluster would do with manifests.
//!
//! Workloads and templates become pods and claims ([`workload`](crate::workload)); the API server of a release accepts or
//! refuses what they name; a scheduler places the pods, those of the highest priority first and else in the order of the
//! manifests, each on the first node that can run it; what has no place says why, and what would help.

mod accept;
mod allocate;
mod others;
mod place;
mod question;
mod text;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::Profile;
use dra_alloc::objective::Objective;
use dra_alloc::pods::PodOptions;
use dra_alloc::{GateSet, StateError};
use dra_attrs::Component;
use k8s_openapi::api::resource::v1::DeviceClaim;
use serde::Serialize;

pub use allocate::{Allocated, allocate};
pub use question::{Devices, TermAnswer, frequent, terms_of_claims};

use crate::manifest::{Manifests, name_of};
use crate::preempt::{Priorities, RuledRoom, Who};
use crate::room::RoomError;
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
    /// True if names of pods were made up.
    pub has_made_names: bool,
    /// True if pods of different priorities were placed.
    pub has_priorities: bool,
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
    /// Number of its pods that are made as the first ones end, and are not planned.
    #[serde(skip_serializing_if = "is_zero")]
    pub later: usize,
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
    /// Remarks about devices: the share of one, the alternative of a list, the claim if pods share it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub remarks: BTreeMap<String, String>,
    /// Reason why these devices are better than the first ones that fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// Nodes before this one that would do without a constraint, with the reason: of the first pod of a workload, and at most
    /// three.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<String>,
}

/// Returns true for a number that is not written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
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
    /// Moves of other pods after which one of these fits. Kubernetes moves no pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<Moves>,
    /// Pods that would have to go so that one of these fits, by the rules that were asked for. No release preempts pods for
    /// devices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub room: Vec<RuledRoom>,
}

/// Moves of other pods after which a pod fits.
///
/// Displays one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Moves {
    /// Node on which the pod fits then.
    pub node: String,
    /// Moves, in an order in which each pod finds its devices free.
    pub moves: Vec<Move>,
    /// Number of waves in which disruption budgets allow them.
    pub waves: usize,
    /// True if no moves of fewer devices do.
    pub is_least: bool,
}

/// Move of a pod: it is evicted, and the pod that is made in its place gets other devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Move {
    /// Namespace and name.
    pub pod: String,
    /// Name of the node that it leaves.
    pub from: String,
    /// Name of the node that it gets.
    pub to: String,
}

/// Reason that there is no plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// An amount of a node or a pod is not a quantity.
    #[error(transparent)]
    Amount(#[from] RoomError),
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
    /// Detail with which it is told who would have to go.
    pub who: Who,
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
    let names = Names::of(&manifests);
    let objects = accept::Objects::judge(&mut manifests, rules);
    let made: Made = make_with_lone_claims(&mut manifests, rules.options());
    let used = [&USED[..], &crate::workload::KINDS[..]].concat();
    let mut notes: Vec<String> = manifests.ignored_lines("plan", &used);
    notes.extend(made.cut_notes("plan"));
    notes.extend(admit(&mut manifests));
    let mark = manifests.mark();
    notes.extend((!mark.is_empty()).then(|| mark.trim_end().to_owned()));
    let mut cluster = place::Cluster::new(&mut manifests, rules, objective)?;
    notes.extend(cluster.note());
    let shown = made.workloads.iter().filter(|workload| is_shown(workload));
    let mut planned: Vec<(&Workload, PlannedWorkload)> =
        shown.map(|workload| (workload, PlannedWorkload::of(workload, objects.accepted(workload)))).collect();
    let mut order: Vec<&mut (&Workload, PlannedWorkload)> = planned.iter_mut().collect();
    order.sort_by_key(|(workload, _)| Reverse(cluster.priority(workload)));
    let priorities: BTreeSet<i32> = order.iter().map(|(workload, _)| cluster.priority(workload)).collect();
    let has_priorities = priorities.len() > 1;
    for (workload, planned) in order {
        cluster.place(workload, &made, &objects, planned);
        let missing = names.missing(workload);
        planned.waiting.iter_mut().for_each(|group| group.help.extend(missing.clone()));
    }
    let workloads: Vec<PlannedWorkload> = planned.into_iter().map(|(_, planned)| planned).collect();
    if workloads.iter().flat_map(|workload| &workload.waiting).any(|group| !group.room.is_empty()) {
        notes.push(NO_PREEMPTION.to_owned());
    }
    if workloads.iter().flat_map(|workload| &workload.waiting).any(|group| group.moves.is_some()) {
        notes.push(NO_MOVES.to_owned());
    }
    let placed = workloads.iter().map(|workload| workload.placed.len()).sum();
    let waiting: usize = workloads.iter().flat_map(|workload| &workload.waiting).map(|group| group.pods.len()).sum();
    Ok(Plan {
        release: rules.profile.name(),
        workloads,
        refused: objects.refused,
        placed,
        pods: placed + waiting,
        left_out: made.workloads.iter().map(|workload| workload.left_out).fold(0, usize::saturating_add),
        has_made_names: made.has_made_names(),
        has_priorities,
        notes,
    })
}

/// Claims, templates and classes of manifests, and the classes that claims and templates name.
struct Names {
    classes: BTreeSet<String>,
    /// Classes by kind, namespace and name of a claim or template.
    named: BTreeMap<String, Vec<String>>,
}

impl Names {
    fn of(manifests: &Manifests) -> Self {
        let claims = manifests.claims.iter().map(|claim| {
            let devices = claim.spec.as_ref().and_then(|spec| spec.devices.as_ref());
            (format!("ResourceClaim {}", name_of(&claim.metadata)), classes_of(devices))
        });
        let templates = manifests.claim_templates.iter().map(|template| {
            let devices = template.spec.as_ref().and_then(|spec| spec.spec.as_ref()?.devices.as_ref());
            (format!("ResourceClaimTemplate {}", name_of(&template.metadata)), classes_of(devices))
        });
        let classes = manifests.classes.iter().map(|class| name_of(&class.metadata)).collect();
        Self { classes, named: claims.chain(templates).collect() }
    }

    /// Returns what to do about claims, templates and classes that a workload names and that are not there.
    fn missing(&self, workload: &Workload) -> Vec<String> {
        let mut missing = Vec::new();
        for named in workload.names.iter().map(|named| named.told(workload.namespace())) {
            match self.named.get(&named) {
                None => missing.push(format!("possible once there is {named}: create it, or add it to the files")),
                Some(classes) => {
                    let absent = classes.iter().filter(|class| !self.classes.contains(*class));
                    missing.extend(absent.map(|class| self.missing_class(class)));
                }
            }
        }
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    fn missing_class(&self, class: &str) -> String {
        let known: Vec<&str> = self.classes.iter().take(MOST_CLASSES).map(String::as_str).collect();
        let known = match known.as_slice() {
            [] => "create it, or add it to the files".to_owned(),
            known => format!("create it, or name one that is there, such as {}", known.join(", ")),
        };
        format!("possible once there is DeviceClass {class}: {known}")
    }
}

/// Largest number of classes that are named in place of one that is not there.
const MOST_CLASSES: usize = 5;

fn classes_of(claim: Option<&DeviceClaim>) -> Vec<String> {
    let requests = claim.into_iter().flat_map(|claim| claim.requests.iter().flatten());
    let classes = requests.flat_map(|request| {
        let exactly = request.exactly.iter().map(|exactly| exactly.device_class_name.clone());
        exactly.chain(request.first_available.iter().flatten().map(|listed| listed.device_class_name.clone()))
    });
    // An empty name is the API server's to refuse.
    classes.filter(|class| !class.is_empty()).collect()
}

/// Kinds of objects that a plan uses, beside those of workloads.
const USED: [&str; 8] = [
    "DeviceClass",
    "DeviceTaintRule",
    "Node",
    "PodDisruptionBudget",
    "PodGroup",
    "PriorityClass",
    "ResourceClaim",
    "ResourceSlice",
];

/// Remark about pods that would have to go.
const NO_PREEMPTION: &str =
    "kube-scheduler preempts no pod for its devices: delete pods by hand, or use a scheduler that does";

/// Remark about pods that would have to move.
const NO_MOVES: &str =
    "Kubernetes moves no pod: cordon its node, evict it, and uncordon the node once its replacement runs";

/// Gives the pods their priorities. Returns the remarks about classes that are not there.
fn admit(manifests: &mut Manifests) -> Vec<String> {
    let priorities = Priorities::new(&manifests.priority_classes);
    let mut missing = BTreeSet::new();
    for pod in &mut manifests.pods {
        if !priorities.admit(pod) {
            missing.extend(pod.spec.as_ref().and_then(|spec| spec.priority_class_name.clone()));
        }
    }
    missing.iter().map(|class| format!("no PriorityClass {class} among the manifests: priority 0")).collect()
}

/// A replica set that a deployment owns is told with the deployment.
fn is_shown(workload: &Workload) -> bool {
    workload.idle != Some(crate::workload::Idle::Owned)
}

impl PlannedWorkload {
    fn of(workload: &Workload, accepted: String) -> Self {
        Self {
            kind: workload.kind.clone(),
            name: workload.name.clone(),
            accepted,
            running: workload.running,
            idle: workload.idle.map(crate::workload::Idle::as_str),
            later: workload.later,
            placed: Vec::new(),
            waiting: Vec::new(),
            unchecked: Vec::new(),
        }
    }
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
