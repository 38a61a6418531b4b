//! Pods and small helpers.

use nnn::amount::{Amount, Resources};
use nnn::command::Command;
use nnn::options::Options;
use nnn::pod::{PodView, ScheduledCondition};
use nnn::scheduler::{Input, Placed, Reaction, Scheduler};
use nnn::scheduling::cycle::CycleOutcome;

pub(crate) fn cpu(units: i64) -> Resources {
    Resources::new([("cpu", Amount::from_units(units))])
}

pub(crate) fn pod(name: &str, priority: i32) -> PodView {
    PodView::pending("default", name).with_priority(priority)
}

/// The same with a change.
pub(crate) fn with<T>(mut value: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut value);
    value
}

/// The same pod in a later version.
pub(crate) fn version(pod: PodView, version: u64) -> PodView {
    with(pod, |pod| pod.resource_version = Some(version))
}

pub(crate) fn unschedulable() -> ScheduledCondition {
    ScheduledCondition::failed("Unschedulable", "0/3 nodes are available")
}

/// A scheduler that has seen these pods.
pub(crate) fn scheduler(options: Options, pods: &[PodView]) -> Scheduler {
    let mut scheduler = Scheduler::new(options);
    for pod in pods {
        handle(&mut scheduler, Input::PodObserved(pod.clone()));
    }
    scheduler
}

pub(crate) fn handle(scheduler: &mut Scheduler, input: Input) -> Reaction {
    scheduler.handle(input).unwrap()
}

pub(crate) fn fails(pod: &PodView, outcome: CycleOutcome) -> Input {
    Input::CycleFailed { popped: pod.clone(), outcome, condition: unschedulable() }
}

pub(crate) fn nominated(node: &str) -> CycleOutcome {
    CycleOutcome::Nominated { node: node.to_owned() }
}

pub(crate) fn placed(pod: &PodView, node: &str) -> Placed {
    Placed::new(&pod.key, node)
}

pub(crate) fn patches(reaction: &Reaction) -> Vec<&Command> {
    reaction.commands.iter().filter(|command| command.is_patch()).collect()
}

/// What is written into `nominatedNodeName`, by pod name.
pub(crate) fn written(reaction: &Reaction) -> Vec<(&str, Option<&str>)> {
    reaction.commands.iter().filter_map(Command::written_nnn).map(|(pod, node)| (pod.name.as_str(), node)).collect()
}
