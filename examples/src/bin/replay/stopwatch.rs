//! Time measurements of `repeat`.

use std::time::{Duration, Instant};

use serde::Serialize;

/// Shortest times of building the index and of one call or run, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Timing {
    /// Time for building the index, in nanoseconds.
    pub(crate) index_ns: u64,
    /// Time for one call on a fresh index, or for all steps of a run, in nanoseconds.
    pub(crate) run_ns: u64,
}

/// Stopwatch that keeps the minimum over the repetitions of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stopwatch {
    /// Build time in this repetition.
    building: Option<Duration>,
    running: Option<Duration>,
    index: Option<Duration>,
    run: Option<Duration>,
    is_asked: bool,
}

impl Stopwatch {
    /// Marks the next repetition as the one whose answer counts.
    pub(super) const fn ask(&mut self) {
        self.is_asked = true;
    }

    /// Returns true if the answer is needed, and not only its time.
    pub(crate) const fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Measures the building of the index, or a part of it.
    pub(crate) fn index<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (result, time) = measure(work);
        self.building = Some(self.building.unwrap_or_default() + time);
        result
    }

    /// Measures a call, or a step of a run.
    pub(crate) fn run<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (result, time) = measure(work);
        self.running = Some(self.running.unwrap_or_default() + time);
        result
    }

    /// Ends a repetition.
    pub(super) fn end(&mut self) {
        self.index = fastest(self.index, self.building.take());
        self.run = fastest(self.run, self.running.take());
    }

    /// Returns the minima; a part that was never measured counts as zero.
    pub(crate) fn minima(&self) -> Timing {
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
