//! What the KEP leaves open, as settings with two presets.

use k8s_openapi::jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// A report of the owner after a timeout was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LateReport {
    /// What the owner says counts: anything but True blocks again.
    #[default]
    #[serde(alias = "ownerWins", alias = "owner_wins")]
    OwnerWins,
    /// The release stays until the owner says True.
    #[serde(alias = "sticky")]
    Sticky,
}

/// When a gate with action `Taint` counts as released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Handoff {
    /// As soon as the timeout is written. Until the taint is there, nothing keeps pods away.
    #[default]
    #[serde(alias = "immediate")]
    Immediate,
    /// When the taint is on the node.
    #[serde(alias = "awaitTaint", alias = "await_taint")]
    AwaitTaint,
}

/// Which conditions a timeout overwrites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TimeoutWrite {
    /// Whatever is not True.
    #[default]
    #[serde(alias = "always")]
    Always,
    /// Missing and Unknown ones: an explicit False is left to its owner.
    #[serde(alias = "whenUnreported", alias = "when_unreported")]
    WhenUnreported,
}

/// Where timers begin when the evaluator has no state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ColdStart {
    /// Now: a timer never fires too early.
    #[default]
    #[serde(alias = "fromNow", alias = "from_now")]
    FromNow,
    /// When Ready became True, if that is in the past.
    #[serde(alias = "fromReadyTransition", alias = "from_ready_transition")]
    FromReadyTransition,
}

/// Which labels are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LabelPolicy {
    /// Those that the state records as set by us.
    #[default]
    #[serde(alias = "owned")]
    Owned,
    /// Every label with the prefix that has no gate.
    #[serde(alias = "authoritative")]
    Authoritative,
}

/// A condition `TimeoutExceeded` that was seen before its gate: left over from a gate that was removed and added again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Leftover {
    /// It releases the gate.
    #[default]
    #[serde(alias = "counts")]
    Counts,
    /// It is as good as a missing condition.
    #[serde(alias = "ignored")]
    Ignored,
}

/// Whether gates are in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Mode {
    /// They are.
    #[default]
    #[serde(alias = "active")]
    Active,
    /// Verdicts and timers go on, nothing is written.
    #[serde(alias = "suspended")]
    Suspended,
    /// The feature is off: what we added is removed once, and gates block nothing.
    #[serde(alias = "off")]
    Off,
}

/// All settings of [`crate::reconcile::step`]. Begin with a preset and change what is needed.
///
/// ```
/// use readiness::policy::{Handoff, Policy};
/// let mut policy = Policy::kep();
/// assert_eq!(policy.handoff, Handoff::Immediate);
/// policy.handoff = Handoff::AwaitTaint;
/// // In JSON, what is not named is as in `kep`, and unknown names are ignored; times are seconds.
/// let read: Policy = serde_json::from_str(r#"{"handoff": "AwaitTaint"}"#)?;
/// assert_eq!(read, policy);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Policy {
    /// Reports after a timeout.
    #[serde(alias = "lateReport")]
    pub late_report: LateReport,
    /// When a taint takes over.
    pub handoff: Handoff,
    /// What a timeout overwrites.
    #[serde(alias = "timeoutWrite")]
    pub timeout_write: TimeoutWrite,
    /// Whether a condition that was True and is no more starts a timer of its own.
    #[serde(alias = "rearm", alias = "rearmOnRegression")]
    pub rearm_on_regression: bool,
    /// Whether a taint that another put counts as ours, and goes when its gate is True. Not so one that was seen on the node
    /// before a gate had it.
    pub adopt: bool,
    /// A `TimeoutExceeded` from before its gate.
    pub leftover: Leftover,
    /// Timers without a state.
    #[serde(alias = "coldStart")]
    pub cold_start: ColdStart,
    /// Which labels are removed.
    #[serde(alias = "labelPolicy")]
    pub label_policy: LabelPolicy,
    /// Whether gates are in force.
    pub mode: Mode,
    /// An upper bound of the wait in one boot, for kubelets that restart for ever. One that is not positive is none, as
    /// for timeouts.
    #[serde(with = "seconds", alias = "maxWaitPerBoot")]
    pub max_wait_per_boot: Option<SignedDuration>,
    /// Age of the last heartbeat from which True counts no more. One that is not positive is none.
    #[serde(with = "seconds", alias = "maxHeartbeatAge")]
    pub max_heartbeat_age: Option<SignedDuration>,
    /// How long a condition must be True before it counts. One that is not positive is none.
    #[serde(with = "seconds", alias = "holdDown")]
    pub hold_down: Option<SignedDuration>,
}

impl Policy {
    /// The text of the KEP, literally.
    #[must_use]
    pub const fn kep() -> Self {
        Self {
            late_report: LateReport::OwnerWins,
            handoff: Handoff::Immediate,
            timeout_write: TimeoutWrite::Always,
            rearm_on_regression: false,
            adopt: false,
            leftover: Leftover::Counts,
            cold_start: ColdStart::FromNow,
            label_policy: LabelPolicy::Owned,
            mode: Mode::Active,
            max_wait_per_boot: None,
            max_heartbeat_age: None,
            hold_down: None,
        }
    }

    /// What a cluster can rely on: a timeout protects from a lock-out also when the agent reports failure, and no pod
    /// comes between the gate and its taint.
    #[must_use]
    pub const fn hardened() -> Self {
        Self {
            late_report: LateReport::Sticky,
            handoff: Handoff::AwaitTaint,
            timeout_write: TimeoutWrite::WhenUnreported,
            adopt: true,
            leftover: Leftover::Ignored,
            ..Self::kep()
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::kep()
    }
}

mod seconds {
    //! A duration as a number of seconds.

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
