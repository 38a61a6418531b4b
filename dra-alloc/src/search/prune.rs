//! Pruning rules: they skip branches of the search that have no solution, or that repeat a failed one.
//!
//! Easy searches pay nothing: pruning starts after `START_AFTER_BACKTRACKS` backtracks, or when a constraint refuses many
//! devices one after the other. It first checks every device for
//! every alternative ([`Domains`]). Only branches are left out in which the search would find no solution *and* end in no
//! error; then the first solution, and the first error, stay the same.
//!
//! [`PruningRule`] lists the rules. The argument of each stands at the function that applies it, after the word *Argument*.
//!
//! The first seven rules are bounds: they never underestimate what a solution could use. For the next one (a symmetry), a solution in
//! the cut branch would imply one in an earlier branch (exchange the devices), and that branch was searched without
//! success. The last rule rests on the same: when a branch has been searched without success, no solution has the choices
//! that lead to it, so that what was left there serves the open requests in no way.
//!
//! Pruning stays off if a device consumes a negative amount, since then what fails now may succeed later; and if a claim
//! may exceed the limit of results after a request whose search may end in an error, since the limit ends a branch early,
//! and with it the errors in the rest of the branch.
//!
//! The rules decide counts, one constraint for each request over values that partition the devices, racks and cards of a
//! few shapes, and distinct scalar values. Devices with overlapping sets of values, cards with many different cuts, and several
//! constraints across each other contain set packing, which is NP-hard: there a search may end in `Stopped`.

use std::cell::{Cell, OnceCell};

use super::bounds::{Bounds, Query, keep_to_limit};
use super::budget::{Halt, Meter};
use super::demand::{Demand, Demands, FreeDomain, OpenRequest, demands};
use super::device_set::DeviceSet;
use super::domains::Domains;
use super::failed_states::{FailedStates, State, StateReader};
use super::ix::{AlternativeIx, ClaimIx, DeviceIx, Place, RequestIx, next};
use super::partial_assignment::PartialAssignment;
use super::pruning_rules::{PruningRule, PruningRules};
use super::request::ConstraintKind;
use super::risk::{Risk, Risks, are_settled, may_exceed, risks, without_settled};
use super::table::{DevicesOfAll, Table};

/// Data of the pruning rules, computed once for all alternatives and constraints.
pub(crate) struct Prune<'t, 's> {
    table: &'t Table<'s>,
    all: &'t DevicesOfAll,
    rules: PruningRules,
    domains: Domains<'s>,
    /// For each alternative: the risk that its search ends in an error.
    risks: Risks,
    demands: Demands,
    /// Demands where all risks that can be settled are; `None` if there are no such risks.
    demands_without_risks: Option<Demands>,
    bounds: Bounds,
    /// Kinds and groups of devices, read when the bounds do not decide soon.
    states: OnceCell<StateReader<'s>>,
    /// Number of devices that were tried in vain.
    tried: Cell<usize>,
    failed: FailedStates,
}

/// Choices that are left to try at one place of the search.
pub(crate) struct Attempts {
    /// Devices that may still be tried.
    pub(crate) candidates: DeviceSet,
    /// Devices that the request needs at the place.
    want: OpenRequest,
    /// State of the search at the place, if it was compared with failed ones.
    state: Option<State>,
}

/// Number of devices that are tried in vain before kinds and groups of devices are read, which takes as long.
const READ_STATES_AFTER: usize = 6;

impl<'t, 's> Prune<'t, 's> {
    /// Computes the data of the pruning rules, in work of the budget. Returns `None` if pruning is not safe.
    pub(crate) fn new(
        table: &'t Table<'s>,
        all: &'t DevicesOfAll,
        rules: PruningRules,
        meter: &Meter<'_>,
    ) -> Result<Option<Self>, Halt> {
        let Some(domains) = Domains::new(table, meter)? else { return Ok(None) };
        let risks = risks(table, all, &domains);
        if table.plan.claims.iter().any(|claim| may_exceed(table, all, claim, &risks)) {
            return Ok(None);
        }
        let settled = without_settled(table, &risks).filter(|_| rules.has(PruningRule::SettledRisks));
        let demands_without_risks = settled.map(|risks| demands(table, all, &domains, &risks));
        let demands = demands(table, all, &domains, &risks);
        let bounds = Bounds::new(table, &domains);
        let (states, tried, failed) = (OnceCell::new(), Cell::default(), FailedStates::default());
        Ok(Some(Self {
            table,
            all,
            rules,
            domains,
            risks,
            demands,
            demands_without_risks,
            bounds,
            states,
            tried,
            failed,
        }))
    }

    /// Returns true if the bounds prove that the claims can't be satisfied.
    pub(crate) fn is_unsatisfiable(&self) -> bool {
        let assignment = PartialAssignment::new(self.table);
        let query = self.query(&assignment);
        let mut free = self.free(query, (ClaimIx::FIRST, RequestIx::FIRST));
        keep_to_limit(query, &mut free);
        self.bounds.fail(query, &free)
    }

    /// Returns the claims after the first one that may be searched alone: if one of them has no solution then, there is
    /// none for all. No claim before may end in an error. The last one comes first.
    ///
    /// *Argument* of [`PruningRule::LaterClaims`]: a claim without a solution on the empty node has none next to other claims. Each is
    /// searched alone once, with little work.
    pub(crate) fn later_claims(&self) -> Vec<ClaimIx> {
        if !self.rules.has(PruningRule::LaterClaims) {
            return Vec::new();
        }
        let is_safe = |claim: &ClaimIx| {
            let requests = self.table.plan.claims[*claim].requests.iter();
            requests.flat_map(|request| request.alternatives).all(|alternative| self.risks[alternative] == Risk::None)
        };
        let claims: Vec<ClaimIx> = self.table.plan.claims.range().into_iter().collect();
        let safe = claims.iter().take_while(|claim| is_safe(claim)).count();
        claims.into_iter().take(safe + 1).skip(1).rev().collect()
    }

    /// Returns what can be tried for the request at `place`, which still needs the devices of `want`; `None` if that is
    /// proved to be in vain. `before` is what was left to try for the device before.
    pub(crate) fn attempts(
        &self,
        assignment: &PartialAssignment<'_, 's>,
        place: Place,
        want: OpenRequest,
        before: Option<&Attempts>,
    ) -> Option<Attempts> {
        let query = self.query(assignment);
        let mut candidates = self.open_to(query, want);
        if let Some(before) = before {
            candidates.intersect(&before.candidates);
        }
        if !self.narrow(query, place, want, &mut candidates) {
            return None;
        }
        let state = (self.failed.len() > 0).then(|| self.state(assignment, place, want)).flatten();
        if state.as_ref().is_some_and(|state| self.failed.contains(state)) {
            return None;
        }
        Some(Attempts { candidates, want, state })
    }

    /// Returns the state of the search at a place; `None` as long as states are not remembered.
    fn state(&self, assignment: &PartialAssignment<'_, 's>, place: Place, want: OpenRequest) -> Option<State> {
        let is_on = self.rules.has(PruningRule::FailedStates);
        Some(self.states().filter(|_| is_on)?.state(self.table, assignment, &self.domains, place, want))
    }

    /// Returns true if what is left to try after a failure may still serve.
    pub(crate) fn may_go_on(
        &self,
        assignment: &PartialAssignment<'_, 's>,
        place: Place,
        want: OpenRequest,
        attempts: &mut Attempts,
    ) -> bool {
        attempts.candidates =
            std::mem::replace(&mut attempts.candidates, DeviceSet::new(DeviceIx::FIRST)).starting_at(want.from);
        self.narrow(self.query(assignment), place, want, &mut attempts.candidates)
    }

    /// Leaves out candidates that a bound excludes. Returns false if it excludes all.
    fn narrow(&self, query: Query<'_, '_, 's>, place: Place, want: OpenRequest, candidates: &mut DeviceSet) -> bool {
        if self.risks[want.alternative] != Risk::None {
            return true;
        }
        let (claim, request) = place;
        let current = Demand { claim, options: vec![want], total: want.missing, is_part: false };
        let mut free = vec![FreeDomain { demand: &current, free: vec![candidates.clone()] }];
        free.extend(self.free(query, (claim, next(request))));
        keep_to_limit(query, &mut free);
        if self.bounds.fail(query, &free) {
            return false;
        }
        self.keep_common(query, &free, want.alternative, candidates);
        true
    }

    fn query<'q, 'a>(&'q self, assignment: &'q PartialAssignment<'a, 's>) -> Query<'q, 'a, 's> {
        Query { table: self.table, domains: &self.domains, assignment, rules: self.rules }
    }

    fn states(&self) -> Option<&StateReader<'s>> {
        let is_due = self.rules.start_after() == 0 || self.tried.get() >= READ_STATES_AFTER;
        let read = || StateReader::new(self.table, self.all, &self.domains, &self.risks);
        is_due.then(|| self.states.get_or_init(read))
    }

    /// Returns the work of looking ahead at a place.
    pub(crate) fn cost(&self, (claim, request): Place) -> usize {
        let devices = usize::from(self.domains.devices.end);
        let values: usize = self.domains.columns.iter().map(|column| column.holders.len()).sum();
        let options = self.demands.options((claim, next(request))) + 1;
        // Each value is looked at for each option.
        devices / 16 + values * options.max(4) / 16 + options * (devices / 512 + 1)
    }

    /// Removes a device that was tried, and those that can be exchanged with it.
    pub(crate) fn tried(&self, attempts: &mut Attempts, assignment: &PartialAssignment<'_, 's>, device: DeviceIx) {
        self.tried.set(self.tried.get().saturating_add(1));
        match self.states().filter(|_| self.rules.has(PruningRule::ValueSymmetry)) {
            Some(states) => attempts.candidates.subtract(&states.alike(assignment, &self.domains, device)),
            None => attempts.candidates.remove(device),
        }
    }

    /// Returns true if the devices that are left to try do not suffice.
    pub(crate) fn is_exhausted(&self, attempts: &Attempts, want: OpenRequest) -> bool {
        let is_bounded = self.rules.has(PruningRule::ForwardChecking) && self.risks[want.alternative] == Risk::None;
        attempts.candidates.is_empty() || (is_bounded && attempts.candidates.len() < want.missing)
    }

    /// Returns the number of remembered states.
    pub(crate) fn failed_states(&self) -> usize {
        self.failed.len()
    }

    /// Remembers that everything at one place was tried in vain.
    ///
    /// *Argument* of [`PruningRule::FailedStates`]: a state in which everything was tried without success is a fact about the remaining
    /// devices. It holds wherever the state comes up again, also in another request or claim.
    pub(crate) fn failed(&mut self, assignment: &PartialAssignment<'_, 's>, place: Place, attempts: Attempts) {
        let Attempts { want, state, .. } = attempts;
        if let Some(state) = state.or_else(|| self.state(assignment, place, want)) {
            self.failed.insert(state);
        }
    }

    /// Returns the devices that an alternative may be given now.
    fn open_to(&self, query: Query<'_, '_, 's>, want: OpenRequest) -> DeviceSet {
        let mut open = self.domains.reachable(want.alternative);
        if !query.table.alternative(want.alternative).admin_access {
            open.subtract(query.assignment.taken());
        }
        open.starting_at(want.from)
    }

    /// Keeps the devices that have a value with which the constraints on the alternative can be satisfied.
    fn keep_common(
        &self,
        query: Query<'_, '_, 's>,
        free: &[FreeDomain<'_>],
        alternative: AlternativeIx,
        candidates: &mut DeviceSet,
    ) {
        let asked = query.table.alternative(alternative);
        for (index, column) in &asked.constraints {
            if query.table.plan.claims[asked.claim].constraints[*index].kind != ConstraintKind::Match {
                continue;
            }
            let Some(values) = self.bounds.common_values(query, free, (asked.claim, *index), *column) else { continue };
            let mut holders = DeviceSet::new(self.domains.devices.end);
            for value in values {
                self.domains.columns[*column]
                    .holders
                    .get(&value)
                    .into_iter()
                    .for_each(|devices| holders.union(devices));
            }
            candidates.intersect(&holders);
        }
    }

    /// Returns the demands from a place on, with the devices that are free for them.
    fn free(&self, query: Query<'_, '_, 's>, place: Place) -> Vec<FreeDomain<'_>> {
        let taken = query.assignment.taken();
        let free = |demand: &Demand, want: &OpenRequest| {
            let usable = match &self.risks[want.alternative] {
                Risk::IfFree(needed) if demand.is_part => needed,
                _ => &self.domains.usable[want.alternative],
            };
            let is_admin = query.table.alternative(want.alternative).admin_access;
            let free = if is_admin { usable.clone() } else { usable.without(taken) };
            free.starting_at(want.from)
        };
        let settled = self.demands_without_risks.as_ref();
        let demands = settled.filter(|_| are_settled(query.table, &self.risks, place, taken)).unwrap_or(&self.demands);
        let free = |demand| FreeDomain { demand, free: demand.options.iter().map(|want| free(demand, want)).collect() };
        demands.from(place).map(free).collect()
    }
}
