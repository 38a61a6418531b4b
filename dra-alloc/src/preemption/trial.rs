//! Trials: a site with some of its units out.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::Pod;

use super::asked::Asked;
use super::halt::Halt;
use super::placing::{Fitting, Places, Placing};
use super::reach::Reach;
use super::site::{FreedClaim, NominatedPod, Site};
use crate::cluster::bits::Bits;
use crate::cluster::state::AllocatedState;

/// A site with some of its units out. Devices in use follow each unit that goes or comes back.
pub(super) struct Trial<'t, 'q> {
    asked: &'t Asked<'q>,
    site: &'t Site<'q>,
    state: AllocatedState,
    out: Bits,
    /// Number of units out, for each claim that units free.
    units_out: Vec<usize>,
}

/// Effect of a unit that goes or comes back on the devices in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    Changed,
}

impl<'t, 'q> Trial<'t, 'q> {
    /// Begins with all units out.
    pub(super) fn new(asked: &'t Asked<'q>, site: &'t Site<'q>) -> Result<Self, Halt> {
        asked.work.count(site.claims.len())?;
        let mut state = site.state.clone();
        if !site.is_emptied {
            for claim in &site.claims {
                state.forget(claim.held.claim);
            }
        }
        let units_out = site.claims.iter().map(|claim| claim.needs.units().len()).collect();
        Ok(Self { asked, site, state, out: Bits::all(site.units.len()), units_out })
    }

    pub(super) const fn out(&self) -> &Bits {
        &self.out
    }

    pub(super) const fn state(&self) -> &AllocatedState {
        &self.state
    }

    /// Takes a unit out, or puts it back; does nothing if it is there already.
    pub(super) fn set(&mut self, unit: usize, is_out: bool) -> Result<Effect, Halt> {
        let Some(found) = self.site.units.get(unit).filter(|_| self.out.contains(unit) != is_out) else {
            return Ok(Effect::None);
        };
        self.out.set(unit, is_out);
        let mut effect = Effect::None;
        for position in &found.claims {
            let Some((claim, count)) = self.site.claims.get(*position).zip(self.units_out.get_mut(*position)) else {
                continue;
            };
            let was_free = claim.needs.are_met(*count);
            *count = if is_out { *count + 1 } else { count.saturating_sub(1) };
            match (was_free, claim.needs.are_met(*count)) {
                (false, true) => drop(self.state.forget(claim.held.claim)),
                (true, false) => drop(self.state.assume(claim.held.claim, claim.held.allocation)?),
                (false, false) | (true, true) => continue,
            }
            effect = Effect::Changed;
        }
        Ok(effect)
    }

    /// Returns the number of devices that a unit takes again if it comes back.
    pub(super) fn devices_of(&self, unit: usize) -> usize {
        let claims = self.site.units.get(unit).into_iter().flat_map(|unit| &unit.claims);
        let taken = claims.filter_map(|position| {
            let (claim, out) = self.site.claims.get(*position).zip(self.units_out.get(*position))?;
            let comes_back = claim.needs.are_met(*out) && !claim.needs.are_met(out.saturating_sub(1));
            comes_back.then_some(claim.devices)
        });
        taken.sum()
    }

    /// Takes just the units of a set out.
    pub(super) fn set_to(&mut self, out: &Bits) -> Result<(), Halt> {
        (0..self.site.units.len()).try_for_each(|unit| self.set(unit, out.contains(unit)).map(drop))
    }

    /// Tells if the members fit now, with the nominated pods beside them.
    pub(super) fn fits(&self) -> Result<Fitting, Halt> {
        self.asked.work.count(1)?;
        let Some(state) = self.with_nominated()? else { return Ok(Fitting::No) };
        let gone = self.gone();
        self.placing(&state, gone.as_deref()).fitting()
    }

    /// Finds places for the members; `None` if they do not fit.
    pub(super) fn places(&self) -> Result<Option<Places>, Halt> {
        let Some(state) = self.with_nominated()? else { return Ok(None) };
        let gone = self.gone();
        self.placing(&state, gone.as_deref()).places()
    }

    /// Returns the pods that are out, if the caller's check of nodes wants to know.
    pub(super) fn gone(&self) -> Option<Vec<&'q Pod>> {
        self.asked.rules.fit?;
        let units = self.site.units.iter().enumerate().filter(|(unit, _)| self.out.contains(*unit));
        Some(units.flat_map(|(_, unit)| &unit.pods).map(|pod| pod.pod).collect())
    }

    fn placing<'s>(&'s self, state: &'s AllocatedState, gone: Option<&'s [&'q Pod]>) -> Placing<'s, 'q> {
        Placing { asked: self.asked, reach: &self.site.reach, state, gone }
    }

    /// Returns the claims that the units out free.
    pub(super) fn freed(&self) -> impl Iterator<Item = &'t FreedClaim<'q>> {
        let with_count = self.site.claims.iter().zip(&self.units_out);
        with_count.filter(|(claim, out)| claim.needs.are_met(**out)).map(|(claim, _)| claim)
    }

    fn with_nominated(&self) -> Result<Option<Cow<'_, AllocatedState>>, Halt> {
        with_nominated(self.asked, &self.state, &self.site.reach, &self.site.nominated)
    }
}

/// Returns the devices in use with the claims of nominated pods allocated, one pod after the other; `None` if one of them has
/// no place.
pub(super) fn with_nominated<'s, 'p, 'q: 'p>(
    asked: &Asked<'_>,
    state: &'s AllocatedState,
    reach: &Reach<'_>,
    pods: impl IntoIterator<Item = &'p NominatedPod<'q>>,
) -> Result<Option<Cow<'s, AllocatedState>>, Halt> {
    let mut state = Cow::Borrowed(state);
    for pod in pods {
        let Some(node) = reach.nodes().get(pod.node) else { return Ok(None) };
        let Some(results) = asked.work.allocate(&pod.attempt, &state, node)? else { return Ok(None) };
        for (claim, result) in pod.claims.iter().zip(&results) {
            state.to_mut().assume(claim, result)?;
        }
    }
    Ok(Some(state))
}
