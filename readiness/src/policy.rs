//! Choices that the KEP leaves open, with two presets.

use k8s_openapi::jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// Effect of a report that the owner of a condition writes after the timeout was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum LateReport {
    /// The owner's report counts: any status but True blocks again.
    OwnerWins,
    /// The gate stays released until the owner reports True.
    Sticky,
}

/// Instant at which a gate with the action `Taint` is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ReleaseWhen {
    /// When the timeout is written. Until the taint is on the node, pods may be scheduled to it.
    TimeoutWritten,
    /// When the taint is on the node: no pod is scheduled between the timeout and its taint.
    TaintPresent,
}

/// Conditions that a timeout overwrites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum TimeoutWrite {
    /// Every condition that is not True.
    Always,
    /// Missing and Unknown conditions. A reported False is kept.
    WhenUnreported,
}

/// Start of timers for an evaluator without state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ColdStart {
    /// Now: a timer never fires too early.
    FromNow,
    /// The last transition of Ready, if that is in the past.
    FromReadyTransition,
}

/// Labels that the reconciler removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum LabelPolicy {
    /// Labels that the state records as set by the reconciler.
    Owned,
    /// Every label with the prefix `readiness-gate.` that has no gate.
    Authoritative,
}

/// Effect of a condition `TimeoutExceeded` that was observed before its gate was added, such as after a gate was removed
/// and added again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PreexistingTimeout {
    /// Releases the gate.
    Counts,
    /// Counts as a missing condition.
    Ignored,
}

/// Mode of the feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PolicyMode {
    /// Gates are evaluated, and writes are requested.
    Active,
    /// Gates are evaluated and timers run, but nothing is written.
    Suspended,
    /// The feature is off: owned taints and labels are removed once, and gates block nothing.
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
    /// Effect of reports after a timeout.
    pub late_report: LateReport,
    /// Instant at which a gate with the action `Taint` is released.
    pub release_when: ReleaseWhen,
    /// Conditions that a timeout overwrites.
    pub timeout_write: TimeoutWrite,
    /// Starts a new timer when a condition regresses from True.
    pub rearm_on_regression: bool,
    /// Takes ownership of a taint that another component added, so that it is removed when its gate is True. Not for a
    /// taint that was observed before a gate had it.
    pub adopt_existing_taints: bool,
    /// Effect of a `TimeoutExceeded` from before its gate was added.
    pub preexisting_timeout: PreexistingTimeout,
    /// Start of timers without state.
    pub cold_start: ColdStart,
    /// Labels that are removed.
    pub label_policy: LabelPolicy,
    /// Mode of the feature.
    pub mode: PolicyMode,
    /// Upper bound of the wait in one boot, for kubelets that restart again and again. Zero or less means no bound.
    #[serde(with = "seconds")]
    pub max_wait_per_boot: Option<SignedDuration>,
    /// Age of the last heartbeat from which True does not count any more. Zero or less means no limit.
    #[serde(with = "seconds")]
    pub max_heartbeat_age: Option<SignedDuration>,
    /// Time for which a condition must be True before it counts. Zero or less means at once.
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

    /// Returns the settings for a real cluster: a timeout releases the gate also while the agent reports failure, a gate is
    /// released only after its timeout taint is on the node, and a reported False is not overwritten.
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
