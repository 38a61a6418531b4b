//! Objects around the nodes: registration, rules, pods, previews, an autoscaler's view.

use dra_attrs::{NodeSelectorError, node_selector_matches};
use examples::manifest::ReadinessManifests;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::Timestamp;
use readiness::rule::Expansion;
use readiness::{
    FilterOptions, GateProposal, GatedNode, GatedNodeView, NodePreview, NodeReadinessGate, NodeState, Policy, filter,
};
use serde::Deserialize;
use serde_json::Value;

use super::stage::Stage;
use super::timeline::{ConditionReport, Entry, ReadyReport};
use super::{AgentError, Args, name_of, print};

/// Seconds between two status snippets.
const SNIPPET_SECONDS: i64 = 10;

/// Registers the gates of kubelet configurations: with the nodes of the manifests, or with a new node of this name.
pub(crate) fn register(objects: &mut ReadinessManifests, name: &str) -> Result<(), AgentError> {
    for kubelet in &objects.kubelets {
        if objects.nodes.is_empty() {
            let mut node = Node::default();
            node.metadata.name = Some(name.to_owned());
            objects.nodes.push(GatedNode { node, gates: kubelet.node_readiness_gates.clone() });
        } else {
            for node in &mut objects.nodes {
                node.gates = kubelet.merge_gates(&node.gates);
            }
        }
        for node in &mut objects.nodes {
            for gate in &node.gates {
                print(&format!("kubelet registers {} with the gate {}", name_of(node), gate.condition_type))?;
            }
            let keys = node.gates.iter().filter_map(|gate| gate.label_key().ok());
            let labels = keys.map(|key| (key, NodeReadinessGate::LABEL_VALUE.to_owned()));
            node.node.metadata.labels.get_or_insert_default().extend(labels);
        }
    }
    Ok(())
}

/// Adds to each node the gates and conditions of the rules that select it.
pub(crate) fn expand_rules(objects: &mut ReadinessManifests, args: &Args) -> Result<(), AgentError> {
    for node in &mut objects.nodes {
        let expansion = Expansion::from_rules(&objects.rules, node, args.rule_timeout, args.begin)?;
        for gate in &expansion.gates {
            print(&format!("{}: a rule becomes the gate {}", name_of(node), gate.condition_type))?;
        }
        for condition in expansion.conditions {
            print(&format!("{}: the rule says {} {}", name_of(node), condition.type_, condition.status))?;
            let conditions = node.node.status.get_or_insert_default().conditions.get_or_insert_default();
            conditions.retain(|known| known.type_ != condition.type_);
            conditions.push(condition);
        }
        node.gates.extend(expansion.gates);
    }
    Ok(())
}

/// Returns the status snippets as a timeline.
pub(crate) fn snippets(statuses: &[Value]) -> Result<Vec<Entry>, AgentError> {
    let mut entries = Vec::new();
    for (at, conditions) in (0..).map(|index: i64| index.saturating_mul(SNIPPET_SECONDS)).zip(statuses) {
        let reports = conditions.as_array().into_iter().flatten().map(ConditionReport::deserialize);
        for report in reports.collect::<Result<Vec<_>, _>>()? {
            entries.push(entry(at, &report));
        }
    }
    Ok(entries)
}

fn entry(at: i64, report: &ConditionReport) -> Entry {
    let ConditionReport { type_, status, reason, message } = report.clone();
    if type_ == GatedNodeView::READY {
        return Entry { at, ready: Some(ReadyReport { status, reason, message }), ..Entry::default() };
    }
    Entry { at, report: Some(report.clone()), ..Entry::default() }
}

/// Returns a line for each pod and node, for each taint that a rule removes, and for each pod of a daemon set that the
/// taint of a gate would keep out.
pub(crate) fn after(stage: &Stage, objects: &ReadinessManifests, policy: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    for (node, _) in stage.nodes() {
        let view = node.view();
        for rule in &objects.taint_rules {
            let text = rule.removal(&view).map_or_else(|| "nothing to do".to_owned(), |write| write.to_string());
            lines.push(format!("{}: rule for {}: {text}", name_of(node), rule.readiness_condition));
        }
        for pod in &objects.pods {
            let verdict = filter(FilterOptions::from(policy), &view, pod.view());
            let name = pod.pod.metadata.name.clone().unwrap_or_default();
            let text = match selects(&pod.pod, &node.node) {
                Ok(true) if verdict.is_allowed() => "allowed".to_owned(),
                Ok(true) => verdict.to_string(),
                Ok(false) => "its node selector or affinity does not admit the node".to_owned(),
                Err(error) => error.to_string(),
            };
            lines.push(format!("pod {name} on {}: {text}", name_of(node)));
            let daemon = Some(pod.view()).filter(|pod| pod.is_daemon_pod());
            for taint in daemon.map(|daemon| daemon.missing_tolerations(&node.gates)).unwrap_or_default() {
                lines.push(format!("pod {name} does not tolerate the taint of a gate, {}:{}", taint.key, taint.effect));
            }
        }
    }
    lines.extend(stage.admissions(&objects.pods));
    lines
}

/// Returns true if the node selector and the required node affinity of a pod admit a node.
fn selects(pod: &Pod, node: &Node) -> Result<bool, NodeSelectorError> {
    let Some(spec) = &pod.spec else { return Ok(true) };
    let label = |key: &String| node.metadata.labels.as_ref().and_then(|labels| labels.get(key));
    let has_labels = spec.node_selector.iter().flatten().all(|(key, value)| label(key) == Some(value));
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    let is_admitted = required.map(|selector| node_selector_matches(selector, node)).transpose()?;
    Ok(has_labels && is_admitted.unwrap_or(true))
}

/// Returns what an autoscaler sees of a node, and the gates whose taint it does not know for one of a node that starts.
pub(crate) fn autoscaler_lines(node: &GatedNode) -> Vec<String> {
    let view = node.view();
    let state = if view.is_starting() { "starting, pods wait for it" } else { "started" };
    let name = name_of(node);
    let conditions = view.template_conditions().len();
    let first = format!("autoscaler: {name} is {state}; {conditions} conditions in its template");
    let others = view.gates_without_startup_taint(&GatedNodeView::STARTUP_TAINT_PREFIXES);
    let others = others.into_iter().map(|gate| format!("autoscaler: the taint of {gate} is no start-up taint"));
    [first].into_iter().chain(others).collect()
}

/// Returns what the gates of the proposed nodes would change.
pub(crate) fn what_if(nodes: &[GatedNode], proposed: &[GatedNode], policy: &Policy, now: Timestamp) -> Vec<String> {
    let state = NodeState::default();
    let previews = nodes.iter().filter_map(|node| {
        let after = proposed.iter().find(|after| name_of(after) == name_of(node))?;
        let proposal = GateProposal { node: &node.node, current: &node.gates, proposed: &after.gates, state: &state };
        proposal.preview(policy, now)
    });
    let previews: Vec<NodePreview> = previews.collect();
    let word = |open: bool| if open { "open" } else { "blocked" };
    let line = |node: &NodePreview| {
        let unreported = match node.unreported.as_slice() {
            [] => String::new(),
            types => format!("; nobody reports {}", types.join(", ")),
        };
        format!("what if: {} is {}, would be {}{unreported}", node.name, word(node.open_before), word(node.open_after))
    };
    let closing = previews.iter().filter(|node| node.open_before && !node.open_after).count();
    let opening = previews.iter().filter(|node| !node.open_before && node.open_after).count();
    let sum = format!("what if: {} nodes change, {closing} would close, {opening} would open", previews.len());
    previews.iter().map(line).chain([sum]).collect()
}
