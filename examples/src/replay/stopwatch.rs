//! What `repeat` measures.

use std::time::{Duration, Instant};

use serde::Serialize;

/// The fastest building of what can be reused, and the fastest single call, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Timing {
    /// Building the index.
    pub index_ns: u64,
    /// One call on a fresh index.
    pub run_ns: u64,
}

/// Takes the minimum over the repetitions of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stopwatch {
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

    /// Measures the building of what can be reused.
    pub fn index<T>(&mut self, work: impl FnOnce() -> T) -> T {
        measure(&mut self.index, work)
    }

    /// Measures one call.
    pub fn run<T>(&mut self, work: impl FnOnce() -> T) -> T {
        measure(&mut self.run, work)
    }

    /// The minima; what was never measured took no time.
    #[must_use]
    pub fn minima(&self) -> Timing {
        let nanos = |time: Option<Duration>| time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        Timing { index_ns: nanos(self.index), run_ns: nanos(self.run) }
    }
}

fn measure<T>(minimum: &mut Option<Duration>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let time = start.elapsed();
    *minimum = Some(minimum.map_or(time, |before| before.min(time)));
    result
}
