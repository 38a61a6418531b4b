//! Summary of the verdicts of many nodes in one line.

use std::collections::BTreeMap;

use super::{Cause, DeviceRejection, Explanation, Reason};
use crate::outcome::{NodeFailure, Outcome, Verdict};

/// Returns one line for the verdicts of all nodes, like the event of an unschedulable pod: the number of nodes that can
/// serve the claims, then the causes of failure on the others, the most frequent first.
///
/// ```
/// use dra_alloc::explain::cluster_summary;
/// assert_eq!(cluster_summary(&[]), "0/0 nodes can serve the claims");
/// ```
#[must_use]
pub fn cluster_summary(verdicts: &[Verdict]) -> String {
    let mut lacks: BTreeMap<String, usize> = BTreeMap::new();
    let mut serving = 0;
    for verdict in verdicts {
        match headline(verdict) {
            Some(lack) => *lacks.entry(lack).or_default() += 1,
            None => serving += 1,
        }
    }
    let mut lacks: Vec<_> = lacks.into_iter().collect();
    lacks.sort_by_key(|(_, nodes)| std::cmp::Reverse(*nodes));
    let lacks: Vec<String> = lacks.iter().map(|(lack, nodes)| format!("{nodes} {lack}")).collect();
    let colon = if lacks.is_empty() { "" } else { ": " };
    format!("{serving}/{} nodes can serve the claims{colon}{}", verdicts.len(), lacks.join(", "))
}

/// Returns the cause of a node's failure, in words that are equal for nodes with the same cause.
fn headline(verdict: &Verdict) -> Option<String> {
    let told = verdict.explanation.as_ref().and_then(Explanation::headline);
    match &verdict.outcome {
        Outcome::Allocated(_) => None,
        Outcome::Stopped => Some("stopped by the budget".to_owned()),
        Outcome::FailedOnNode(failure) => Some(failure_headline(failure)),
        Outcome::Unsatisfied => Some(told.unwrap_or_else(|| "without suitable devices".to_owned())),
    }
}

fn failure_headline(failure: &NodeFailure) -> String {
    match failure {
        NodeFailure::PoolIncomplete { .. } => "resource pool being updated".to_owned(),
        NodeFailure::PoolInvalid { .. } | NodeFailure::InvalidPools { .. } => "invalid resource pool".to_owned(),
        NodeFailure::SkipNodeOperationsOff { gate, .. } => format!("feature gate {gate} off"),
    }
}

impl Explanation {
    /// Returns the first reason in few words, without anything that differs from node to node.
    #[must_use]
    pub fn headline(&self) -> Option<String> {
        self.reasons.first().map(Reason::headline)
    }
}

impl Reason {
    fn headline(&self) -> String {
        match &self.cause {
            Cause::Node { reason } => reason.clone(),
            Cause::Stopped { .. } => "stopped by the budget".to_owned(),
            Cause::NoDevices => "no devices".to_owned(),
            Cause::Pool { problem: None, .. } => "resource pool being updated".to_owned(),
            Cause::Pool { problem: Some(_), .. } => "invalid resource pool".to_owned(),
            Cause::Request { class, of_class: 0, .. } => format!("no device of class {class}"),
            Cause::Request { class, .. } => self.request_headline(class),
            Cause::NoAlternative { at } => format!("no alternative for request {}", at.request),
            Cause::Together { constraints, bottlenecks, .. } => match (constraints.first(), bottlenecks.first()) {
                (Some(constraint), _) => format!("{} mismatch", short_name(&constraint.attribute)),
                (None, Some(bottleneck)) => format!("not enough {} for all requests", bottleneck.on_any_node()),
                (None, None) => "not enough devices for all requests".to_owned(),
            },
            Cause::TooManyDevices { limit, .. } => format!("more than {limit} devices"),
            Cause::Devices { .. } | Cause::Offer { .. } | Cause::Wants { .. } | Cause::AtMost { .. } => {
                self.cause.to_string()
            }
        }
    }

    /// Returns the most frequent rejection of the class's devices.
    fn request_headline(&self, class: &str) -> String {
        let first = self.because.iter().find_map(|reason| match &reason.cause {
            Cause::Devices { rejection, .. } => Some(rejection),
            _ => None,
        });
        match first {
            None => format!("too few devices of class {class}"),
            Some(DeviceRejection::Held) => format!("no free device of class {class}"),
            Some(DeviceRejection::Tainted { taint }) => format!("taint {taint} on devices of class {class}"),
            Some(DeviceRejection::Class { .. } | DeviceRejection::Selector { .. }) => {
                format!("no device of class {class} that the selectors admit")
            }
            Some(DeviceRejection::Error { .. }) => format!("devices of class {class} that can't be judged"),
            Some(DeviceRejection::GateOff { gate }) => format!("feature gate {gate} off"),
            Some(
                DeviceRejection::NoCapacity { capacity }
                | DeviceRejection::CapacityPolicy { capacity, .. }
                | DeviceRejection::CapacityTooSmall { capacity, .. }
                | DeviceRejection::CapacityUsedUp { capacity, .. },
            ) => format!("not enough {capacity} on devices of class {class}"),
            Some(DeviceRejection::CounterUsedUp { .. }) => format!("counters used up for devices of class {class}"),
            Some(DeviceRejection::Groups) => format!("no compatible device of class {class}"),
            Some(DeviceRejection::Constraint { attribute, .. }) => format!("{} mismatch", short_name(attribute)),
            Some(DeviceRejection::OtherNode | DeviceRejection::NodeDoesNotDeclare { .. }) => {
                format!("no device of class {class} for the node")
            }
        }
    }
}

fn short_name(attribute: &str) -> &str {
    attribute.rsplit_once('/').map_or(attribute, |(_, id)| id)
}
