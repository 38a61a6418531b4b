//! Sequences: units that move to given nodes one after the other, each as soon as its devices are free.

use k8s_openapi::api::core::v1::Pod;

use super::move_plan::PodMove;
use super::unit::Unit;
use crate::autoscaler::{Mover, PlacementError, Rehearsal, ScaleSimulator};
use crate::pods::{GangPlacement, GangSearch, KnownRefusals, Member};

/// Pods that have moved so far, for the caller's check of nodes.
#[derive(Clone, Default)]
pub(super) struct Moved<'u> {
    placed: Vec<GangPlacement>,
    gone: Vec<&'u Pod>,
}

/// Rehearsal of moves on the nodes of a search.
pub(super) struct Sequence<'s, 'u> {
    pub(super) simulator: &'s ScaleSimulator<'s>,
    pub(super) search: &'s GangSearch<'s>,
    pub(super) rehearsal: Rehearsal,
    pub(super) known: KnownRefusals,
    pub(super) moved: Moved<'u>,
}

/// A unit with the moves of its pods.
pub(super) struct MovedUnit<'u> {
    pub(super) unit: Unit<'u>,
    pub(super) moves: Vec<PodMove>,
}

impl<'u> Sequence<'_, 'u> {
    /// Moves units in their order. Those whose places are not free yet are tried again after the others. Returns the units that
    /// have moved, in the order in which they can, and those that can't.
    pub(super) fn run(
        &mut self,
        units: Vec<Unit<'u>>,
        place_of: &dyn Fn(&Pod) -> Option<usize>,
    ) -> (Vec<MovedUnit<'u>>, Vec<Unit<'u>>) {
        let (mut done, mut left) = (Vec::new(), units);
        loop {
            let (before, mut stuck) = (done.len(), Vec::new());
            for unit in left {
                match self.go(&unit.pods, place_of) {
                    Ok(moves) => done.push(MovedUnit { unit, moves }),
                    Err(_) => stuck.push(unit),
                }
            }
            if stuck.is_empty() || done.len() == before {
                return (done, stuck);
            }
            left = stuck;
        }
    }

    /// Moves pods that leave together. An error changes nothing.
    pub(super) fn go(
        &mut self,
        pods: &[Mover<'u>],
        place_of: &dyn Fn(&Pod) -> Option<usize>,
    ) -> Result<Vec<PodMove>, Option<PlacementError>> {
        let (rehearsal, moved) = (self.rehearsal.clone(), self.moved.clone());
        let gone = self.try_to_go(pods, place_of);
        if gone.is_err() {
            (self.rehearsal, self.moved) = (rehearsal, moved);
        }
        gone
    }

    fn try_to_go(
        &mut self,
        pods: &[Mover<'u>],
        place_of: &dyn Fn(&Pod) -> Option<usize>,
    ) -> Result<Vec<PodMove>, Option<PlacementError>> {
        let leaving: Vec<&Pod> = pods.iter().map(|mover| mover.pod).collect();
        self.rehearsal.leave(&leaving).map_err(|_| None)?;
        self.known.clear();
        if self.simulator.is_checked() {
            self.moved.gone.extend(&leaving);
        }
        pods.iter().map(|mover| self.come(mover.pod, Some(mover.from), place_of(mover.pod)).map_err(Some)).collect()
    }

    /// Lets a pod come to a node; it waits for another place if there is none.
    pub(super) fn come(
        &mut self,
        pod: &Pod,
        from: Option<&str>,
        place: Option<usize>,
    ) -> Result<PodMove, PlacementError> {
        let moved = |to| PodMove::new(pod, self.simulator.options(), from, to);
        let Some(place) = place else { return Ok(moved(None)) };
        let among = [place];
        let member = Member {
            pod,
            group: self.simulator.group_of(pod),
            placed: &self.moved.placed,
            gone: &self.moved.gone,
            among: Some(&among),
        };
        let arrival = self.rehearsal.come(self.search, &member, &mut self.known)?;
        let moved = PodMove { results: arrival.results, ..moved(Some(&arrival.placement.node)) };
        if self.simulator.is_checked() {
            self.moved.placed.push(arrival.placement);
        }
        Ok(moved)
    }
}
