//! Tree of all solutions on a node, in the order of the search: requests and alternatives in theirs, devices of a request as
//! combinations. Equal devices are one branch.
//!
//! It is walked step by step: the caller says whether to go below the place that it was shown.

use smallvec::SmallVec;

use super::alike::Alike;
use super::ground::{Asked, Ground};
use super::partial::{Open, Partial, Want};
use crate::search::budget::Halt;
use crate::search::device_set::DeviceSet;
use crate::search::ix::{AlternativeIx, DeviceIx, next};
use crate::search::node_search::check_skips;
use crate::search::partial_assignment::{Chosen, PartialAssignment, Placed, Refusal};
use crate::search::request::Mode;
use crate::search::results::check_results;
use crate::search::solution::{Selected, Solution};

/// Place of the tree that is shown to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// A device or an alternative was chosen, and there may be solutions below.
    Branch,
    /// All requests have their devices.
    Solution,
}

enum Step {
    Show(At),
    On,
    Back,
    End,
}

/// Request that is served next.
#[derive(Clone, Copy)]
struct Place {
    request: usize,
    /// Alternative that was chosen; `None` before that.
    alternative: Option<AlternativeIx>,
    /// Number of devices that it has.
    taken: usize,
}

/// Choice with what is left to try.
enum Frame<'s> {
    Alternative { request: usize, next: AlternativeIx },
    Device { request: usize, alternative: AlternativeIx, taken: usize, rest: DeviceSet, placed: Option<Placed<'s>> },
}

/// Walk through the tree.
pub(super) struct Tree<'a, 't, 's> {
    ground: &'a Ground<'t, 's>,
    requests: &'a [Asked],
    alike: &'a Alike,
    pub(super) assignment: &'a mut PartialAssignment<'t, 's>,
    /// Alternatives of the requests that have begun.
    picked: SmallVec<[AlternativeIx; 8]>,
    frames: Vec<Frame<'s>>,
    at: Place,
    /// Number of devices that were chosen before.
    before: usize,
}

impl<'a, 't, 's> Tree<'a, 't, 's> {
    /// Begins at the root. When the walk has ended, the assignment is as it was; before that, [`Tree::rewind`] makes it so.
    pub(super) fn new(
        ground: &'a Ground<'t, 's>,
        requests: &'a [Asked],
        alike: &'a Alike,
        assignment: &'a mut PartialAssignment<'t, 's>,
    ) -> Self {
        let at = Place { request: 0, alternative: None, taken: 0 };
        let before = assignment.chosen.len();
        Self { ground, requests, alike, assignment, picked: SmallVec::new(), frames: Vec::new(), at, before }
    }

    /// Goes on: below the place that was shown last, or past it. Returns `None` at the end of the tree.
    pub(super) fn next(&mut self, is_below: bool) -> Result<Option<At>, Halt> {
        let mut is_on = is_below;
        loop {
            match if is_on { self.enter() } else { self.resume()? } {
                Step::Show(at) => return Ok(Some(at)),
                Step::On => is_on = true,
                Step::Back => is_on = false,
                Step::End => return Ok(None),
            }
        }
    }

    /// Goes back to the last choice. Returns false if there is none.
    pub(super) fn back_out(&mut self) -> Result<bool, Halt> {
        match self.frames.pop() {
            None => return Ok(false),
            Some(Frame::Alternative { request, .. }) => {
                self.picked.truncate(request);
                self.at = Place { request, alternative: None, taken: 0 };
            }
            Some(Frame::Device { request, alternative, taken, placed, .. }) => {
                if let Some(placed) = placed {
                    self.assignment.undo(placed)?;
                }
                self.at = Place { request, alternative: Some(alternative), taken };
            }
        }
        Ok(true)
    }

    /// Takes back all devices, and ends the walk.
    pub(super) fn rewind(&mut self) -> Result<(), Halt> {
        while self.back_out()? {}
        Ok(())
    }

    /// Returns the alternatives of the requests that have begun.
    pub(super) fn picked(&self) -> &[AlternativeIx] {
        &self.picked
    }

    /// Returns the devices that were chosen in this walk.
    pub(super) fn chosen(&self) -> &[Chosen] {
        self.assignment.chosen.get(self.before..).unwrap_or_default()
    }

    /// Returns true if kube-scheduler would not fail with the solution that was shown last.
    pub(super) fn holds(&self) -> bool {
        let (table, selected) = (self.ground.table, Selected::new(self.picked.iter().copied()));
        let solution = Solution { chosen: self.chosen(), selected: &selected };
        check_skips(table, solution).is_ok() && check_results(table, solution).is_ok()
    }

    /// Returns the part of a solution at the place shown; `None` if a request can't be served any more.
    pub(super) fn partial(&self) -> Option<Partial<'_>> {
        let mut wants = SmallVec::new();
        let Place { request, alternative, taken } = self.at;
        if let Some(alternative) = alternative {
            let missing = self.ground.missing(alternative, taken)?;
            if missing > 0 {
                let devices = self.open_here(alternative);
                if devices.len() < missing {
                    return None;
                }
                if self.ground.counts(alternative) {
                    let options = std::iter::once(Open { alternative, missing, devices }).collect();
                    wants.push(Want { request, options });
                }
            }
        }
        let later = request + usize::from(alternative.is_some());
        for (number, asked) in self.requests.iter().enumerate().skip(later) {
            let want = Want::new(self.ground, number, asked, self.assignment.taken())?;
            if want.options.iter().any(|open| self.ground.counts(open.alternative)) {
                wants.push(want);
            }
        }
        let picked = self.picked.get(..later).unwrap_or(&self.picked);
        Some(Partial { wants, ..Partial::new(self.ground, self.chosen(), picked) })
    }

    /// Returns the devices that the request at the place may still get.
    fn open_here(&self, alternative: AlternativeIx) -> DeviceSet {
        if self.ground.table.alternative(alternative).mode == Mode::All {
            return self.ground.rest_of_all(alternative, self.at.taken);
        }
        match self.frames.last() {
            Some(Frame::Device { rest, .. }) if self.at.taken > 0 => rest.clone(),
            _ => self.ground.open_to(alternative, self.assignment.taken()),
        }
    }

    /// Makes the next choice at the place.
    fn enter(&mut self) -> Step {
        let Place { request, alternative, taken } = self.at;
        let Some(asked) = self.requests.get(request) else { return Step::Show(At::Solution) };
        let Some(alternative) = alternative else {
            self.frames.push(Frame::Alternative { request, next: asked.options.start });
            return Step::Back;
        };
        let Some(missing) = self.ground.missing(alternative, taken) else { return Step::Back };
        if missing == 0 {
            self.at = Place { request: request + 1, alternative: None, taken: 0 };
            return Step::On;
        }
        let devices = self.assignment.device_count(asked.claim).saturating_add(missing);
        if Ground::is_within_limit(devices) {
            let rest = match self.ground.table.alternative(alternative).mode {
                Mode::All => self.ground.next_of_all(alternative, taken),
                Mode::Exactly(_) => self.open_here(alternative),
            };
            self.frames.push(Frame::Device { request, alternative, taken, rest, placed: None });
        }
        Step::Back
    }

    /// Makes another choice than the last one.
    fn resume(&mut self) -> Result<Step, Halt> {
        match self.frames.pop() {
            None => Ok(Step::End),
            Some(Frame::Alternative { request, next }) => self.choose(request, next),
            Some(Frame::Device { request, alternative, taken, mut rest, placed }) => {
                if let Some(placed) = placed {
                    let device = placed.chosen.device;
                    self.assignment.undo(placed)?;
                    self.alike.remove(device, &mut rest);
                }
                self.at = Place { request, alternative: Some(alternative), taken };
                self.place(alternative, rest)
            }
        }
    }

    fn choose(&mut self, request: usize, alternative: AlternativeIx) -> Result<Step, Halt> {
        let Some(asked) = self.requests.get(request).filter(|asked| alternative < asked.options.end) else {
            return Ok(Step::Back);
        };
        self.frames.push(Frame::Alternative { request, next: next(alternative) });
        self.picked.truncate(request);
        self.picked.push(alternative);
        self.at = Place { request, alternative: Some(alternative), taken: 0 };
        if asked.options.len() == 1 {
            return Ok(Step::On);
        }
        self.ground.step()?;
        Ok(Step::Show(At::Branch))
    }

    /// Places the next device that is left to try.
    fn place(&mut self, alternative: AlternativeIx, mut rest: DeviceSet) -> Result<Step, Halt> {
        let Place { request, taken, .. } = self.at;
        let is_all = self.ground.table.alternative(alternative).mode == Mode::All;
        let missing = if is_all { 1 } else { self.ground.missing(alternative, taken).unwrap_or_default() };
        while let Some(device) = rest.first_from(DeviceIx::FIRST) {
            if rest.len() < missing {
                break;
            }
            if self.alike.is_repeated(device, &self.assignment.chosen) {
                rest.remove(device);
                continue;
            }
            self.ground.step()?;
            let placed = self.try_device(alternative, device)?;
            if placed.is_some() {
                rest.remove(device);
                self.frames.push(Frame::Device { request, alternative, taken, rest, placed });
                self.at.taken += 1;
                return Ok(Step::Show(At::Branch));
            }
            self.alike.remove(device, &mut rest);
        }
        Ok(Step::Back)
    }

    /// Gives a device to an alternative; `None` if that is not possible. An error of the device is a no: it can't be in a
    /// solution.
    fn try_device(&mut self, alternative: AlternativeIx, device: DeviceIx) -> Result<Option<Placed<'s>>, Halt> {
        let refused = |error| match Halt::from(error) {
            halt @ Halt::Stopped(_) => Err(halt),
            Halt::Failed(_) | Halt::OnNode(_) => Ok(None),
        };
        if self.assignment.is_taken(alternative, device) || self.assignment.crashes(device) {
            return Ok(None);
        }
        match self.assignment.short_capacity(alternative, device) {
            Ok(None) => {}
            Ok(Some(_)) => return Ok(None),
            Err(error) => return refused(error),
        }
        match self.assignment.place_fitting(alternative, device) {
            Ok(placed) => Ok(Some(placed)),
            Err(Refusal::Rejected(_)) => Ok(None),
            Err(Refusal::Failed(error)) => refused(error),
        }
    }
}
