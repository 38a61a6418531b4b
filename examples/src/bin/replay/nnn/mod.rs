//! Operations of the crate `nnn`: one tracker through its events, and single decision tables.

pub(super) mod table;

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{GateSet, Profile};
use k8s_openapi::api::core::v1::Pod;
use nnn::behavior::{
    BindingFailurePolicy, ClearingPolicy, CurrentStatus, EvictionTiming, GroupPreemptionPolicy, PatchAfterBind,
    PendingWrites, PodIdentity, RequeueSource,
};
use nnn::{
    Assumed, Behavior, BindingClaim, CycleOutcome, FailedStage, NominatingInfo, NominationGate, NominationTracker,
    Options, PermitWait, PodSnapshot, ScheduledCondition, TrackerInput, TrackerOutput,
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
    #[serde(default, deserialize_with = "crate::settings::gates::<NominationGate, _>")]
    gates: BTreeMap<String, bool>,
    #[serde(default)]
    policy: Policy,
    #[serde(default)]
    state: States,
    #[serde(default)]
    steps: Vec<Step>,
}

/// A behavior by its name, or one of both with changes.
type Policy = Settings<PolicyName, Changes>;

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PolicyName {
    #[default]
    Safe,
    Upstream,
}

#[derive(Deserialize)]
struct Changes {
    #[serde(default)]
    base: PolicyName,
    identity: Option<PodIdentity>,
    pending_writes: Option<PendingWrites>,
    known: Option<CurrentStatus>,
    late_patch: Option<PatchAfterBind>,
    wake_by: Option<RequeueSource>,
    eviction: Option<EvictionTiming>,
    group_preemption: Option<GroupPreemptionPolicy>,
    on_binding_failure: Option<BindingFailurePolicy>,
    clearing: Option<ClearingPolicy>,
}

impl PolicyName {
    fn behavior(self) -> Behavior {
        match self {
            Self::Safe => Behavior::SAFE,
            Self::Upstream => Behavior::KUBE_SCHEDULER,
        }
    }
}

impl Policy {
    fn behavior(&self) -> Behavior {
        let changes = match self {
            Self::Named(name) => return name.behavior(),
            Self::Changed(changes) => changes,
        };
        let mut behavior = changes.base.behavior();
        behavior.identity = changes.identity.unwrap_or(behavior.identity);
        behavior.pending_writes = changes.pending_writes.unwrap_or(behavior.pending_writes);
        behavior.current_status = changes.known.unwrap_or(behavior.current_status);
        behavior.patch_after_bind = changes.late_patch.unwrap_or(behavior.patch_after_bind);
        behavior.requeue_by = changes.wake_by.unwrap_or(behavior.requeue_by);
        behavior.eviction = changes.eviction.unwrap_or(behavior.eviction);
        behavior.group_preemption = changes.group_preemption.unwrap_or(behavior.group_preemption);
        behavior.on_binding_failure = changes.on_binding_failure.unwrap_or(behavior.on_binding_failure);
        behavior.clearing = changes.clearing.unwrap_or(behavior.clearing);
        behavior
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
    #[serde(default, deserialize_with = "crate::settings::optional_gates::<NominationGate, _>")]
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
        let options = Options::new(input.profile, input.policy.behavior()).with_gates(gates(&input.gates));
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
                let permit = if step.waiting { PermitWait::Waiting } else { PermitWait::None };
                let claims = step.claims.iter().map(ClaimInput::state).collect();
                let assumed = assumed.with_pre_flights(pre_flights(&step.preflight));
                TrackerInput::CycleSucceeded(assumed.with_permit(permit).with_claims(claims))
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
        let behavior = step.policy.as_ref().map_or(old.behavior, Policy::behavior);
        let gates = step.gates.as_ref().map_or(old.gates, gates);
        self.tracker = self.tracker.rebuild(Options::new(old.profile, behavior).with_gates(gates));
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
fn gates(named: &BTreeMap<String, bool>) -> GateSet<NominationGate> {
    GateSet::from_names(Profile::Kep, |gate| Some(named.get(gate).copied().unwrap_or_default()))
}
