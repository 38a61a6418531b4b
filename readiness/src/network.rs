//! Network readiness out of several gates, and what kubelet could admit by it (KEP-5233, Standardized Condition Patterns and
//! Node Admission Control).

use std::fmt;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::condition::Observation;
use crate::node::NodeView;

/// Type of the condition that kubelet would create.
pub const NETWORK_READY: &str = "node.kubernetes.io/NetworkReady";

/// Type of the condition that tells of pods started without a ready network.
pub const NETWORK_TIMEOUT: &str = "KubeletNetworkPrerequisiteTimeout";

/// How long kubelet waits for the network by default, in seconds after Ready.
pub const ADMISSION_TIMEOUT_SECONDS: i64 = 120;

/// Flaps from which the condition tells of them.
const FLAPS_TO_TELL: u32 = 3;

/// Several conditions as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Aggregate {
    /// Every one is True.
    True,
    /// One is False: its type.
    False(String),
    /// None is False, and one is Unknown, missing or released by a timeout: its type.
    Unknown(String),
}

impl Aggregate {
    /// The status of a condition.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        match self {
            Self::True => crate::condition::TRUE,
            Self::False(_) => crate::condition::FALSE,
            Self::Unknown(_) => crate::condition::UNKNOWN,
        }
    }
}

/// The conditions of all gates whose type begins with a prefix, as one. None without such a gate: then there is nothing to
/// say, and no condition to write. kubelet itself aggregates nothing; this is for an external controller.
///
/// ```
/// use readiness::name::NETWORK_PREFIX;
/// use readiness::network::{Aggregate, aggregate};
/// use readiness::node::GatedNode;
/// let node: GatedNode = serde_json::from_str(r#"{
///     "spec": {"readinessGates": [{"conditionType": "network.kubernetes.io/CNIReady"}]},
///     "status": {"conditions": [{"type": "network.kubernetes.io/CNIReady", "status": "True"}]}}"#)?;
/// assert_eq!(aggregate(&node.view(), NETWORK_PREFIX), Some(Aggregate::True));
/// assert_eq!(aggregate(&node.view(), "storage.kubernetes.io/"), None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn aggregate(view: &NodeView<'_>, prefix: &str) -> Option<Aggregate> {
    let gates = view.distinct_gates().filter(|gate| gate.condition_type.starts_with(prefix));
    let each = gates.map(|gate| {
        let name = &gate.condition_type;
        match Observation::of(view.condition(name)) {
            Observation::True => Aggregate::True,
            Observation::False => Aggregate::False(name.clone()),
            _ => Aggregate::Unknown(name.clone()),
        }
    });
    each.reduce(|all, one| match (&all, &one) {
        (Aggregate::False(_), _) | (Aggregate::Unknown(_), Aggregate::True | Aggregate::Unknown(_)) => all,
        (Aggregate::True, _) | (Aggregate::Unknown(_), Aggregate::False(_)) => one,
    })
}

/// A condition to write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reported {
    /// Its status.
    pub status: &'static str,
    /// Its reason.
    pub reason: &'static str,
    /// Its message.
    pub message: String,
}

/// An aggregate that must last before it counts. Keeps what it needs to know between two looks.
///
/// ```
/// use k8s_openapi::jiff::{SignedDuration, Timestamp};
/// use readiness::network::{Aggregate, HoldDown};
/// let at = |second| Timestamp::from_second(second).unwrap();
/// let mut network = HoldDown::new(SignedDuration::from_secs(30));
/// assert_eq!(network.observe(&Aggregate::True, at(0)).reason, "Stabilizing");
/// assert_eq!(network.observe(&Aggregate::True, at(30)).status, "True");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HoldDown {
    /// How long, in seconds.
    pub seconds: i64,
    /// Since when the aggregate is True.
    pub true_since: Option<Timestamp>,
    /// How often it was True and was no more.
    pub flaps: u32,
    /// Whether it has lasted: it then does until it ends, also if the clock is set back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_lasted: bool,
}

impl HoldDown {
    /// An aggregate that must last for a time; a part of a second counts as one.
    #[must_use]
    pub const fn new(time: SignedDuration) -> Self {
        let part = if time.subsec_nanos() > 0 { 1 } else { 0 };
        Self { seconds: time.as_secs().saturating_add(part), true_since: None, flaps: 0, has_lasted: false }
    }

    /// What to report now. A dip begins the time anew.
    pub fn observe(&mut self, aggregate: &Aggregate, now: Timestamp) -> Reported {
        let (name, what) = match aggregate {
            Aggregate::True => return self.observe_true(now),
            Aggregate::False(name) => (name, "is False"),
            Aggregate::Unknown(name) => (name, "is not known to be True"),
        };
        self.has_lasted = false;
        if self.true_since.take().is_some() {
            self.flaps = self.flaps.saturating_add(1);
        }
        let reason = if self.is_flapping() { "NetworkFlapping" } else { "NetworkNotReady" };
        Reported { status: aggregate.status(), reason, message: format!("{name} {what}{}", self.losses()) }
    }

    const fn is_flapping(&self) -> bool {
        self.flaps >= FLAPS_TO_TELL
    }

    fn losses(&self) -> String {
        if self.is_flapping() { format!("; it was lost {} times", self.flaps) } else { String::new() }
    }

    fn observe_true(&mut self, now: Timestamp) -> Reported {
        let suffix = self.losses();
        let since = self.true_since.map_or(now, |since| since.min(now));
        self.true_since = Some(since);
        let held = now.duration_since(since).as_secs();
        self.has_lasted |= held >= self.seconds;
        if self.has_lasted {
            let message = format!("all conditions are True{suffix}");
            return Reported { status: crate::condition::TRUE, reason: "NetworkReady", message };
        }
        let reason = if self.is_flapping() { "NetworkFlapping" } else { "Stabilizing" };
        let message = format!("True for {held} s of {}{suffix}", self.seconds);
        Reported { status: crate::condition::FALSE, reason, message }
    }
}

/// Which network a pod uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "hostNetwork is true or false")]
pub enum PodNetwork {
    /// The node's (`hostNetwork: true`).
    Host,
    /// The pod network.
    Pod,
}

/// Whether kubelet has run a pod before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "one or the other")]
pub enum PodAge {
    /// It was on the node before kubelet started.
    Existing,
    /// It is new.
    New,
}

/// What kubelet knows by itself: nothing here comes from the API server, which may be out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the input of one function, made in place")]
pub struct LocalNetwork {
    /// Since when the node is ready.
    pub ready_since: Option<Timestamp>,
    /// The network by local signals; None if no gate is about it.
    pub network: Option<Observation>,
    /// How long to wait after Ready.
    pub timeout: SignedDuration,
}

/// What kubelet does with a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admission {
    /// It starts the pod.
    Admit,
    /// It starts the pod and sets [`NETWORK_TIMEOUT`] to True: the network may not work.
    AdmitDegraded,
    /// It does not, for now.
    Reject {
        /// When pods that exist are started anyway.
        until: Option<Timestamp>,
    },
}

impl fmt::Display for Admission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admit => formatter.write_str("admitted"),
            Self::AdmitDegraded => write!(formatter, "admitted without a ready network: {NETWORK_TIMEOUT}"),
            Self::Reject { until: Some(until) } => write!(formatter, "the network is not ready, waiting until {until}"),
            Self::Reject { until: None } => formatter.write_str("the network is not ready"),
        }
    }
}

/// Whether kubelet would start a pod before the network is ready.
///
/// ```
/// use k8s_openapi::jiff::{SignedDuration, Timestamp};
/// use readiness::condition::Observation;
/// use readiness::network::{Admission, LocalNetwork, PodAge, PodNetwork, admission};
/// let at = |second| Timestamp::from_second(second).unwrap();
/// let local = LocalNetwork {
///     ready_since: Some(at(0)), network: Some(Observation::Missing), timeout: SignedDuration::from_secs(120),
/// };
/// assert_eq!(admission(local, PodNetwork::Host, PodAge::New, at(1)), Admission::Admit);
/// assert_eq!(admission(local, PodNetwork::Pod, PodAge::New, at(1)), Admission::Reject { until: Some(at(120)) });
/// assert_eq!(admission(local, PodNetwork::Pod, PodAge::Existing, at(120)), Admission::AdmitDegraded);
/// ```
#[must_use]
pub fn admission(local: LocalNetwork, network: PodNetwork, age: PodAge, now: Timestamp) -> Admission {
    let is_ready = local.network.is_none_or(|observation| observation == Observation::True);
    if network == PodNetwork::Host || is_ready {
        return Admission::Admit;
    }
    let until = local.ready_since.and_then(|since| since.checked_add(local.timeout).ok());
    let has_expired = until.is_some_and(|until| now >= until);
    match age {
        PodAge::Existing if has_expired => Admission::AdmitDegraded,
        _ => Admission::Reject { until },
    }
}
