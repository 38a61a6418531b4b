//! Node that a gate holds back until its agent reports (KEP-5233).

use k8s_openapi::api::core::v1::{NodeCondition, Pod};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::{EvaluatorRole, FilterOptions, GatedNode, GatedPodView, NodeState, Policy, StepResult, filter, step};

use super::error::TourError;
use super::page::Page;

const NODE: &str = include_str!("../../../data/tour/gated_node.json");
const AGENT: &str = "gpu.example.com/DriverReady";

pub(super) fn hold_back(page: &mut Page) -> Result<(), TourError> {
    page.step("A third node is held back until its agent reports");
    let mut node: GatedNode = serde_json::from_str(NODE).map_err(|error| TourError::Cluster(error.to_string()))?;
    let (policy, pod) = (Policy::kep(), Pod::default());
    let begin = Timestamp::UNIX_EPOCH;

    page.input(format!("node-3 is Ready, and has a gate: {AGENT}, 300 s, then a taint"));
    let first = step(&policy, EvaluatorRole::Combined, &node.view(), begin, NodeState::default());
    page.decision(answer(&node, &pod, &first, begin));
    let StepResult { writes, state, .. } = first;
    for write in &writes {
        write.apply(&mut node.node, begin);
    }

    report(&mut node, AGENT);
    let later = begin.saturating_add(SignedDuration::from_secs(40)).unwrap_or(begin);
    page.input("40 s later the agent reports True");
    let second = step(&policy, EvaluatorRole::Combined, &node.view(), later, state);
    page.decision(answer(&node, &pod, &second, later));
    page.reason("Ready is kubelet's own word; a gate is that of an agent without which a pod with devices would fail.");
    Ok(())
}

/// Formats the answer of a scheduler's filter, the writes, and the time of the next step.
fn answer(node: &GatedNode, pod: &Pod, step: &StepResult<'_>, now: Timestamp) -> String {
    let verdict = filter(FilterOptions::kep(), &node.view(), GatedPodView::new(pod));
    let pods = if verdict.is_allowed() { "pods may come".to_owned() } else { format!("no pods: {verdict}") };
    let requeue_at = step.requeue_at.map(|at| format!("look again in {} s", at.duration_since(now).as_secs()));
    let writes = step.writes.iter().map(ToString::to_string);
    [pods].into_iter().chain(requeue_at).chain(writes).collect::<Vec<_>>().join("\n")
}

/// Writes the condition of an agent that is ready.
fn report(node: &mut GatedNode, condition_type: &str) {
    let condition =
        NodeCondition { type_: condition_type.to_owned(), status: "True".to_owned(), ..NodeCondition::default() };
    node.node.status.get_or_insert_default().conditions.get_or_insert_default().push(condition);
}
