//! Clock of the program: the wall clock, watched by one that nobody sets.

use std::fs;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::ClockReading;

/// Smallest change of the clock that counts as a jump.
const JUMP: SignedDuration = SignedDuration::from_secs(2);

/// Clock that notices when it is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    begin: Instant,
    /// Reading since which the clock was not set.
    anchor: ClockReading,
}

impl Default for Clock {
    fn default() -> Self {
        let begin = Instant::now();
        Self { begin, anchor: reading(begin) }
    }
}

impl Clock {
    /// Returns the time of the wall clock, in whole seconds.
    pub(crate) fn now(&self) -> Timestamp {
        reading(self.begin).wall
    }

    /// Returns by how much the clock was set forward (back if negative) since the last jump, or since an anchor.
    pub(crate) fn jump(&mut self) -> Option<SignedDuration> {
        let reading = reading(self.begin);
        let shift = reading.shift_since(self.anchor);
        if shift.abs() < JUMP {
            return None;
        }
        self.anchor = reading;
        Some(shift)
    }

    /// Returns the reading since which the clock was not set. It holds for the whole boot, also in another process.
    #[cfg(feature = "live")]
    pub(crate) const fn anchor(&self) -> ClockReading {
        self.anchor
    }

    /// Takes over the reading of an earlier process of the same boot.
    #[cfg(feature = "live")]
    pub(crate) const fn set_anchor(&mut self, anchor: ClockReading) {
        self.anchor = anchor;
    }
}

/// Reads both clocks. Without the time since the boot, the monotonic one is that since `begin`.
fn reading(begin: Instant) -> ClockReading {
    let passed = || SignedDuration::try_from(begin.elapsed()).unwrap_or(SignedDuration::MAX);
    ClockReading { wall: wall(), monotonic: since_boot().unwrap_or_else(passed) }
}

/// Returns the time since the boot, with the time that the machine was suspended.
fn since_boot() -> Option<SignedDuration> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    let (seconds, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    let nanoseconds = hundredths.parse::<i32>().ok()?.checked_mul(10_000_000)?;
    Some(SignedDuration::new(seconds.parse().ok()?, nanoseconds))
}

fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).ok();
    seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or(Timestamp::MAX)
}
