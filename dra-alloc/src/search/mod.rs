//! Allocation on one node: reads pools, finds the devices of `allocationMode: All` requests, searches, builds the
//! result.
//!
//! - [`table`] facts about the node's devices that no decision changes
//! - [`partial_assignment`] the partial assignment
//! - [`walk`] the backtracking search
//! - [`prune`] rules that cut branches without a solution

mod bits;
mod candidates;
mod grid;
mod partial_assignment;
mod prune;
mod table;
mod walk;

pub(crate) use partial_assignment::{Chosen, Insufficient, PartialAssignment, Refusal, Rejection};
#[doc(hidden)]
pub use prune::{PruningRule, PruningRules};
pub(crate) use table::{CapacityCheck, CapacityMiss, Selection, Table};
pub(crate) use walk::Solution;

use dra_attrs::FeatureGate;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceClaim;

use crate::allocate_error::AllocateError;
use crate::budget::{Budget, Halt, Meter};
use crate::context::Context;
use crate::gates::DraGate;
use crate::inventory::pool::{Pool, PoolState, name_of};
use crate::limits::MAX_DEVICES_PER_CLAIM;
use crate::outcome::{NodeFailure, Outcome, Verdict};
use crate::profile::SkipGateOff;
use crate::request::{Claim, Mode, Plan};
use crate::result::results;
use candidates::Candidates;
use grid::Grid;
use table::skips_operations;
use walk::Walk;

/// Allocates the claims of a plan on one node.
pub(crate) fn allocate_on(
    context: &Context<'_>,
    plan: &Plan<'_>,
    node: &Node,
    budget: Budget<'_>,
) -> Result<Verdict, AllocateError> {
    let mut meter = Meter::new(budget);
    let outcome = match search(context, plan, node, &mut meter) {
        Ok(outcome) => outcome,
        Err(Halt::Stopped) => Outcome::Stopped,
        Err(Halt::OnNode(failure)) => Outcome::FailedOnNode(failure),
        Err(Halt::Failed(error)) => return Err(error),
    };
    Ok(Verdict { outcome, steps: meter.used(), explanation: None })
}

/// Returns the outcome of the claims on a node: allocated or not.
pub(crate) fn outcome_on(
    context: &Context<'_>,
    claims: &[ResourceClaim],
    node: &Node,
    budget: Budget<'_>,
) -> Result<Outcome, AllocateError> {
    let plan = Plan::new(claims, context.classes, context.gates);
    allocate_on(context, &plan, node, budget).map(|verdict| verdict.outcome)
}

/// Calls a function with the table of the node's devices, without choosing any device.
pub(crate) fn with_table<T>(
    context: &Context<'_>,
    claims: &[ResourceClaim],
    node: &Node,
    look: impl FnOnce(&Table<'_>) -> T,
) -> Result<T, AllocateError> {
    let plan = Plan::new(claims, context.classes, context.gates);
    let view = context.inventory.view(node, context.gates).map_err(|failed| AllocateError::from(*failed))?;
    let candidates = Candidates::new(&view);
    let derived = Grid::new(plan.columns.len(), candidates.capacity());
    Ok(look(&Table::new(context, &plan, node, &candidates, &derived)))
}

fn search(context: &Context<'_>, plan: &Plan<'_>, node: &Node, meter: &mut Meter<'_>) -> Result<Outcome, Halt> {
    let view = context.inventory.view(node, context.gates).map_err(|failed| AllocateError::from(*failed))?;
    let candidates = Candidates::new(&view);
    let derived = Grid::new(plan.columns.len(), candidates.capacity());
    let table = Table::new(context, plan, node, &candidates, &derived);
    let all = devices_of_all(&table, meter)?;
    match Walk::new(&table, &all, meter).run()? {
        Some(solution) => {
            check_skips(&table, solution).map_err(Halt::OnNode)?;
            Ok(Outcome::Allocated(results(&table, solution)?))
        }
        None => no_solution(&candidates),
    }
}

/// Returns the outcome for a node without a solution. If a pool of the node is invalid, a later update may make a
/// solution possible.
fn no_solution(candidates: &Candidates<'_>) -> Result<Outcome, Halt> {
    let invalid = candidates.order().into_iter().filter_map(|(pool, _)| {
        let pool = candidates.pools().get(pool).filter(|pool| pool.state() == PoolState::Invalid)?;
        Some((pool_name(pool), pool.problem()?))
    });
    let pools: Vec<_> = invalid.collect();
    if pools.is_empty() { Ok(Outcome::Unsatisfied) } else { Err(Halt::OnNode(NodeFailure::InvalidPools { pools })) }
}

fn pool_name(pool: &Pool) -> String {
    format!("{}/{}", pool.driver(), pool.name())
}

/// Returns the devices of each `allocationMode: All` alternative. Checks between them run in kube-scheduler's order.
fn devices_of_all(table: &Table<'_>, meter: &mut Meter<'_>) -> Result<Vec<Vec<usize>>, Halt> {
    let mut all = Vec::new();
    if table.plan.alternatives.iter().any(|asked| asked.mode == Mode::All) {
        all.resize(table.plan.alternatives.len(), Vec::new());
    }
    for claim in &table.plan.claims {
        for request in &claim.requests {
            for alternative in request.alternatives.clone() {
                if let (Mode::All, Some(devices)) = (table.alternative(alternative).mode, all.get_mut(alternative)) {
                    *devices = all_devices(table, alternative, meter)?;
                }
            }
        }
        if let Some(error) = &claim.request_error {
            return Err(Halt::Failed((**error).clone()));
        }
        check_size(table, claim, &all)?;
        if let Some(error) = &claim.constraint_error {
            return Err(Halt::Failed((**error).clone()));
        }
    }
    Ok(all)
}

/// Returns the devices of an `allocationMode: All` request. Devices in use are included, and make the request fail
/// later.
///
/// The set of all devices is known only if all pools are complete. Pools before the first incomplete one are read.
fn all_devices(table: &Table<'_>, alternative: usize, meter: &mut Meter<'_>) -> Result<Vec<usize>, Halt> {
    let mut all = Vec::new();
    for (pool, devices) in table.candidates.order() {
        if let Some(failure) = unknown_pool(table, alternative, pool) {
            return Err(Halt::OnNode(failure));
        }
        for device in devices {
            meter.step()?;
            if table.is_selectable(alternative, device)? && could_serve(table, alternative, device)? {
                all.push(device);
            }
        }
    }
    Ok(all)
}

/// Returns true if an unused device has the capacities that an alternative requests.
fn could_serve(table: &Table<'_>, alternative: usize, device: usize) -> Result<bool, AllocateError> {
    Ok(!table.has(DraGate::ConsumableCapacity) || matches!(table.fit(alternative, device)?, CapacityCheck::Takes(_)))
}

fn unknown_pool(table: &Table<'_>, alternative: usize, pool: usize) -> Option<NodeFailure> {
    let (asked, pool) = (table.alternative(alternative), table.candidates.pools().get(pool)?);
    let (claim, request) = (|| table.claim_name(asked), || asked.name.to_string());
    match pool.state() {
        PoolState::Complete => None,
        PoolState::Incomplete => {
            Some(NodeFailure::PoolIncomplete { claim: claim(), request: request(), pool: pool_name(pool) })
        }
        PoolState::Invalid => {
            let problem = Box::new(pool.problem()?);
            Some(NodeFailure::PoolInvalid { claim: claim(), request: request(), pool: pool_name(pool), problem })
        }
    }
}

/// Returns an error if a claim needs more devices than an allocation may have, even with its smallest alternatives.
fn check_size(table: &Table<'_>, claim: &Claim<'_>, all: &[Vec<usize>]) -> Result<(), AllocateError> {
    let number = |alternative: usize| match table.alternative(alternative).mode {
        Mode::Exactly(count) => count,
        Mode::All => all.get(alternative).map_or(0, |devices| u64::try_from(devices.len()).unwrap_or(u64::MAX)),
    };
    let fewest = claim.requests.iter().map(|request| request.alternatives.clone().map(number).min().unwrap_or(0));
    let devices = fewest.fold(0, u64::saturating_add);
    if devices <= u64::try_from(MAX_DEVICES_PER_CLAIM).unwrap_or(u64::MAX) {
        return Ok(());
    }
    Err(AllocateError::TooManyDevices { claim: claim.name(), devices, limit: MAX_DEVICES_PER_CLAIM })
}

/// Fails the claim if a chosen device has `skipNodeOperations` while the gate is off. This follows the text of
/// KEP-5945.
fn check_skips(table: &Table<'_>, solution: Solution<'_>) -> Result<(), NodeFailure> {
    let is_off = !table.has(DraGate::OptionalNodeOperations);
    if table.decisions.skip_gate_off != SkipGateOff::FailClaim || !is_off {
        return Ok(());
    }
    let skipping = |chosen: &&Chosen| skips_operations(table.candidate(chosen.device).slice);
    let Some(chosen) = solution.chosen.iter().find(skipping) else { return Ok(()) };
    let gate = DraGate::OptionalNodeOperations.name(table.context.profile);
    Err(NodeFailure::SkipNodeOperationsOff {
        claim: table.claim_name(table.alternative(chosen.alternative)),
        device: table.id(chosen.device).to_string(),
        slice: name_of(table.candidate(chosen.device).slice).to_owned(),
        gate,
    })
}
