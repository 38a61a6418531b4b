//! What `repeat` measures.

use std::time::{Duration, Instant};

use serde::Serialize;

/// The fastest building of what can be reused, and the fastest call or run of steps, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Timing {
    /// Building the index.
    pub index_ns: u64,
    /// One call on a fresh index, or all steps of a run.
    pub run_ns: u64,
}

/// Takes the minimum over the repetitions of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stopwatch {
    /// In this repetition.
    building: Option<Duration>,
    running: Option<Duration>,
    index: Option<Duration>,
    run: Option<Duration>,
    is_asked: bool,
}

impl Stopwatch {
    /// The next answer is the one that counts.
    pub(super) const fn ask(&mut self) {
        self.is_asked = true;
    }

    /// Whether the answer is wanted, or only the time that it takes.
    #[must_use]
    pub const fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Measures the building of what can be reused, or a part of it.
    pub fn index<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (result, time) = measure(work);
        self.building = Some(self.building.unwrap_or_default() + time);
        result
    }

    /// Measures a call, or a step of a run.
    pub fn run<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (result, time) = measure(work);
        self.running = Some(self.running.unwrap_or_default() + time);
        result
    }

    /// Ends a repetition.
    pub(super) fn end(&mut self) {
        self.index = fastest(self.index, self.building.take());
        self.run = fastest(self.run, self.running.take());
    }

    /// The minima; what was never measured took no time.
    #[must_use]
    pub fn minima(&self) -> Timing {
        let nanos = |time: Option<Duration>| time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        Timing { index_ns: nanos(self.index), run_ns: nanos(self.run) }
    }
}

fn measure<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn fastest(before: Option<Duration>, now: Option<Duration>) -> Option<Duration> {
    [before, now].into_iter().flatten().min()
}
