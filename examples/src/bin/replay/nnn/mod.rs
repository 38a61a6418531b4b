//! Operations of the crate `nnn`: one tracker through its events, and single decision tables.

pub(super) mod table;

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{Component, GateSet, Profile};
use k8s_openapi::api::core::v1::Pod;
use nnn::external::ClearingPolicy;
use nnn::{
    Assumed, Behavior, BindingClaim, CycleOutcome, FailedStage, NominatingInfo, NominationOptions, NominationTracker,
    PodSnapshot, ScheduledCondition, TrackerInput, TrackerOutput,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::table::{OutcomeName, PreFlightInput, info, pre_flights};
use super::refusal::{Refusal, read};
use super::settings::Settings;
use super::steps::{States, StepOperation, StepWriter};
use super::stopwatch::Stopwatch;

#[derive(Deserialize)]
struct RunInput {
    #[serde(default = "crate::operation::kep")]
    profile: Profile,
    #[serde(default, deserialize_with = "crate::settings::gates")]
    gates: BTreeMap<String, bool>,
    #[serde(default)]
    policy: Policy,
    #[serde(default)]
    state: States,
    #[serde(default)]
    steps: Vec<Step>,
}

/// A behavior by its name, or with a rule for the nominations of pods that fit no node.
type Policy = Settings<PolicyName, Changes>;

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PolicyName {
    #[default]
    Safe,
    Upstream,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Changes {
    #[serde(default)]
    base: PolicyName,
    #[serde(default)]
    clearing: ClearingPolicy,
}

impl PolicyName {
    fn behavior(self) -> Behavior {
        match self {
            Self::Safe => Behavior::Safe,
            Self::Upstream => Behavior::KubeScheduler,
        }
    }
}

impl Policy {
    fn options(&self, profile: Profile, gates: GateSet) -> NominationOptions {
        let (name, clearing) = match self {
            Self::Named(name) => (name, ClearingPolicy::default()),
            Self::Changed(changes) => (&changes.base, changes.clearing),
        };
        NominationOptions::new(Component::new(profile, gates), name.behavior()).with_clearing(clearing)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
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
struct PodStep {
    pod: String,
}

#[derive(Deserialize)]
struct NodeStep {
    name: String,
}

fn unschedulable() -> String {
    "Unschedulable".to_owned()
}

#[derive(Deserialize)]
struct CycleFailedStep {
    pod: String,
    outcome: OutcomeName,
    #[serde(default)]
    node: String,
    #[serde(default = "unschedulable")]
    reason: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct MemberFailedStep {
    pod: String,
    mode: u8,
    #[serde(default)]
    node: String,
    #[serde(default = "unschedulable")]
    reason: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct CycleSucceededStep {
    pod: String,
    node: String,
    #[serde(default)]
    preflight: Vec<PreFlightInput>,
    #[serde(default)]
    waiting: bool,
    #[serde(default)]
    claims: Vec<ClaimInput>,
}

#[derive(Deserialize)]
struct ClaimInput {
    uid: String,
    #[serde(default)]
    allocated: bool,
    #[serde(default)]
    shared: bool,
}

#[derive(Deserialize)]
struct BindingFailedStep {
    pod: String,
    stage: FailedStage,
    #[serde(default = "unschedulable")]
    reason: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct PatchAnsweredStep {
    pod: String,
    resource_version: Option<String>,
}

#[derive(Deserialize)]
struct RestartStep {
    #[serde(default, deserialize_with = "crate::settings::optional_gates")]
    gates: Option<BTreeMap<String, bool>>,
    policy: Option<Policy>,
}

pub(super) fn run(input: Value) -> Result<StepOperation, Refusal> {
    let input: RunInput = read(input)?;
    let mut shown = BTreeSet::new();
    for (index, step) in input.steps.iter().enumerate() {
        step.check(&mut shown).map_err(|refusal| refusal.below(&format!("steps[{index}]")))?;
    }
    Ok(Box::new(move |stopwatch: &mut Stopwatch, steps: &mut StepWriter<'_>| {
        let mut player = Player::new(&input);
        for (index, step) in input.steps.iter().enumerate() {
            let output = stopwatch.run(|| player.play(step));
            if steps.is_asked() {
                steps.write(&player.shown(output, input.state.has(index, input.steps.len())))?;
            }
        }
        Ok(())
    }))
}

impl Step {
    /// Checks what the types leave open, and that the pods of the step were shown before it.
    fn check<'s>(&'s self, shown: &mut BTreeSet<&'s str>) -> Result<(), Refusal> {
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

/// Player of the events of one scheduler.
struct Player {
    tracker: NominationTracker,
    /// Every pod that the watch has shown, by UID: as last shown without a node, if it was ever shown so.
    pods: BTreeMap<String, PodSnapshot>,
}

impl Player {
    fn new(input: &RunInput) -> Self {
        let options = input.policy.options(input.profile, gates(&input.gates));
        Self { tracker: NominationTracker::new(options), pods: BTreeMap::new() }
    }

    /// Plays a step. An error is a value of the answer.
    fn play(&mut self, step: &Step) -> Result<TrackerOutput, Value> {
        if let Step::Restart(step) = step {
            self.restart(step);
            return Ok(TrackerOutput::default());
        }
        let event = self.event(step).map_err(|refusal| json!(refusal))?;
        let output = self.tracker.handle(event);
        output.map_err(|error| json!({"kind": "IllegalTransition", "message": error.to_string()}))
    }

    fn event(&mut self, step: &Step) -> Result<TrackerInput, Refusal> {
        Ok(match step {
            Step::Pod(pod) => {
                let pod = PodSnapshot::from_pod(pod).map_err(|error| Refusal::field("pod", error.to_string()))?;
                if pod.node.is_none() || !self.pods.contains_key(&pod.key.uid) {
                    self.pods.insert(pod.key.uid.clone(), pod.clone());
                }
                TrackerInput::PodObserved(pod)
            }
            Step::PodDeleted(step) => TrackerInput::PodDeleted { uid: step.pod.clone() },
            Step::Node(step) => TrackerInput::NodeObserved { node: step.name.clone() },
            Step::NodeDeleted(step) => TrackerInput::NodeDeleted { node: step.name.clone() },
            Step::CycleFailed(step) => TrackerInput::CycleFailed {
                queued_pod: self.queued_pod("cycle_failed", &step.pod)?.clone(),
                outcome: step.outcome()?,
                condition: ScheduledCondition::failed(&step.reason, &step.message),
            },
            Step::MemberFailed(step) => TrackerInput::MemberFailed {
                queued_pod: self.queued_pod("member_failed", &step.pod)?.clone(),
                info: step.info()?,
                condition: ScheduledCondition::failed(&step.reason, &step.message),
            },
            Step::CycleSucceeded(step) => {
                let assumed = Assumed::new(&self.queued_pod("cycle_succeeded", &step.pod)?.key, step.node()?);
                let claims = step.claims.iter().map(ClaimInput::state).collect();
                let mut assumed = assumed.with_pre_flights(pre_flights(&step.preflight)).with_claims(claims);
                assumed.waits_on_permit = step.waiting;
                TrackerInput::CycleSucceeded(assumed)
            }
            Step::BindingFailed(step) => TrackerInput::BindingFailed {
                queued_pod: self.queued_pod("binding_failed", &step.pod)?.clone(),
                stage: step.stage,
                condition: ScheduledCondition::failed(&step.reason, &step.message),
            },
            Step::PermitGranted(step) => {
                TrackerInput::PermitGranted { pod: self.queued_pod("permit_granted", &step.pod)?.key.clone() }
            }
            Step::Bound(step) => TrackerInput::Bound { pod: self.queued_pod("bound", &step.pod)?.key.clone() },
            Step::PatchAnswered(step) => {
                TrackerInput::PatchAnswered { uid: step.pod.clone(), version: step.version()? }
            }
            Step::Restart(_) => return Err(Refusal::field("restart", "not an event")),
        })
    }

    /// Returns the pod as it came out of the queue: as the watch showed it last while it waited.
    fn queued_pod(&self, step: &str, uid: &str) -> Result<&PodSnapshot, Refusal> {
        let unknown = || Refusal::field(&format!("{step}.pod"), format!("no pod with UID {uid:?} was shown"));
        self.pods.get(uid).ok_or_else(unknown)
    }

    fn restart(&mut self, step: &RestartStep) {
        let old = *self.tracker.options();
        let gates = step.gates.as_ref().map_or_else(|| old.scheduler.gates(), gates);
        let options = step.policy.as_ref().map_or(old, |policy| policy.options(old.scheduler.profile(), gates));
        self.tracker = self.tracker.rebuild(options.with_scheduler(Component::new(options.scheduler.profile(), gates)));
    }

    fn shown(&self, output: Result<TrackerOutput, Value>, has_state: bool) -> Value {
        let (output, error) = match output {
            Ok(output) => (output, Value::Null),
            Err(error) => (TrackerOutput::default(), error),
        };
        let mut shown = json!({"commands": output.commands, "notices": output.notices, "error": error});
        if let (true, Some(fields)) = (has_state, shown.as_object_mut()) {
            fields.insert("state".to_owned(), self.state());
        }
        shown
    }

    fn state(&self) -> Value {
        let pods = self.tracker.pods().map(|pod| (pod.key.uid.clone(), json!(self.tracker.state(&pod.key.uid))));
        let nominations = self.tracker.nominator().nodes().map(|node| {
            let pods = self.tracker.nominator().on_node(node).map(|nomination| nomination.pod.uid.as_str());
            (node.to_owned(), json!(pods.collect::<Vec<_>>()))
        });
        json!({"pods": pods.collect::<Map<_, _>>(), "nominations": nominations.collect::<Map<_, _>>()})
    }
}

impl MemberFailedStep {
    fn info(&self) -> Result<NominatingInfo, Refusal> {
        info(self.mode, &self.node).map_err(|refusal| refusal.below("member_failed"))
    }
}

impl PatchAnsweredStep {
    fn version(&self) -> Result<Option<u64>, Refusal> {
        let version = self.resource_version.as_deref().map(str::parse).transpose();
        version.map_err(|_| Refusal::field("patch_answered.resource_version", "not a number"))
    }
}

impl CycleFailedStep {
    fn outcome(&self) -> Result<CycleOutcome, Refusal> {
        match self.outcome.on(&self.node) {
            CycleOutcome::Scheduled { .. } => Err(Refusal::field("cycle_failed.outcome", "that is no failure")),
            outcome => Ok(outcome),
        }
    }
}

impl CycleSucceededStep {
    fn node(&self) -> Result<&str, Refusal> {
        let missing = || Refusal::field("cycle_succeeded.node", "must be set");
        Some(self.node.as_str()).filter(|node| !node.is_empty()).ok_or_else(missing)
    }
}

impl ClaimInput {
    fn state(&self) -> BindingClaim {
        match (self.allocated, self.shared) {
            (_, true) => BindingClaim::Shared(self.uid.clone()),
            (true, false) => BindingClaim::Allocated,
            (false, false) => BindingClaim::Chosen(self.uid.clone()),
        }
    }
}

/// Reads gates by name. Gates that are not named are off.
fn gates(named: &BTreeMap<String, bool>) -> GateSet {
    GateSet::from_names(Profile::Kep, |gate| Some(named.get(gate).copied().unwrap_or_default()))
}
