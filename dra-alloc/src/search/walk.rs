//! Backtracking search, depth first: tries requests and devices in their order, and returns the first solution.
//!
//! The devices of one request are tried as combinations (ascending positions); the next request starts at the first
//! device again. A claim that would get more than [`MAX_DEVICES_PER_CLAIM`] devices is not searched further: `TooMany`
//! is passed up through the claim's requests, and a `firstAvailable` list continues with its next subrequest.
//!
//! The search keeps its own stack, so that its depth does not use the caller's thread stack.
//!
//! Source: `allocateOne` of kube-scheduler's allocator, 1.37.

use dra_attrs::Gate;
use dra_attrs::internal::release::{DistinctMemory, FurtherShare, LaterAll, RefusedCounters};
use dra_device::MAX_DEVICES_PER_CLAIM;
use smallvec::SmallVec;

use super::allocate_error::AllocateError;
use super::budget::{Halt, Meter};
use super::demand::OpenRequest;
use super::domains::looks;
use super::elisions::Elision;
use super::ix::{AlternativeIx, ClaimIx, DeviceIx, RequestIx, next};
use super::partial_assignment::{Chosen, Insufficient, PartialAssignment, Placed, Refusal, Rejection};
use super::prune::{Attempts, Prune};
use super::refused_before::{Lasting, RefusedBefore};
use super::request::{Claim, ConstraintKind, Mode};
use super::solution::{Selected, Solution};
use super::stopped::{Limit, Stopped};
use super::table::{DevicesOfAll, Table};

/// Position of the search: the request, and the number of devices that it has.
#[derive(Clone, Copy, Debug)]
struct Position {
    claim: ClaimIx,
    request: RequestIx,
    /// Alternative of the request that is being tried.
    alternative: Option<AlternativeIx>,
    /// Number of devices that the request has so far.
    taken: usize,
    /// First device position to try for the request.
    from: DeviceIx,
}

impl Position {
    const fn claim(claim: ClaimIx) -> Self {
        Self { claim, request: RequestIx::FIRST, alternative: None, taken: 0, from: DeviceIx::FIRST }
    }

    /// Moves on to the next request: the current one has all its devices.
    fn end_request(&mut self) {
        *self = Self { request: next(self.request), ..Self::claim(self.claim) };
    }

    /// Records that the request got a device; the search continues with a device position.
    const fn pass(&mut self, from: DeviceIx) {
        self.taken += 1;
        self.from = from;
    }
}

/// Result of searching all branches below a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Found,
    No,
    /// The claim would get more devices than an allocation may have.
    TooMany,
}

enum Step {
    /// Continue at the current position.
    On,
    Back(Answer),
    /// Pruning proves that there is no solution.
    End,
}

/// A pending choice on the search stack, resumed when the branches below it have been searched.
enum Frame<'s> {
    /// The search started with a claim, after all earlier claims got their devices.
    Claim,
    /// An alternative of a request was chosen.
    Alternative {
        position: Position,
        alternative: AlternativeIx,
        /// Answer if no further alternative is possible: `TooMany` if all tried so far would have had too many devices.
        so_far: Answer,
    },
    /// A device was given to an alternative.
    Device {
        position: Position,
        placed: Placed<'s>,
        /// Devices that are left to try for the same choice; `None` before pruning starts.
        attempts: Option<Attempts>,
    },
}

/// State of pruning: not started, on, or not possible.
enum Pruning<'t, 's> {
    /// Pruning starts after this number of further backtracks.
    After(usize),
    On(Box<Prune<'t, 's>>),
    Never,
}

/// Backtracking search over the devices of one node.
pub(crate) struct Walk<'t, 's> {
    table: &'t Table<'s>,
    /// Devices of each `allocationMode: All` alternative, by position of the alternative.
    all: &'t DevicesOfAll,
    meter: &'t Meter<'s>,
    assignment: PartialAssignment<'t, 's>,
    position: Position,
    frames: SmallVec<[Frame<'s>; 2]>,
    pruning: Pruning<'t, 's>,
    selected: Selected,
    refused_before: RefusedBefore,
    /// First claim that is not searched.
    end: ClaimIx,
}

/// Largest work of the search of a claim alone.
const WORK_FOR_A_CLAIM_ALONE: u64 = 10_000;

/// Returns true if the search is the one that pruning is proved for: it gives a device to a request once, remembers every
/// device under a constraint, goes on with the alternative that it chose, and a refused device leaves no trace.
pub(crate) fn is_prunable(table: &Table<'_>) -> bool {
    let plan = table.plan;
    let has_distinct = || {
        let mut constraints = plan.claims.iter().flat_map(|claim| claim.constraints.iter());
        constraints.any(|constraint| constraint.kind == ConstraintKind::Distinct)
    };
    let has_later_all = || plan.alternatives.iter().any(|asked| asked.mode == Mode::All && asked.subrequest.is_some());
    let gives_once = match table.rules.allocator.further_share {
        FurtherShare::OtherDevice => true,
        FurtherShare::SameDevice => !table.has(Gate::ConsumableCapacity),
    };
    let remembers = match table.rules.allocator.distinct {
        DistinctMemory::Every => true,
        DistinctMemory::LastOfRequest => !has_distinct(),
    };
    let goes_on = match table.variant.later_all {
        LaterAll::Kept => true,
        LaterAll::Lost => !has_later_all(),
    };
    let leaves_no_trace = match table.variant.refused_counters {
        RefusedCounters::Released => true,
        RefusedCounters::Reserved => !table.has(Gate::PartitionableDevices),
    };
    gives_once && remembers && goes_on && leaves_no_trace
}

impl<'t, 's> Walk<'t, 's> {
    pub(crate) fn new(table: &'t Table<'s>, all: &'t DevicesOfAll) -> Self {
        let selected = Selected::firsts(&table.plan.claims);
        let start = table.context.pruning.start_after();
        let is_prunable = is_prunable(table);
        let (assignment, pruning) =
            (PartialAssignment::new(table), if is_prunable { Pruning::After(start) } else { Pruning::Never });
        let has_same = table.context.elisions.has(Elision::RefusedBefore) && table.plan.has_same_requests();
        let refused_before = if is_prunable && has_same {
            RefusedBefore::new(table.plan.alternatives.len())
        } else {
            RefusedBefore::default()
        };
        let position = Position::claim(ClaimIx::FIRST);
        let end = table.plan.claims.end();
        let meter = table.meter;
        Self {
            table,
            all,
            meter,
            assignment,
            position,
            frames: SmallVec::new(),
            pruning,
            selected,
            refused_before,
            end,
        }
    }

    /// Searches the first solution. Returns false if there is none.
    pub(crate) fn run(&mut self) -> Result<bool, Halt> {
        let mut step = Step::On;
        loop {
            step = match step {
                Step::On => self.enter()?,
                Step::Back(Answer::Found) => return Ok(true),
                Step::End => return Ok(false),
                Step::Back(answer) => match self.frames.pop() {
                    Some(frame) if !self.is_over()? => self.resume(frame, answer)?,
                    _ => return Ok(false),
                },
            };
        }
    }

    /// Returns the solution that was found.
    pub(crate) fn solution(&self) -> Solution<'_> {
        Solution { chosen: &self.assignment.chosen, selected: &self.selected }
    }

    /// Returns the state of the search after it was stopped.
    pub(crate) fn stopped(&self, limit: Limit) -> Stopped {
        let (position, plan) = (&self.position, self.table.plan);
        let claim = plan.claims.at(position.claim);
        let request =
            claim.and_then(|claim| claim.requests.at(position.request)).map(|request| match position.alternative {
                Some(alternative) => self.table.alternative(alternative).name.to_string(),
                None => request.name.to_owned(),
            });
        let first = self.assignment.chosen.first();
        let failed_states = match &self.pruning {
            Pruning::On(prune) => prune.failed_states(),
            Pruning::After(_) | Pruning::Never => 0,
        };
        Stopped {
            limit,
            claim: claim.map(Claim::name).unwrap_or_default(),
            request: request.unwrap_or_default(),
            refuted: first.map_or_else(|| position.from.into(), |chosen| chosen.device.into()),
            failed_states,
        }
    }

    /// Counts a backtrack, and starts pruning when due. Returns true if pruning proves that the claims can't be
    /// satisfied.
    fn is_over(&mut self) -> Result<bool, Halt> {
        let Pruning::After(turns) = &mut self.pruning else { return Ok(false) };
        if let Some(left) = turns.checked_sub(1) {
            *turns = left;
            return Ok(false);
        }
        self.start_pruning()
    }

    /// Starts pruning. Returns true if it proves that the claims can't be satisfied.
    fn start_pruning(&mut self) -> Result<bool, Halt> {
        let Some(prune) = Prune::new(self.table, self.all, self.table.context.pruning, self.meter)? else {
            self.pruning = Pruning::Never;
            return Ok(false);
        };
        self.meter.step()?;
        let is_over = prune.is_unsatisfiable();
        self.pruning = Pruning::On(Box::new(prune));
        Ok(is_over || self.has_impossible_claim()?)
    }

    /// Returns true if a later claim has no solution even if nothing is allocated to the others.
    fn has_impossible_claim(&mut self) -> Result<bool, Halt> {
        let Pruning::On(prune) = &self.pruning else { return Ok(false) };
        for claim in prune.later_claims() {
            let pruning = std::mem::replace(&mut self.pruning, Pruning::Never);
            let mut alone = Walk {
                table: self.table,
                all: self.all,
                meter: self.meter,
                assignment: PartialAssignment::new(self.table),
                position: Position::claim(claim),
                frames: SmallVec::new(),
                pruning,
                selected: Selected::firsts(&self.table.plan.claims),
                refused_before: RefusedBefore::default(),
                end: next(claim),
            };
            let found = self.meter.limited(WORK_FOR_A_CLAIM_ALONE, || {
                let found = alone.run().map_err(|halt| self.meter.resolve(halt))?;
                self.meter.check().map(|()| found)
            });
            self.pruning = alone.pruning;
            match found {
                Ok(true) | Err(Halt::Stopped(Limit::Node | Limit::Call)) => {}
                Ok(false) => return Ok(true),
                Err(halt @ Halt::Stopped(Limit::Caller)) => return Err(halt),
                // The search of the whole comes to it, or not.
                Err(_) => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Returns what the alternative still needs at the current position.
    fn want(&self, alternative: AlternativeIx) -> OpenRequest {
        let missing = self.wanted(alternative).saturating_sub(self.position.taken);
        OpenRequest { alternative, missing, from: self.position.from }
    }

    /// Makes the next choice at the current position.
    fn enter(&mut self) -> Result<Step, Halt> {
        self.meter.step()?;
        let claim = self.table.plan.claims.at(self.position.claim).filter(|_| self.position.claim < self.end);
        let Some(claim) = claim else { return Ok(Step::Back(Answer::Found)) };
        let Some(request) = claim.requests.at(self.position.request) else {
            self.frames.push(Frame::Claim);
            self.position = Position::claim(next(self.position.claim));
            return Ok(Step::On);
        };
        match self.position.alternative {
            Some(alternative) => self.allocate(alternative),
            None if request.is_list => Ok(self.choose(request.alternatives.start, Answer::TooMany)),
            None => self.allocate(request.alternatives.start),
        }
    }

    fn choose(&mut self, alternative: AlternativeIx, so_far: Answer) -> Step {
        let place = (self.position.claim, self.position.request);
        self.selected.set(&self.table.plan.claims, place, alternative);
        self.frames.push(Frame::Alternative { position: self.position, alternative, so_far });
        self.position.alternative = Some(alternative);
        Step::On
    }

    fn allocate(&mut self, alternative: AlternativeIx) -> Result<Step, Halt> {
        self.position.alternative = Some(alternative);
        let (wanted, mode) = (self.wanted(alternative), self.table.alternative(alternative).mode);
        if mode == Mode::All && wanted == 0 {
            return Ok(Step::Back(Answer::No));
        }
        let Some(missing) = wanted.checked_sub(self.position.taken).filter(|missing| *missing > 0) else {
            self.position.end_request();
            return Ok(Step::On);
        };
        if self.assignment.device_count(self.position.claim).saturating_add(missing) > MAX_DEVICES_PER_CLAIM {
            return Ok(Step::Back(Answer::TooMany));
        }
        match mode {
            Mode::All => self.next_of_all(alternative),
            Mode::Exactly(_) => {
                self.begin(alternative);
                self.next_of_any(alternative)
            }
        }
    }

    /// Starts a request at the first device, or behind the devices that were refused before.
    fn begin(&mut self, alternative: AlternativeIx) {
        if self.position.taken > 0 {
            return;
        }
        self.position.from = match &self.pruning {
            Pruning::On(_) => DeviceIx::FIRST,
            Pruning::After(_) | Pruning::Never => {
                self.refused_before.begin(alternative, self.table.alternative(alternative).same)
            }
        };
    }

    fn wanted(&self, alternative: AlternativeIx) -> usize {
        self.table.wanted(self.all, alternative)
    }

    /// Places the next device of an `allocationMode: All` request, for which there is no choice.
    fn next_of_all(&mut self, alternative: AlternativeIx) -> Result<Step, Halt> {
        let Some(&device) = self.all[alternative].get(self.position.taken) else { return Ok(Step::Back(Answer::No)) };
        self.meter.step()?;
        if self.assignment.is_taken(alternative, device) {
            return Ok(Step::Back(Answer::No));
        }
        if self.assignment.crashes(device) {
            return Err(self.crash(alternative, device));
        }
        match self.assignment.place(alternative, device) {
            Ok(placed) => Ok(self.descend_all(placed)),
            Err(Refusal::Rejected(Rejection::Constraint { .. })) => Err(self.constraint_on_all(alternative, device)),
            Err(Refusal::Rejected(_)) => Ok(Step::Back(Answer::No)),
            Err(Refusal::Failed(error)) => Err(error.into()),
        }
    }

    /// Places the next device that passes all checks for the current request.
    fn next_of_any(&mut self, alternative: AlternativeIx) -> Result<Step, Halt> {
        if matches!(self.pruning, Pruning::On(_)) {
            return match self.attempts(alternative)? {
                Some(attempts) => self.next_attempt(alternative, attempts),
                None => Ok(Step::Back(Answer::No)),
            };
        }
        let is_admin = self.table.alternative(alternative).admin_access;
        let mut is_gapless = self.refused_before.end(alternative) == self.position.from;
        let (mut conflicts, mut most_conflicts) = (0, self.least_conflicts());
        for device in self.table.devices_from(alternative, self.position.from) {
            let refused = if !is_admin && self.table.is_held(device) {
                self.meter.work(1)?;
                Lasting::Stays
            } else {
                self.meter.step()?;
                match self.try_device(alternative, device)? {
                    Ok(placed) => return Ok(self.descend_from(placed, is_gapless)),
                    Err(refused) => refused,
                }
            };
            is_gapless &= refused == Lasting::Stays;
            if is_gapless {
                self.refused_before.set(alternative, next(device));
            }
            conflicts += usize::from(refused == Lasting::Conflict);
            if conflicts > most_conflicts {
                most_conflicts = self.most_conflicts();
                if conflicts > most_conflicts {
                    self.position.from = next(device);
                    return self.look_ahead(alternative);
                }
            }
        }
        Ok(Step::Back(Answer::No))
    }

    /// Goes on with pruning, since a constraint refuses many devices.
    fn look_ahead(&mut self, alternative: AlternativeIx) -> Result<Step, Halt> {
        if self.start_pruning()? { Ok(Step::End) } else { self.next_of_any(alternative) }
    }

    /// Returns the number of devices that a constraint may refuse before the price of pruning is asked for.
    const fn least_conflicts(&self) -> usize {
        match self.pruning {
            Pruning::After(_) => self.table.context.pruning.least_conflicts(),
            Pruning::On(_) | Pruning::Never => usize::MAX,
        }
    }

    /// Returns the number of devices that a constraint may refuse before pruning starts.
    fn most_conflicts(&self) -> usize {
        let different = self.table.plan.alternatives.enumerate().filter(|(own, asked)| asked.like == *own);
        let looks = || different.map(|(alternative, _)| looks(self.table, alternative)).max().unwrap_or(0);
        self.table.context.pruning.start_after_conflicts(looks)
    }

    /// Goes on after a device. `is_gapless`: all devices before it are refused, or taken.
    fn descend_from(&mut self, placed: Placed<'s>, is_gapless: bool) -> Step {
        let Chosen { alternative, device } = placed.chosen;
        if is_gapless {
            // A device that can be shared is not taken for a later request.
            self.refused_before.set(alternative, if self.table.is_shareable(device) { device } else { next(device) });
        }
        self.descend(placed, None)
    }

    /// Runs the pruning rules at the current position.
    fn attempts(&self, alternative: AlternativeIx) -> Result<Option<Attempts>, Halt> {
        self.meter.step()?;
        let (want, place) = (self.want(alternative), (self.position.claim, self.position.request));
        let Pruning::On(prune) = &self.pruning else { return Ok(None) };
        self.meter.work(prune.cost(place))?;
        // What failed for the device before fails for this one too.
        let before = match self.frames.last() {
            Some(Frame::Device { attempts, .. }) if self.position.taken > 0 => attempts.as_ref(),
            _ => None,
        };
        Ok(prune.attempts(&self.assignment, place, want, before))
    }

    /// Runs the bounds again after a device failed. Returns false if nothing is left to try.
    fn may_go_on(&self, alternative: AlternativeIx, attempts: &mut Attempts) -> Result<bool, Halt> {
        let (want, place) = (self.want(alternative), (self.position.claim, self.position.request));
        let Pruning::On(prune) = &self.pruning else { return Ok(true) };
        if prune.is_exhausted(attempts, want) {
            return Ok(false);
        }
        self.meter.step()?;
        self.meter.work(prune.cost(place))?;
        Ok(prune.may_go_on(&self.assignment, place, want, attempts))
    }

    /// Places the next device among those that are left to try.
    fn next_attempt(&mut self, alternative: AlternativeIx, mut attempts: Attempts) -> Result<Step, Halt> {
        loop {
            let want = self.want(alternative);
            let Pruning::On(prune) = &self.pruning else { return Ok(Step::Back(Answer::No)) };
            let device = attempts.candidates.first_from(want.from).filter(|_| !prune.is_exhausted(&attempts, want));
            let Some(device) = device else { return Ok(self.fail(attempts)) };
            self.meter.step()?;
            if let Ok(placed) = self.try_device(alternative, device)? {
                attempts.candidates.remove(device);
                return Ok(self.descend(placed, Some(attempts)));
            }
            self.give_up(&mut attempts, device);
        }
    }

    /// Goes back after all attempts at a place have failed.
    fn fail(&mut self, attempts: Attempts) -> Step {
        if let Pruning::On(prune) = &mut self.pruning {
            prune.failed(&self.assignment, (self.position.claim, self.position.request), attempts);
        }
        Step::Back(Answer::No)
    }

    /// Removes a device that failed from those that are left to try.
    fn give_up(&mut self, attempts: &mut Attempts, device: DeviceIx) {
        if let Pruning::On(prune) = &self.pruning {
            prune.tried(attempts, &self.assignment, device);
        }
        self.position.from = next(device);
    }

    /// Gives a device to an alternative. The inner error tells how long a check refuses it.
    fn try_device(
        &mut self,
        alternative: AlternativeIx,
        device: DeviceIx,
    ) -> Result<Result<Placed<'s>, Lasting>, Halt> {
        if self.assignment.is_taken(alternative, device) || !self.table.is_selectable(alternative, device)? {
            return Ok(Err(Lasting::Stays));
        }
        match self.assignment.short_capacity(alternative, device)? {
            None => {}
            Some(Insufficient::Never(_)) => return Ok(Err(Lasting::Stays)),
            Some(Insufficient::Now { .. }) => return Ok(Err(Lasting::Unknown)),
        }
        match self.assignment.place_fitting(alternative, device) {
            Ok(placed) => Ok(Ok(placed)),
            Err(Refusal::Rejected(rejection)) => Ok(Err(rejection.lasting())),
            Err(Refusal::Failed(error)) => Err(error.into()),
        }
    }

    fn descend(&mut self, placed: Placed<'s>, attempts: Option<Attempts>) -> Step {
        let device = placed.chosen.device;
        self.frames.push(Frame::Device { position: self.position, placed, attempts });
        self.position.pass(if self.table.is_tried_again(device) { device } else { next(device) });
        Step::On
    }

    /// Goes on after a device of an `allocationMode: All` request.
    fn descend_all(&mut self, placed: Placed<'s>) -> Step {
        let step = self.descend(placed, None);
        match self.table.variant.later_all {
            LaterAll::Kept => {}
            LaterAll::Lost => {
                let claim = self.table.plan.claims.at(self.position.claim);
                let first = claim.and_then(|claim| claim.requests.at(self.position.request));
                self.position.alternative = first.map(|request| request.alternatives.start);
                self.position.from = DeviceIx::FIRST;
            }
        }
        step
    }

    /// Tries the next choice after all branches below the previous one have failed.
    fn resume(&mut self, frame: Frame<'s>, answer: Answer) -> Result<Step, Halt> {
        match frame {
            // The device limit is the claim's own: for earlier claims, it is an ordinary failure.
            Frame::Claim => Ok(Step::Back(Answer::No)),
            Frame::Alternative { position, alternative, so_far } => {
                let so_far = if answer == Answer::TooMany { so_far } else { Answer::No };
                let request = &self.table.plan.claims[position.claim].requests[position.request];
                if next(alternative) < request.alternatives.end {
                    self.position = position;
                    return Ok(self.choose(next(alternative), so_far));
                }
                Ok(Step::Back(so_far))
            }
            Frame::Device { position, placed, attempts } => {
                let Chosen { alternative, device } = placed.chosen;
                self.assignment.undo(placed)?;
                self.refused_before.give_back(alternative, device);
                let is_all = self.table.alternative(alternative).mode == Mode::All;
                if is_all || answer == Answer::TooMany {
                    return Ok(Step::Back(answer));
                }
                self.position = Position { from: next(device), ..position };
                if let Some(mut attempts) = attempts {
                    self.give_up(&mut attempts, device);
                    if !self.may_go_on(alternative, &mut attempts)? {
                        return Ok(self.fail(attempts));
                    }
                    return self.next_attempt(alternative, attempts);
                }
                self.next_of_any(alternative)
            }
        }
    }

    fn crash(&self, alternative: AlternativeIx, device: DeviceIx) -> Halt {
        let asked = self.table.alternative(alternative);
        let (claim, request) = (self.table.claim_name(asked), asked.name.to_string());
        Halt::Failed(AllocateError::SchedulerStops { claim, request, device: Box::new(self.table.id(device)) })
    }

    fn constraint_on_all(&self, alternative: AlternativeIx, device: DeviceIx) -> Halt {
        let asked = self.table.alternative(alternative);
        let (claim, request) = (self.table.claim_name(asked), asked.name.to_string());
        Halt::Failed(AllocateError::ConstraintOnAll { claim, request, device: Box::new(self.table.id(device)) })
    }
}
