//! What `node-agent` prints.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use readiness::reconcile::output::{Actor, Change, EventType, Output};
use readiness::reconcile::{Decision, NodeVerdict};

use super::player::Scene;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const CAUTION: Style = AnsiColor::Yellow.on_default();
const TIME: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();

fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// An instant of a timeline.
#[must_use]
pub fn scene(scene: &Scene) -> String {
    let mut text = String::new();
    let what = if scene.happened.is_empty() { "a timer ends".to_owned() } else { scene.happened.join("; ") };
    let time = format!("{:>5} s", scene.at);
    // Writing to a String can't fail.
    let _ = writeln!(text, "{}  {}: {what}", styled(TIME, &time), styled(TIME, &scene.node));
    for output in &scene.outputs {
        let _ = writeln!(text, "         {}", written(output));
    }
    let next = scene.wake_up.map(|at| format!("; looks again at {at} s")).unwrap_or_default();
    let verdict = verdict(scene.schedulable, scene.gates.iter().map(|(name, decision)| (name.as_str(), *decision)));
    let _ = writeln!(text, "         {verdict}{}", styled(QUIET, &next));
    if !scene.taints.is_empty() {
        let _ = writeln!(text, "         {}", styled(CAUTION, &format!("taints: {}", scene.taints.join(", "))));
    }
    text
}

/// A change in one line.
#[must_use]
pub fn written(output: &Output) -> String {
    let actor = match output.actor {
        Actor::Kubelet => "kubelet",
        Actor::Nlc => "nlc    ",
    };
    let style = match &output.change {
        Change::AddTaint { .. } => BAD,
        Change::RemoveTaint { .. } => GOOD,
        Change::PatchCondition { .. } | Change::Event { event_type: EventType::Warning, .. } => CAUTION,
        _ => QUIET,
    };
    format!("{} {}", styled(QUIET, actor), styled(style, &output.to_string()))
}

/// A node as the reconciler sees it.
#[must_use]
pub fn node_verdict(of_node: &NodeVerdict<'_>) -> String {
    verdict(of_node.schedulable, of_node.gates.iter().map(|gate| (gate.condition_type, gate.decision)))
}

fn verdict<'a>(schedulable: bool, gates: impl Iterator<Item = (&'a str, Decision)>) -> String {
    let head = if schedulable { styled(GOOD, "open") } else { styled(BAD, "blocked") };
    let gates: Vec<String> = gates
        .filter(|(_, decision)| *decision != Decision::Satisfied)
        .map(|(name, decision)| match decision {
            Decision::Blocked { why, .. } => format!("{name} {}", styled(BAD, &why.to_string())),
            other => format!("{name} {}", styled(CAUTION, other.name())),
        })
        .collect();
    if gates.is_empty() { head } else { format!("{head}: {}", gates.join(", ")) }
}
