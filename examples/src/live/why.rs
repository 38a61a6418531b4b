//! Answers to the question why something is pending.

use std::collections::BTreeSet;
use std::sync::Arc;

use dra_alloc::pods::{CycleClaim, GroupRound, PodCycle, PodExplanation, PodOptions, pre_enqueue};
use dra_alloc::{Allocator, DeviceId};
use dra_attrs::Profile;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde::Serialize;

use crate::candidates::{candidates, claims_of, is_pending};
use crate::manifest::name_of;
use crate::output::{Format, OutputError, as_json, as_yaml};
use crate::placing::{NoNode, Preference, best_node, with_deadline};
use crate::plan::{Devices, TermAnswer, terms_of_claims};
use crate::preempt::{RuledRoom, Who, WhoGoes};
use dra_live::cluster_view::ClusterView;
use dra_live::now;

/// Scheduler that is asked, before it knows about what.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "arguments with names")]
pub struct Question<'a> {
    /// Allocator over the inventory and the classes of the view.
    pub allocator: &'a Allocator<'a>,
    /// Options of the scheduler.
    pub options: PodOptions,
    /// Release of the scheduler.
    pub profile: Profile,
    /// Namespace of names without one.
    pub namespace: &'a str,
    /// Origin of the gates of allocator and options.
    pub gates: GateSource,
    /// Disruption budgets, which protect pods from being preempted.
    pub budgets: &'a [PodDisruptionBudget],
    /// Detail with which it is told who would have to go.
    pub who: Who,
}

/// Origin of the feature gates with which a question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a gate is known or not")]
pub enum GateSource {
    /// The scheduler that answers has them, or its user has named those of the cluster.
    Known,
    /// Nobody has named those of the cluster: the defaults of this profile are taken for them.
    DefaultsOf(Profile),
}

/// Nothing pending has the name that was asked for.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[error("no pending pod is {name:?} or uses a claim of that name; pending: {}", list(pending))]
pub struct NotPending {
    name: String,
    pending: Vec<String>,
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Answer about a pending pod.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    pod: String,
    claims: Vec<String>,
    /// Node that could run the pod now.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// Devices that the pod would get there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    devices: Vec<String>,
    /// Reason that the pod can't run now.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<PodExplanation>,
    /// Terms of selectors that are false on devices, with the values that there are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    selectors: Vec<TermAnswer>,
    /// Caveat about feature gates that the reason depends on.
    #[serde(skip_serializing_if = "Option::is_none")]
    assumption: Option<String>,
    /// Pods that would have to go so that the pod fits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    room: Vec<RuledRoom>,
}

impl Question<'_> {
    /// Explains all pending pods, or those of a name or with a claim of that name.
    ///
    /// # Errors
    /// Nothing pending has the name.
    pub fn ask(&self, view: &ClusterView, name: Option<&str>) -> Result<Vec<Answer>, NotPending> {
        let pending = || view.all_pods().filter(|pod| is_pending(pod, None));
        let Some(name) = name else { return Ok(pending().map(|pod| self.answer(view, pod)).collect()) };
        let full = if name.contains('/') { name.to_owned() } else { format!("{}/{name}", self.namespace) };
        let is_meant =
            |pod: &&Pod| name_of(&pod.metadata) == full || claims_of(pod).iter().any(|claim| claim.to_string() == full);
        let found: Vec<Answer> = pending().filter(is_meant).map(|pod| self.answer(view, pod)).collect();
        if found.is_empty() {
            return Err(NotPending { name: full, pending: pending().map(|pod| name_of(&pod.metadata)).collect() });
        }
        Ok(found)
    }

    fn answer(&self, view: &ClusterView, pod: &Pod) -> Answer {
        let mut answer = Answer {
            pod: name_of(&pod.metadata),
            claims: Vec::new(),
            node: None,
            devices: Vec::new(),
            reason: None,
            explanation: None,
            selectors: Vec::new(),
            assumption: None,
            room: Vec::new(),
        };
        let begun = pre_enqueue(pod, &view.claims, self.options).and_then(|()| {
            PodCycle::pre_filter(pod, None, &view.claims, &view.classes, &GroupRound::default(), self.options)
        });
        let (nodes, explanation) = candidates(pod, view.nodes.values());
        match begun {
            Err(blocked) => answer.reason = Some(blocked.to_string()),
            Ok(None) => {
                answer.node = nodes.first().and_then(|node| node.metadata.name.clone());
                if answer.node.is_none() {
                    answer.reason = Some(explanation.to_string());
                }
            }
            Ok(Some(cycle)) => {
                self.place(view, cycle, &nodes, explanation, &mut answer);
                if answer.explanation.is_some() {
                    answer.room = self.room_for(view, pod, &nodes);
                }
            }
        }
        answer
    }

    /// Asks who would have to go so that a pod fits on one of the nodes that it may use apart from devices.
    fn room_for(&self, view: &ClusterView, pod: &Pod, nodes: &[&Node]) -> Vec<RuledRoom> {
        let usable: BTreeSet<&str> = nodes.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
        let kept_off: Vec<&str> = view.nodes.keys().map(String::as_str).filter(|node| !usable.contains(node)).collect();
        let claims = view.claims.claims().map(|claim| &**claim);
        let state = view.claims.state();
        let cluster = WhoGoes::new(self.allocator, state, view.nodes.values(), view.all_pods(), claims, now());
        let cluster = cluster.with_guards(self.budgets, &[]);
        with_deadline(|budget| cluster.tell(pod, self.who, &kept_off, budget))
    }

    fn place(
        &self,
        view: &ClusterView,
        mut cycle: PodCycle,
        nodes: &[&Node],
        explanation: PodExplanation,
        answer: &mut Answer,
    ) {
        answer.claims = cycle.claims().iter().map(|claim| name_of(&claim.claim().metadata)).collect();
        let state = view.claims.state();
        match best_node(&mut cycle, nodes.iter().copied(), self.allocator, state, explanation, now(), Preference::First)
        {
            Ok(node) => {
                let results = cycle.results_on(&node).filter_map(|allocation| allocation.devices.as_ref());
                let results = results.flat_map(|devices| devices.results.iter().flatten());
                let shown =
                    results.map(|device| DeviceId::new(&device.driver, &device.pool, &device.device).to_string());
                answer.devices = shown.collect();
                answer.node = Some(node);
            }
            Err(NoNode::Failed(reason) | NoNode::TimedOut(reason)) => answer.reason = Some(reason),
            Err(NoNode::Nowhere(explanation)) => {
                answer.reason = Some(explanation.to_string());
                answer.assumption = self.gates.assumption(&explanation);
                answer.explanation = Some(Arc::unwrap_or_clone(explanation));
            }
        }
        if answer.node.is_none() {
            answer.selectors = self.selectors_of(view, &cycle);
        }
    }

    /// Asks the selectors of the claims of a pod that are not allocated.
    fn selectors_of(&self, view: &ClusterView, cycle: &PodCycle) -> Vec<TermAnswer> {
        let is_open = |claim: &&ResourceClaim| claim.status.as_ref().is_none_or(|status| status.allocation.is_none());
        let claims = cycle.claims().iter().map(CycleClaim::claim).filter(is_open);
        terms_of_claims(claims, &view.classes, &Devices::new(view.inventory.slices()), self.profile)
    }
}

impl GateSource {
    /// Returns the caveat for an explanation with gates that are off.
    fn assumption(self, explanation: &PodExplanation) -> Option<String> {
        let Self::DefaultsOf(profile) = self else { return None };
        let gates: Vec<&str> = explanation.gates_off.keys().map(|gate| gate.name).collect();
        let hint = "--feature-gates names the gates of the cluster";
        let names = || gates.join(", ");
        (!gates.is_empty()).then(|| format!("assumed off, as by default in {profile}: {}; {hint}", names()))
    }
}

/// Returns the answers in a format.
///
/// # Errors
/// An answer can't be written in the format.
pub fn shown(answers: &[Answer], output: Format) -> Result<String, OutputError> {
    Ok(match output {
        Format::Json => as_json(&answers)?,
        Format::Yaml => as_yaml(&answers.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?)?,
        Format::Table if answers.is_empty() => "nothing is pending\n".to_owned(),
        Format::Table => answers.iter().map(line).collect(),
    })
}

fn line(answer: &Answer) -> String {
    let Answer { pod, claims, node, devices, reason, selectors, assumption, room, .. } = answer;
    let assumption = assumption.as_ref().map(|text| format!(" ({text})")).unwrap_or_default();
    let claims = if claims.is_empty() { String::new() } else { format!(" (claims {})", claims.join(", ")) };
    match (node, reason) {
        (Some(node), _) if devices.is_empty() => format!("{pod}{claims}: fits {node}\n"),
        (Some(node), _) => format!("{pod}{claims}: fits {node} with {}\n", devices.join(", ")),
        (None, reason) => {
            let head = format!("{pod}{claims}: {}{assumption}", reason.as_deref().unwrap_or("no node"));
            let terms = selectors.iter().map(|term| format!("  {term}"));
            let room = room.iter().map(|room| format!("  {room}"));
            std::iter::once(head).chain(terms).chain(room).collect::<Vec<_>>().join("\n") + "\n"
        }
    }
}
