//! Dry run of a preemption on one node, or on the nodes of a gang: kube-scheduler's own choice of victims.
//!
//! All pods of lower priority are taken out. If the preemptor fits then, they are put back one by one for as long as it fits:
//! first those that a disruption budget protects, then the others, each from the most important on. Who can't be put back is
//! a victim. For a test that more free devices never turn to a no, that is the first set of victims in the order in which the
//! pods are put back, and none of them can be left out.
//!
//! Source: `SelectVictimsOnNode`, kube-scheduler 1.37.

use super::asked::Asked;
use super::halt::Halt;
use super::occupant::Occupant;
use super::placing::Fitting;
use super::site::Site;
use super::trial::{Effect, Trial};
use crate::cluster::bits::Bits;

/// Victims on a node.
pub(super) struct DryRun {
    /// Units of the site that are out.
    pub(super) out: Bits,
    /// Number of victims that a budget does not allow.
    pub(super) violations: usize,
}

/// Chooses the victims on a node of pods; `None` if nobody there makes room, or the preemptor fits without victims.
pub(super) fn dry_run<'q>(asked: &Asked<'q>, site: &Site<'q>) -> Result<Option<DryRun>, Halt> {
    if site.units.is_empty() {
        return Ok(None);
    }
    let mut trial = Trial::new(asked, site)?;
    match trial.fits()? {
        Fitting::Yes => {}
        Fitting::No => return Ok(None),
        Fitting::Open => return Err(Halt::Open),
    }
    let mut spare = spare_devices(asked, site);
    let (violating, others) = split_by_budgets(asked, site);
    let mut violations = 0;
    for unit in &violating {
        violations += usize::from(stays_out(asked, &mut trial, *unit, &mut spare)?);
    }
    let mut victims = violations;
    for unit in others {
        victims += usize::from(stays_out(asked, &mut trial, unit, &mut spare)?);
    }
    Ok((victims > 0).then(|| DryRun { out: trial.out().clone(), violations }))
}

/// Puts a unit back if the preemptor fits with it. Returns true if it is a victim. Where devices can be counted, too few of them
/// are an answer without a test; so is a unit without any, unless the caller checks nodes by more than devices.
fn stays_out(
    asked: &Asked<'_>,
    trial: &mut Trial<'_, '_>,
    unit: usize,
    spare: &mut Option<usize>,
) -> Result<bool, Halt> {
    let devices = trial.devices_of(unit);
    if spare.is_some_and(|spare| spare < devices) {
        return Ok(true);
    }
    let effect = trial.set(unit, false)?;
    if effect == Effect::None && !asked.is_checked() || trial.fits()? == Fitting::Yes {
        *spare = spare.map(|spare| spare.saturating_sub(devices));
        return Ok(false);
    }
    trial.set(unit, true)?;
    Ok(true)
}

/// Returns the number of free devices beyond those that the preemptor needs, with all units out; `None` if that can't be counted.
fn spare_devices(asked: &Asked<'_>, site: &Site<'_>) -> Option<usize> {
    let freed: usize = site.claims.iter().map(|claim| claim.devices).sum();
    site.free?.checked_add(freed)?.checked_sub(asked.wanted_devices())
}

/// Returns the units with a pod that a budget does not allow to evict if all are charged in their order, and the others.
fn split_by_budgets(asked: &Asked<'_>, site: &Site<'_>) -> (Vec<usize>, Vec<usize>) {
    let budgets = asked.rules.view.budgets();
    let mut charge = budgets.charge();
    let mut is_violating = |pod: &&Occupant<'_>| !charge.add(&budgets.covering(pod.pod)).is_empty();
    (0..site.units.len()).partition(|unit| {
        site.units.get(*unit).is_some_and(|unit| unit.pods.iter().filter(|pod| is_violating(pod)).count() > 0)
    })
}
