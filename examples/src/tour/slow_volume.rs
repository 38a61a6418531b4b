//! The story of a pod whose volume takes a while, with and without `NominatedNodeNameForExpectation` (KEP-5278).

use k8s_openapi::api::core::v1::{Binding, Node, Pod};
use k8s_openapi::jiff::Timestamp;
use nnn::binding::api_server::{BindingConflict, bind};
use nnn::binding::start::PreFlight;
use nnn::command::Command;
use nnn::gates::{Gate, Gates};
use nnn::options::Options;
use nnn::pod::{PodError, PodView};
use nnn::profile::Profile;
use nnn::reservation::Fit;
use nnn::scheduler::{Input, Placed, Scheduler};
use nnn::scheduling::candidate::{CycleStart, Feasible};
use nnn::state::IllegalTransition;
use nnn::view::{ClusterView, Inputs, Mode, Settings, ViewError};
use serde_json::{Value, from_value, json};

const NODE: &str = "node-b";
const NODES: [&str; 2] = ["node-a", NODE];

/// Why the story can't be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoryError {
    /// An object is not what it should be.
    #[error(transparent)]
    Object(#[from] serde_json::Error),
    /// A pod can't be read.
    #[error(transparent)]
    Pod(#[from] PodError),
    /// The scheduler was told something impossible.
    #[error(transparent)]
    Illegal(#[from] IllegalTransition),
    /// The cluster can't be read.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The binding was refused.
    #[error(transparent)]
    Binding(#[from] BindingConflict),
}

/// What happens at a moment, with the gate and without.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) what: &'static str,
    pub(super) on: String,
    pub(super) off: String,
}

/// The story, moment by moment.
///
/// # Errors
/// The story is broken.
pub(super) fn tell() -> Result<Vec<Moment>, StoryError> {
    let on = live(Gates::default())?;
    let off = live(Gates::default().without(Gate::Expectation))?;
    let what = [
        "the scheduler sends",
        "an autoscaler takes node-b for",
        "a scheduler that starts anew tries",
        "once bound, the pod has",
    ];
    Ok(what.into_iter().zip(on).zip(off).map(|((what, on), off)| Moment { what, on, off }).collect())
}

/// One life of the pod.
fn live(gates: Gates) -> Result<[String; 4], StoryError> {
    let options = Options::default().with_profile(Profile::V1_37).with_gates(gates);
    let mut pod = pod()?;
    let key = PodView::from_pod(&pod)?.key;
    let mut scheduler = Scheduler::new(options);
    scheduler.handle(Input::PodObserved(PodView::from_pod(&pod)?))?;

    // VolumeBinding has a volume to make.
    let placed = Placed::new(&key, NODE).pre_flights(vec![PreFlight::Success]);
    let commands = scheduler.handle(Input::CycleSucceeded(placed))?.commands;
    let sent: Vec<String> = commands.iter().filter_map(request).collect();
    if let Some((_, Some(node))) = commands.iter().find_map(Command::written_nnn) {
        pod.status.get_or_insert_default().nominated_node_name = Some(node.to_owned());
    }
    let sent = if sent.is_empty() { "nothing yet".to_owned() } else { sent.join(", ") };
    let seen = autoscaler(&pod)?;

    // The leader lock is lost: another scheduler knows what the API server knows.
    let mut scheduler = Scheduler::new(options);
    scheduler.handle(Input::PodObserved(PodView::from_pod(&pod)?))?;
    let nnn = scheduler.pod(&key.uid).and_then(|pod| pod.nnn.as_deref());
    let start = CycleStart::new(&NODES).nominated_to(nnn);
    let tried = match start.evaluate(|node| NODES.contains(&node), |_| Fit::<()>::Fits).feasible {
        Feasible::First(node) => format!("{node} first, and goes on there"),
        _ => "every node; the volume may be made in vain".to_owned(),
    };

    let binding: Binding = from_value(json!({"metadata": {"name": key.name}, "target": {"name": NODE}}))?;
    let bound = PodView::from_pod(&bind(&pod, &binding, gates, Timestamp::UNIX_EPOCH)?)?;
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

/// What an autoscaler makes of the node.
fn autoscaler(pod: &Pod) -> Result<String, StoryError> {
    let node = |name: &str| -> Result<Node, serde_json::Error> {
        from_value(json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "memory": "16Gi"}}}))
    };
    let nodes = NODES.map(node).into_iter().collect::<Result<Vec<_>, _>>()?;
    let view = ClusterView::new(Inputs::new(&nodes, std::slice::from_ref(pod)), &Settings::default())?;
    let reasons = view.node(NODE).map(|node| node.removable(Mode::Strict).reasons).unwrap_or_default();
    Ok(reasons.first().map_or_else(|| "empty: it may go".to_owned(), |reason| format!("in use: {reason}")))
}

fn pod() -> Result<Pod, serde_json::Error> {
    let controller: Value =
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1", "controller": true});
    from_value(json!({
        "metadata": {"namespace": "shop", "name": "db-0", "uid": "2", "ownerReferences": [controller]},
        "spec": {"containers": [{"name": "db", "resources": {"requests": {"cpu": "1", "memory": "4Gi"}}}]},
    }))
}
