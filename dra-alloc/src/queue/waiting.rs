//! Units that wait, by the remedies that they wait for.

use std::collections::{BTreeMap, BTreeSet};

use super::refusal::Refusal;
use super::remedy::Remedy;

/// Numbers of the units that wait for each remedy. An event costs as much as the units that it helps.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    by_remedy: BTreeMap<Remedy, BTreeSet<u64>>,
}

impl Waiting {
    pub(super) fn add(&mut self, unit: u64, refusal: &Refusal) {
        for remedy in refusal.remedies().filter(|remedy| !remedy.is_own()) {
            match self.by_remedy.get_mut(remedy) {
                Some(units) => drop(units.insert(unit)),
                None => drop(self.by_remedy.insert(remedy.clone(), BTreeSet::from([unit]))),
            }
        }
    }

    pub(super) fn remove(&mut self, unit: u64, refusal: &Refusal) {
        for remedy in refusal.remedies() {
            let Some(units) = self.by_remedy.get_mut(remedy) else { continue };
            units.remove(&unit);
            if units.is_empty() {
                self.by_remedy.remove(remedy);
            }
        }
    }

    /// Returns the units that a remedy helps, in the order in which they came.
    pub(super) fn helped_by(&self, remedy: &Remedy) -> BTreeSet<u64> {
        remedy.meet(&self.by_remedy).flatten().copied().collect()
    }
}
