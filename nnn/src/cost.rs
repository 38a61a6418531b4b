//! Cost of nominations: requests to the API server, and the scheduler's objectives (KEP-5278, Increasing the load to
//! kube-apiserver; Scalability; SLOs).

use std::time::Duration;

use dra_attrs::GateSet;
use serde::Serialize;

use crate::binding::start::{PermitWait, PreBindWork};
use crate::command::Command;
use crate::gates::NominationGate;

/// Numbers of requests of the scheduler to the API server.
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
    /// Returns the number of all requests.
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

/// Returns the number of PATCH requests that a binding cycle sends to announce its node: 0 or 1.
///
/// It is 1 if `NominatedNodeNameForExpectation` is on, the cycle has something to wait for, and the status does not
/// name the node yet.
///
/// ```
/// use dra_attrs::GateSet;
/// use nnn::binding::PreBindWork;
/// use nnn::{PermitWait, extra_binding_patches};
/// assert_eq!(extra_binding_patches(GateSet::default(), PreBindWork::None, PermitWait::None, None, "n"), 0);
/// assert_eq!(extra_binding_patches(GateSet::default(), PreBindWork::Some, PermitWait::None, None, "n"), 1);
/// ```
#[must_use]
pub fn extra_binding_patches(
    gates: GateSet<NominationGate>,
    work: PreBindWork,
    permit: PermitWait,
    nnn: Option<&str>,
    host: &str,
) -> u64 {
    let waits = work == PreBindWork::Some || permit == PermitWait::Waiting;
    u64::from(gates.has(NominationGate::Expectation) && waits && nnn != Some(host))
}

/// Objectives for the performance of a scheduler. The defaults are the KEP's hints, to be adjusted to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedulerObjectives {
    /// Lowest rate of attempts per second (`schedule_attempts_total`).
    pub attempts_per_second: u64,
    /// Highest mean of `scheduling_algorithm_duration_seconds`.
    pub mean_algorithm_duration: Duration,
}

impl Default for SchedulerObjectives {
    fn default() -> Self {
        Self { attempts_per_second: 100, mean_algorithm_duration: Duration::from_millis(10) }
    }
}

/// Measurement of a scheduler over a time window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchedulingMeasurement {
    /// Number of attempts in the window.
    pub attempts: u64,
    /// Length of the window.
    pub window: Duration,
    /// Sum of the durations of the scheduling algorithm over all attempts.
    pub algorithm_duration: Duration,
}

impl SchedulingMeasurement {
    /// Builds a measurement.
    #[must_use]
    pub const fn new(attempts: u64, window: Duration, algorithm_duration: Duration) -> Self {
        Self { attempts, window, algorithm_duration }
    }
}

/// Objective that a scheduler missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum MissedObjective {
    /// The rate of attempts is too low.
    Throughput,
    /// The mean duration of the algorithm is too long.
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
