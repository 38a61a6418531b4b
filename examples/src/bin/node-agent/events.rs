//! Events of a timeline, applied to a node: boots, restarts, labels, gates, reports of conditions, probes.

use k8s_openapi::jiff::Timestamp;
use readiness::GatedNodeView;
use readiness::reporter::{ProbeResult, Reporter};

use super::player::{Player, write};
use super::timeline::{ConditionReport, Entry, Probe, ProbeOutcome, Strategy};

/// Applies the events of an entry to the node, and returns them in words.
pub(crate) fn apply_events(player: &mut Player, entry: &Entry, instant: Timestamp) -> Vec<String> {
    let mut happened = Vec::new();
    if entry.reboot {
        player.boots = player.boots.saturating_add(1);
        let status = player.node.node.status.get_or_insert_default();
        status.node_info.get_or_insert_default().boot_id = format!("boot-{}", player.boots);
        happened.push(format!("the node boots (boot-{})", player.boots));
    }
    if entry.restart {
        player.kubelet = player.kubelet.saturating_add(1);
        happened.push("kubelet restarts".to_owned());
    }
    if let Some(gates) = &entry.gates {
        player.node.gates.clone_from(gates);
        let names: Vec<&str> = gates.iter().map(|gate| gate.condition_type.as_str()).collect();
        happened
            .push(format!("gates are now: {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") }));
    }
    for (key, value) in &entry.labels {
        let labels = player.node.node.metadata.labels.get_or_insert_default();
        happened.push(match value {
            Some(value) => format!("the label {key} is {value}"),
            None => format!("the label {key} goes"),
        });
        match value {
            Some(value) => drop(labels.insert(key.clone(), value.clone())),
            None => drop(labels.remove(key)),
        }
    }
    if let Some(rule) = &entry.without_rule {
        happened.push(format!("the rule {rule} is deleted"));
    }
    if let Some(clock) = entry.clock.filter(|clock| *clock != 0) {
        happened.push(format!("the clock is set by {clock} s"));
    }
    let ready = entry.ready.clone().map(|said| ConditionReport {
        type_: GatedNodeView::READY.to_owned(),
        status: said.status,
        reason: said.reason,
        message: said.message,
    });
    for report in ready.iter().chain(&entry.report) {
        write(player, report, instant);
        happened.push(format!("{} is {} ({})", report.type_, report.status, report.reason));
    }
    if let Some(probe) = &entry.probe {
        happened.push(report_probe(player, probe, instant));
    }
    if let Some(name) = &entry.delete {
        let conditions = player.node.node.status.get_or_insert_default().conditions.get_or_insert_default();
        conditions.retain(|condition| condition.type_ != *name);
        happened.push(format!("{name} is deleted"));
    }
    happened
}

/// Lets an agent's reporter write the result of a probe, and returns what it does in words.
fn report_probe(player: &mut Player, probe: &Probe, instant: Timestamp) -> String {
    let mut reporter = Reporter::new(&probe.type_);
    reporter.ends_on_success = matches!(probe.strategy, Strategy::ReportOnSuccessAndTerminate);
    let result = match probe.result {
        ProbeOutcome::Starting => ProbeResult::Starting,
        ProbeOutcome::Success => ProbeResult::Success { reason: "Verified".to_owned(), message: String::new() },
        ProbeOutcome::Failure => ProbeResult::Failure { reason: "ProbeFailed".to_owned(), message: String::new() },
        ProbeOutcome::Unreachable => ProbeResult::Unreachable,
    };
    let stored = player.node.view().condition(&probe.type_).cloned();
    let (condition, next) = reporter.report(stored.as_ref(), &result, instant);
    let end = if next.is_none() { ", and ends" } else { "" };
    let Some(condition) = condition else { return format!("the reporter of {} writes nothing{end}", probe.type_) };
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let report = ConditionReport {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        reason: text(&condition.reason),
        message: text(&condition.message),
    };
    write(player, &report, instant);
    format!("the reporter of {} writes {} ({}){end}", report.type_, report.status, report.reason)
}
