//! Explanations of nodes that are like one before, which need no questions.
//!
//! An explanation of plain requests reads no more of a pool than its driver, the number of its devices, and which of them are
//! held. Two nodes with the same pools in this sense, in the same order, have the same explanation but for the names of
//! devices. That holds if nothing else can matter ([`NodeKind::read`]):
//!
//! - the requests are harmless (`search::is_harmless`): their selectors read the driver alone, and nothing is asked of
//!   capacities; no constraint compares attributes;
//! - the pools are complete and uniform: their devices differ in nothing but names, attributes and capacities; no rule adds
//!   taints to them, and each device in use is held as a whole, by one claim;
//! - the gate of partitions is on, so that a question about another gate reads the same slices;
//! - the caller can't stop the questions.

#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dra_attrs::Gate;
use k8s_openapi::api::core::v1::Node;
use smallvec::SmallVec;

use super::{Cause, Explanation, Reason};
use crate::cluster::inventory::pool::{Pool, PoolState};
use crate::cluster::inventory::pool_devices::PoolDevices;
use crate::cluster::inventory::sight::Sight;
use crate::search::budget::{Effort, Meter};
use crate::search::context::Context;
use crate::search::request::Plan;
use crate::search::{Elision, is_harmless};

/// Largest number of kinds of nodes that are remembered.
const MOST_KINDS: usize = 32;
/// Largest number of devices of a pool whose node may be like another.
const MOST_DEVICES: usize = 64;

/// Explanations of one attempt, by the kind of the node.
#[derive(Debug, Default)]
pub(crate) struct EquivalentNodes {
    known: Mutex<Vec<Known>>,
    /// Number of explanations that were found.
    #[cfg(test)]
    found: AtomicUsize,
}

/// Explanation of a kind of nodes, with its work.
#[derive(Debug)]
struct Known {
    kind: NodeKind,
    explanation: Explanation,
    work: u64,
}

/// Facts of a node that an explanation of plain requests reads, with the devices for the names.
#[derive(Clone, Debug)]
pub(super) struct NodeKind {
    pools: SmallVec<[PoolKind; 2]>,
}

#[derive(Clone, Debug)]
struct PoolKind {
    devices: Arc<PoolDevices>,
    /// Positions of the devices that claims hold, as bits.
    held: u64,
}

impl EquivalentNodes {
    /// Returns the explanation of a node that is like one whose explanation is known, and counts its work. What is too much
    /// work is left to the node's own explanation.
    pub(super) fn find(&self, kind: &NodeKind, meter: &Meter<'_>) -> Option<Explanation> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { kind: like, explanation, work } = known.iter().find(|known| known.kind.is_like(kind))?;
        let is_within = meter.spare(Effort { work: *work, ..Effort::default() }).unwrap_or(false);
        let mut explanation = is_within.then(|| explanation.clone())?;
        explanation.reasons.iter_mut().for_each(|reason| rename(reason, like, kind));
        #[cfg(test)]
        self.found.fetch_add(1, Ordering::Relaxed);
        Some(explanation)
    }

    /// Returns the number of explanations that were found.
    #[cfg(test)]
    pub(crate) fn found(&self) -> usize {
        self.found.load(Ordering::Relaxed)
    }

    pub(super) fn remember(&self, kind: NodeKind, explanation: &Explanation, work: u64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST_KINDS {
            known.push(Known { kind, explanation: explanation.clone(), work });
        }
    }
}

impl NodeKind {
    /// Reads the kind of a node; `None` if something else may matter to the explanation.
    pub(super) fn read(context: &Context<'_>, plan: &Plan<'_>, node: &Node, meter: &Meter<'_>) -> Option<Self> {
        let may_be_like = context.elisions.has(Elision::EquivalentNodes)
            && context.gates.has(Gate::PartitionableDevices)
            && meter.stop().is_none()
            && plan.columns.len() == 0
            && is_harmless(context, plan);
        if !may_be_like {
            return None;
        }
        let view = context.inventory.view(node, Sight::new(context.profile, context.gates)).ok()?;
        let pools = view.pools().map(|pool| PoolKind::read(context, pool));
        Some(Self { pools: pools.collect::<Option<_>>()? })
    }

    fn is_like(&self, other: &Self) -> bool {
        self.pools.len() == other.pools.len()
            && self.pools.iter().zip(&other.pools).all(|(one, other)| one.is_like(other))
    }
}

impl PoolKind {
    fn read(context: &Context<'_>, pool: &Pool) -> Option<Self> {
        let is_plain = pool.state() == PoolState::Complete
            && pool.len() <= MOST_DEVICES
            && pool.is_uniform()
            && !context.inventory.has_rule_for(pool.driver(), pool.name());
        if !is_plain {
            return None;
        }
        let devices = pool.devices();
        let held = match context.state.pool_hashed(pool.hash(), pool.driver(), pool.name()) {
            Some(used) if used.held_twice() > 0 => return None,
            Some(used) => used.occupancy(devices).all_held()?,
            None => 0,
        };
        Some(Self { devices: Arc::clone(devices), held })
    }

    fn is_like(&self, other: &Self) -> bool {
        self.held == other.held
            && self.devices.len() == other.devices.len()
            && self.devices.driver() == other.devices.driver()
    }
}

/// Puts the devices of a node in the place of those of a node that is like it.
fn rename(reason: &mut Reason, from: &NodeKind, to: &NodeKind) {
    if let Cause::Devices { devices, .. } = &mut reason.cause {
        devices.replace(|devices| {
            let mut pools = from.pools.iter().zip(&to.pools);
            let pool = pools.find(|(from, _)| Arc::ptr_eq(&from.devices, devices));
            Arc::clone(pool.map_or(devices, |(_, to)| &to.devices))
        });
    }
    reason.because.iter_mut().for_each(|reason| rename(reason, from, to));
}
