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
use super::partial_assignment::{Chosen, PartialAssignment, Placed, Refusal, Rejection};
use super::prune::{OpenRequest, Prune};
use super::request::{Claim, Mode, Plan};
use super::table::Table;
use crate::config::limits::MAX_DEVICES_PER_CLAIM;

/// Position of the search: the request, and the number of devices that it has.
#[derive(Clone, Copy, Debug)]
struct Position {
    claim: usize,
    request: usize,
    /// Alternative of the request that is being tried.
    alternative: Option<usize>,
    /// Number of devices that the request has so far.
    taken: usize,
    /// First device position to try for the request.
    from: usize,
}

impl Position {
    const fn claim(claim: usize) -> Self {
        Self { claim, request: 0, alternative: None, taken: 0, from: 0 }
    }

    /// Moves on to the next request: the current one has all its devices.
    const fn end_request(&mut self) {
        *self = Self { request: self.request + 1, ..Self::claim(self.claim) };
    }

    /// Records that the request got a device; the search continues with the next device position.
    const fn pass(&mut self, device: usize) {
        self.taken += 1;
        self.from = device + 1;
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
        alternative: usize,
        /// True if all alternatives tried so far would have had too many devices.
        all_too_many: bool,
    },
    /// A device was given to an alternative.
    Device {
        position: Position,
        placed: Placed<'s>,
        /// Devices that were tried before for the same choice and failed.
        tried: Vec<usize>,
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
    all: &'t [Vec<usize>],
    meter: &'m mut Meter<'b>,
    assignment: PartialAssignment<'t, 's>,
    position: Position,
    frames: SmallVec<[Frame<'s>; 2]>,
    pruning: Pruning<'s>,
    selected: Selected,
}

/// Alternative that was last tried for each request, for the requests of all claims in order.
#[derive(Clone, Debug)]
pub(crate) struct Selected(SmallVec<[usize; 8]>);

impl Selected {
    fn firsts(claims: &[Claim<'_>]) -> Self {
        Self(claims.iter().flat_map(|claim| &claim.requests).map(|request| request.alternatives.start).collect())
    }

    fn set(&mut self, claims: &[Claim<'_>], position: &Position, alternative: usize) {
        let before: usize = claims.iter().take(position.claim).map(|claim| claim.requests.len()).sum();
        if let Some(selected) = self.0.get_mut(before + position.request) {
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
    ) -> impl Iterator<Item = (&'p Claim<'p>, &'w [usize], &'w [Chosen])> {
        let (mut selected, mut chosen) = (self.selected.0.as_slice(), self.chosen);
        plan.claims.iter().enumerate().map(move |(index, claim)| {
            let is_own =
                |chosen: &Chosen| plan.alternatives.get(chosen.alternative).is_some_and(|asked| asked.claim == index);
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

#[expect(clippy::indexing_slicing, reason = "claims, requests and alternatives are positions in the plan's lists")]
impl<'t, 's, 'm, 'b> Walk<'t, 's, 'm, 'b> {
    pub(crate) fn new(table: &'t Table<'s>, all: &'t [Vec<usize>], meter: &'m mut Meter<'b>) -> Self {
        let selected = Selected::firsts(&table.plan.claims);
        let (assignment, pruning) =
            (PartialAssignment::new(table), Pruning::After(table.context.pruning.start_after()));
        let position = Position::claim(0);
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
    fn is_unsatisfiable(&mut self, alternative: usize) -> Result<bool, Halt> {
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
        let Some(claim) = self.table.plan.claims.get(self.position.claim) else {
            return Ok(Step::Back(Answer::Found));
        };
        let Some(request) = claim.requests.get(self.position.request) else {
            self.frames.push(Frame::Claim);
            self.position = Position::claim(self.position.claim + 1);
            return Ok(Step::On);
        };
        match self.position.alternative {
            Some(alternative) => self.allocate(alternative),
            None if request.is_list => Ok(self.choose(request.alternatives.start, true)),
            None => self.allocate(request.alternatives.start),
        }
    }

    fn choose(&mut self, alternative: usize, all_too_many: bool) -> Step {
        self.selected.set(&self.table.plan.claims, &self.position, alternative);
        self.frames.push(Frame::Alternative { position: self.position, alternative, all_too_many });
        self.position.alternative = Some(alternative);
        Step::On
    }

    fn allocate(&mut self, alternative: usize) -> Result<Step, Halt> {
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
    fn begin(&mut self, alternative: usize) {
        if let Pruning::On(prune) = &self.pruning
            && self.position.taken == 0
        {
            self.position.from = prune.begin(&self.assignment, alternative);
        }
    }

    fn wanted(&self, alternative: usize) -> usize {
        self.table.wanted(self.all, alternative)
    }

    /// Places the next device of an `allocationMode: All` request, for which there is no choice.
    fn next_of_all(&mut self, alternative: usize) -> Result<Step, Halt> {
        let device = self.all[alternative][self.position.taken];
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
    fn next_of_any(&mut self, alternative: usize, tried: Vec<usize>) -> Result<Step, Halt> {
        if self.is_unsatisfiable(alternative)? {
            return Ok(Step::Back(Answer::No));
        }
        for device in self.position.from.. {
            if !self.table.candidates.reach(device) {
                break;
            }
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

    fn descend(&mut self, placed: Placed<'s>, tried: Vec<usize>) -> Step {
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
            Frame::Alternative { position, alternative, all_too_many } => {
                let all_too_many = all_too_many && answer == Answer::TooMany;
                let request = &self.table.plan.claims[position.claim].requests[position.request];
                if alternative + 1 < request.alternatives.end {
                    self.position = position;
                    return Ok(self.choose(alternative + 1, all_too_many));
                }
                Ok(Step::Back(if all_too_many { Answer::TooMany } else { Answer::No }))
            }
            Frame::Device { position, placed, mut tried } => {
                let Chosen { alternative, device } = placed.chosen;
                self.assignment.undo(placed)?;
                let is_all = self.table.alternative(alternative).mode == Mode::All;
                if is_all || answer == Answer::TooMany {
                    return Ok(Step::Back(answer));
                }
                tried.push(device);
                self.position = Position { from: device + 1, ..position };
                self.next_of_any(alternative, tried)
            }
        }
    }

    fn constraint_on_all(&self, alternative: usize, device: usize) -> Halt {
        let asked = self.table.alternative(alternative);
        let (claim, request) = (self.table.claim_name(asked), asked.name.to_string());
        Halt::Failed(AllocateError::ConstraintOnAll { claim, request, device: Box::new(self.table.id(device)) })
    }
}
