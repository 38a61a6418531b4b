//! Context of an autoscaler's questions.

use std::collections::BTreeMap;
use std::fmt;

use dra_device::internal::PodFields;
use dra_selector::SelectorCache;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

use crate::allocator::Allocator;
use crate::cluster::classes::Classes;
use crate::cluster::inventory::Inventory;
use crate::explain::Detail;
use crate::pods::{FitQuestion, GangSearch, KeptDevices, NodeCheck, PodOptions};
use crate::search::budget::Budget;

/// Simulator of nodes that come and go: [`ScaleSimulator::scale_up`], [`ScaleSimulator::expansion_options`],
/// [`ScaleSimulator::scale_down`], [`ScaleSimulator::remove_nodes`].
///
/// It decides as a scheduler does, pod after pod, each on the first node that fits. A question changes nothing: the inventory is
/// as before when it is answered, and of the tracker it takes a snapshot. Devices are all that it knows; CPU, taints of nodes and
/// affinities are the caller's ([`ScaleSimulator::with_fit`]).
#[derive(Clone)]
pub struct ScaleSimulator<'s> {
    pub(crate) classes: &'s Classes,
    pub(crate) selectors: &'s SelectorCache,
    options: PodOptions,
    now: Timestamp,
    budget: Budget<'s>,
    detail: Detail,
    fit: Option<&'s dyn NodeCheck>,
    groups: BTreeMap<[&'s str; 2], &'s PodGroup>,
}

impl<'s> ScaleSimulator<'s> {
    /// Builds a simulator with the classes, the profile and gates of a cluster. `selectors` keeps compiled selectors from one
    /// question to the next; `now` is for binding conditions. Refusals have the reasons of [`Detail::Summary`].
    #[must_use]
    pub const fn new(classes: &'s Classes, selectors: &'s SelectorCache, options: PodOptions, now: Timestamp) -> Self {
        let (budget, detail) = (Budget::work(1_000_000), Detail::Summary);
        Self { classes, selectors, options, now, budget, detail, fit: None, groups: BTreeMap::new() }
    }

    /// Sets the budget of each pod on each node; a million units of work otherwise.
    #[must_use]
    pub fn with_budget(self, budget: Budget<'s>) -> Self {
        Self { budget, ..self }
    }

    /// Sets the detail of the reasons why a node can't serve a pod's claims.
    #[must_use]
    pub fn with_explanation(self, detail: Detail) -> Self {
        Self { detail, ..self }
    }

    /// Sets the check of nodes by what has nothing to do with claims. It is given the pods that the question has placed so far.
    #[must_use]
    pub fn with_fit(self, fit: &'s dyn NodeCheck) -> Self {
        Self { fit: Some(fit), ..self }
    }

    /// Sets the pod groups, which pods name.
    #[must_use]
    pub fn with_groups(self, groups: impl IntoIterator<Item = &'s PodGroup>) -> Self {
        let key = |group: &'s PodGroup| {
            [&group.metadata.namespace, &group.metadata.name].map(|text| text.as_deref().unwrap_or_default())
        };
        Self { groups: groups.into_iter().map(|group| (key(group), group)).collect(), ..self }
    }

    /// Returns the group of a pod.
    pub(crate) fn group_of(&self, pod: &Pod) -> Option<&'s PodGroup> {
        self.groups.get(&[pod.namespace(), pod.group_name()?]).copied()
    }

    /// Returns true if nodes are checked by more than devices.
    pub(crate) const fn is_checked(&self) -> bool {
        self.fit.is_some()
    }

    /// Asks the caller's check of nodes.
    pub(crate) fn check(&self, question: &FitQuestion<'_>) -> Result<(), String> {
        self.fit.map_or(Ok(()), |fit| fit.fits(question))
    }

    /// Builds an allocator without explanations.
    pub(crate) fn allocator<'a>(&'a self, inventory: &'a Inventory) -> Allocator<'a> {
        Allocator::new(self.options.scheduler(), inventory, self.classes).with_selector_cache(self.selectors)
    }

    /// Asks a question about pods on nodes.
    pub(crate) fn search<R>(
        &self,
        inventory: &Inventory,
        nodes: &[&Node],
        ask: impl FnOnce(&GangSearch<'_>) -> R,
    ) -> R {
        self.search_beside(inventory, nodes, None, self.fit, ask)
    }

    /// Asks a question about pods on nodes, beside devices that are kept for others, with another check of nodes.
    pub(crate) fn search_beside<R>(
        &self,
        inventory: &Inventory,
        nodes: &[&Node],
        kept: Option<&dyn KeptDevices>,
        fit: Option<&dyn NodeCheck>,
        ask: impl FnOnce(&GangSearch<'_>) -> R,
    ) -> R {
        let allocator = Allocator::new(self.options.scheduler(), inventory, self.classes)
            .with_selector_cache(self.selectors)
            .with_explanation(self.detail);
        let search = GangSearch::new(&allocator, nodes.iter().copied(), self.options, self.now);
        let mut search = search.with_budget(self.budget);
        if let Some(fit) = fit {
            search = search.with_fit(fit);
        }
        if let Some(kept) = kept {
            search = search.with_kept(kept);
        }
        ask(&search)
    }

    pub(crate) const fn options(&self) -> PodOptions {
        self.options
    }
}

impl fmt::Debug for ScaleSimulator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScaleSimulator").field("options", &self.options).field("now", &self.now).finish_non_exhaustive()
    }
}
