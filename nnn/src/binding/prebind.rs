//! Order of a binding cycle, and groups of `PreBind` plugins that run together (KEP-5278, Handling `ResourceClaim`
//! status updates).

use std::time::Duration;

use dra_attrs::GateSet;
use serde::{Deserialize, Serialize};

use super::start::PermitWait;
use crate::commands::PatchDecision;
use crate::config::NominationGate;

/// Permission of a `PreBind` plugin to run in parallel with other plugins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "it may or it may not")]
pub enum PreBindConcurrency {
    /// The plugin runs while no other plugin runs.
    #[default]
    Alone,
    /// The plugin may run in parallel with other plugins that are [`PreBindConcurrency::Parallel`].
    Parallel,
}

/// Effect of a plugin's `PreBindPreFlight`: its `PreBind` runs or is skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "it runs or it is skipped")]
pub enum PreBindExecution {
    /// The plugin's `PreBind` runs.
    #[default]
    Runs,
    /// The plugin's `PreBind` is skipped.
    Skipped,
}

/// A `PreBind` plugin in one binding cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreBindPlugin<'a> {
    /// Name of the plugin.
    pub name: &'a str,
    /// Result of the pre-flight: the plugin's `PreBind` runs or is skipped.
    pub execution: PreBindExecution,
    /// Permission to run in parallel with other plugins.
    pub concurrency: PreBindConcurrency,
    /// Duration of the plugin's `PreBind`.
    pub duration: Duration,
}

impl<'a> PreBindPlugin<'a> {
    /// Builds a plugin with duration zero.
    #[must_use]
    pub const fn new(name: &'a str, execution: PreBindExecution, concurrency: PreBindConcurrency) -> Self {
        Self { name, execution, concurrency, duration: Duration::ZERO }
    }

    /// Sets the duration of the plugin's `PreBind`.
    #[must_use]
    pub const fn with_duration(self, duration: Duration) -> Self {
        Self { duration, ..self }
    }
}

/// Groups the `PreBind` plugins that run: groups run one after the other, the plugins of one group in parallel.
///
/// A plugin that runs alone ends the group before it even if it is skipped.
///
/// ```
/// use nnn::binding::{PreBindConcurrency, PreBindExecution, PreBindPlugin, groups};
/// let plugin = |name, work| PreBindPlugin::new(name, work, PreBindConcurrency::Parallel);
/// let (runs, skipped) = (PreBindExecution::Runs, PreBindExecution::Skipped);
/// let plugins = [plugin("a", runs), plugin("b", skipped), plugin("c", runs)];
/// let groups = groups(&plugins);
/// assert_eq!(groups.len(), 1);
/// assert_eq!(groups[0].iter().map(|plugin| plugin.name).collect::<Vec<_>>(), ["a", "c"]);
/// ```
#[must_use]
pub fn groups<'a>(plugins: &[PreBindPlugin<'a>]) -> Vec<Vec<PreBindPlugin<'a>>> {
    let mut groups: Vec<Vec<PreBindPlugin<'a>>> = Vec::new();
    let mut open = Vec::new();
    for plugin in plugins {
        if plugin.concurrency == PreBindConcurrency::Alone {
            groups.push(std::mem::take(&mut open));
        }
        if plugin.execution == PreBindExecution::Runs {
            open.push(*plugin);
        }
        if plugin.concurrency == PreBindConcurrency::Alone {
            groups.push(std::mem::take(&mut open));
        }
    }
    groups.push(open);
    groups.retain(|group| !group.is_empty());
    groups
}

/// Groups `PreBind` plugins under the given feature gates. With `NominatedNodeNameForExpectation` off there are no
/// pre-flights: every plugin runs, one at a time.
#[must_use]
pub fn groups_with_gates<'a>(
    gates: GateSet<NominationGate>,
    plugins: &[PreBindPlugin<'a>],
) -> Vec<Vec<PreBindPlugin<'a>>> {
    if gates.has(NominationGate::Expectation) {
        return groups(plugins);
    }
    plugins.iter().map(|plugin| vec![PreBindPlugin { execution: PreBindExecution::Runs, ..*plugin }]).collect()
}

/// Returns the time from the start of `PreBind` to the start of a plugin; `None` if the plugin does not run.
///
/// ```
/// use nnn::binding::{PreBindConcurrency, PreBindExecution, PreBindPlugin, delay_before, groups};
/// use std::time::Duration;
/// let plugin = |name| PreBindPlugin::new(name, PreBindExecution::Runs, PreBindConcurrency::Alone);
/// let volumes = plugin("VolumeBinding").with_duration(Duration::from_secs(60));
/// let claims = plugin("DynamicResources");
/// assert_eq!(delay_before("DynamicResources", &groups(&[volumes, claims])), Some(Duration::from_secs(60)));
/// assert_eq!(delay_before("DynamicResources", &groups(&[claims, volumes])), Some(Duration::ZERO));
/// ```
#[must_use]
pub fn delay_before(name: &str, groups: &[Vec<PreBindPlugin<'_>>]) -> Option<Duration> {
    let mut delay = Duration::ZERO;
    for group in groups {
        if group.iter().any(|plugin| plugin.name == name) {
            return Some(delay);
        }
        let longest = group.iter().map(|plugin| plugin.duration).max().unwrap_or_default();
        delay = delay.saturating_add(longest);
    }
    None
}

/// Step of a binding cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BindingStep<'a> {
    /// The PATCH of `status.nominatedNodeName`.
    PatchNnn,
    /// The wait until the `Permit` plugins allow the pod.
    WaitOnPermit,
    /// One group of `PreBind` plugins that run in parallel, by name.
    PreBind(Vec<&'a str>),
    /// The binding request to the API server.
    Bind,
}

/// Returns the steps of a binding cycle in order. `announced` is the result of
/// [`BindingStart::decide`](super::BindingStart::decide).
///
/// ```
/// use nnn::binding::{BindingStep, steps};
/// use nnn::{PatchDecision, PermitWait};
/// let steps = steps(PatchDecision::Needed, PermitWait::Waiting, &[]);
/// assert_eq!(steps, [BindingStep::PatchNnn, BindingStep::WaitOnPermit, BindingStep::Bind]);
/// ```
#[must_use]
pub fn steps<'a>(
    announced: PatchDecision,
    permit: PermitWait,
    groups: &[Vec<PreBindPlugin<'a>>],
) -> Vec<BindingStep<'a>> {
    let patch = (announced == PatchDecision::Needed).then_some(BindingStep::PatchNnn);
    let wait = (permit == PermitWait::Waiting).then_some(BindingStep::WaitOnPermit);
    let pre_bind = groups.iter().map(|group| BindingStep::PreBind(group.iter().map(|plugin| plugin.name).collect()));
    patch.into_iter().chain(wait).chain(pre_bind).chain([BindingStep::Bind]).collect()
}
