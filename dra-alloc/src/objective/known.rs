//! Best solutions that hold on other nodes: those that are like the node that was searched.
//!
//! The search for the best solution reads a node through its table and its terms. Names matter only where the facts say who has the
//! same one ([`Facts`]). So two nodes have the same best solution, device by device, with the same value and the same proof, if
//! all facts are the same and the same devices are first fit. Each node builds its own results.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use super::alike::Reader;
use super::ground::{Ground, Start};
use super::measure::{Facts, Measure, wide};
use super::measures::Value;
use super::score::Proof;
use crate::cluster::inventory::pool::PoolState;
use crate::cluster::state::DeviceUsage;
use crate::search::ix::{AlternativeIx, DeviceIx, PoolIx};
use crate::search::partial_assignment::Chosen;
use crate::search::request::Mode;

/// Largest number of searches that are remembered.
const MOST_SEARCHES: usize = 32;
/// Largest number of devices of a node that may be like another one.
const MOST_DEVICES: usize = 1_024;

/// A solution with its value.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) value: Value,
    pub(super) chosen: Vec<Chosen>,
    pub(super) picked: SmallVec<[AlternativeIx; 8]>,
}

/// Searches for the best solution of one attempt.
#[derive(Debug, Default)]
pub(crate) struct KnownSearches(Mutex<Vec<Arc<KnownSearch>>>);

/// Search that has come to its own end.
#[derive(Debug)]
pub(super) struct KnownSearch {
    facts: NodeFacts,
    /// The best solution, if it is not the first one.
    pub(super) found: Option<Found>,
    pub(super) proof: Proof,
    pub(super) steps: u64,
    pub(super) work: u64,
}

/// Facts of a node, in a fixed order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NodeFacts {
    first: Vec<(AlternativeIx, DeviceIx)>,
    picked: Vec<AlternativeIx>,
    devices: Vec<Facts>,
    terms: Facts,
}

impl KnownSearches {
    /// Returns the search on a node with the same facts.
    pub(super) fn find(&self, facts: &NodeFacts) -> Option<Arc<KnownSearch>> {
        self.all().iter().find(|known| known.facts == *facts).cloned()
    }

    pub(super) fn remember(&self, facts: NodeFacts, found: Option<&Found>, proof: &Proof, [steps, work]: [u64; 2]) {
        let mut all = self.all();
        if all.len() < MOST_SEARCHES {
            let (found, proof) = (found.cloned(), proof.clone());
            all.push(Arc::new(KnownSearch { facts, found, proof, steps, work }));
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<KnownSearch>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NodeFacts {
    /// Reads the facts of a node; `None` if something may matter that they do not tell.
    pub(super) fn read(ground: &Ground<'_, '_>, measures: &[&dyn Measure], first: Start<'_>) -> Option<Self> {
        let table = ground.table;
        let takes_all = table.plan.alternatives.iter().any(|asked| asked.mode == Mode::All);
        let mut pools = (0..table.candidates.pool_count()).map(PoolIx::from);
        let is_complete = pools.all(|pool| table.candidates.pool(pool).state() == PoolState::Complete);
        let is_small = usize::from(table.candidates.end()) <= MOST_DEVICES;
        if !ground.is_searchable || ground.has_admin || takes_all || !is_complete || !is_small {
            return None;
        }
        let mut terms = Facts::default();
        if !measures.iter().all(|measure| measure.tell_node(&mut terms)) {
            return None;
        }
        let mut reader = Reader::new(ground);
        let devices = table.candidates.all().into_iter().map(|device| {
            let mut facts = reader.facts(device, measures);
            tell_use(ground, &reader, device, &mut facts).map(|()| facts)
        });
        Some(Self {
            first: first.chosen.iter().map(|chosen| (chosen.alternative, chosen.device)).collect(),
            picked: first.picked.to_vec(),
            devices: devices.collect::<Option<_>>()?,
            terms,
        })
    }
}

/// Adds what exchanges of devices on one node do not ask for; `None` for a device that shares, has groups, or is of a slice that
/// decides about nodes or node operations.
fn tell_use(ground: &Ground<'_, '_>, reader: &Reader<'_, '_, '_>, device: DeviceIx, facts: &mut Facts) -> Option<()> {
    let table = ground.table;
    let has_groups = table.consumption(device).ok()?.iter().any(|consumed| !consumed.groups.is_empty());
    if has_groups || table.is_shareable(device) || reader.is_of_special_slice(device) {
        return None;
    }
    let usage = table.in_use(device);
    facts.number(usage.map_or(0, |usage| wide(usage.uses())));
    facts.number(u64::from(usage.is_some_and(DeviceUsage::is_exclusive)));
    facts.number(u64::from(table.is_in_reach(device)));
    for column in table.plan.columns.range() {
        facts.number(u64::from(table.values(column, device).ok()?.violation().is_some()));
    }
    Some(())
}
