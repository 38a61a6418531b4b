//! The least harm over nodes: each is a question of its own for a pod, and all of them are one for a gang.
//!
//! Each question has a bound that costs no test. The nodes are searched from the lowest bound on, until it is no less than the best
//! set so far.

use k8s_openapi::api::core::v1::Node;

use super::answer::{HarmProof, NoRoom, PreemptionAnswer, Room};
use super::asked::Asked;
use super::blockers::no_room;
use super::bounds::{Bounds, Missing};
use super::halt::{Halt, PreemptionError, Unanswered};
use super::harm_value::HarmValue;
use super::node_search::least_set;
use super::reach::Reach;
use super::room::room;
use super::units::site_of_units;
use super::view::first_name;

/// Best room so far.
#[derive(Default)]
struct Best {
    found: Option<(HarmValue, Box<Room>)>,
    /// Lowest bound of a node whose search did not come to its end.
    bound: Option<HarmValue>,
}

impl Best {
    /// Returns true if no set on a node with at least that harm is wanted: of equal harm, the node with the lower name counts.
    fn is_better(&self, value: &HarmValue, node: &str) -> bool {
        self.found.as_ref().is_some_and(|(best, room)| (value, node) > (best, room.node()))
    }

    fn add(&mut self, value: HarmValue, room: Room) {
        if !self.is_better(&value, room.node()) {
            self.found = Some((value, Box::new(room)));
        }
    }

    fn add_bound(&mut self, bound: HarmValue) {
        if self.bound.as_ref().is_none_or(|other| bound < *other) {
            self.bound = Some(bound);
        }
    }

    /// Returns the best room with its proof.
    fn into_room(self, asked: &Asked<'_>) -> Option<Box<Room>> {
        let (value, mut room) = self.found?;
        room.proof = match self.bound {
            Some(bound) => HarmProof::Irreducible { bound: bound.min(value.clone()) },
            None if asked.is_checked() => HarmProof::LeastByCallersFit,
            None => HarmProof::Least,
        };
        room.value = Some(value);
        Some(room)
    }
}

/// Chooses the victims of least harm on sets of nodes, which are sorted by the names of their first ones.
pub(super) fn by_least_harm<'q>(asked: &Asked<'q>, sites: &[&[&'q Node]]) -> Result<PreemptionAnswer, PreemptionError> {
    let (mut unanswered, mut best) = (Unanswered::default(), Best::default());
    let mut bounded: Vec<(HarmValue, &[&Node])> = Vec::with_capacity(sites.len());
    for nodes in sites {
        match bound(asked, nodes) {
            Ok(Some(bound)) => bounded.push((bound, nodes)),
            Ok(None) => {}
            Err(halt) => {
                if unanswered.add(halt).is_err() {
                    return Ok(stopped(asked, best));
                }
            }
        }
    }
    bounded.sort_by(|(left, one), (right, other)| (left, first_name(one)).cmp(&(right, first_name(other))));
    for (bound, nodes) in bounded {
        if best.is_better(&bound, first_name(nodes)) {
            continue;
        }
        match search(asked, nodes, &mut best, &bound) {
            Ok(()) => {}
            Err(halt) => {
                let is_stopped = matches!(halt, Halt::Stopped(_) | Halt::Open);
                if unanswered.add(halt).is_err() {
                    return Ok(stopped(asked, best));
                }
                if is_stopped {
                    best.add_bound(bound);
                }
            }
        }
    }
    match best.into_room(asked) {
        Some(room) => Ok(PreemptionAnswer::Room(room)),
        None => no_room(asked, sites, unanswered).map(PreemptionAnswer::NoRoom),
    }
}

fn stopped(asked: &Asked<'_>, best: Best) -> PreemptionAnswer {
    PreemptionAnswer::NoRoom(NoRoom::Stopped { best: best.into_room(asked) })
}

/// Returns harm that all sufficient sets on some nodes have at least; `None` if there is no such set.
fn bound<'q>(asked: &Asked<'q>, nodes: &[&'q Node]) -> Result<Option<HarmValue>, Halt> {
    let site = site_of_units(asked, Reach::new(asked.rules.allocator, nodes)?)?.counted();
    let bounds = Bounds::new(asked, &site, asked.rules.budgets);
    Ok(bounds.lower(&[], |_| true, Missing::Counted))
}

/// Searches nodes for less harm than that of the best room so far.
fn search<'q>(asked: &Asked<'q>, nodes: &[&'q Node], best: &mut Best, bound: &HarmValue) -> Result<(), Halt> {
    let site = site_of_units(asked, Reach::new(asked.rules.allocator, nodes)?)?.narrowed();
    let bounds = Bounds::new(asked, &site, asked.rules.budgets);
    let found = least_set(asked, &site, &bounds, &|value| best.is_better(value, first_name(nodes)))?;
    let Some(found) = found else { return Ok(()) };
    if !found.is_proven {
        best.add_bound(bound.clone());
    }
    if let Some(room) = room(asked, &site, &found.out, found.violations)? {
        best.add(found.value, room);
    }
    Ok(())
}
