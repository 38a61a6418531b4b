//! Room on a site once some of its units are out.

use dra_device::claims::ClaimKey;

use super::answer::{HarmProof, PodPlace, Room};
use super::asked::Asked;
use super::halt::Halt;
use super::held_claim::{HeldClaim, User};
use super::occupant::Occupant;
use super::site::Site;
use super::trial::Trial;
use super::view::node_name;
use crate::cluster::bits::Bits;
use crate::pods::{PodIdentity, PodOptions};

/// Describes the room on a site with some of its units out; `None` if the members do not fit.
pub(super) fn room<'q>(
    asked: &Asked<'q>,
    site: &Site<'q>,
    out: &Bits,
    violations: usize,
) -> Result<Option<Room>, Halt> {
    let mut trial = Trial::new(asked, site)?;
    trial.set_to(out)?;
    let Some(places) = trial.places()? else { return Ok(None) };
    let (mut freed, mut idle, mut deallocate) = (Vec::new(), Vec::new(), Vec::new());
    for claim in trial.freed() {
        let key = ClaimKey::from_metadata(&claim.held.claim.metadata);
        if claim.held.is_idle() {
            idle.push(key.clone());
            deallocate.push(key);
        } else {
            if is_in_memory(asked, claim.held) {
                deallocate.push(key.clone());
            }
            freed.push(key);
        }
    }
    for keys in [&mut freed, &mut idle, &mut deallocate] {
        keys.sort_unstable();
    }
    let members = asked.members.all.iter().zip(&places.nodes);
    let pods = members.filter_map(|(member, node)| {
        let node = site.reach.nodes().get((*node)?)?;
        Some(PodPlace { pod: member.identity.clone(), node: node_name(node).to_owned() })
    });
    let results = places.results.into_iter().filter_map(|(claim, result)| {
        let claim = asked.own().get(claim)?;
        Some((ClaimKey::from_metadata(&claim.metadata), result))
    });
    Ok(Some(Room {
        places: pods.collect(),
        victims: victims(site, out).into_iter().map(|pod| identity(asked, pod)).collect(),
        violations,
        freed,
        idle,
        deallocate,
        results: results.collect(),
        value: None,
        candidates: Vec::new(),
        proof: HarmProof::Greedy,
    }))
}

/// Returns the pods of the units that are out, the most important first.
pub(super) fn victims<'q>(site: &Site<'q>, out: &Bits) -> Vec<&'q Occupant<'q>> {
    let units = site.units.iter().enumerate().filter(|(unit, _)| out.contains(*unit));
    let mut pods: Vec<&Occupant<'_>> = units.flat_map(|(_, unit)| unit.pods.iter().copied()).collect();
    pods.sort_by_cached_key(|pod| pod.importance());
    pods
}

pub(super) fn identity(asked: &Asked<'_>, pod: &Occupant<'_>) -> PodIdentity {
    PodIdentity::new(pod.pod, PodOptions::new(asked.rules.allocator.scheduler()))
}

/// Returns true if all users of a claim hold their places in memory, so that no pod is deleted whose end would free it.
fn is_in_memory(asked: &Asked<'_>, held: &HeldClaim<'_>) -> bool {
    let is_in_memory = |pod: usize| asked.rules.view.pod(pod).is_some_and(|pod| pod.stage.is_some());
    let users = held.users.iter().filter(|user| !matches!(user, User::Dead(_)));
    let are_in_memory = |user: &User<'_>| matches!(user, User::Pod(pod) if is_in_memory(*pod));
    if held.has_living_user() {
        users.into_iter().all(are_in_memory)
    } else {
        held.named_by.iter().all(|pod| is_in_memory(*pod))
    }
}
