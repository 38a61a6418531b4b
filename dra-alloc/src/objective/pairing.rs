//! Pairing: devices of one request that find no partner among those of another.

use std::collections::BTreeMap;

use dra_attrs::Scalar;
use smallvec::SmallVec;

use super::ground::Ground;
use super::groups::values;
use super::measure::{Facts, Measure, wide};
use super::partial::{Open, Partial};
use crate::search::device_set::DeviceSet;
use crate::search::ix::{ByAlternative, ByClaim, ByDevice, ClaimIx, DeviceIx};

/// Roles of an alternative. A request may be its own partner.
#[derive(Clone, Copy)]
struct Roles {
    claim: ClaimIx,
    wants: bool,
    is_partner: bool,
}

/// Number of devices of one request that find no partner of the other one.
pub(super) struct Pairing {
    values: ByDevice<Vec<u32>>,
    roles: ByAlternative<Roles>,
    /// Claims with both requests.
    claims: ByClaim<bool>,
}

impl Pairing {
    pub(super) fn new(ground: &Ground<'_, '_>, of: &str, with: &str, attribute: &str) -> Self {
        let table = ground.table;
        let mut numbers: BTreeMap<Scalar<'_>, u32> = BTreeMap::new();
        let own = |device| {
            let number = |value: &_| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                *numbers.entry(*value).or_insert(next)
            };
            values(table, attribute, device).values().iter().map(number).collect()
        };
        let roles = table.plan.alternatives.iter().map(|asked| Roles {
            claim: asked.claim,
            wants: asked.request == of,
            is_partner: asked.request == with,
        });
        let wants = |claim: &crate::search::request::Claim<'_>| claim.requests.iter().any(|request| request.name == of);
        Self {
            values: table.candidates.all().into_iter().map(own).collect(),
            roles: roles.collect(),
            claims: table.plan.claims.iter().map(wants).collect(),
        }
    }

    /// Returns the chosen devices of a role.
    fn chosen(&self, partial: &Partial<'_>, has_role: impl Fn(Roles) -> bool) -> SmallVec<[DeviceIx; 16]> {
        let of_role = partial.chosen.iter().filter(|chosen| has_role(self.roles[chosen.alternative]));
        of_role.map(|chosen| chosen.device).collect()
    }

    fn unpaired(&self, partial: &Partial<'_>, claim: ClaimIx) -> usize {
        let wanting = self.chosen(partial, |roles| roles.claim == claim && roles.wants);
        let mut partners = self.chosen(partial, |roles| roles.claim == claim && roles.is_partner);
        if wanting.is_empty() {
            return 0;
        }
        let paired = self.matched(&wanting, &partners);
        let further: usize = self.open(partial, claim).map(|(missing, _)| missing).sum();
        if further == 0 {
            return wanting.len() - paired;
        }
        // No more than all partners that may come would pair, and no more than come.
        for (_, devices) in self.open(partial, claim) {
            partners.extend(devices.iter());
        }
        let possible = self.matched(&wanting, &partners).min(paired.saturating_add(further));
        wanting.len().saturating_sub(possible)
    }

    /// Returns the requests for partners that need devices: the most devices that each may get, and those that it may get.
    fn open<'p>(&'p self, partial: &'p Partial<'_>, claim: ClaimIx) -> impl Iterator<Item = (usize, &'p DeviceSet)> {
        let options = partial.wants.iter().flat_map(|want| &want.options);
        let is_partner = move |open: &&Open| {
            let roles = self.roles[open.alternative];
            roles.claim == claim && roles.is_partner
        };
        let of_role = options.filter(is_partner);
        of_role.map(|open| (open.missing, &open.devices))
    }

    /// Returns the largest number of pairs, by augmenting paths.
    fn matched(&self, wanting: &[DeviceIx], partners: &[DeviceIx]) -> usize {
        let mut mates: Vec<Option<usize>> = vec![None; partners.len()];
        let mut pairs = 0;
        for number in 0..wanting.len() {
            let mut seen = vec![false; partners.len()];
            pairs += usize::from(self.augment(wanting, partners, number, &mut seen, &mut mates));
        }
        pairs
    }

    /// Finds a partner for a device, moving others. The depth is at most the number of devices of a claim.
    fn augment(
        &self,
        wanting: &[DeviceIx],
        partners: &[DeviceIx],
        number: usize,
        seen: &mut [bool],
        mates: &mut [Option<usize>],
    ) -> bool {
        let Some(own) = wanting.get(number).map(|device| &self.values[*device]) else { return false };
        for (place, partner) in partners.iter().enumerate() {
            let is_near = self.values[*partner].iter().any(|value| own.contains(value));
            if !is_near || seen.get(place) != Some(&false) {
                continue;
            }
            if let Some(seen) = seen.get_mut(place) {
                *seen = true;
            }
            let mate = mates.get(place).copied().flatten();
            if mate.is_none_or(|mate| self.augment(wanting, partners, mate, seen, mates)) {
                if let Some(mate) = mates.get_mut(place) {
                    *mate = Some(number);
                }
                return true;
            }
        }
        false
    }
}

impl Measure for Pairing {
    fn at_least(&self, partial: &Partial<'_>) -> u64 {
        let claims = self.claims.enumerate().filter(|(_, wants)| **wants);
        wide(claims.map(|(claim, _)| self.unpaired(partial, claim)).sum())
    }

    fn tell(&self, device: DeviceIx, facts: &mut Facts) {
        let own = &self.values[device];
        facts.number(wide(own.len()));
        facts.labels(own);
    }
}
