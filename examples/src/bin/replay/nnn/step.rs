//! Steps of `nnn.run`: the events that a tracker gets, as they are written.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use nnn::{BindingClaim, CycleOutcome, FailedStage, NominatingInfo, PodSnapshot};
use serde::Deserialize;

use super::policy::Policy;
use super::table::{OutcomeName, PreFlightInput, info};
use crate::refusal::Refusal;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Pod(Box<Pod>),
    PodDeleted(PodStep),
    Node(NodeStep),
    NodeDeleted(NodeStep),
    CycleFailed(CycleFailedStep),
    MemberFailed(MemberFailedStep),
    CycleSucceeded(CycleSucceededStep),
    BindingFailed(BindingFailedStep),
    PermitGranted(PodStep),
    Bound(PodStep),
    PatchAnswered(PatchAnsweredStep),
    Restart(RestartStep),
}

#[derive(Deserialize)]
pub(super) struct PodStep {
    pub(super) pod: String,
}

#[derive(Deserialize)]
pub(super) struct NodeStep {
    pub(super) name: String,
}

fn unschedulable() -> String {
    "Unschedulable".to_owned()
}

#[derive(Deserialize)]
pub(super) struct CycleFailedStep {
    pub(super) pod: String,
    outcome: OutcomeName,
    #[serde(default)]
    node: String,
    #[serde(default = "unschedulable")]
    pub(super) reason: String,
    #[serde(default)]
    pub(super) message: String,
}

#[derive(Deserialize)]
pub(super) struct MemberFailedStep {
    pub(super) pod: String,
    mode: u8,
    #[serde(default)]
    node: String,
    #[serde(default = "unschedulable")]
    pub(super) reason: String,
    #[serde(default)]
    pub(super) message: String,
}

#[derive(Deserialize)]
pub(super) struct CycleSucceededStep {
    pub(super) pod: String,
    node: String,
    #[serde(default)]
    pub(super) preflight: Vec<PreFlightInput>,
    #[serde(default)]
    pub(super) waiting: bool,
    #[serde(default)]
    pub(super) claims: Vec<ClaimInput>,
}

#[derive(Deserialize)]
pub(super) struct ClaimInput {
    uid: String,
    #[serde(default)]
    allocated: bool,
    #[serde(default)]
    shared: bool,
}

#[derive(Deserialize)]
pub(super) struct BindingFailedStep {
    pub(super) pod: String,
    pub(super) stage: FailedStage,
    #[serde(default = "unschedulable")]
    pub(super) reason: String,
    #[serde(default)]
    pub(super) message: String,
}

#[derive(Deserialize)]
pub(super) struct PatchAnsweredStep {
    pub(super) pod: String,
    resource_version: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct RestartStep {
    #[serde(default, deserialize_with = "crate::settings::optional_gates")]
    pub(super) gates: Option<BTreeMap<String, bool>>,
    pub(super) policy: Option<Policy>,
}

impl Step {
    /// Checks what the types leave open, and that the pods of the step were shown before it.
    pub(super) fn check<'s>(&'s self, shown: &mut BTreeSet<&'s str>) -> Result<(), Refusal> {
        let is_shown = |name: &str, uid: &str| {
            let unknown = || Refusal::field(&format!("{name}.pod"), format!("no pod with UID {uid:?} was shown"));
            if shown.contains(uid) { Ok(()) } else { Err(unknown()) }
        };
        match self {
            Self::Pod(pod) => {
                PodSnapshot::from_pod(pod).map_err(|error| Refusal::field("pod", error.to_string()))?;
                shown.extend(pod.metadata.uid.as_deref());
                Ok(())
            }
            Self::CycleFailed(step) => is_shown("cycle_failed", &step.pod).and_then(|()| step.outcome().map(|_| ())),
            Self::MemberFailed(step) => is_shown("member_failed", &step.pod).and_then(|()| step.info().map(|_| ())),
            Self::CycleSucceeded(step) => is_shown("cycle_succeeded", &step.pod).and_then(|()| step.node().map(|_| ())),
            Self::BindingFailed(step) => is_shown("binding_failed", &step.pod),
            Self::PermitGranted(step) => is_shown("permit_granted", &step.pod),
            Self::Bound(step) => is_shown("bound", &step.pod),
            Self::PatchAnswered(step) => step.version().map(|_| ()),
            Self::PodDeleted(_) | Self::Node(_) | Self::NodeDeleted(_) | Self::Restart(_) => Ok(()),
        }
    }
}

impl MemberFailedStep {
    pub(super) fn info(&self) -> Result<NominatingInfo, Refusal> {
        info(self.mode, &self.node).map_err(|refusal| refusal.below("member_failed"))
    }
}

impl PatchAnsweredStep {
    pub(super) fn version(&self) -> Result<Option<u64>, Refusal> {
        let version = self.resource_version.as_deref().map(str::parse).transpose();
        version.map_err(|_| Refusal::field("patch_answered.resource_version", "not a number"))
    }
}

impl CycleFailedStep {
    pub(super) fn outcome(&self) -> Result<CycleOutcome, Refusal> {
        match self.outcome.on(&self.node) {
            CycleOutcome::Scheduled { .. } => Err(Refusal::field("cycle_failed.outcome", "that is no failure")),
            outcome => Ok(outcome),
        }
    }
}

impl CycleSucceededStep {
    pub(super) fn node(&self) -> Result<&str, Refusal> {
        let missing = || Refusal::field("cycle_succeeded.node", "must be set");
        Some(self.node.as_str()).filter(|node| !node.is_empty()).ok_or_else(missing)
    }
}

impl ClaimInput {
    pub(super) fn state(&self) -> BindingClaim {
        match (self.allocated, self.shared) {
            (_, true) => BindingClaim::Shared(self.uid.clone()),
            (true, false) => BindingClaim::Allocated,
            (false, false) => BindingClaim::Chosen(self.uid.clone()),
        }
    }
}
