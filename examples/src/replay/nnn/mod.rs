//! The operations of the crate `nnn`: one scheduler through its events, and single decision tables.

pub(super) mod table;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use nnn::binding::claims::ClaimState;
use nnn::binding::failure::{FailedStage, OnBindingFailure};
use nnn::binding::start::PermitWait;
use nnn::external::Clearing;
use nnn::gates::Gates;
use nnn::nominator::{Identity, PendingWrites};
use nnn::options::{Known, Options};
use nnn::pod::{PodView, ScheduledCondition};
use nnn::profile::Profile;
use nnn::scheduler::{Input, Placed, Reaction, Scheduler};
use nnn::scheduling::cycle::CycleOutcome;
use nnn::scheduling::failure::LatePatch;
use nnn::scheduling::group::LowerNominations;
use nnn::scheduling::preemption::Eviction;
use nnn::scheduling::wake::WakeBy;
use nnn::state::IllegalTransition;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::table::{OutcomeName, PreFlightInput, info, pre_flights};
use super::refusal::{Refusal, read};
use super::settings::Settings;
use super::{Operation, Stopwatch};

#[derive(Deserialize)]
struct RunInput {
    #[serde(default)]
    profile: Profile,
    #[serde(default)]
    gates: BTreeMap<String, bool>,
    #[serde(default)]
    policy: Policy,
    #[serde(default)]
    steps: Vec<Step>,
}

/// The name of a set of options, or options that differ from the safe ones.
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
    identity: Option<Identity>,
    pending_writes: Option<PendingWrites>,
    known: Option<Known>,
    late_patch: Option<LatePatch>,
    wake_by: Option<WakeBy>,
    eviction: Option<Eviction>,
    group_preemption: Option<LowerNominations>,
    on_binding_failure: Option<OnBindingFailure>,
    clearing: Option<Clearing>,
}

impl PolicyName {
    fn options(self) -> Options {
        match self {
            Self::Safe => Options::default(),
            Self::Upstream => Options::upstream(),
        }
    }
}

impl Policy {
    fn options(&self) -> Options {
        let changes = match self {
            Self::Named(name) => return name.options(),
            Self::Changed(changes) => changes,
        };
        let mut options = changes.base.options();
        options.nominator.identity = changes.identity.unwrap_or(options.nominator.identity);
        options.nominator.pending_writes = changes.pending_writes.unwrap_or(options.nominator.pending_writes);
        options.known = changes.known.unwrap_or(options.known);
        options.late_patch = changes.late_patch.unwrap_or(options.late_patch);
        options.wake_by = changes.wake_by.unwrap_or(options.wake_by);
        options.eviction = changes.eviction.unwrap_or(options.eviction);
        options.group_preemption = changes.group_preemption.unwrap_or(options.group_preemption);
        options.on_binding_failure = changes.on_binding_failure.unwrap_or(options.on_binding_failure);
        options.clearing = changes.clearing.unwrap_or(options.clearing);
        options
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
    gates: Option<BTreeMap<String, bool>>,
    policy: Option<Policy>,
}

pub(super) fn run(input: Value) -> Result<Operation, Refusal> {
    let input: RunInput = read(input)?;
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let mut player = Player::new(&input);
        let steps = input.steps.iter().enumerate().map(|(index, step)| {
            let shown = stopwatch.run(|| player.play(step));
            shown.map_err(|refusal| refusal.below(&format!("steps[{index}]")))
        });
        Ok(json!({"steps": steps.collect::<Result<Vec<_>, _>>()?}))
    }))
}

/// One scheduler through its events.
struct Player {
    scheduler: Scheduler,
    /// Every pod that was ever shown, by UID: as it was shown last without a node, if it was.
    pods: BTreeMap<String, PodView>,
}

impl Player {
    fn new(input: &RunInput) -> Self {
        let options = input.policy.options().with_profile(input.profile).with_gates(gates(&input.gates));
        Self { scheduler: Scheduler::new(options), pods: BTreeMap::new() }
    }

    fn play(&mut self, step: &Step) -> Result<Value, Refusal> {
        if let Step::Restart(step) = step {
            self.restart(step);
            return Ok(self.shown(Ok(Reaction::default())));
        }
        let event = self.event(step)?;
        let reaction = self.scheduler.handle(event);
        Ok(self.shown(reaction))
    }

    fn event(&mut self, step: &Step) -> Result<Input, Refusal> {
        Ok(match step {
            Step::Pod(pod) => {
                let pod = PodView::from_pod(pod).map_err(|error| Refusal::field("pod", error.to_string()))?;
                if pod.node.is_none() || !self.pods.contains_key(&pod.key.uid) {
                    self.pods.insert(pod.key.uid.clone(), pod.clone());
                }
                Input::PodObserved(pod)
            }
            Step::PodDeleted(step) => Input::PodDeleted { uid: step.pod.clone() },
            Step::Node(step) => Input::NodeObserved { node: step.name.clone() },
            Step::NodeDeleted(step) => Input::NodeDeleted { node: step.name.clone() },
            Step::CycleFailed(step) => Input::CycleFailed {
                popped: self.popped("cycle_failed", &step.pod)?.clone(),
                outcome: step.outcome()?,
                condition: ScheduledCondition::failed(&step.reason, &step.message),
            },
            Step::MemberFailed(step) => Input::MemberFailed {
                popped: self.popped("member_failed", &step.pod)?.clone(),
                info: info(step.mode, &step.node).map_err(|refusal| refusal.below("member_failed"))?,
                condition: ScheduledCondition::failed(&step.reason, &step.message),
            },
            Step::CycleSucceeded(step) => {
                let placed = Placed::new(&self.popped("cycle_succeeded", &step.pod)?.key, step.node()?);
                let permit = if step.waiting { PermitWait::Waiting } else { PermitWait::None };
                let claims = step.claims.iter().map(ClaimInput::state).collect();
                Input::CycleSucceeded(placed.pre_flights(pre_flights(&step.preflight)).permit(permit).claims(claims))
            }
            Step::BindingFailed(step) => Input::BindingFailed {
                popped: self.popped("binding_failed", &step.pod)?.clone(),
                stage: step.stage,
                condition: ScheduledCondition::failed(&step.reason, &step.message),
            },
            Step::Bound(step) => Input::Bound { pod: self.popped("bound", &step.pod)?.key.clone() },
            Step::PatchAnswered(step) => {
                let version = step.resource_version.as_deref().map(str::parse).transpose();
                let version = version.map_err(|_| Refusal::field("patch_answered.resource_version", "not a number"))?;
                Input::PatchAnswered { uid: step.pod.clone(), version }
            }
            Step::Restart(_) => return Err(Refusal::field("restart", "not an event")),
        })
    }

    /// The pod as it came out of the queue: as it was shown last while it waited.
    fn popped(&self, step: &str, uid: &str) -> Result<&PodView, Refusal> {
        let unknown = || Refusal::field(&format!("{step}.pod"), format!("no pod with UID {uid:?} was shown"));
        self.pods.get(uid).ok_or_else(unknown)
    }

    fn restart(&mut self, step: &RestartStep) {
        let old = *self.scheduler.options();
        let options = step.policy.as_ref().map_or(old, Policy::options).with_profile(old.profile);
        let gates = step.gates.as_ref().map_or(old.gates, gates);
        self.scheduler = self.scheduler.restarted(options.with_gates(gates));
    }

    fn shown(&self, reaction: Result<Reaction, IllegalTransition>) -> Value {
        let (reaction, error) = match reaction {
            Ok(reaction) => (reaction, Value::Null),
            Err(error) => (Reaction::default(), json!({"kind": "IllegalTransition", "message": error.to_string()})),
        };
        let pods = self.scheduler.pods().map(|pod| (pod.key.uid.clone(), json!(self.scheduler.state(&pod.key.uid))));
        let nominations = self.scheduler.nominator().nodes().map(|node| {
            let pods = self.scheduler.nominator().on_node(node).map(|nomination| nomination.pod.uid.as_str());
            (node.to_owned(), json!(pods.collect::<Vec<_>>()))
        });
        let state = json!({
            "pods": pods.collect::<Map<_, _>>(),
            "nominations": nominations.collect::<Map<_, _>>(),
        });
        json!({"commands": reaction.commands, "notices": reaction.notices, "state": state, "error": error})
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
    fn state(&self) -> ClaimState {
        if self.allocated { ClaimState::Allocated } else { ClaimState::Chosen(self.uid.clone()) }
    }
}

/// Gates that are not named are off.
fn gates(named: &BTreeMap<String, bool>) -> Gates {
    Gates::from_gates(|gate| Some(named.get(gate).copied().unwrap_or_default()))
}
