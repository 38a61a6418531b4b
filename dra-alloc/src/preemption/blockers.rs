//! Blockers: who is in the way of a pod and may not go.
//!
//! On a node, or on the nodes of a gang, where the pods fit with every claim out, all who hold devices there are taken out, also those who may not go.
//! Then these are put back, the most important first, for as long as the pod fits. Who can't be put back is in the way.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dra_device::claims::ClaimKey;
use k8s_openapi::api::core::v1::Node;

use super::answer::{Blocker, NoRoom};
use super::asked::Asked;
use super::bounds::Bounds;
use super::disruption::BudgetPolicy;
use super::halt::{Halt, PreemptionError, Unanswered};
use super::held_claim::{HeldClaim, User};
use super::node_search::least_set;
use super::occupant::Occupant;
use super::placing::{Fitting, Placing};
use super::question::Harm;
use super::reach::Reach;
use super::room::identity;
use super::site::{NominatedPod, Site};
use super::trial::{Trial, with_nominated};
use super::units::{claims_in_reach, site_of_units};
use super::view::names_of;
use crate::cluster::state::AllocatedState;

/// Somebody who holds devices of a node, or is nominated for it, and may not go.
enum Holder<'s, 'q> {
    Claim(&'q HeldClaim<'q>),
    Nominated(&'s NominatedPod<'q>),
}

/// Returns the reason why nobody makes room on any of some sets of nodes.
pub(super) fn no_room<'q>(
    asked: &Asked<'q>,
    sites: &[&[&'q Node]],
    mut unanswered: Unanswered,
) -> Result<NoRoom, PreemptionError> {
    let mut fewest: Option<Vec<Blocker>> = None;
    for nodes in sites {
        match blockers(asked, nodes) {
            Ok(Some(found)) if fewest.as_ref().is_none_or(|fewest| found.len() < fewest.len()) => {
                let is_least = found.len() <= 1;
                fewest = Some(found);
                if is_least {
                    break;
                }
            }
            Ok(_) => {}
            Err(halt) => {
                if unanswered.add(halt).is_err() {
                    unanswered.is_stopped |= fewest.is_none();
                    break;
                }
            }
        }
    }
    if unanswered.is_open {
        return Ok(NoRoom::Open);
    }
    let is_stopped = unanswered.is_stopped;
    match (fewest, unanswered.into_error()) {
        (Some(by), None) if !is_stopped => Ok(NoRoom::Blocked { by }),
        (_, Some(error)) => Err(error),
        (_, None) if is_stopped => Ok(NoRoom::Stopped { best: None }),
        (Some(by), None) => Ok(NoRoom::Blocked { by }),
        (None, None) => Ok(NoRoom::Hopeless),
    }
}

/// Returns those in the way on nodes; `None` if the members would not fit there without anybody.
fn blockers<'q>(asked: &Asked<'q>, nodes: &[&'q Node]) -> Result<Option<Vec<Blocker>>, Halt> {
    let reach = Reach::new(asked.rules.allocator, nodes)?;
    let empty = empty_state(asked)?;
    match (Placing { asked, reach: &reach, state: &empty, gone: None }).fitting()? {
        Fitting::Yes => {}
        Fitting::No => return Ok(None),
        Fitting::Open => return Err(Halt::Open),
    }
    let site = match asked.rules.harm {
        Harm::Kube => Site::of_pods(asked, reach)?,
        Harm::KubeExact | Harm::Cost => site_of_units(asked, reach)?,
    };
    let site = site.counted();
    let trial = Trial::new(asked, &site)?;
    let keeps_budgets = asked.rules.budgets == BudgetPolicy::Never && asked.rules.harm != Harm::Kube;
    if keeps_budgets && trial.fits()? == Fitting::Yes {
        return budgets_in_the_way(asked, &site);
    }
    let mut state = trial.state().clone();
    let freed: BTreeSet<*const HeldClaim<'_>> = trial.freed().map(|claim| std::ptr::from_ref(claim.held)).collect();
    let mut holders: Vec<Holder<'_, '_>> = site.nominated.iter().map(Holder::Nominated).collect();
    let positions = claims_in_reach(asked, &site.reach)?;
    for held in positions.into_iter().filter_map(|position| site.held_by_others(asked, position)) {
        if !freed.contains(&std::ptr::from_ref(held)) {
            state.forget(held.claim);
            holders.push(Holder::Claim(held));
        }
    }
    holders.sort_by_cached_key(|holder| (Reverse(holder.priority(asked)), holder.name()));
    let mut by = Vec::new();
    for holder in put_back(asked, &site.reach, state, &holders)? {
        by.extend(holder.reasons(asked, &site.reach));
    }
    if let Some(gone) = trial.gone() {
        let placing = Placing { asked, reach: &site.reach, state: &empty, gone: Some(&gone) };
        by.extend(placing.refusals()?.into_iter().map(|reason| Blocker::Fit { reason }));
    }
    by.sort_unstable();
    by.dedup();
    Ok(Some(by))
}

/// Returns the budgets that forbid the set of units of least harm.
fn budgets_in_the_way<'q>(asked: &Asked<'q>, site: &Site<'q>) -> Result<Option<Vec<Blocker>>, Halt> {
    let bounds = Bounds::new(asked, site, BudgetPolicy::LastResort);
    let Some(least) = least_set(asked, site, &bounds, &|_| false)? else { return Ok(Some(Vec::new())) };
    let chosen: Vec<usize> = (0..site.units.len()).filter(|unit| least.out.contains(*unit)).collect();
    let budgets = bounds.exceeded(&chosen).into_iter().filter_map(|budget| asked.rules.view.budgets().budget(budget));
    let mut by: Vec<Blocker> = budgets
        .map(|budget| Blocker::Budget {
            namespace: budget.metadata.namespace.clone().unwrap_or_default(),
            name: budget.metadata.name.clone().unwrap_or_default(),
        })
        .collect();
    by.sort_unstable();
    Ok(Some(by))
}

/// Returns the devices in use if nobody but the preemptor holds one.
fn empty_state(asked: &Asked<'_>) -> Result<AllocatedState, Halt> {
    let mut state = AllocatedState::new(asked.rules.allocator.scheduler());
    for claim in asked.own() {
        if let Some(allocation) = claim.status.as_ref().and_then(|status| status.allocation.as_ref()) {
            state.assume(claim, allocation)?;
        }
    }
    Ok(state)
}

/// Puts holders back in their order for as long as the preemptor fits. Returns the others.
fn put_back<'h, 's, 'q>(
    asked: &Asked<'q>,
    reach: &Reach<'q>,
    mut state: AllocatedState,
    holders: &'h [Holder<'s, 'q>],
) -> Result<Vec<&'h Holder<'s, 'q>>, Halt> {
    let mut nominated: Vec<&NominatedPod<'q>> = Vec::new();
    let mut out = Vec::new();
    for holder in holders {
        match holder {
            Holder::Claim(held) => drop(state.assume(held.claim, held.allocation)?),
            Holder::Nominated(pod) => nominated.push(pod),
        }
        let beside = with_nominated(asked, &state, reach, nominated.iter().copied())?;
        let fitting = |state: &AllocatedState| Placing { asked, reach, state, gone: None }.fitting();
        if beside.map(|state| fitting(&state)).transpose()? == Some(Fitting::Yes) {
            continue;
        }
        match holder {
            Holder::Claim(held) => drop(state.forget(held.claim)),
            Holder::Nominated(_) => drop(nominated.pop()),
        }
        out.push(holder);
    }
    Ok(out)
}

impl<'q> Holder<'_, 'q> {
    /// Returns the highest priority of the pods behind a holder; the lowest of all if there is none.
    fn priority(&self, asked: &Asked<'_>) -> i32 {
        match self {
            Self::Nominated(pod) => pod.occupant.priority,
            Self::Claim(held) => {
                let users = held.users.iter().filter_map(|user| match user {
                    User::Pod(pod) => asked.rules.view.pod(*pod),
                    User::Group(_) | User::Dead(_) | User::Other(_) => None,
                });
                users.map(|pod| pod.priority).max().unwrap_or(i32::MIN)
            }
        }
    }

    fn name(&self) -> [&'q str; 2] {
        match self {
            Self::Nominated(pod) => pod.occupant.name(),
            Self::Claim(held) => names_of(held.claim),
        }
    }

    /// Returns the reasons why a holder may not go.
    fn reasons(&self, asked: &Asked<'_>, reach: &Reach<'_>) -> Vec<Blocker> {
        match self {
            Self::Nominated(pod) => vec![important(asked, pod.occupant, None)],
            Self::Claim(held) => reasons_of_claim(asked, reach, held),
        }
    }
}

fn reasons_of_claim(asked: &Asked<'_>, reach: &Reach<'_>, held: &HeldClaim<'_>) -> Vec<Blocker> {
    let claim = ClaimKey::from_metadata(&held.claim.metadata);
    let is_kube = asked.rules.harm == Harm::Kube;
    let mut reasons = Vec::new();
    let consumer = |uid: &str| Blocker::Consumer { claim: claim.clone(), uid: uid.to_owned() };
    for user in &held.users {
        match user {
            User::Pod(pod) => {
                if let Some(pod) = asked.rules.view.pod(*pod) {
                    let shared = (held.users.len() > 1).then(|| claim.clone());
                    reasons.extend(reason_of_pod(asked, reach, pod, &claim, shared));
                }
            }
            User::Group(uid) => reasons.extend(reasons_of_group(asked, uid, &claim)),
            User::Dead(uid) if is_kube => reasons.push(consumer(uid)),
            User::Dead(_) => {}
            User::Other(uid) => reasons.push(consumer(uid)),
        }
    }
    if is_kube && held.is_idle() && held.users.is_empty() {
        reasons.push(Blocker::InFlight { claim: claim.clone() });
    }
    if is_kube && !reach.binds_all(held.allocation) {
        reasons.push(Blocker::Reach { claim });
    }
    reasons
}

/// Returns the reason why a user of a claim may not go, if there is one.
fn reason_of_pod(
    asked: &Asked<'_>,
    reach: &Reach<'_>,
    pod: &Occupant<'_>,
    claim: &ClaimKey,
    shared: Option<ClaimKey>,
) -> Option<Blocker> {
    let is_on_node = pod.node().is_some_and(|node| reach.has(node));
    let has_place = if asked.rules.harm == Harm::Kube { is_on_node } else { pod.node().is_some() };
    if pod.priority >= asked.priority {
        Some(important(asked, pod, shared))
    } else if !has_place {
        Some(Blocker::Consumer { claim: claim.clone(), uid: pod.pod.metadata.uid.clone().unwrap_or_default() })
    } else if let Some(group) = pod.group() {
        let members = asked.rules.view.members(group).filter_map(|member| asked.rules.view.pod(member));
        let important_members = members.filter(|member| member.priority >= asked.priority);
        // The first of them, whatever the order of the pods.
        let first = important_members.min_by_key(|member| member.importance());
        Some(match first.filter(|_| asked.rules.harm != Harm::Kube) {
            Some(member) => important(asked, member, Some(claim.clone())),
            None => Blocker::Group { claim: claim.clone() },
        })
    } else {
        None
    }
}

/// Returns the reasons why a group may not give up a claim: its important pods, or that it is a group.
fn reasons_of_group(asked: &Asked<'_>, uid: &str, claim: &ClaimKey) -> Vec<Blocker> {
    let view = asked.rules.view;
    let members = view.group(uid).into_iter().flat_map(|group| view.members(group)).filter_map(|pod| view.pod(pod));
    let is_important = |pod: &&Occupant<'_>| asked.rules.harm != Harm::Kube && pod.priority >= asked.priority;
    let reasons: Vec<Blocker> =
        members.filter(is_important).map(|pod| important(asked, pod, Some(claim.clone()))).collect();
    if reasons.is_empty() { vec![Blocker::Group { claim: claim.clone() }] } else { reasons }
}

fn important(asked: &Asked<'_>, pod: &Occupant<'_>, claim: Option<ClaimKey>) -> Blocker {
    Blocker::Priority { pod: identity(asked, pod), claim }
}
