//! Answer about a node that may become one of several shapes.

use std::collections::BTreeSet;

use dra_attrs::Index;
use dra_device::DeviceId;
use dra_device::claims::ClaimKey;
use k8s_openapi::api::resource::v1::AllocationResult;

use super::label_values::LabelValues;
use crate::autoscaler::{NodeTemplate, PlacementError};
use crate::cluster::state::ClaimId;
use crate::pods::PodIdentity;

/// One node that may become one of several shapes, with the pods that wait for it. What the cluster has of their devices is taken
/// for other nodes: see [`ScaleSimulator::superposed`](crate::autoscaler::ScaleSimulator::superposed).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Superposed {
    /// Shapes that serve all pods, in the order of the input.
    pub survivors: Vec<Survivor>,
    /// The other shapes, with the reasons, in the order of the input.
    pub lost: Vec<LostShape>,
    /// Requirements of labels, each with the shapes that serve the pods under them: those that leave most shapes first, then those
    /// with the lowest price. Up to 200 requirements are compared.
    pub together: Vec<Choice>,
}

/// Shape that serves all pods.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Survivor {
    /// Position of the shape.
    pub shape: Index<NodeTemplate>,
    /// Price of the node.
    pub price: u64,
    /// Ways in which it serves them, the widest first: none of them is part of another one.
    pub ways: Vec<Way>,
    /// True if no other ways exist; false if there were more boxes of labels than are tried: then some ways are narrower than they
    /// need to be.
    pub is_complete: bool,
    /// Values of all labels that the node may get.
    pub(super) offered: LabelValues,
    /// Driver and name of each pool that comes with the node.
    pub(super) own_pools: BTreeSet<[String; 2]>,
}

/// Way in which a shape serves pods.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Way {
    /// Values that labels must have; a label that is not named may have any value that is offered.
    pub labels: LabelValues,
    /// The pods, with the allocations of their claims.
    pub placed: Vec<PlacedPod>,
    /// The same by claim.
    pub(super) claims: Vec<(ClaimId, AllocationResult)>,
}

/// Pod that a node serves.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlacedPod {
    /// The pod.
    pub pod: PodIdentity,
    /// Claims that are allocated for it, with the allocations.
    pub results: Vec<(ClaimKey, AllocationResult)>,
}

/// Shape that does not serve all pods.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LostShape {
    /// Position of the shape.
    pub shape: Index<NodeTemplate>,
    /// The reason, for the narrowest labels that were tried.
    pub reason: LostShapeError,
}

/// Reason why a shape does not serve all pods.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LostShapeError {
    /// A pod has no place.
    #[error("pod {}/{}: {reason}", pod.namespace, pod.name)]
    NoPlace {
        /// The pod.
        pod: PodIdentity,
        /// The reason.
        #[source]
        reason: Box<PlacementError>,
    },
    /// A claim is allocated for other nodes.
    #[error("claim {claim} is allocated for other nodes")]
    ClaimElsewhere {
        /// The claim.
        claim: ClaimKey,
    },
    /// The pods have a place only if something is true that nobody knows before the node exists.
    #[error("nobody knows before the node exists: {}", text(conditions))]
    Unknown {
        /// All of these must be true.
        conditions: Vec<UnknownCondition>,
    },
}

/// Condition on attributes that nobody knows before the node exists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum UnknownCondition {
    /// A selector of a claim, or of one of its classes, admits devices by an unknown value.
    Selector {
        /// The claim.
        claim: ClaimKey,
        /// The attribute, as `domain/name`.
        attribute: String,
    },
    /// Devices must have one value.
    Equal {
        /// The claim that asks for it.
        claim: ClaimKey,
        /// The attribute, as `domain/name`.
        attribute: String,
        /// The devices.
        devices: Vec<DeviceId>,
    },
    /// Devices must have different values.
    Different {
        /// The claim that asks for it.
        claim: ClaimKey,
        /// The attribute, as `domain/name`.
        attribute: String,
        /// The devices.
        devices: Vec<DeviceId>,
    },
}

/// Requirements of labels that leave several shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// Values that labels must have; labels that are not named may have any.
    pub labels: LabelValues,
    /// Positions of the shapes that serve the pods then.
    pub shapes: Vec<Index<NodeTemplate>>,
    /// Lowest price of one of them.
    pub price: u64,
}

fn text(conditions: &[UnknownCondition]) -> String {
    let of_devices = |claim: &ClaimKey, attribute: &str, word: &str, devices: &[DeviceId]| {
        let names: Vec<String> = devices.iter().map(ToString::to_string).collect();
        format!("claim {claim} needs {word} values of {attribute} of {}", names.join(", "))
    };
    let text = |condition: &UnknownCondition| match condition {
        UnknownCondition::Selector { claim, attribute } => format!("claim {claim} reads {attribute}"),
        UnknownCondition::Equal { claim, attribute, devices } => of_devices(claim, attribute, "equal", devices),
        UnknownCondition::Different { claim, attribute, devices } => of_devices(claim, attribute, "different", devices),
    };
    conditions.iter().map(text).collect::<Vec<_>>().join("; ")
}
