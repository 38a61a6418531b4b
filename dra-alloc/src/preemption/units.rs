//! Units in reach of nodes: the pods that may go for the least harm, alone or as a group, and idle claims.
//!
//! A pod is in reach if it is on one of the nodes, or if one of its claims holds a device of a pool that one of them sees. All pods of a
//! group go together. A unit goes only if all of its pods are in reach and less important than the preemptor. Units that free
//! no claim in reach are left out, unless the caller checks nodes by more than devices: taking them would help nobody.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::{SmallVec, smallvec};

use super::asked::Asked;
use super::halt::Halt;
use super::held_claim::{HeldClaim, User};
use super::occupant::Occupant;
use super::reach::Reach;
use super::site::{Needs, Site, Unit};
use super::view::{PreemptionView, names_of, node_name};

/// Identity of a unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum UnitKey<'q> {
    /// Position of a pod without a group.
    Pod(usize),
    /// Namespace and name of a group.
    Group([&'q str; 2]),
}

/// Reads nodes with the units in reach. Idle claims come last.
pub(super) fn site_of_units<'q>(asked: &Asked<'q>, reach: Reach<'q>) -> Result<Site<'q>, Halt> {
    let view = asked.rules.view;
    let mut site = Site::new(asked, reach, Vec::new())?;
    let mut positions = claims_in_reach(asked, &site.reach)?;
    let held: Vec<&HeldClaim<'_>> =
        positions.iter().filter_map(|position| site.held_by_others(asked, *position)).collect();
    let mut touching: BTreeSet<usize> = held.iter().flat_map(|held| users_of(view, held)).collect();
    if asked.rules.fit.is_some() {
        touching.extend(pods_on(view, &site.reach));
    }
    asked.work.count(touching.len())?;
    let keys: BTreeSet<UnitKey<'_>> = touching.iter().filter_map(|pod| key_of(view, *pod)).collect();
    let is_in_reach = |position: usize, pod: &Occupant<'_>| {
        touching.contains(&position) || pod.node().is_some_and(|node| site.reach.has(node))
    };
    let may_go = |(position, pod): &(usize, &Occupant<'_>)| {
        pod.priority < asked.priority && !asked.is_preemptor(pod) && is_in_reach(*position, pod)
    };
    let mut units: Vec<Vec<(usize, &Occupant<'_>)>> =
        keys.into_iter().map(|key| placed_members(view, key)).filter(|unit| unit.iter().all(may_go)).collect();
    units.sort_by_cached_key(|unit| unit.first().map(|(_, pod)| pod.importance()));
    let mut unit_of: BTreeMap<usize, usize> = BTreeMap::new();
    for (unit, members) in units.into_iter().enumerate() {
        unit_of.extend(members.iter().map(|(position, _)| (*position, unit)));
        site.units.push(Unit::new(members.into_iter().map(|(_, pod)| pod)));
    }
    let mut idle: Vec<&HeldClaim<'_>> = held.into_iter().filter(|held| held.is_idle()).collect();
    // Also claims out of reach: that they become free is part of the answer.
    positions.extend(unit_of.keys().filter_map(|pod| view.pod(*pod)).flat_map(|pod| &pod.claims));
    positions.sort_unstable();
    positions.dedup();
    for position in positions {
        let Some(held) = site.held_by_others(asked, position) else { continue };
        if let Some(needs) = needs_of_units(view, held, &unit_of).filter(|_| !held.is_idle()) {
            site.add_claim(held, needs);
        }
    }
    idle.sort_by_key(|held| names_of(held.claim));
    for held in idle {
        let unit = site.units.len();
        site.units.push(Unit::new([]));
        site.add_claim(held, Needs::All(smallvec![unit]));
    }
    Ok(site)
}

/// Returns the positions of the allocated claims that hold a device of a pool which one of the nodes sees.
pub(super) fn claims_in_reach(asked: &Asked<'_>, reach: &Reach<'_>) -> Result<Vec<usize>, Halt> {
    let mut claims: Vec<usize> =
        reach.pools().flat_map(|pool| asked.rules.view.claims_in_pool(pool.hash()).iter().copied()).collect();
    claims.sort_unstable();
    claims.dedup();
    asked.work.count(claims.len())?;
    Ok(claims)
}

/// Returns the positions of the living pods on nodes.
fn pods_on(view: &PreemptionView<'_>, reach: &Reach<'_>) -> Vec<usize> {
    let on_nodes = reach.nodes().iter().flat_map(|node| view.pods_on(node_name(node))).copied();
    on_nodes.filter(|pod| view.pod(*pod).is_some_and(|pod| !pod.is_done())).collect()
}

/// Returns the positions of the living pods that use a claim, or name it if nobody does.
fn users_of(view: &PreemptionView<'_>, held: &HeldClaim<'_>) -> Vec<usize> {
    let mut users: Vec<usize> = held.named_by.to_vec();
    for user in &held.users {
        match user {
            User::Pod(pod) => users.push(*pod),
            User::Group(uid) => users.extend(view.group(uid).into_iter().flat_map(|group| view.members(group))),
            User::Dead(_) | User::Other(_) => {}
        }
    }
    users
}

/// Returns the unit of a pod; `None` for a pod that has no node, and so does not go.
fn key_of<'q>(view: &PreemptionView<'q>, position: usize) -> Option<UnitKey<'q>> {
    let pod = view.pod(position)?;
    pod.node()?;
    Some(pod.group().map_or(UnitKey::Pod(position), UnitKey::Group))
}

/// Returns the pods of a unit that have a node, by importance.
fn placed_members<'q>(view: &'q PreemptionView<'q>, key: UnitKey<'q>) -> Vec<(usize, &'q Occupant<'q>)> {
    let positions: Vec<usize> = match key {
        UnitKey::Pod(position) => vec![position],
        UnitKey::Group(group) => view.members(group).collect(),
    };
    let pods = positions.into_iter().filter_map(|position| Some((position, view.pod(position)?)));
    let mut placed: Vec<(usize, &Occupant<'_>)> = pods.filter(|(_, pod)| pod.node().is_some()).collect();
    placed.sort_by_cached_key(|(_, pod)| pod.importance());
    placed
}

/// Returns the units that free a claim; `None` if nothing frees it.
fn needs_of_units(view: &PreemptionView<'_>, held: &HeldClaim<'_>, unit_of: &BTreeMap<usize, usize>) -> Option<Needs> {
    if !held.has_living_user() {
        let units: SmallVec<[usize; 1]> = held.named_by.iter().filter_map(|pod| unit_of.get(pod).copied()).collect();
        return (!units.is_empty()).then_some(Needs::Any(distinct(units)));
    }
    let mut units = SmallVec::new();
    for user in &held.users {
        match user {
            User::Pod(pod) => units.push(*unit_of.get(pod)?),
            User::Group(uid) => {
                let before = units.len();
                for member in view.members(view.group(uid)?) {
                    units.push(*unit_of.get(&member)?);
                }
                if units.len() == before {
                    return None;
                }
            }
            User::Dead(_) => {}
            User::Other(_) => return None,
        }
    }
    Some(Needs::All(distinct(units)))
}

fn distinct(mut units: SmallVec<[usize; 1]>) -> SmallVec<[usize; 1]> {
    units.sort_unstable();
    units.dedup();
    units
}
