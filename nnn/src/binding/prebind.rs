//! The order of a binding cycle, and which `PreBind` plugins run together (KEP-5278, Handling `ResourceClaim` status updates).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::start::PermitWait;
use crate::gates::{Gate, Gates};
use crate::patch::Patch;

/// Whether a plugin may run beside others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "it may or it may not")]
pub enum Concurrency {
    /// It runs alone.
    #[default]
    Alone,
    /// It may run beside others that may.
    Parallel,
}

/// Whether a plugin has something to do, as its pre-flight said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "it runs or it is skipped")]
pub enum Work {
    /// Its `PreBind` runs.
    #[default]
    Runs,
    /// Its `PreBind` is skipped.
    Skipped,
}

/// A `PreBind` plugin in one binding cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plugin<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it runs.
    pub work: Work,
    /// Whether it may run beside others.
    pub concurrency: Concurrency,
    /// How long it takes.
    pub takes: Duration,
}

impl<'a> Plugin<'a> {
    /// A plugin that takes no time.
    #[must_use]
    pub const fn new(name: &'a str, work: Work, concurrency: Concurrency) -> Self {
        Self { name, work, concurrency, takes: Duration::ZERO }
    }

    /// The same with a duration.
    #[must_use]
    pub const fn taking(self, takes: Duration) -> Self {
        Self { takes, ..self }
    }
}

/// The groups of `PreBind` plugins: one group after the other, the plugins of a group together.
///
/// A plugin that may not run beside others ends the group before it even when it is skipped.
///
/// ```
/// use nnn::binding::prebind::{Concurrency, Plugin, Work, groups};
/// let plugin = |name, work| Plugin::new(name, work, Concurrency::Parallel);
/// let plugins = [plugin("a", Work::Runs), plugin("b", Work::Skipped), plugin("c", Work::Runs)];
/// let groups = groups(&plugins);
/// assert_eq!(groups.len(), 1);
/// assert_eq!(groups[0].iter().map(|plugin| plugin.name).collect::<Vec<_>>(), ["a", "c"]);
/// ```
#[must_use]
pub fn groups<'a>(plugins: &[Plugin<'a>]) -> Vec<Vec<Plugin<'a>>> {
    let mut groups: Vec<Vec<Plugin<'a>>> = Vec::new();
    let mut open = Vec::new();
    for plugin in plugins {
        if plugin.concurrency == Concurrency::Alone {
            groups.push(std::mem::take(&mut open));
        }
        if plugin.work == Work::Runs {
            open.push(*plugin);
        }
        if plugin.concurrency == Concurrency::Alone {
            groups.push(std::mem::take(&mut open));
        }
    }
    groups.push(open);
    groups.retain(|group| !group.is_empty());
    groups
}

/// The groups as the gates have it: without `NominatedNodeNameForExpectation` nothing is known about plugins, so that all
/// of them run, one by one.
#[must_use]
pub fn groups_under<'a>(gates: Gates, plugins: &[Plugin<'a>]) -> Vec<Vec<Plugin<'a>>> {
    if gates.has(Gate::Expectation) {
        return groups(plugins);
    }
    plugins.iter().map(|plugin| vec![Plugin { work: Work::Runs, ..*plugin }]).collect()
}

/// How long after the start of `PreBind` a plugin starts; `None` if it does not run.
///
/// ```
/// use std::time::Duration;
/// use nnn::binding::prebind::{Concurrency, Plugin, Work, delay_of, groups};
/// let volumes = Plugin::new("VolumeBinding", Work::Runs, Concurrency::Alone).taking(Duration::from_secs(60));
/// let claims = Plugin::new("DynamicResources", Work::Runs, Concurrency::Alone);
/// assert_eq!(delay_of("DynamicResources", &groups(&[volumes, claims])), Some(Duration::from_secs(60)));
/// assert_eq!(delay_of("DynamicResources", &groups(&[claims, volumes])), Some(Duration::ZERO));
/// ```
#[must_use]
pub fn delay_of(name: &str, groups: &[Vec<Plugin<'_>>]) -> Option<Duration> {
    let mut delay = Duration::ZERO;
    for group in groups {
        if group.iter().any(|plugin| plugin.name == name) {
            return Some(delay);
        }
        let longest = group.iter().map(|plugin| plugin.takes).max().unwrap_or_default();
        delay = delay.saturating_add(longest);
    }
    None
}

/// A step of a binding cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step<'a> {
    /// The PATCH of the nomination.
    PatchNnn,
    /// The wait on permit.
    WaitOnPermit,
    /// A group of `PreBind` plugins.
    PreBind(Vec<&'a str>),
    /// The binding.
    Bind,
}

/// The steps of a binding cycle in their order. `announced` is what [`super::start::BindingStart::decide`] said.
///
/// ```
/// use nnn::binding::prebind::{Step, steps};
/// use nnn::binding::start::PermitWait;
/// use nnn::patch::Patch;
/// assert_eq!(steps(Patch::Needed, PermitWait::Waiting, &[]), [Step::PatchNnn, Step::WaitOnPermit, Step::Bind]);
/// ```
#[must_use]
pub fn steps<'a>(announced: Patch, permit: PermitWait, groups: &[Vec<Plugin<'a>>]) -> Vec<Step<'a>> {
    let patch = (announced == Patch::Needed).then_some(Step::PatchNnn);
    let wait = (permit == PermitWait::Waiting).then_some(Step::WaitOnPermit);
    let pre_bind = groups.iter().map(|group| Step::PreBind(group.iter().map(|plugin| plugin.name).collect()));
    patch.into_iter().chain(wait).chain(pre_bind).chain([Step::Bind]).collect()
}
