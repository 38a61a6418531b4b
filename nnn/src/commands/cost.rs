//! API requests that nominations cost, and performance objectives of a scheduler (KEP-5278, Increasing the load to
//! kube-apiserver; Scalability; SLOs).

use std::time::Duration;

use serde::Serialize;

use super::command::Command;

/// Number of requests that a scheduler sends to the API server, by kind.
///
/// ```
/// use nnn::{ApiCalls, Command, PodKey};
/// let pod = || PodKey::new("default", "web", "1");
/// let commands = [Command::PatchNnn { pod: pod(), node: "n".into() }, Command::Bind { pod: pod(), node: "n".into() }];
/// let calls: ApiCalls = commands.iter().collect();
/// assert_eq!((calls.patches, calls.bindings, calls.total()), (1, 1, 2));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct ApiCalls {
    /// Number of PATCH requests to pod statuses.
    pub patches: u64,
    /// Number of bindings.
    pub bindings: u64,
}

impl ApiCalls {
    /// Returns the number of requests of all kinds.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.patches.saturating_add(self.bindings)
    }
}

impl<'a> FromIterator<&'a Command> for ApiCalls {
    fn from_iter<T: IntoIterator<Item = &'a Command>>(commands: T) -> Self {
        commands.into_iter().fold(Self::default(), |calls, command| match command {
            Command::Bind { .. } => Self { bindings: calls.bindings.saturating_add(1), ..calls },
            command if command.is_patch() => Self { patches: calls.patches.saturating_add(1), ..calls },
            _ => calls,
        })
    }
}

/// Performance objectives of a scheduler. The defaults are the KEP's suggestions, to be adjusted to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedulerObjectives {
    /// Minimum rate of scheduling attempts per second (`schedule_attempts_total`).
    pub attempts_per_second: u64,
    /// Maximum mean of `scheduling_algorithm_duration_seconds`.
    pub mean_algorithm_duration: Duration,
}

impl Default for SchedulerObjectives {
    fn default() -> Self {
        Self { attempts_per_second: 100, mean_algorithm_duration: Duration::from_millis(10) }
    }
}

/// Measured scheduling attempts and their durations in a time window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedulingMeasurement {
    /// Number of scheduling attempts in the window.
    pub attempts: u64,
    /// Length of the window.
    pub window: Duration,
    /// Sum of the durations of the scheduling algorithm over all attempts.
    pub algorithm_duration: Duration,
}

impl SchedulingMeasurement {
    /// Builds a measurement from the number of attempts, the length of the window and the summed algorithm duration.
    #[must_use]
    pub const fn new(attempts: u64, window: Duration, algorithm_duration: Duration) -> Self {
        Self { attempts, window, algorithm_duration }
    }
}

/// Performance objective that a measurement misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum MissedObjective {
    /// The rate of scheduling attempts is below [`SchedulerObjectives::attempts_per_second`].
    Throughput,
    /// The mean duration of the scheduling algorithm is above [`SchedulerObjectives::mean_algorithm_duration`].
    AlgorithmDuration,
}

impl SchedulerObjectives {
    /// Returns the objectives that a measurement misses. A value exactly at its limit is met; an empty window misses
    /// nothing.
    ///
    /// ```
    /// use nnn::{MissedObjective, SchedulerObjectives, SchedulingMeasurement};
    /// use std::time::Duration;
    /// let second = Duration::from_secs(1);
    /// let measured = SchedulingMeasurement::new(99, second, Duration::from_millis(99));
    /// assert_eq!(SchedulerObjectives::default().missed(measured), [MissedObjective::Throughput]);
    /// ```
    #[must_use]
    pub fn missed(&self, measured: SchedulingMeasurement) -> Vec<MissedObjective> {
        let needed = u128::from(self.attempts_per_second).saturating_mul(measured.window.as_nanos());
        let had = u128::from(measured.attempts).saturating_mul(Duration::from_secs(1).as_nanos());
        let allowed = self.mean_algorithm_duration.as_nanos().saturating_mul(measured.attempts.into());
        let throughput = (had < needed).then_some(MissedObjective::Throughput);
        let duration = (measured.algorithm_duration.as_nanos() > allowed).then_some(MissedObjective::AlgorithmDuration);
        throughput.into_iter().chain(duration).collect()
    }
}
