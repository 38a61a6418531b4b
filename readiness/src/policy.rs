//! Policy of the reconciler: the choices that KEP-5233 leaves open, with two presets.

use k8s_openapi::jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::words::{ColdStart, LabelPolicy, LateReport, PreexistingTimeout, ReleaseWhen, TimeoutWrite, Words};

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
/// use readiness::Policy;
/// let mut policy = Policy::kep();
/// assert!(!policy.waits_for_taint);
/// policy.waits_for_taint = true;
/// let read: Policy = serde_json::from_str(r#"{"releaseWhen": "taintPresent"}"#)?;
/// assert_eq!(read, policy);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default = "Policy::kep", rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice that the KEP leaves open")]
#[non_exhaustive]
pub struct Policy {
    /// True if a report of False or Unknown has no effect after its gate has timed out: the gate still does not block
    /// pods. Otherwise the report replaces the timeout, and the gate blocks pods again. In JSON `lateReport`, `sticky` or
    /// `ownerWins`.
    #[serde(rename = "lateReport", with = "Words::<LateReport>")]
    pub ignores_late_reports: bool,
    /// True if a timed-out gate with the action `Taint` keeps blocking pods until its taint is on the node, so that no pod
    /// is scheduled in between. Otherwise it stops when its condition is set to `TimeoutExceeded`. In JSON `releaseWhen`,
    /// `taintPresent` or `timeoutWritten`.
    #[serde(rename = "releaseWhen", with = "Words::<ReleaseWhen>")]
    pub waits_for_taint: bool,
    /// True if a timeout overwrites missing and Unknown conditions alone, so that a False that an agent reported stays.
    /// Otherwise it overwrites every condition that is not True. In JSON `timeoutWrite`, `whenUnreported` or `always`.
    #[serde(rename = "timeoutWrite", with = "Words::<TimeoutWrite>")]
    pub keeps_reported_false: bool,
    /// True if a gate gets a new timeout when its condition changes from True to another status.
    pub rearm_on_regression: bool,
    /// True if a gate's taint that another component added is treated as the reconciler's own, and removed when the
    /// gate is True. Does not apply to taints that were on the node before the gate was added.
    pub adopt_existing_taints: bool,
    /// True if a `TimeoutExceeded` condition that is older than its gate, for example because the gate was removed and
    /// added again, counts as missing, so that the gate waits for its own timeout. Otherwise the gate counts as timed out
    /// and does not block pods. In JSON `preexistingTimeout`, `ignored` or `counts`.
    #[serde(rename = "preexistingTimeout", with = "Words::<PreexistingTimeout>")]
    pub ignores_older_timeouts: bool,
    /// True if timeouts start at the last transition of the node's Ready when the reconciler starts without stored state,
    /// or now if that is missing or in the future. Otherwise they start now, so that none ends too early. Such a start does
    /// not know whether the node has booted in between; see [`NodeState`](crate::NodeState). In JSON `coldStart`,
    /// `fromReadyTransition` or `fromNow`.
    #[serde(rename = "coldStart", with = "Words::<ColdStart>")]
    pub starts_from_ready: bool,
    /// True if the reconciler removes every label with the prefix `readiness-gate.` for which the node has no gate.
    /// Otherwise it removes only labels that it set, as recorded in [`NodeState`](crate::NodeState). In JSON `labelPolicy`,
    /// `authoritative` or `owned`.
    #[serde(rename = "labelPolicy", with = "Words::<LabelPolicy>")]
    pub removes_foreign_labels: bool,
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
            ignores_late_reports: false,
            waits_for_taint: false,
            keeps_reported_false: false,
            rearm_on_regression: false,
            adopt_existing_taints: false,
            ignores_older_timeouts: false,
            starts_from_ready: false,
            removes_foreign_labels: false,
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
            ignores_late_reports: true,
            waits_for_taint: true,
            keeps_reported_false: true,
            adopt_existing_taints: true,
            ignores_older_timeouts: true,
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
