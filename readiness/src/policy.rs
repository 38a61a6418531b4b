//! Policy of the reconciler: the choices that KEP-5233 leaves open, with two presets.

use k8s_openapi::jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// Effect of an agent's report that arrives after its gate has timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum LateReport {
    /// The report replaces the timeout: if its status is False or Unknown, the gate blocks pods again.
    OwnerWins,
    /// A report of False or Unknown has no effect: the timed-out gate still does not block pods.
    Sticky,
}

/// Moment at which a timed-out gate with the action `Taint` stops blocking pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ReleaseWhen {
    /// The gate stops blocking pods when its condition is set to `TimeoutExceeded`. Pods may be scheduled before the
    /// taint is on the node.
    TimeoutWritten,
    /// After its timeout, the gate keeps blocking pods until its taint is on the node, so that no pod is scheduled in
    /// between.
    TaintPresent,
}

/// Conditions that are overwritten with `TimeoutExceeded` when their gate times out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum TimeoutWrite {
    /// The timeout overwrites every condition that is not True.
    Always,
    /// The timeout overwrites missing and Unknown conditions. A False that an agent reported stays.
    WhenUnreported,
}

/// Start time of gates' timeouts when the reconciler starts without stored state. Such a start does not know whether the
/// node has booted in between; see [`NodeState`](crate::NodeState).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ColdStart {
    /// Timeouts start now, so that none ends too early.
    FromNow,
    /// Timeouts start at the last transition of the node's Ready, or now if that is missing or in the future.
    FromReadyTransition,
}

/// Gate labels that the reconciler may remove from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum LabelPolicy {
    /// The reconciler removes only labels that it set, as recorded in [`NodeState`](crate::NodeState).
    Owned,
    /// The reconciler removes every label with the prefix `readiness-gate.` for which the node has no gate.
    Authoritative,
}

/// Effect of a `TimeoutExceeded` condition that is older than its gate, for example because the gate was removed and
/// added again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PreexistingTimeout {
    /// The gate counts as timed out and does not block pods.
    Counts,
    /// The condition counts as missing, so that the gate waits for its own timeout.
    Ignored,
}

/// Mode of the readiness gates: active, without writes, or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PolicyMode {
    /// Gates are evaluated, and writes are requested.
    Active,
    /// Gates are evaluated and timers run, but nothing is written.
    Suspended,
    /// Readiness gates are switched off: they block no pods, and the taints and labels that the reconciler set are
    /// removed once.
    Off,
}

/// Settings of [`step`](crate::step()). Take a preset and change single fields.
///
/// There is no default: the caller chooses [`Policy::kep`] or [`Policy::hardened`].
///
/// In JSON, missing fields are as in `kep`, unknown fields are errors, and times are seconds:
///
/// ```
/// use readiness::{Policy, ReleaseWhen};
/// let mut policy = Policy::kep();
/// assert_eq!(policy.release_when, ReleaseWhen::TimeoutWritten);
/// policy.release_when = ReleaseWhen::TaintPresent;
/// let read: Policy = serde_json::from_str(r#"{"releaseWhen": "taintPresent"}"#)?;
/// assert_eq!(read, policy);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default = "Policy::kep", rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Policy {
    /// Effect of an agent's report that arrives after its gate has timed out.
    pub late_report: LateReport,
    /// Moment at which a timed-out gate with the action `Taint` stops blocking pods.
    pub release_when: ReleaseWhen,
    /// Conditions that are overwritten with `TimeoutExceeded` when their gate times out.
    pub timeout_write: TimeoutWrite,
    /// True if a gate gets a new timeout when its condition changes from True to another status.
    pub rearm_on_regression: bool,
    /// True if a gate's taint that another component added is treated as the reconciler's own, and removed when the
    /// gate is True. Does not apply to taints that were on the node before the gate was added.
    pub adopt_existing_taints: bool,
    /// Effect of a `TimeoutExceeded` condition that is older than its gate.
    pub preexisting_timeout: PreexistingTimeout,
    /// Start time of gates' timeouts when there is no stored state.
    pub cold_start: ColdStart,
    /// Gate labels that the reconciler may remove.
    pub label_policy: LabelPolicy,
    /// Mode of the readiness gates: active, without writes, or off.
    pub mode: PolicyMode,
    /// Longest time for which a gate waits in one boot, even if restarts of kubelet reset its timeout. Zero or less
    /// means no limit.
    #[serde(with = "seconds")]
    pub max_wait_per_boot: Option<SignedDuration>,
    /// Age of `lastHeartbeatTime` from which a True condition does not satisfy its gate any more. Zero or less means no
    /// limit.
    #[serde(with = "seconds")]
    pub max_heartbeat_age: Option<SignedDuration>,
    /// Time for which a condition must stay True before it satisfies its gate. Zero or less means at once.
    #[serde(with = "seconds")]
    pub hold_down: Option<SignedDuration>,
}

impl Policy {
    /// Returns the policy that follows the text of the KEP literally.
    #[must_use]
    pub const fn kep() -> Self {
        Self {
            late_report: LateReport::OwnerWins,
            release_when: ReleaseWhen::TimeoutWritten,
            timeout_write: TimeoutWrite::Always,
            rearm_on_regression: false,
            adopt_existing_taints: false,
            preexisting_timeout: PreexistingTimeout::Counts,
            cold_start: ColdStart::FromNow,
            label_policy: LabelPolicy::Owned,
            mode: PolicyMode::Active,
            max_wait_per_boot: None,
            max_heartbeat_age: None,
            hold_down: None,
        }
    }

    /// Returns the policy for a real cluster: late reports of False have no effect, a timed-out gate blocks pods until
    /// its taint is on the node, and a reported False is not overwritten.
    #[must_use]
    pub const fn hardened() -> Self {
        Self {
            late_report: LateReport::Sticky,
            release_when: ReleaseWhen::TaintPresent,
            timeout_write: TimeoutWrite::WhenUnreported,
            adopt_existing_taints: true,
            preexisting_timeout: PreexistingTimeout::Ignored,
            ..Self::kep()
        }
    }
}

mod seconds {
    //! Durations as numbers of seconds.

    use k8s_openapi::jiff::SignedDuration;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer>(time: &Option<SignedDuration>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(|time| time.as_secs()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SignedDuration>, D::Error> {
        Ok(Option::<i64>::deserialize(deserializer)?.map(SignedDuration::from_secs))
    }
}
