//! Groups of `PreBind` plugins that run together (KEP-5278, Handling `ResourceClaim` status updates).

use std::time::Duration;

use dra_attrs::{Gate, GateSet};

/// A `PreBind` plugin in one binding cycle.
///
/// ```
/// use nnn::binding::PreBindPlugin;
/// let mut plugin = PreBindPlugin::new("VolumeBinding");
/// assert!(!plugin.is_skipped && !plugin.is_parallel, "it runs, while no other plugin does");
/// plugin.is_parallel = true;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreBindPlugin<'a> {
    /// Name of the plugin.
    pub name: &'a str,
    /// True if the plugin's `PreBindPreFlight` returned `Skip`, so that its `PreBind` is not run.
    pub is_skipped: bool,
    /// True if the plugin may run in parallel with other parallel plugins; false if it runs alone.
    pub is_parallel: bool,
    /// Duration of the plugin's `PreBind`.
    pub duration: Duration,
}

impl<'a> PreBindPlugin<'a> {
    /// Builds a plugin that runs alone, with duration zero.
    #[must_use]
    pub const fn new(name: &'a str) -> Self {
        Self { name, is_skipped: false, is_parallel: false, duration: Duration::ZERO }
    }

    /// Groups the `PreBind` plugins that run: groups run one after the other, the plugins of one group in parallel.
    ///
    /// A plugin that runs alone ends the group before it even if it is skipped. With `NominatedNodeNameForExpectation` off
    /// there are no pre-flights: every plugin runs, one at a time.
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// use dra_attrs::GateSet;
    /// use dra_attrs::Gate;
    /// use nnn::binding::PreBindPlugin;
    /// let mut plugins = ["a", "b", "c"].map(PreBindPlugin::new);
    /// plugins.iter_mut().for_each(|plugin| plugin.is_parallel = true);
    /// plugins[1].is_skipped = true;
    /// let names = |gates| {
    ///     let groups = PreBindPlugin::group(gates, &plugins);
    ///     groups.iter().map(|group| group.iter().map(|plugin| plugin.name).collect()).collect::<Vec<Vec<_>>>()
    /// };
    /// assert_eq!(names(GateSet::of(Profile::V1_37)), [["a", "c"]]);
    /// assert_eq!(names(GateSet::of(Profile::V1_37).without(Gate::NominatedNodeNameForExpectation)), [["a"], ["b"], ["c"]]);
    /// ```
    #[must_use]
    pub fn group(gates: GateSet, plugins: &[Self]) -> Vec<Vec<Self>> {
        if !gates.has(Gate::NominatedNodeNameForExpectation) {
            return plugins.iter().map(|plugin| vec![Self { is_skipped: false, ..*plugin }]).collect();
        }
        let mut groups: Vec<Vec<Self>> = Vec::new();
        let mut open = Vec::new();
        for plugin in plugins {
            if !plugin.is_parallel {
                groups.push(std::mem::take(&mut open));
            }
            if !plugin.is_skipped {
                open.push(*plugin);
            }
            if !plugin.is_parallel {
                groups.push(std::mem::take(&mut open));
            }
        }
        groups.push(open);
        groups.retain(|group| !group.is_empty());
        groups
    }

    /// Returns the time during which API readers see a pod's nomination but not the allocation of its claims: the wait on
    /// permit plus the `PreBind` groups before the claims plugin. Excludes the duration of the writes; `None` if the plugin
    /// does not run.
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// use dra_attrs::GateSet;
    /// use nnn::binding::PreBindPlugin;
    /// use std::time::Duration;
    /// let (mut volumes, claims) = (PreBindPlugin::new("VolumeBinding"), PreBindPlugin::new("DynamicResources"));
    /// volumes.duration = Duration::from_secs(60);
    /// let gap = |plugins: &[_]| {
    ///     PreBindPlugin::reservation_gap(Duration::from_secs(5), "DynamicResources", &PreBindPlugin::group(GateSet::of(Profile::V1_37), plugins))
    /// };
    /// assert_eq!(gap(&[volumes, claims]), Some(Duration::from_secs(65)));
    /// assert_eq!(gap(&[claims, volumes]), Some(Duration::from_secs(5)));
    /// ```
    #[must_use]
    pub fn reservation_gap(permit: Duration, claims_plugin: &str, groups: &[Vec<Self>]) -> Option<Duration> {
        let mut gap = permit;
        for group in groups {
            if group.iter().any(|plugin| plugin.name == claims_plugin) {
                return Some(gap);
            }
            let longest = group.iter().map(|plugin| plugin.duration).max().unwrap_or_default();
            gap = gap.saturating_add(longest);
        }
        None
    }
}
