//! Allocation on one node, in four steps: read pools, collect the devices of `allocationMode: All` requests, search,
//! build the allocation results.

use dra_attrs::internal::release::{NodeFailures, Rules, SkipGateOff};
use dra_attrs::{Gate, GateName, Profile};
use dra_device::internal::name_of;
use k8s_openapi::api::core::v1::Node;

use super::all_devices::devices_of_all;
use super::allocate_error::AllocateError;
use super::budget::{Budget, Effort, Halt, Meter};
use super::candidates::{Candidates, Universe};
use super::context::Context;
use super::grid::Grid;
use super::outcome::{Fit, NodeError, Outcome};
use super::partial_assignment::Chosen;
use super::request::Plan;
use super::results::{check_results, results};
use super::searched_states::SearchedStates;
use super::solution::Solution;
use super::stopped::Stopped;
use super::table::{Table, declares_skips, skips_operations};
use super::too_few::has_too_few;
use super::walk::Walk;
use crate::cluster::inventory::pool::PoolState;
use crate::cluster::inventory::sight::Sight;
use crate::cluster::inventory::view::View;
use crate::cluster::node_state::NodeState;

/// Number of comparisons of a node with the selectors of shared slices that are a unit of work.
const COMPARISONS_OF_UNIT: usize = 8;
/// Number of pairs of a request and a pool whose comparison is a unit of work.
const PAIRS_OF_UNIT: usize = 32;
/// Number of pools of a node beyond which each is a unit of work.
const FEW_POOLS: usize = 16;

/// Allocates the claims of a plan on one node. What `like` knows of other nodes is of the same plan and state.
pub(crate) fn allocate_on(
    context: &Context<'_>,
    plan: &Plan<'_>,
    node: &Node,
    like: Option<&SearchedStates>,
    budget: Budget<'_>,
) -> Result<(Outcome, Effort), AllocateError> {
    let (found, effort) = first_on(context, plan, node, like, budget, results)?;
    Ok((found.map_or_else(|outcome| outcome, Outcome::Allocated), effort))
}

/// Searches the first solution on one node, and builds something of it, as [`allocate_on`] builds results. The inner error is
/// the outcome if there is none.
#[inline]
pub(crate) fn first_on<T>(
    context: &Context<'_>,
    plan: &Plan<'_>,
    node: &Node,
    like: Option<&SearchedStates>,
    budget: Budget<'_>,
    build: impl FnOnce(&Table<'_>, Solution<'_>) -> Result<T, AllocateError>,
) -> Result<(Result<T, Outcome>, Effort), AllocateError> {
    let meter = Meter::new(budget);
    let found = match search(context, plan, node, like, &meter, build) {
        Ok(found) => found,
        Err(Halt::Stopped(limit)) => Err(Outcome::Stopped(Stopped::not_begun(limit))),
        Err(Halt::OnNode(failure)) => Err(on_node(context.profile.rules(), failure)?),
        Err(Halt::Failed(error)) => return Err(error),
    };
    Ok((found, meter.effort()))
}

/// Returns the outcome of a failure that concerns one node.
fn on_node(rules: &Rules, failure: NodeError) -> Result<Outcome, AllocateError> {
    let treatment = match failure {
        NodeError::InvalidPools { .. } => rules.allocator.invalid_pools,
        NodeError::PoolIncomplete { .. } | NodeError::PoolInvalid { .. } => rules.allocator.pools_of_all,
        NodeError::SkipNodeOperationsOff { .. } => NodeFailures::SkipNode,
    };
    match treatment {
        NodeFailures::SkipNode => Ok(Outcome::FailedOnNode(failure)),
        NodeFailures::EndAttempt => Err(AllocateError::Node { source: Box::new(failure) }),
    }
}

/// Tells if the claims of a plan can be allocated on one node. The meter knows afterwards what that took.
pub(crate) fn fits_within(
    context: &Context<'_>,
    plan: &Plan<'_>,
    node: &Node,
    like: Option<&SearchedStates>,
    meter: &Meter<'_>,
) -> Result<Fit, AllocateError> {
    let rules = context.profile.rules();
    match search(context, plan, node, like, meter, check_results) {
        Ok(Ok(())) => Ok(Fit::Yes),
        Ok(Err(Outcome::Stopped(stopped))) => Ok(Fit::Stopped(stopped)),
        Ok(Err(_)) => Ok(Fit::No),
        Err(Halt::OnNode(failure)) => on_node(rules, failure).map(|_| Fit::No),
        Err(Halt::Stopped(limit)) => Ok(Fit::Stopped(Stopped::not_begun(limit))),
        Err(Halt::Failed(error)) => Err(error),
    }
}

/// Returns true if the claims of a plan can be allocated on a node, false if it is proved that they can't.
pub(crate) fn is_possible(context: &Context<'_>, plan: &Plan<'_>, node: &Node, meter: &Meter<'_>) -> Option<bool> {
    match search(context, plan, node, None, meter, check_results) {
        Ok(Ok(())) => Some(true),
        Ok(Err(Outcome::Unsatisfied)) | Err(Halt::OnNode(NodeError::InvalidPools { .. })) => Some(false),
        Ok(Err(_)) | Err(_) => None,
    }
}

/// Returns all that a search reads of a node itself, as words: whether it declares that it may skip operations, and the work of
/// finding its pools. `comparisons` are those by which its shared slices were found.
pub(crate) fn own_words(profile: Profile, node: &Node, comparisons: usize) -> [u64; 2] {
    let declares = declares_skips(profile.rules(), node);
    [u64::from(declares), u64::try_from(comparisons / COMPARISONS_OF_UNIT).unwrap_or(u64::MAX)]
}

/// Returns the pools of a node. Finding those of many is work.
#[inline]
fn view<'i>(context: &Context<'i>, node: &Node, meter: &Meter<'_>) -> Result<View<'i>, AllocateError> {
    let (view, comparisons) = context.inventory.view_and_weight(node, Sight::new(context.profile, context.gates));
    meter.add(comparisons / COMPARISONS_OF_UNIT);
    let view = view.map_err(|failed| AllocateError::from(*failed))?;
    meter.add(view.len().saturating_sub(FEW_POOLS));
    Ok(view)
}

/// Calls a function with the table of a node's devices, before any device is chosen.
pub(crate) fn with_table<T>(
    context: &Context<'_>,
    plan: &Plan<'_>,
    node: &Node,
    meter: &Meter<'_>,
    look: impl FnOnce(&Table<'_>) -> T,
) -> Result<T, AllocateError> {
    let view = view(context, node, meter)?;
    let candidates = Candidates::new(&view, context.state, Universe::All);
    let derived = Grid::new(plan.columns.end(), candidates.end());
    Ok(look(&Table::new(context, plan, node, &candidates, &derived, meter)))
}

/// Searches a solution on a node, and builds something of it; the inner error is the outcome if there is none.
fn search<T>(
    context: &Context<'_>,
    plan: &Plan<'_>,
    node: &Node,
    like: Option<&SearchedStates>,
    meter: &Meter<'_>,
    build: impl FnOnce(&Table<'_>, Solution<'_>) -> Result<T, AllocateError>,
) -> Result<Result<T, Outcome>, Halt> {
    meter.has_left()?;
    let view = view(context, node, meter)?;
    let candidates = Candidates::new(&view, context.state, Universe::Needed(context, plan));
    meter.add(plan.alternatives.len().saturating_mul(view.len().min(FEW_POOLS)) / PAIRS_OF_UNIT);
    if has_too_few(context, plan, &candidates) {
        meter.count()?;
        return no_solution(&candidates).map(Err);
    }
    let derived = Grid::new(plan.columns.end(), candidates.end());
    let table = Table::new(context, plan, node, &candidates, &derived, meter);
    let state = like.and_then(|like| like.read(&view, &table));
    if let Some((like, state)) = like.zip(state.as_ref())
        && let Some(known) = like.find(state)
        && meter.spare(known.effort)?
    {
        like.saved(&known);
        let solution = known.solution();
        if let Some(solution) = solution {
            know(&table, solution);
        }
        return end(&table, solution, build);
    }
    own_search(&table, like.map(|like| Memory { like, view: &view, state }), build)
}

/// Reads what a search of the node itself would know of the devices of its solution. That work is a part of the search.
fn know(table: &Table<'_>, solution: Solution<'_>) {
    table.meter.aside(|| {
        for chosen in solution.chosen.iter().filter(|chosen| table.candidates.reach(chosen.device)) {
            if table.is_shareable(chosen.device) {
                // An error would have ended the search.
                let _: Result<_, AllocateError> = table.fit(chosen.alternative, chosen.device);
            }
        }
    });
}

/// Memory of a search for other nodes.
struct Memory<'l, 'i> {
    like: &'l SearchedStates,
    view: &'l View<'i>,
    /// State of the node if it was read.
    state: Option<NodeState>,
}

/// Makes the search on a node itself.
#[inline]
fn own_search<T>(
    table: &Table<'_>,
    memory: Option<Memory<'_, '_>>,
    build: impl FnOnce(&Table<'_>, Solution<'_>) -> Result<T, AllocateError>,
) -> Result<Result<T, Outcome>, Halt> {
    let meter = table.meter;
    // What was work before, such as to find the pools, is that of each node.
    let before = meter.spent();
    let all = devices_of_all(table, meter).map_err(|halt| meter.resolve(halt))?;
    let mut walk = Walk::new(table, &all);
    let found = walk.run().and_then(|is_found| meter.check().map(|()| is_found));
    match found.map_err(|halt| meter.resolve(halt)) {
        Ok(is_found) => {
            let solution = is_found.then(|| walk.solution());
            if let Some(memory) = memory {
                let effort = meter.effort();
                let effort = Effort { work: effort.work.saturating_sub(before), ..effort };
                memory.like.remember(memory.state, memory.view, table, effort, solution);
            }
            end(table, solution, build)
        }
        Err(Halt::Stopped(limit)) => Ok(Err(Outcome::Stopped(walk.stopped(limit)))),
        Err(halt) => Err(halt),
    }
}

/// Builds something of a solution; the inner error is the outcome if there is none.
fn end<T>(
    table: &Table<'_>,
    solution: Option<Solution<'_>>,
    build: impl FnOnce(&Table<'_>, Solution<'_>) -> Result<T, AllocateError>,
) -> Result<Result<T, Outcome>, Halt> {
    let Some(solution) = solution else { return no_solution(table.candidates).map(Err) };
    check_skips(table, solution).map_err(Halt::OnNode)?;
    Ok(Ok(build(table, solution)?))
}

/// Returns the outcome for a node on which the search found no solution. An invalid pool makes the outcome a failure of
/// the node, because an update of the pool may make a solution possible.
fn no_solution(candidates: &Candidates<'_>) -> Result<Outcome, Halt> {
    if candidates.pools().all(|pool| pool.state() != PoolState::Invalid) {
        return Ok(Outcome::Unsatisfied);
    }
    let in_order = candidates.order().into_iter().map(|(pool, _)| candidates.pool(pool));
    let invalid = in_order.filter(|pool| pool.state() == PoolState::Invalid);
    let pools: Vec<_> = invalid.filter_map(|pool| Some((pool.full_name(), pool.problem()?))).collect();
    Err(Halt::OnNode(NodeError::InvalidPools { pools }))
}

/// Returns an error if a chosen device skips node operations while the gate `Gate::OptionalNodeOperations` is off.
/// This follows the text of KEP-5945.
pub(crate) fn check_skips(table: &Table<'_>, solution: Solution<'_>) -> Result<(), NodeError> {
    let fails = match table.rules.skip.chosen_while_off {
        SkipGateOff::FailClaim => !table.has(Gate::OptionalNodeOperations),
        SkipGateOff::PassOver => false,
    };
    if !fails {
        return Ok(());
    }
    let skipping = |chosen: &&Chosen| skips_operations(table.candidate(chosen.device).slice);
    let Some(chosen) = solution.chosen.iter().find(skipping) else { return Ok(()) };
    let gate = GateName::new(Gate::OptionalNodeOperations, table.context.profile);
    Err(NodeError::SkipNodeOperationsOff {
        claim: table.claim_name(table.alternative(chosen.alternative)),
        device: Box::new(table.id(chosen.device)),
        slice: name_of(table.candidate(chosen.device).slice).to_owned(),
        gate,
    })
}
