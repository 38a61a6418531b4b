//! What nominations cost: requests to the API server, and the objectives that the KEP names (KEP-5278, Increasing the load
//! to kube-apiserver; Scalability; SLOs).

use std::time::Duration;

use serde::Serialize;

use crate::binding::start::{PermitWait, PreBindWork};
use crate::command::Command;
use crate::gates::{Gate, Gates};

/// Requests of the scheduler to the API server.
///
/// ```
/// use nnn::command::Command;
/// use nnn::cost::Calls;
/// use nnn::pod::PodKey;
/// let pod = || PodKey::new("default", "web", "1");
/// let commands = [Command::PatchNnn { pod: pod(), node: "n".into() }, Command::Bind { pod: pod(), node: "n".into() }];
/// let calls: Calls = commands.iter().collect();
/// assert_eq!((calls.patches, calls.bindings, calls.total()), (1, 1, 2));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Calls {
    /// Every PATCH of a pod's status.
    pub patches: u64,
    /// Bindings.
    pub bindings: u64,
}

impl Calls {
    /// All of them.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.patches.saturating_add(self.bindings)
    }
}

impl<'a> FromIterator<&'a Command> for Calls {
    fn from_iter<T: IntoIterator<Item = &'a Command>>(commands: T) -> Self {
        commands.into_iter().fold(Self::default(), |calls, command| match command {
            Command::Bind { .. } => Self { bindings: calls.bindings.saturating_add(1), ..calls },
            command if command.is_patch() => Self { patches: calls.patches.saturating_add(1), ..calls },
            _ => calls,
        })
    }
}

/// How many times a binding cycle writes a status: one, if the gate is on, there is something to wait for, and the status does not
/// have the node yet.
///
/// ```
/// use nnn::binding::start::{PermitWait, PreBindWork};
/// use nnn::cost::extra_patches;
/// use nnn::gates::Gates;
/// assert_eq!(extra_patches(Gates::default(), PreBindWork::None, PermitWait::None, None, "n"), 0);
/// assert_eq!(extra_patches(Gates::default(), PreBindWork::Some, PermitWait::None, None, "n"), 1);
/// ```
#[must_use]
pub fn extra_patches(gates: Gates, work: PreBindWork, permit: PermitWait, nnn: Option<&str>, host: &str) -> u64 {
    let waits = work == PreBindWork::Some || permit == PermitWait::Waiting;
    u64::from(gates.has(Gate::Expectation) && waits && nnn != Some(host))
}

/// Objectives for a scheduler. The KEP gives these as hints, to be adjusted to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Objectives {
    /// The fewest attempts in a second: `schedule_attempts_total`.
    pub attempts_per_second: u64,
    /// The longest mean of `scheduling_algorithm_duration_seconds`.
    pub mean_algorithm_duration: Duration,
}

impl Default for Objectives {
    fn default() -> Self {
        Self { attempts_per_second: 100, mean_algorithm_duration: Duration::from_millis(10) }
    }
}

/// What was measured over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measured {
    /// How many attempts were made.
    pub attempts: u64,
    /// For how long it was counted.
    pub window: Duration,
    /// The sum of the durations of the algorithm over all attempts.
    pub algorithm_duration: Duration,
}

impl Measured {
    /// Attempts in a window, and the time that their algorithms took together.
    #[must_use]
    pub const fn new(attempts: u64, window: Duration, algorithm_duration: Duration) -> Self {
        Self { attempts, window, algorithm_duration }
    }
}

/// An objective that is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum Breach {
    /// Too few attempts in a second.
    Throughput,
    /// The algorithm takes too long on average.
    AlgorithmDuration,
}

impl Objectives {
    /// The objectives that are missed. Exactly at the limit is met. Nothing is said about an empty window.
    ///
    /// ```
    /// use std::time::Duration;
    /// use nnn::cost::{Breach, Measured, Objectives};
    /// let second = Duration::from_secs(1);
    /// let measured = Measured::new(99, second, Duration::from_millis(99));
    /// assert_eq!(Objectives::default().missed(measured), [Breach::Throughput]);
    /// ```
    #[must_use]
    pub fn missed(&self, measured: Measured) -> Vec<Breach> {
        let needed = u128::from(self.attempts_per_second).saturating_mul(measured.window.as_nanos());
        let had = u128::from(measured.attempts).saturating_mul(Duration::from_secs(1).as_nanos());
        let allowed = self.mean_algorithm_duration.as_nanos().saturating_mul(measured.attempts.into());
        let throughput = (had < needed).then_some(Breach::Throughput);
        let duration = (measured.algorithm_duration.as_nanos() > allowed).then_some(Breach::AlgorithmDuration);
        throughput.into_iter().chain(duration).collect()
    }
}
