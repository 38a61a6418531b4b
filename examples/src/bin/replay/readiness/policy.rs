//! Policies of `readiness.step`, in every spelling that the door documents.

use k8s_openapi::jiff::SignedDuration;
use readiness::{
    ColdStart, LabelPolicy, LateReport, Policy, PolicyMode, PreexistingTimeout, ReleaseWhen, TimeoutWrite,
};
use serde::Deserialize;

/// Fields of a policy in snake case and camel case, with the earlier names of some. Missing fields are as in `kep`.
#[derive(Deserialize)]
#[serde(default = "PolicyFields::kep")]
pub(super) struct PolicyFields {
    #[serde(alias = "lateReport", with = "LateReportName")]
    late_report: LateReport,
    #[serde(alias = "releaseWhen", with = "ReleaseWhenName")]
    handoff: ReleaseWhen,
    #[serde(alias = "timeoutWrite", with = "TimeoutWriteName")]
    timeout_write: TimeoutWrite,
    #[serde(alias = "rearm", alias = "rearmOnRegression")]
    rearm_on_regression: bool,
    #[serde(alias = "adoptExistingTaints")]
    adopt: bool,
    #[serde(alias = "preexistingTimeout", with = "PreexistingTimeoutName")]
    leftover: PreexistingTimeout,
    #[serde(alias = "coldStart", with = "ColdStartName")]
    cold_start: ColdStart,
    #[serde(alias = "labelPolicy", with = "LabelPolicyName")]
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
        let kep = Policy::kep();
        Self {
            late_report: kep.late_report,
            handoff: kep.release_when,
            timeout_write: kep.timeout_write,
            rearm_on_regression: kep.rearm_on_regression,
            adopt: kep.adopt_existing_taints,
            leftover: kep.preexisting_timeout,
            cold_start: kep.cold_start,
            label_policy: kep.label_policy,
            mode: kep.mode,
            max_wait_per_boot: None,
            max_heartbeat_age: None,
            hold_down: None,
        }
    }
}

impl From<PolicyFields> for Policy {
    fn from(fields: PolicyFields) -> Self {
        let mut policy = Self::kep();
        policy.late_report = fields.late_report;
        policy.release_when = fields.handoff;
        policy.timeout_write = fields.timeout_write;
        policy.rearm_on_regression = fields.rearm_on_regression;
        policy.adopt_existing_taints = fields.adopt;
        policy.preexisting_timeout = fields.leftover;
        policy.cold_start = fields.cold_start;
        policy.label_policy = fields.label_policy;
        policy.mode = fields.mode;
        policy.max_wait_per_boot = fields.max_wait_per_boot.map(SignedDuration::from_secs);
        policy.max_heartbeat_age = fields.max_heartbeat_age.map(SignedDuration::from_secs);
        policy.hold_down = fields.hold_down.map(SignedDuration::from_secs);
        policy
    }
}

/// Spellings of [`LateReport`].
#[derive(Deserialize)]
#[serde(remote = "LateReport")]
enum LateReportName {
    #[serde(alias = "ownerWins", alias = "owner_wins")]
    OwnerWins,
    #[serde(alias = "sticky")]
    Sticky,
}

/// Spellings of [`ReleaseWhen`].
#[derive(Deserialize)]
#[serde(remote = "ReleaseWhen")]
enum ReleaseWhenName {
    #[serde(rename = "Immediate", alias = "immediate", alias = "timeoutWritten")]
    TimeoutWritten,
    #[serde(rename = "AwaitTaint", alias = "awaitTaint", alias = "await_taint", alias = "taintPresent")]
    TaintPresent,
}

/// Spellings of [`TimeoutWrite`].
#[derive(Deserialize)]
#[serde(remote = "TimeoutWrite")]
enum TimeoutWriteName {
    #[serde(alias = "always")]
    Always,
    #[serde(alias = "whenUnreported", alias = "when_unreported")]
    WhenUnreported,
}

/// Spellings of [`ColdStart`].
#[derive(Deserialize)]
#[serde(remote = "ColdStart")]
enum ColdStartName {
    #[serde(alias = "fromNow", alias = "from_now")]
    FromNow,
    #[serde(alias = "fromReadyTransition", alias = "from_ready_transition")]
    FromReadyTransition,
}

/// Spellings of [`LabelPolicy`].
#[derive(Deserialize)]
#[serde(remote = "LabelPolicy")]
enum LabelPolicyName {
    #[serde(alias = "owned")]
    Owned,
    #[serde(alias = "authoritative")]
    Authoritative,
}

/// Spellings of [`PreexistingTimeout`].
#[derive(Deserialize)]
#[serde(remote = "PreexistingTimeout")]
enum PreexistingTimeoutName {
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
