//! The search: depth first, requests in their order, devices in theirs, and the first solution counts.
//!
//! Within a request devices are tried as combinations, each after the one before it; a further request starts over. A
//! claim that would get more than [`MAX_DEVICES_PER_CLAIM`] devices is not tried further: that answer passes through the
//! requests of the claim, and makes a list of subrequests go on to the next.
//!
//! The walk keeps its own stack, so that its depth is no concern of the caller's thread.
//!
//! Source: `allocateOne` of kube-scheduler's allocator, 1.37.

use smallvec::SmallVec;

use super::attempt::{Attempt, Chosen, Placed, Refusal, Rejection};
use super::prune::{Prune, Want};
use super::table::Table;
use crate::allocator::MAX_DEVICES_PER_CLAIM;
use crate::budget::{Halt, Meter};
use crate::error::AllocateError;
use crate::request::{Claim, Mode, Plan};

/// What to allocate next.
#[derive(Clone, Copy, Debug)]
struct Position {
    claim: usize,
    request: usize,
    /// The alternative of the request that is being tried.
    alternative: Option<usize>,
    /// Devices that the request has.
    taken: usize,
    /// The first device that may be tried.
    from: usize,
}

impl Position {
    const fn claim(claim: usize) -> Self {
        Self { claim, request: 0, alternative: None, taken: 0, from: 0 }
    }

    /// The request has what it wants.
    const fn end_request(&mut self) {
        *self = Self { request: self.request + 1, ..Self::claim(self.claim) };
    }

    /// The request got a device.
    const fn pass(&mut self, device: usize) {
        self.taken += 1;
        self.from = device + 1;
    }
}

/// The answer for everything from a position on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Found,
    No,
    /// The claim would get too many devices.
    TooMany,
}

enum Step {
    /// The walk is at its position.
    On,
    Back(Answer),
}

/// A choice that is waiting for the answer to what follows from it.
enum Frame<'s> {
    /// The claims before are complete.
    Claim,
    /// An alternative was chosen.
    Alternative {
        position: Position,
        alternative: usize,
        /// Whether all alternatives so far would have had too many devices.
        all_too_many: bool,
    },
    /// A device was placed.
    Device {
        position: Position,
        placed: Placed<'s>,
        /// The devices that were tried in vain at this place.
        tried: Vec<usize>,
    },
}

/// Whether branches are left out.
enum Pruning<'s> {
    /// Not before the search has turned back so often.
    After(usize),
    On(Box<Prune<'s>>),
    Never,
}

/// A search over one table.
pub(crate) struct Walk<'t, 's, 'm, 'b> {
    table: &'t Table<'s>,
    /// The devices of each alternative that wants all.
    all: &'t [Vec<usize>],
    meter: &'m mut Meter<'b>,
    attempt: Attempt<'t, 's>,
    position: Position,
    frames: SmallVec<[Frame<'s>; 2]>,
    pruning: Pruning<'s>,
    selected: Selected,
}

/// The alternative that each request was tried with last: all claims one after the other.
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

/// A solution: the devices in the order of their choice, and the alternative of each request of each claim.
#[derive(Clone, Copy)]
pub(crate) struct Solution<'w> {
    pub(crate) chosen: &'w [Chosen],
    pub(crate) selected: &'w Selected,
}

impl<'w> Solution<'w> {
    /// Each claim with the alternatives of its requests and its devices: the search goes claim by claim.
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

/// Takes the first elements off a list.
fn split_off<'l, T>(list: &mut &'l [T], count: usize) -> &'l [T] {
    let (first, rest) = list.split_at_checked(count).unwrap_or((*list, &[]));
    *list = rest;
    first
}

#[expect(clippy::indexing_slicing, reason = "claims, requests and alternatives are positions in the plan's lists")]
impl<'t, 's, 'm, 'b> Walk<'t, 's, 'm, 'b> {
    pub(crate) fn new(table: &'t Table<'s>, all: &'t [Vec<usize>], meter: &'m mut Meter<'b>) -> Self {
        let selected = Selected::firsts(&table.plan.claims);
        let (attempt, pruning) = (Attempt::new(table), Pruning::After(table.allocator.techniques.patience()));
        let position = Position::claim(0);
        Self { table, all, meter, attempt, position, frames: SmallVec::new(), pruning, selected }
    }

    /// The first solution, if there is one.
    pub(crate) fn run(&mut self) -> Result<Option<Solution<'_>>, Halt> {
        let mut step = Step::On;
        loop {
            step = match step {
                Step::On => self.enter()?,
                Step::Back(Answer::Found) => {
                    return Ok(Some(Solution { chosen: &self.attempt.chosen, selected: &self.selected }));
                }
                Step::Back(answer) => match self.frames.pop() {
                    Some(frame) if !self.is_over()? => self.resume(frame, answer)?,
                    _ => return Ok(None),
                },
            };
        }
    }

    /// Notes that the search turns back, and whether it need not go on at all.
    fn is_over(&mut self) -> Result<bool, Halt> {
        let Pruning::After(turns) = &mut self.pruning else { return Ok(false) };
        if let Some(left) = turns.checked_sub(1) {
            *turns = left;
            return Ok(false);
        }
        let Some(prune) = Prune::new(self.table, self.all, self.table.allocator.techniques, self.meter)? else {
            self.pruning = Pruning::Never;
            return Ok(false);
        };
        let is_over = prune.is_hopeless(self.table);
        self.pruning = Pruning::On(Box::new(prune));
        Ok(is_over)
    }

    /// Whether the rest can't be served from the position on.
    fn is_hopeless(&mut self, alternative: usize) -> Result<bool, Halt> {
        let Pruning::On(prune) = &self.pruning else { return Ok(false) };
        self.meter.step()?;
        let position = &self.position;
        let missing = self.wanted(alternative).saturating_sub(position.taken);
        let want = Want { alternative, missing, from: position.from };
        Ok(prune.is_hopeless_from(self.table, &self.attempt, (position.claim, position.request), want))
    }

    /// Goes on from the position.
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
        if self.attempt.devices_of(self.position.claim).saturating_add(missing) > MAX_DEVICES_PER_CLAIM {
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

    /// A request for the same as an earlier one does not begin before it.
    fn begin(&mut self, alternative: usize) {
        if let Pruning::On(prune) = &self.pruning
            && self.position.taken == 0
        {
            self.position.from = prune.begin(&self.attempt, alternative);
        }
    }

    fn wanted(&self, alternative: usize) -> usize {
        self.table.wanted(self.all, alternative)
    }

    /// The next device of a request for all devices: that one, or none.
    fn next_of_all(&mut self, alternative: usize) -> Result<Step, Halt> {
        let device = self.all[alternative][self.position.taken];
        self.meter.step()?;
        if self.attempt.is_taken(alternative, device) {
            return Ok(Step::Back(Answer::No));
        }
        match self.attempt.place(alternative, device) {
            Ok(placed) => Ok(self.descend(placed, Vec::new())),
            Err(Refusal::Rejected(Rejection::Constraint { .. })) => Err(self.constraint_on_all(alternative, device)),
            Err(Refusal::Rejected(_)) => Ok(Step::Back(Answer::No)),
            Err(Refusal::Failed(error)) => Err(error.into()),
        }
    }

    /// The next device that can be placed.
    fn next_of_any(&mut self, alternative: usize, tried: Vec<usize>) -> Result<Step, Halt> {
        if self.is_hopeless(alternative)? {
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
            if self.attempt.is_taken(alternative, device)
                || !self.table.is_selectable(alternative, device)?
                || self.attempt.short_capacity(alternative, device)?.is_some()
            {
                continue;
            }
            match self.attempt.place(alternative, device) {
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

    /// Goes on after what follows from a choice has failed.
    fn resume(&mut self, frame: Frame<'s>, answer: Answer) -> Result<Step, Halt> {
        match frame {
            // The limit is the claim's own; to the claims before, it is an ordinary no.
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
                self.attempt.take_back(placed)?;
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
