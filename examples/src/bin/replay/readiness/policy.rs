//! Policies of `readiness.step`, in every spelling that the door documents.

use k8s_openapi::jiff::SignedDuration;
use readiness::{Policy, PolicyMode};
use serde::Deserialize;

/// Fields of a policy in snake case and camel case, with the earlier names of some. Missing fields are as in `kep`.
#[derive(Deserialize)]
#[serde(default = "PolicyFields::kep")]
pub(super) struct PolicyFields {
    #[serde(alias = "lateReport")]
    late_report: LateReport,
    #[serde(alias = "releaseWhen")]
    handoff: Handoff,
    #[serde(alias = "timeoutWrite")]
    timeout_write: TimeoutWrite,
    #[serde(alias = "rearm", alias = "rearmOnRegression")]
    rearm_on_regression: bool,
    #[serde(alias = "adoptExistingTaints")]
    adopt: bool,
    #[serde(alias = "preexistingTimeout")]
    leftover: Leftover,
    #[serde(alias = "coldStart")]
    cold_start: ColdStart,
    #[serde(alias = "labelPolicy")]
    label_policy: LabelPolicy,
    #[serde(with = "ModeName")]
    mode: PolicyMode,
    #[serde(alias = "maxWaitPerBoot")]
    max_wait_per_boot: Option<i64>,
    #[serde(alias = "maxHeartbeatAge")]
    max_heartbeat_age: Option<i64>,
    #[serde(alias = "holdDown")]
    hold_down: Option<i64>,
}

impl PolicyFields {
    fn kep() -> Self {
        Self {
            late_report: LateReport::default(),
            handoff: Handoff::default(),
            timeout_write: TimeoutWrite::default(),
            rearm_on_regression: false,
            adopt: false,
            leftover: Leftover::default(),
            cold_start: ColdStart::default(),
            label_policy: LabelPolicy::default(),
            mode: PolicyMode::Active,
            max_wait_per_boot: None,
            max_heartbeat_age: None,
            hold_down: None,
        }
    }
}

impl From<PolicyFields> for Policy {
    fn from(fields: PolicyFields) -> Self {
        let mut policy = Self::kep();
        policy.ignores_late_reports = fields.late_report == LateReport::Sticky;
        policy.waits_for_taint = fields.handoff == Handoff::AwaitTaint;
        policy.keeps_reported_false = fields.timeout_write == TimeoutWrite::WhenUnreported;
        policy.rearm_on_regression = fields.rearm_on_regression;
        policy.adopt_existing_taints = fields.adopt;
        policy.ignores_older_timeouts = fields.leftover == Leftover::Ignored;
        policy.starts_from_ready = fields.cold_start == ColdStart::FromReadyTransition;
        policy.removes_foreign_labels = fields.label_policy == LabelPolicy::Authoritative;
        policy.mode = fields.mode;
        policy.max_wait_per_boot = fields.max_wait_per_boot.map(SignedDuration::from_secs);
        policy.max_heartbeat_age = fields.max_heartbeat_age.map(SignedDuration::from_secs);
        policy.hold_down = fields.hold_down.map(SignedDuration::from_secs);
        policy
    }
}

/// Spellings of `lateReport`.
#[derive(Default, Deserialize, PartialEq)]
enum LateReport {
    #[default]
    #[serde(alias = "ownerWins", alias = "owner_wins")]
    OwnerWins,
    #[serde(alias = "sticky")]
    Sticky,
}

/// Spellings of `releaseWhen`.
#[derive(Default, Deserialize, PartialEq)]
enum Handoff {
    #[default]
    #[serde(alias = "immediate", alias = "timeoutWritten")]
    Immediate,
    #[serde(alias = "awaitTaint", alias = "await_taint", alias = "taintPresent")]
    AwaitTaint,
}

/// Spellings of `timeoutWrite`.
#[derive(Default, Deserialize, PartialEq)]
enum TimeoutWrite {
    #[default]
    #[serde(alias = "always")]
    Always,
    #[serde(alias = "whenUnreported", alias = "when_unreported")]
    WhenUnreported,
}

/// Spellings of `coldStart`.
#[derive(Default, Deserialize, PartialEq)]
enum ColdStart {
    #[default]
    #[serde(alias = "fromNow", alias = "from_now")]
    FromNow,
    #[serde(alias = "fromReadyTransition", alias = "from_ready_transition")]
    FromReadyTransition,
}

/// Spellings of `labelPolicy`.
#[derive(Default, Deserialize, PartialEq)]
enum LabelPolicy {
    #[default]
    #[serde(alias = "owned")]
    Owned,
    #[serde(alias = "authoritative")]
    Authoritative,
}

/// Spellings of `preexistingTimeout`.
#[derive(Default, Deserialize, PartialEq)]
enum Leftover {
    #[default]
    #[serde(alias = "counts")]
    Counts,
    #[serde(alias = "ignored")]
    Ignored,
}

/// Spellings of [`PolicyMode`].
#[derive(Deserialize)]
#[serde(remote = "PolicyMode")]
enum ModeName {
    #[serde(alias = "active")]
    Active,
    #[serde(alias = "suspended")]
    Suspended,
    #[serde(alias = "off")]
    Off,
}
