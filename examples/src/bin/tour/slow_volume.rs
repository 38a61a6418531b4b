//! A pod whose volume takes a minute to provision, with and without `NominatedNodeNameForExpectation` (KEP-5278).

use dra_attrs::{Component, Gate, GateSet, Profile};
use examples::objects::KubeObject;
use k8s_openapi::api::core::v1::{Binding, Node, Pod};
use k8s_openapi::jiff::Timestamp;
use nnn::binding::{BindingError, apply_binding};
use nnn::scheduling::{FeasibleNodes, FilterInput};
use nnn::view::{AutoscalerNode, ClusterObjects, ClusterView, ClusterViewError, ClusterViewOptions};
use nnn::{
    Assumed, Behavior, Command, NodeFit, NominationOptions, NominationTracker, PodError, PodSnapshot, PreFlight,
    TrackerInput, TransitionError,
};
use serde_json::{Value, json};

const NODE: &str = "node-b";
const NODES: [&str; 2] = ["node-a", NODE];

/// Error of the simulation of the pod.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoryError {
    /// An object of the story can't be read.
    #[error(transparent)]
    Object(#[from] serde_path_to_error::Error<serde_json::Error>),
    /// A pod can't be read.
    #[error(transparent)]
    Pod(#[from] PodError),
    /// The tracker got an impossible event.
    #[error(transparent)]
    Illegal(#[from] TransitionError),
    /// The cluster can't be read.
    #[error(transparent)]
    View(#[from] ClusterViewError),
    /// The binding was refused.
    #[error(transparent)]
    Binding(#[from] BindingError),
}

/// A moment of the pod's life, with the gate on and off.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) what: &'static str,
    pub(super) on: String,
    pub(super) off: String,
}

/// Plays the pod's life with the gate on and off.
///
/// # Errors
/// An object can't be read, or an event is refused.
pub(super) fn tell() -> Result<Vec<Moment>, StoryError> {
    let on = live(GateSet::of(Profile::V1_37))?;
    let off = live(GateSet::of(Profile::V1_37).without(Gate::NominatedNodeNameForExpectation))?;
    let what = [
        "the scheduler sends",
        "an autoscaler takes node-b for",
        "a scheduler that starts anew tries",
        "once bound, the pod has",
    ];
    Ok(what.into_iter().zip(on).zip(off).map(|((what, on), off)| Moment { what, on, off }).collect())
}

/// Plays one life of the pod, and returns the text of each moment.
fn live(gates: GateSet) -> Result<[String; 4], StoryError> {
    let options = NominationOptions::new(Component::new(Profile::V1_37, gates), Behavior::Safe);
    let mut pod = pod()?;
    let key = PodSnapshot::from_pod(&pod)?.key;
    let mut tracker = NominationTracker::new(options);
    tracker.handle(TrackerInput::PodObserved(PodSnapshot::from_pod(&pod)?))?;

    // VolumeBinding has a volume to make.
    let assumed = Assumed::new(&key, NODE).with_pre_flights(vec![PreFlight::Success]);
    let commands = tracker.handle(TrackerInput::CycleSucceeded(assumed))?.commands;
    let sent: Vec<String> = commands.iter().filter_map(request).collect();
    if let Some((_, Some(node))) = commands.iter().find_map(Command::written_nnn) {
        pod.status.get_or_insert_default().nominated_node_name = Some(node.to_owned());
    }
    let sent = if sent.is_empty() { "nothing yet".to_owned() } else { sent.join(", ") };
    let seen = autoscaler(&pod)?;

    // The leader lock is lost: another scheduler knows what the API server knows.
    let mut tracker = NominationTracker::new(options);
    tracker.handle(TrackerInput::PodObserved(PodSnapshot::from_pod(&pod)?))?;
    let nnn = tracker.pod(&key.uid).and_then(|pod| pod.nnn.as_deref());
    let start = FilterInput::new(&NODES).with_nomination(nnn);
    let tried = match start.evaluate(|node| NODES.contains(&node), |_| NodeFit::<()>::Fits).feasible {
        FeasibleNodes::First(node) => format!("{node} first, and goes on there"),
        _ => "every node; the volume may be made in vain".to_owned(),
    };

    let binding = Binding::from_json(json!({"metadata": {"name": key.name}, "target": {"name": NODE}}))?;
    let bound = PodSnapshot::from_pod(&apply_binding(&pod, &binding, gates, Timestamp::UNIX_EPOCH)?)?;
    let nnn = bound.nnn.map_or_else(|| "no nominatedNodeName".to_owned(), |node| format!("nominatedNodeName: {node}"));
    let bound = format!("nodeName: {}, {nnn}", bound.node.unwrap_or_default());
    Ok([sent, seen, tried, bound])
}

fn request(command: &Command) -> Option<String> {
    match command {
        Command::PatchNnn { node, .. } => Some(format!("PATCH nominatedNodeName: {node}")),
        _ => None,
    }
}

/// Returns the verdict of an autoscaler on the node.
fn autoscaler(pod: &Pod) -> Result<String, StoryError> {
    let node = |name: &str| -> Result<Node, StoryError> {
        Ok(Node::from_json(
            json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "memory": "16Gi"}}}),
        )?)
    };
    let nodes = NODES.map(node).into_iter().collect::<Result<Vec<_>, _>>()?;
    let objects = ClusterObjects::new(&nodes, std::slice::from_ref(pod));
    let view = ClusterView::new(objects, &ClusterViewOptions::default())?;
    let reasons = view.node(NODE).map(AutoscalerNode::unremovable_reasons).unwrap_or_default();
    Ok(reasons.first().map_or_else(|| "empty: it may go".to_owned(), |reason| format!("in use: {reason}")))
}

fn pod() -> Result<Pod, StoryError> {
    let controller: Value =
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1", "controller": true});
    Ok(Pod::from_json(json!({
        "metadata": {"namespace": "shop", "name": "db-0", "uid": "2", "ownerReferences": [controller]},
        "spec": {"containers": [{"name": "db", "resources": {"requests": {"cpu": "1", "memory": "4Gi"}}}]},
    }))?)
}
