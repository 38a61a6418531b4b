//! Output of `node-agent`.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use examples::output::escaped;
use readiness::{GateDecision, NodeChange, NodeVerdict, NodeWrite};

use super::scene::Scene;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const CAUTION: Style = AnsiColor::Yellow.on_default();
const TIME: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();

/// Returns a text of objects with a style. Its own control characters are escaped.
fn styled(style: Style, text: &str) -> String {
    format!("{style}{}{style:#}", escaped(text))
}

/// Formats one node at one instant of a timeline.
pub(crate) fn scene(scene: &Scene) -> String {
    let mut text = String::new();
    let events = if scene.happened.is_empty() { "a timer ends".to_owned() } else { scene.happened.join("; ") };
    let time = format!("{:>5} s", scene.at);
    // Writing to a String can't fail.
    let _ = writeln!(text, "{}  {}: {}", styled(TIME, &time), styled(TIME, &scene.node), escaped(&events));
    for write in &scene.writes {
        let _ = writeln!(text, "         {}", write_line(write));
    }
    if let Some(network) = &scene.network {
        let _ = writeln!(text, "         {} {network}", styled(QUIET, "kubelet"));
    }
    let next = scene.requeue_at.map(|at| format!("; looks again at {at} s")).unwrap_or_default();
    let verdict = verdict(scene.schedulable, scene.gates.iter().map(|(name, decision)| (name.as_str(), *decision)));
    let _ = writeln!(text, "         {verdict}{}", styled(QUIET, &next));
    if !scene.taints.is_empty() {
        let _ = writeln!(text, "         {}", styled(CAUTION, &format!("taints: {}", scene.taints.join(", "))));
    }
    text
}

/// Formats a write in one line.
pub(crate) fn write_line(write: &NodeWrite) -> String {
    let actor = if write.is_by_kubelet() { "kubelet" } else { "nlc    " };
    let style = match &write.change {
        NodeChange::AddTaint { .. } => BAD,
        NodeChange::RemoveTaint { .. } => GOOD,
        NodeChange::PatchCondition { .. } | NodeChange::Event { is_warning: true, .. } => CAUTION,
        _ => QUIET,
    };
    format!("{} {}", styled(QUIET, actor), styled(style, &write.to_string()))
}

/// Formats the verdict of the reconciler on a node.
pub(crate) fn node_verdict(of_node: &NodeVerdict<'_>) -> String {
    verdict(of_node.schedulable, of_node.gates.iter().copied())
}

fn verdict<'a>(schedulable: bool, gates: impl Iterator<Item = (&'a str, GateDecision)>) -> String {
    let head = if schedulable { styled(GOOD, "open") } else { styled(BAD, "blocked") };
    let gates: Vec<String> = gates
        .filter(|(_, decision)| *decision != GateDecision::Satisfied)
        .map(|(name, decision)| match decision {
            GateDecision::Blocked { reason, .. } => {
                format!("{} {}", escaped(name), styled(BAD, &reason.to_string()))
            }
            other => format!("{} {}", escaped(name), styled(CAUTION, other.name())),
        })
        .collect();
    if gates.is_empty() { head } else { format!("{head}: {}", gates.join(", ")) }
}
