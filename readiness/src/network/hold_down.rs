//! Hold-down of the aggregated network condition: it must stay True for some time before it is reported as True.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Aggregate;
use crate::reconcile::{STATE_VERSION, StoredStateError, check_version};

/// Number of changes of the aggregate from True to another status after which the reason `NetworkFlapping` is reported.
const FLAPS_TO_REPORT: u32 = 3;

/// Network condition to write: its status, reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkCondition {
    /// Status of the condition.
    pub status: &'static str,
    /// Reason of the condition.
    pub reason: &'static str,
    /// Message of the condition.
    pub message: String,
}

impl NetworkCondition {
    /// Type of the condition that combines all network gates of a node.
    pub const TYPE: &'static str = "node.kubernetes.io/NetworkReady";
}

/// Hold-down of an [`Aggregate`]: the aggregate is reported as True only after it has been True for a given time.
///
/// The JSON form is camelCase and begins with `"version": 1`. Another version is a [`StoredStateError`], also through serde.
///
/// ```
/// use k8s_openapi::jiff::{SignedDuration, Timestamp};
/// use readiness::network::{Aggregate, HoldDown};
/// let at = |second| Timestamp::from_second(second).unwrap();
/// let mut network = HoldDown::new(SignedDuration::from_secs(30));
/// assert_eq!(network.observe(&Aggregate::True, at(0)).reason, "Stabilizing");
/// assert_eq!(network.observe(&Aggregate::True, at(30)).status, "True");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldDown {
    /// Time for which the aggregate must stay True before it is reported as True, in seconds.
    seconds: i64,
    /// Time since which the aggregate has been True without interruption; `None` while it is not True.
    true_since: Option<Timestamp>,
    /// Number of times that the aggregate changed from True to another status.
    flaps: u32,
    /// True once the aggregate has been True for `seconds`, until it changes. Setting the clock back has no effect on
    /// it.
    has_lasted: bool,
}

impl HoldDown {
    /// Creates a hold-down: the aggregate must be True for `time`, rounded up to whole seconds, before it is reported
    /// as True.
    #[must_use]
    pub const fn new(time: SignedDuration) -> Self {
        let part = if time.subsec_nanos() > 0 { 1 } else { 0 };
        Self { seconds: time.as_secs().saturating_add(part), true_since: None, flaps: 0, has_lasted: false }
    }

    /// Parses the JSON form of a stored [`HoldDown`].
    ///
    /// # Errors
    /// A version that this release does not read, a missing version, or malformed JSON.
    pub fn from_json(text: &str) -> Result<Self, StoredStateError> {
        Self::from_value(serde_json::from_str(text)?)
    }

    fn from_value(tree: Value) -> Result<Self, StoredStateError> {
        check_version(&tree)?;
        let WireHoldDown { seconds, true_since, flaps, has_lasted, .. } = serde_json::from_value(tree)?;
        Ok(Self { seconds, true_since, flaps, has_lasted })
    }

    /// Records the aggregate at the time `now`, and returns the network condition to report. After a change away from
    /// True, the aggregate must again be True for that time.
    pub fn observe(&mut self, aggregate: &Aggregate, now: Timestamp) -> NetworkCondition {
        let (name, state) = match aggregate {
            Aggregate::True => return self.observe_true(now),
            Aggregate::False(name) => (name, "is False"),
            Aggregate::Unknown(name) => (name, "is not known to be True"),
        };
        self.has_lasted = false;
        if self.true_since.take().is_some() {
            self.flaps = self.flaps.saturating_add(1);
        }
        let reason = if self.is_flapping() { "NetworkFlapping" } else { "NetworkNotReady" };
        NetworkCondition { status: aggregate.status(), reason, message: format!("{name} {state}{}", self.losses()) }
    }

    /// Returns the time from which the aggregate is reported as True; `None` if it is already, or is not True.
    #[must_use]
    pub fn stable_from(&self, now: Timestamp) -> Option<Timestamp> {
        let end = self.true_since?.checked_add(SignedDuration::from_secs(self.seconds)).ok()?;
        (end > now).then_some(end)
    }

    /// Moves the time in the state by `shift`, by which the caller's clock was set forward (back if negative). See
    /// [`NodeState::shift_clock`](crate::NodeState::shift_clock).
    pub fn shift_clock(&mut self, shift: SignedDuration) {
        self.true_since = self.true_since.map(|since| since.checked_add(shift).unwrap_or(since));
    }

    const fn is_flapping(&self) -> bool {
        self.flaps >= FLAPS_TO_REPORT
    }

    fn losses(&self) -> String {
        if self.is_flapping() { format!("; it was lost {} times", self.flaps) } else { String::new() }
    }

    fn observe_true(&mut self, now: Timestamp) -> NetworkCondition {
        let suffix = self.losses();
        let since = self.true_since.map_or(now, |since| since.min(now));
        self.true_since = Some(since);
        let held = now.duration_since(since).as_secs();
        self.has_lasted |= held >= self.seconds;
        if self.has_lasted {
            let message = format!("all conditions are True{suffix}");
            return NetworkCondition { status: crate::condition::TRUE, reason: "NetworkReady", message };
        }
        let reason = if self.is_flapping() { "NetworkFlapping" } else { "Stabilizing" };
        let message = format!("True for {held} s of {}{suffix}", self.seconds);
        NetworkCondition { status: crate::condition::FALSE, reason, message }
    }
}

/// JSON form of [`HoldDown`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireHoldDown {
    version: u32,
    seconds: i64,
    true_since: Option<Timestamp>,
    flaps: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_lasted: bool,
}

impl Serialize for HoldDown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { seconds, true_since, flaps, has_lasted } = *self;
        WireHoldDown { version: STATE_VERSION, seconds, true_since, flaps, has_lasted }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HoldDown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
