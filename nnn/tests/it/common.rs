//! Builders of pods, options and events.

use dra_attrs::Resources;
use dra_attrs::{Profile, Quantity, QuantityFormat};
use nnn::{
    Assumed, Behavior, Command, CycleOutcome, NominationOptions, NominationTracker, PodSnapshot, ScheduledCondition,
    TrackerInput, TrackerOutput,
};

/// Returns options of the KEP's profile with the safe behavior.
pub(crate) fn safe() -> NominationOptions {
    NominationOptions::new(Profile::Kep, Behavior::Safe)
}

/// Returns options of kube-scheduler 1.37, its races included.
pub(crate) fn kube_scheduler() -> NominationOptions {
    NominationOptions::new(Profile::V1_37, Behavior::KubeScheduler)
}

pub(crate) fn cpu(units: i64) -> Resources {
    Resources::new([("cpu", Quantity::from_units(units, QuantityFormat::DecimalSi))])
}

pub(crate) fn pod(name: &str, priority: i32) -> PodSnapshot {
    PodSnapshot::pending("default", name).with_priority(priority)
}

/// Applies a change to a value.
pub(crate) fn with<T>(mut value: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut value);
    value
}

/// Sets the resource version of a pod.
pub(crate) fn version(pod: PodSnapshot, version: u64) -> PodSnapshot {
    with(pod, |pod| pod.resource_version = Some(version))
}

pub(crate) fn unschedulable() -> ScheduledCondition {
    ScheduledCondition::failed("Unschedulable", "0/3 nodes are available")
}

/// Builds a tracker that has observed these pods.
pub(crate) fn tracker(options: NominationOptions, pods: &[PodSnapshot]) -> NominationTracker {
    let mut tracker = NominationTracker::new(options);
    for pod in pods {
        handle(&mut tracker, TrackerInput::PodObserved(pod.clone()));
    }
    tracker
}

pub(crate) fn handle(tracker: &mut NominationTracker, input: TrackerInput) -> TrackerOutput {
    tracker.handle(input).unwrap()
}

pub(crate) fn fails(pod: &PodSnapshot, outcome: CycleOutcome) -> TrackerInput {
    TrackerInput::CycleFailed { queued_pod: pod.clone(), outcome, condition: unschedulable() }
}

pub(crate) fn nominated(node: &str) -> CycleOutcome {
    CycleOutcome::Nominated { node: node.to_owned() }
}

pub(crate) fn placed(pod: &PodSnapshot, node: &str) -> Assumed {
    Assumed::new(&pod.key, node)
}

pub(crate) fn patches(output: &TrackerOutput) -> Vec<&Command> {
    output.commands.iter().filter(|command| command.is_patch()).collect()
}

/// Returns the values written into `nominatedNodeName`, by pod name.
pub(crate) fn written(output: &TrackerOutput) -> Vec<(&str, Option<&str>)> {
    output.commands.iter().filter_map(Command::written_nnn).map(|(pod, node)| (pod.name.as_str(), node)).collect()
}

/// A pod on a node, for tests.
pub(crate) trait OnNode {
    /// Sets `spec.nodeName`.
    fn with_node(self, node: &str) -> Self;
}

impl OnNode for PodSnapshot {
    fn with_node(mut self, node: &str) -> Self {
        self.node = Some(node.to_owned());
        self
    }
}
