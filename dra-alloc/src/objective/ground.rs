//! Ground of the search for the best solution: the requests of all claims, and the devices that each could get.

use std::cell::Cell;

use dra_device::MAX_DEVICES_PER_CLAIM;

use super::levels::{Alternatives as Competing, Objective};
use crate::search::budget::Halt;
use crate::search::device_set::DeviceSet;
use crate::search::domains::Domains;
use crate::search::ix::{AlternativeIx, Alternatives, ByAlternative, ClaimIx, DeviceIx, IxRange, next};
use crate::search::ordered::ordered_devices;
use crate::search::partial_assignment::Chosen;
use crate::search::request::Mode;
use crate::search::stopped::Limit;
use crate::search::table::{DevicesOfAll, Table};
use crate::search::walk::is_prunable;

/// Number of looks at a device for a term that are a unit of work.
const LOOKS_OF_UNIT: usize = 16;

/// Request of any claim, with the alternatives that compete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) claim: ClaimIx,
    pub(super) options: IxRange<Alternatives>,
}

/// Requests and devices of one node, and what is left of the budget.
pub(super) struct Ground<'t, 's> {
    pub(super) table: &'t Table<'s>,
    pub(super) all: &'t DevicesOfAll,
    /// Requests of all claims, in order, with the alternatives that compete.
    pub(super) competing: Vec<Asked>,
    /// The same with all alternatives.
    pub(super) requests: Vec<Asked>,
    /// Devices that each alternative could get if nothing else were chosen.
    pub(super) usable: ByAlternative<DeviceSet>,
    /// Devices in reach of the node, in use or not.
    pub(super) reach: Vec<DeviceIx>,
    /// True if a request has admin access, so that it may get devices in use.
    pub(super) has_admin: bool,
    /// False if taking a device may give others back, or if a refused one leaves traces, as in some releases: nothing can be
    /// said of a part of a solution then.
    pub(super) is_searchable: bool,
    /// Devices of requests that get them in an order that counts.
    pub(super) ordered: DeviceSet,
    steps: Cell<u64>,
    left: Cell<u64>,
    /// Number of terms that are counted at each node of the search.
    terms: usize,
}

/// The first solution.
#[derive(Clone, Copy)]
pub(super) struct Start<'f> {
    pub(super) chosen: &'f [Chosen],
    /// Alternatives of the requests of all claims.
    pub(super) picked: &'f [AlternativeIx],
}

impl Start<'_> {
    /// Returns the devices that each alternative has.
    fn devices(self, table: &Table<'_>) -> ByAlternative<DeviceSet> {
        let mut devices: ByAlternative<DeviceSet> =
            table.plan.alternatives.iter().map(|_| DeviceSet::new(table.candidates.end())).collect();
        self.chosen.iter().for_each(|chosen| devices[chosen.alternative].insert(chosen.device));
        devices
    }
}

impl<'t, 's> Ground<'t, 's> {
    /// Reads the devices of a table of all of a node's devices.
    pub(super) fn new(
        table: &'t Table<'s>,
        all: &'t DevicesOfAll,
        first: Start<'_>,
        objective: &Objective,
    ) -> Result<Self, Halt> {
        let domains = if is_prunable(table) { Domains::new(table, table.meter)? } else { None };
        let is_searchable = domains.is_some();
        let ordered = domains.as_ref().map(|domains| ordered_devices(table, all, domains));
        let ordered = ordered.unwrap_or_else(|| DeviceSet::new(table.candidates.end()));
        let usable = domains.map_or_else(|| first.devices(table), |domains| domains.usable);
        let requests = table.plan.claims.enumerate().flat_map(|(claim, read)| {
            read.requests.iter().map(move |request| Asked { claim, options: request.alternatives })
        });
        let requests: Vec<Asked> = requests.collect();
        let competing = requests.iter().zip(first.picked).map(|(asked, first)| match objective.alternatives() {
            Competing::First => Asked { options: IxRange::new(*first, next(*first)), ..*asked },
            Competing::Scored => *asked,
        });
        let terms = objective.terms().count();
        let reach: Vec<DeviceIx> =
            table.candidates.all().into_iter().filter(|device| table.is_in_reach(*device)).collect();
        table.meter.work(reach.len().saturating_mul(terms))?;
        Ok(Self {
            table,
            all,
            competing: competing.collect(),
            requests,
            has_admin: table.plan.alternatives.iter().any(|asked| asked.admin_access),
            terms,
            usable,
            reach,
            steps: Cell::new(0),
            left: Cell::new(objective.steps()),
            is_searchable,
            ordered,
        })
    }

    /// Counts a node of the search.
    pub(super) fn step(&self) -> Result<(), Halt> {
        let Some(left) = self.left.get().checked_sub(1) else { return Err(Halt::Stopped(Limit::Node)) };
        self.table.meter.work(1)?;
        self.left.set(left);
        self.steps.set(self.steps.get() + 1);
        Ok(())
    }

    /// Counts the work of the terms on a part of a solution: a look at each device, and one for each pair of a device that is open
    /// to a request and one that was chosen.
    pub(super) fn count(&self, open: usize, chosen: usize) {
        let pairs = open.saturating_mul(chosen);
        let looks = self.reach.len().saturating_add(pairs).saturating_mul(self.terms);
        self.table.meter.add(looks / LOOKS_OF_UNIT);
    }

    /// Returns the number of nodes of the search so far.
    pub(super) const fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// Counts the nodes of a search that was made on a node like this one.
    pub(super) fn count_steps(&self, steps: u64) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }

    /// Returns true if the objective permits no further nodes of the search.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }

    /// Returns the number of devices that an alternative needs beside those that it has; `None` if it can't be served, as a request
    /// for all devices where there are none.
    pub(super) fn missing(&self, alternative: AlternativeIx, taken: usize) -> Option<usize> {
        let wanted = self.table.wanted(self.all, alternative);
        let is_empty = wanted == 0 && self.table.alternative(alternative).mode == Mode::All;
        (!is_empty).then(|| wanted.saturating_sub(taken))
    }

    /// Returns true if a claim may get as many devices.
    pub(super) const fn is_within_limit(devices: usize) -> bool {
        devices <= MAX_DEVICES_PER_CLAIM
    }

    /// Returns the devices that an alternative may get beside those that were taken.
    pub(super) fn open_to(&self, alternative: AlternativeIx, taken: &DeviceSet) -> DeviceSet {
        let asked = self.table.alternative(alternative);
        if asked.mode == Mode::All {
            return self.rest_of_all(alternative, 0);
        }
        let mut open = self.usable[alternative].clone();
        if !asked.admin_access {
            open.subtract(taken);
        }
        open
    }

    /// Returns the devices of an `allocationMode: All` alternative but for a number of them.
    pub(super) fn rest_of_all(&self, alternative: AlternativeIx, without: usize) -> DeviceSet {
        let all = self.all.at(alternative).into_iter().flatten().skip(without);
        self.set(all.copied())
    }

    /// Returns the next device of an `allocationMode: All` alternative, as a set.
    pub(super) fn next_of_all(&self, alternative: AlternativeIx, without: usize) -> DeviceSet {
        let all = self.all.at(alternative).into_iter().flatten().skip(without);
        self.set(all.copied().take(1))
    }

    fn set(&self, devices: impl Iterator<Item = DeviceIx>) -> DeviceSet {
        let mut set = DeviceSet::new(self.table.candidates.end());
        devices.for_each(|device| set.insert(device));
        set
    }

    /// Returns true if a chosen device counts: one with admin access does not.
    pub(super) fn counts(&self, alternative: AlternativeIx) -> bool {
        !self.table.alternative(alternative).admin_access
    }
}
