//! Explanations of nodes in the state of one before, which need no questions.
//!
//! *Argument.* An explanation looks at the devices of a node and asks the search again: with fewer requests and constraints, other
//! tolerations, nothing in use, or one more gate. None of these questions reads other attributes than the claims do, so that the
//! state of the node ([`NodeState`]) decides about all of them, and about their work. Four things are read besides, and such
//! explanations are not shared: the number of claims that hold a device, the text of what is left of a shared capacity, names in
//! errors and of pools, and the size of the slices that a question about counters and capacities copies. The names of the listed
//! devices are those at the same positions.
//!
//! The gate of partitions must be on, so that a question about another gate reads the same slices, and the caller can't stop the
//! questions.

#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dra_attrs::Gate;
use k8s_openapi::api::core::v1::Node;
use smallvec::SmallVec;

use super::{Cause, DeviceRejection, Explanation, Reason};
use crate::cluster::inventory::pool::Pool;
use crate::cluster::inventory::pool_devices::PoolDevices;
use crate::cluster::inventory::shape::KnownLens;
use crate::cluster::inventory::sight::Sight;
use crate::cluster::inventory::view::View;
use crate::cluster::known_states::KnownStates;
use crate::cluster::node_state::{NodeState, SharedUse};
use crate::cluster::set_uses::SetUses;
use crate::search::budget::{Effort, Meter};
use crate::search::context::Context;
use crate::search::request::Plan;
use crate::search::{Elision, lens_of, own_words};

/// Largest number of states that are remembered.
const MOST_STATES: usize = 256;

/// Explanations of one attempt, by the state of the node.
#[derive(Debug)]
pub(crate) struct ExplainedStates {
    lens: OnceLock<KnownLens>,
    uses: SetUses,
    known: KnownStates<Known>,
    /// Number of explanations that were found.
    #[cfg(test)]
    found: AtomicUsize,
}

/// Explanation of the nodes in one state, with its work.
#[derive(Debug)]
struct Known {
    explanation: Arc<Explanation>,
    work: u64,
    /// Devices of the node, for the names; none if no device is listed.
    devices: Devices,
}

type Devices = SmallVec<[Arc<PoolDevices>; 2]>;

/// Node whose state tells its explanation.
#[derive(Debug)]
pub(super) struct ExplainedNode<'i> {
    state: NodeState,
    view: View<'i>,
}

impl Default for ExplainedStates {
    fn default() -> Self {
        Self {
            lens: OnceLock::new(),
            uses: SetUses::default(),
            known: KnownStates::new(MOST_STATES),
            #[cfg(test)]
            found: AtomicUsize::new(0),
        }
    }
}

impl ExplainedStates {
    /// Returns the explanation of a node in a state whose explanation is known, and counts its work. What is too much work is left
    /// to the node's own explanation.
    pub(super) fn find(&self, node: &ExplainedNode<'_>, meter: &Meter<'_>) -> Option<Arc<Explanation>> {
        let known = self.known.find(&node.state)?;
        if !meter.spare(Effort { work: known.work, ..Effort::default() }).unwrap_or(false) {
            return None;
        }
        #[cfg(test)]
        self.found.fetch_add(1, Ordering::Relaxed);
        if known.devices.is_empty() {
            return Some(Arc::clone(&known.explanation));
        }
        let mut explanation = Explanation::clone(&known.explanation);
        let devices = node.devices();
        explanation.reasons.iter_mut().for_each(|reason| rename(reason, &known.devices, &devices));
        Some(Arc::new(explanation))
    }

    /// Returns the number of explanations that were found.
    #[cfg(test)]
    pub(crate) fn found(&self) -> usize {
        self.found.load(Ordering::Relaxed)
    }

    /// Remembers the explanation of a node, if it is that of all nodes in its state.
    pub(super) fn remember(&self, node: ExplainedNode<'_>, explanation: &Arc<Explanation>, work: u64) {
        // No question copies slices where no device consumes counters or can be shared.
        let is_plain = node.view.pools().all(Pool::is_plain);
        if explanation.reasons.iter().all(|reason| is_of_state(reason, is_plain)) {
            let devices = if explanation.reasons.iter().any(lists_devices) { node.devices() } else { Devices::new() };
            self.known.keep(node.state, Known { explanation: Arc::clone(explanation), work, devices });
        }
    }

    /// Reads the state of a node; `None` if something else may matter to the explanation.
    pub(super) fn read<'i>(
        &self,
        context: &Context<'i>,
        plan: &Plan<'_>,
        node: &Node,
        meter: &Meter<'_>,
    ) -> Option<ExplainedNode<'i>> {
        let may_be_shared = context.elisions.has(Elision::ExplainedStates)
            && context.gates.has(Gate::PartitionableDevices)
            && !context.selectors.fails_on_lists
            && meter.stop().is_none()
            && plan.claims.iter().all(|claim| claim.request_error.is_none() && claim.constraint_error.is_none());
        if !may_be_shared {
            return None;
        }
        let inventory = context.inventory;
        let (view, weight) = inventory.view_and_weight(node, Sight::new(context.profile, context.gates));
        let view = view.ok()?;
        let held_twice = |pool: &Pool| {
            let used = context.state.pool_hashed(pool.hash(), pool.driver(), pool.name());
            used.is_some_and(|used| used.held_twice() > 0)
        };
        if view.pools().any(held_twice) {
            return None;
        }
        let lens = self.lens.get_or_init(|| inventory.shapes().lens(lens_of(context, plan)));
        let first = own_words(context.profile, node, weight);
        let state = NodeState::read(first, inventory, &view, lens, context.state, SharedUse::Compared(&self.uses))?;
        Some(ExplainedNode { state, view })
    }
}

impl ExplainedNode<'_> {
    fn devices(&self) -> Devices {
        self.view.pools().map(|pool| Arc::clone(pool.devices())).collect()
    }
}

/// Returns true if a reason is that of all nodes in the state of a node, but for the names of listed devices. `is_plain` is true if
/// the pools of the node are plain.
fn is_of_state(reason: &Reason, is_plain: bool) -> bool {
    let is_its = match &reason.cause {
        Cause::Devices { rejection, .. } => !matches!(
            rejection,
            DeviceRejection::Error { .. } | DeviceRejection::HeldTwice { .. } | DeviceRejection::CapacityUsedUp { .. }
        ),
        Cause::Together { .. } => is_plain,
        Cause::NoDevices
        | Cause::Request { .. }
        | Cause::NoAlternative { .. }
        | Cause::Wants { .. }
        | Cause::Offer { .. }
        | Cause::TooManyDevices { .. }
        | Cause::AtMost { .. } => true,
        Cause::Node { .. }
        | Cause::AllocatedElsewhere { .. }
        | Cause::Stopped { .. }
        | Cause::Pool { .. }
        | Cause::IncompletePool { .. } => false,
    };
    is_its && reason.because.iter().all(|reason| is_of_state(reason, is_plain))
}

/// Returns true if a reason lists devices.
fn lists_devices(reason: &Reason) -> bool {
    let lists = matches!(&reason.cause, Cause::Devices { devices, .. } if !devices.is_empty());
    lists || reason.because.iter().any(lists_devices)
}

/// Puts the devices of a node in the place of those of a node in the same state.
fn rename(reason: &mut Reason, from: &Devices, to: &Devices) {
    if let Cause::Devices { devices, .. } = &mut reason.cause {
        devices.replace(|devices| {
            let pool = from.iter().zip(to).find(|(from, _)| Arc::ptr_eq(from, devices));
            Arc::clone(pool.map_or(devices, |(_, to)| to))
        });
    }
    reason.because.iter_mut().for_each(|reason| rename(reason, from, to));
}
