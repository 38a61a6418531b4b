//! Player of steps: one tracker, and the pods that it was shown.

use std::collections::BTreeMap;

use dra_attrs::Component;
use nnn::{
    Assumed, NominationOptions, NominationTracker, PodSnapshot, ScheduledCondition, TrackerInput, TrackerOutput,
};
use serde_json::{Map, Value, json};

use super::policy::gates;
use super::step::{ClaimInput, RestartStep, Step};
use super::table::pre_flights;
use crate::refusal::Refusal;

/// Player of the events of one scheduler.
pub(super) struct Player {
    tracker: NominationTracker,
    /// Every pod that the watch has shown, by UID: as last shown without a node, if it was ever shown so.
    pods: BTreeMap<String, PodSnapshot>,
}

impl Player {
    pub(super) fn new(options: NominationOptions) -> Self {
        Self { tracker: NominationTracker::new(options), pods: BTreeMap::new() }
    }

    /// Plays a step. An error is a value of the answer.
    pub(super) fn play(&mut self, step: &Step) -> Result<TrackerOutput, Value> {
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

    pub(super) fn shown(&self, output: Result<TrackerOutput, Value>, has_state: bool) -> Value {
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
