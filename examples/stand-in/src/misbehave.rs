//! Faults that a client must live with: drawn from a seed, so that a run can be repeated.

use std::time::Duration;

use crate::random::Random;
use clap::ValueEnum;

/// Fault of a server or of the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// A write is answered by 409 though nobody else has written
    Conflict,
    /// 410 ends a watch, and the changes before are forgotten
    Expire,
    /// The connection is cut before the request is read
    Drop,
    /// The request is carried out, and the connection is cut before the answer
    Lose,
    /// The answer comes late
    Slow,
    /// 429, try again later
    Throttle,
    /// 500, nothing was done
    Fail,
    /// All of these
    All,
}

const EVERY: [Fault; 7] =
    [Fault::Conflict, Fault::Expire, Fault::Drop, Fault::Lose, Fault::Slow, Fault::Throttle, Fault::Fail];

/// Longest delay of a late answer, in milliseconds.
const LONGEST_DELAY: u64 = 300;

/// Kind of request in which a fault may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Read,
    /// A create, delete or bind.
    Write,
    /// An update or patch, which may conflict.
    Update,
    /// An event, or a batch of events, of a watch.
    Watch,
}

/// Misbehaviour of a server.
#[derive(Clone, Debug)]
pub(crate) struct Misbehaviour {
    faults: Vec<Fault>,
    percent: u64,
    random: Random,
}

impl Misbehaviour {
    pub(crate) fn new(faults: &[Fault], percent: u8, random: Random) -> Self {
        let faults = if faults.contains(&Fault::All) { EVERY.to_vec() } else { faults.to_vec() };
        Self { faults, percent: percent.into(), random }
    }

    /// Draws the fault of a request, if there is one.
    pub(crate) fn draw(&mut self, moment: Moment) -> Option<Fault> {
        if self.faults.is_empty() || self.random.below(100) >= self.percent {
            return None;
        }
        let index = usize::try_from(self.random.below(self.faults.len() as u64)).unwrap_or_default();
        let fits = |fault: &Fault| match fault {
            Fault::Conflict => moment == Moment::Update,
            Fault::Lose => matches!(moment, Moment::Write | Moment::Update),
            Fault::Expire => moment == Moment::Watch,
            Fault::Drop => true,
            _ => moment != Moment::Watch,
        };
        self.faults.get(index).copied().filter(fits)
    }

    pub(crate) fn delay(&mut self) -> Duration {
        Duration::from_millis(self.random.below(LONGEST_DELAY))
    }
}
