//! Lines about a cluster: what has just happened, in words or as an object.

use std::fmt;

use readiness::{NodeVerdict, NodeWrite};
use serde::Serialize;

/// Something that has happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub(super) enum Line<'l> {
    /// The program begins.
    Evaluates { role: &'static str, server: &'l str },
    /// A write is made next.
    Writes { node: &'l str, write: &'l NodeWrite },
    /// Pods may be scheduled onto a node, or may not, and that is new.
    Verdict { node: &'l str, schedulable: bool, gates: Vec<Gate> },
}

/// Gate that is not satisfied.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Gate {
    condition_type: String,
    decision: &'static str,
    reason: String,
}

impl<'l> Line<'l> {
    pub(super) fn verdict(node: &'l str, verdict: &NodeVerdict<'_>) -> Self {
        let gates = verdict.gates.iter().filter(|(_, decision)| decision.name() != "Satisfied");
        let gates = gates.map(|(condition_type, decision)| Gate {
            condition_type: (*condition_type).to_owned(),
            decision: decision.name(),
            reason: decision.reason(),
        });
        Self::Verdict { node, schedulable: verdict.schedulable, gates: gates.collect() }
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evaluates { role, server } => write!(formatter, "{role} evaluates the gates of {server}"),
            Self::Writes { node, write } => write!(formatter, "{node}: {write}"),
            Self::Verdict { node, schedulable, gates } => {
                let head = if *schedulable { "open" } else { "blocked" };
                write!(formatter, "{node}: {head}")?;
                for (at, gate) in gates.iter().enumerate() {
                    let Gate { condition_type, decision, reason } = gate;
                    write!(formatter, "{} {condition_type} {decision} ({reason})", if at == 0 { ":" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}
