//! Backtracking search, depth first: tries requests and devices in their order, and returns the first solution.
//!
//! The devices of one request are tried as combinations (ascending positions); the next request starts at the first
//! device again. A claim that would get more than [`MAX_DEVICES_PER_CLAIM`] devices is not searched further: `TooMany`
//! is passed up through the claim's requests, and a `firstAvailable` list continues with its next subrequest.
//!
//! The search keeps its own stack, so that its depth does not use the caller's thread stack.
//!
//! Source: `allocateOne` of kube-scheduler's allocator, 1.37.

use smallvec::SmallVec;

use super::allocate_error::AllocateError;
use super::budget::{Halt, Meter};
use super::ix::{AlternativeIx, ByClaim, ClaimIx, DeviceIx, RequestIx, from, next};
use super::partial_assignment::{Chosen, PartialAssignment, Placed, Refusal, Rejection};
use super::prune::{OpenRequest, Prune};
use super::request::{Claim, Mode, Plan};
use super::table::{DevicesOfAll, Table};
use crate::config::limits::MAX_DEVICES_PER_CLAIM;

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

    /// Records that the request got a device; the search continues with the next device position.
    fn pass(&mut self, device: DeviceIx) {
        self.taken += 1;
        self.from = next(device);
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
        /// Devices that were tried before for the same choice and failed.
        tried: Vec<DeviceIx>,
    },
}

/// State of pruning: not started, on, or not possible.
enum Pruning<'s> {
    /// Pruning starts after this number of further backtracks.
    After(usize),
    On(Box<Prune<'s>>),
    Never,
}

/// Backtracking search over the devices of one node.
pub(crate) struct Walk<'t, 's, 'm, 'b> {
    table: &'t Table<'s>,
    /// Devices of each `allocationMode: All` alternative, by position of the alternative.
    all: &'t DevicesOfAll,
    meter: &'m mut Meter<'b>,
    assignment: PartialAssignment<'t, 's>,
    position: Position,
    frames: SmallVec<[Frame<'s>; 2]>,
    pruning: Pruning<'s>,
    selected: Selected,
}

/// Alternative that was last tried for each request, for the requests of all claims in order.
#[derive(Clone, Debug)]
pub(crate) struct Selected(SmallVec<[AlternativeIx; 8]>);

impl Selected {
    fn firsts(claims: &ByClaim<Claim<'_>>) -> Self {
        Self(claims.iter().flat_map(|claim| &claim.requests).map(|request| request.alternatives.start).collect())
    }

    fn set(&mut self, claims: &ByClaim<Claim<'_>>, position: &Position, alternative: AlternativeIx) {
        let before: usize = claims.iter().take(position.claim.into()).map(|claim| claim.requests.len()).sum();
        if let Some(selected) = self.0.get_mut(before + usize::from(position.request)) {
            *selected = alternative;
        }
    }
}

/// Solution of the search: the chosen devices in the order of their choice, and the chosen alternative of each request.
#[derive(Clone, Copy)]
pub(crate) struct Solution<'w> {
    pub(crate) chosen: &'w [Chosen],
    pub(crate) selected: &'w Selected,
}

impl<'w> Solution<'w> {
    /// Returns each claim with the alternatives of its requests and its devices. Relies on the search completing one
    /// claim after the other.
    pub(crate) fn by_claim<'p>(
        self,
        plan: &'p Plan<'p>,
    ) -> impl Iterator<Item = (&'p Claim<'p>, &'w [AlternativeIx], &'w [Chosen])> {
        let (mut selected, mut chosen) = (self.selected.0.as_slice(), self.chosen);
        plan.claims.enumerate().map(move |(index, claim)| {
            let is_own =
                |chosen: &Chosen| plan.alternatives.at(chosen.alternative).is_some_and(|asked| asked.claim == index);
            let devices = chosen.partition_point(is_own);
            (claim, split_off(&mut selected, claim.requests.len()), split_off(&mut chosen, devices))
        })
    }
}

/// Removes and returns the first `count` elements of a list.
fn split_off<'l, T>(list: &mut &'l [T], count: usize) -> &'l [T] {
    let (first, rest) = list.split_at_checked(count).unwrap_or((*list, &[]));
    *list = rest;
    first
}

impl<'t, 's, 'm, 'b> Walk<'t, 's, 'm, 'b> {
    pub(crate) fn new(table: &'t Table<'s>, all: &'t DevicesOfAll, meter: &'m mut Meter<'b>) -> Self {
        let selected = Selected::firsts(&table.plan.claims);
        let (assignment, pruning) =
            (PartialAssignment::new(table), Pruning::After(table.context.pruning.start_after()));
        let position = Position::claim(ClaimIx::FIRST);
        Self { table, all, meter, assignment, position, frames: SmallVec::new(), pruning, selected }
    }

    /// Returns the first solution; `None` if there is none.
    pub(crate) fn run(&mut self) -> Result<Option<Solution<'_>>, Halt> {
        let mut step = Step::On;
        loop {
            step = match step {
                Step::On => self.enter()?,
                Step::Back(Answer::Found) => {
                    return Ok(Some(Solution { chosen: &self.assignment.chosen, selected: &self.selected }));
                }
                Step::Back(answer) => match self.frames.pop() {
                    Some(frame) if !self.is_over()? => self.resume(frame, answer)?,
                    _ => return Ok(None),
                },
            };
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
        let Some(prune) = Prune::new(self.table, self.all, self.table.context.pruning, self.meter)? else {
            self.pruning = Pruning::Never;
            return Ok(false);
        };
        let is_over = prune.is_unsatisfiable(self.table);
        self.pruning = Pruning::On(Box::new(prune));
        Ok(is_over)
    }

    /// Returns true if pruning proves that the remaining requests can't be satisfied.
    fn is_unsatisfiable(&mut self, alternative: AlternativeIx) -> Result<bool, Halt> {
        let Pruning::On(prune) = &self.pruning else { return Ok(false) };
        self.meter.step()?;
        let position = &self.position;
        let missing = self.wanted(alternative).saturating_sub(position.taken);
        let want = OpenRequest { alternative, missing, from: position.from };
        Ok(prune.is_unsatisfiable_from(self.table, &self.assignment, (position.claim, position.request), want))
    }

    /// Makes the next choice at the current position.
    fn enter(&mut self) -> Result<Step, Halt> {
        self.meter.step()?;
        let Some(claim) = self.table.plan.claims.at(self.position.claim) else {
            return Ok(Step::Back(Answer::Found));
        };
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
        self.selected.set(&self.table.plan.claims, &self.position, alternative);
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
                self.next_of_any(alternative, Vec::new())
            }
        }
    }

    /// Starts a request at the first device position that symmetry allows (variable symmetry).
    fn begin(&mut self, alternative: AlternativeIx) {
        if let Pruning::On(prune) = &self.pruning
            && self.position.taken == 0
        {
            self.position.from = prune.begin(&self.assignment, alternative);
        }
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
        match self.assignment.place(alternative, device) {
            Ok(placed) => Ok(self.descend(placed, Vec::new())),
            Err(Refusal::Rejected(Rejection::Constraint { .. })) => Err(self.constraint_on_all(alternative, device)),
            Err(Refusal::Rejected(_)) => Ok(Step::Back(Answer::No)),
            Err(Refusal::Failed(error)) => Err(error.into()),
        }
    }

    /// Places the next device that passes all checks for the current request.
    fn next_of_any(&mut self, alternative: AlternativeIx, tried: Vec<DeviceIx>) -> Result<Step, Halt> {
        if self.is_unsatisfiable(alternative)? {
            return Ok(Step::Back(Answer::No));
        }
        let reached = |device: &DeviceIx| self.table.candidates.reach(*device);
        for device in from(self.position.from).take_while(reached) {
            self.meter.step()?;
            if matches!(&self.pruning, Pruning::On(prune) if prune.is_tried(&tried, device)) {
                continue;
            }
            if self.assignment.is_taken(alternative, device)
                || !self.table.is_selectable(alternative, device)?
                || self.assignment.short_capacity(alternative, device)?.is_some()
            {
                continue;
            }
            match self.assignment.place(alternative, device) {
                Ok(placed) => return Ok(self.descend(placed, tried)),
                Err(Refusal::Rejected(_)) => {}
                Err(Refusal::Failed(error)) => return Err(error.into()),
            }
        }
        Ok(Step::Back(Answer::No))
    }

    fn descend(&mut self, placed: Placed<'s>, tried: Vec<DeviceIx>) -> Step {
        let device = placed.chosen.device;
        self.frames.push(Frame::Device { position: self.position, placed, tried });
        self.position.pass(device);
        Step::On
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
            Frame::Device { position, placed, mut tried } => {
                let Chosen { alternative, device } = placed.chosen;
                self.assignment.undo(placed)?;
                let is_all = self.table.alternative(alternative).mode == Mode::All;
                if is_all || answer == Answer::TooMany {
                    return Ok(Step::Back(answer));
                }
                tried.push(device);
                self.position = Position { from: next(device), ..position };
                self.next_of_any(alternative, tried)
            }
        }
    }

    fn constraint_on_all(&self, alternative: AlternativeIx, device: DeviceIx) -> Halt {
        let asked = self.table.alternative(alternative);
        let (claim, request) = (self.table.claim_name(asked), asked.name.to_string());
        Halt::Failed(AllocateError::ConstraintOnAll { claim, request, device: Box::new(self.table.id(device)) })
    }
}
