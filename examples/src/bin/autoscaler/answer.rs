//! Answers to questions about nodes that come and go, as text and as objects.

use std::collections::BTreeMap;
use std::fmt;

use dra_alloc::DeviceId;
use dra_alloc::autoscaler::ExpansionOption;
use dra_alloc::pods::{GangPlacement, PodCycle};
use k8s_openapi::api::resource::v1::DeviceRequestAllocationResult;
use serde::Serialize;

use super::moves::Moves;
use super::refused::Refused;

/// Answer to a question.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    Groups(Vec<Simulated>),
    Nodes(Nodes),
    Claims(Vec<Released>),
    Moves(Moves),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Simulated {
    group: String,
    price: u64,
    takes: Vec<Placed>,
    not: Vec<Refused>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Placed {
    pod: String,
    node: String,
    devices: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Nodes {
    pub(crate) removable: Vec<String>,
    pub(crate) moved: Vec<Placed>,
    pub(crate) kept: Vec<Refused>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Released {
    pub(crate) claim: String,
    pub(crate) change: &'static str,
    pub(crate) free: Vec<String>,
}

impl Simulated {
    pub(crate) fn new(group: String, option: &ExpansionOption<'_>, fixed: &BTreeMap<String, &str>) -> Self {
        let refused = option.scale_up.refused.iter().filter_map(|(pod, reason)| {
            let name = match pod.namespace.as_str() {
                "" => pod.name.clone(),
                namespace => format!("{namespace}/{}", pod.name),
            };
            let is_of_other =
                fixed.get(&name).is_some_and(|node| option.template.node().metadata.name.as_deref() != Some(*node));
            (!is_of_other).then(|| Refused { name, reason: reason.to_string() })
        });
        let takes = option.scale_up.placed.iter().map(Placed::new).collect();
        Self { group, price: option.price, takes, not: refused.collect() }
    }
}

impl Placed {
    pub(crate) fn new(GangPlacement { pod, node, cycle, .. }: &GangPlacement) -> Self {
        let allocations = cycle.iter().flat_map(|cycle: &PodCycle| cycle.allocations_on(node));
        let results = allocations.flat_map(|(_, result)| result.devices.iter().filter_map(|one| one.results.as_ref()));
        let device = |result: &DeviceRequestAllocationResult| {
            DeviceId::new(&result.driver, &result.pool, &result.device).to_string()
        };
        let devices = results.flatten().map(device).collect();
        Self { pod: format!("{}/{}", pod.namespace, pod.name), node: node.clone(), devices }
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices = if self.devices.is_empty() { "no devices".to_owned() } else { self.devices.join(", ") };
        write!(f, "  {} on {}: {devices}", self.pod, self.node)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Groups(groups) => groups.iter().try_for_each(|group| {
                let Simulated { group, price, takes, not } = group;
                let pods = takes.len() + not.len();
                writeln!(f, "one more node of {group}, price {price}: takes {} of {pods} pods", takes.len())?;
                takes.iter().try_for_each(|placed| writeln!(f, "{placed}"))?;
                not.iter().try_for_each(|refused| writeln!(f, "  not {}: {}", refused.name, refused.reason))
            }),
            Self::Nodes(Nodes { removable, moved, kept }) => {
                let all = if removable.is_empty() { "none".to_owned() } else { removable.join(", ") };
                writeln!(f, "nodes that can go together: {all}")?;
                moved.iter().try_for_each(|placed| writeln!(f, "{placed}"))?;
                kept.iter().try_for_each(|refused| writeln!(f, "{} stays: {}", refused.name, refused.reason))
            }
            Self::Moves(moves) => write!(f, "{moves}"),
            Self::Claims(claims) if claims.is_empty() => writeln!(f, "no claim changes"),
            Self::Claims(claims) => claims.iter().try_for_each(|claim| {
                let free = if claim.free.is_empty() { "nothing".to_owned() } else { claim.free.join(", ") };
                writeln!(f, "{}: {}, free: {free}", claim.claim, claim.change)
            }),
        }
    }
}
