//! What binding cycles start with and come to.

use super::{Notice, Placed, Reaction, Scheduler};
use crate::binding::claims::{ClaimState, announce, persist};
use crate::binding::failure::FailedStage;
use crate::binding::start::{BindingStart, PermitWait, PreFlightError};
use crate::command::{Command, NoPatch};
use crate::nominating::NominatingInfo;
use crate::patch::Patch;
use crate::pod::{PodKey, PodView, ScheduledCondition};
use crate::state::{Event, IllegalTransition, State};

/// How far the allocations that a binding cycle has chosen are on their way into claims.
#[derive(Clone, Copy, Debug, Default)]
enum Allocations {
    /// They are chosen.
    #[default]
    Chosen,
    /// They are written after the wait on permit, whose end is not told.
    Deferred,
    /// They are written.
    Written,
}

impl Allocations {
    /// What a binding cycle that came to a stage tells about them.
    fn at(self, stage: FailedStage) -> Self {
        match self {
            Self::Deferred if stage == FailedStage::Bind => Self::Written,
            Self::Deferred if stage <= FailedStage::Permit => Self::Chosen,
            // A plugin that comes before their write may be the one that failed.
            known => known,
        }
    }
}

/// A binding cycle that has not told its end.
#[derive(Clone, Debug, Default)]
pub(super) struct Binding {
    permit: PermitWait,
    /// Claims whose allocation it writes.
    claims: Vec<ClaimState>,
    allocations: Allocations,
}

impl Binding {
    /// Ends the wait on permit.
    pub(super) fn reject(&mut self, pod: &PodKey) -> Option<Command> {
        let waits = std::mem::take(&mut self.permit) == PermitWait::Waiting;
        waits.then(|| Command::RejectWaiting { pod: pod.clone() })
    }

    /// Takes back what the cycle has done to claims, so that nomination and reservation end together.
    pub(super) fn unreserve(self, pod: &PodKey) -> Vec<Command> {
        let allocation = |claim: &String| Command::DropAllocation { pod: pod.clone(), claim: claim.clone() };
        let reservation = |claim: &String| Command::DropReservation { pod: pod.clone(), claim: claim.clone() };
        let claims = self.claims.iter().filter_map(|claim| match claim {
            ClaimState::Allocated => None,
            ClaimState::Chosen(claim) => Some(claim),
        });
        match self.allocations {
            Allocations::Chosen => claims.map(allocation).collect(),
            Allocations::Written => claims.map(reservation).collect(),
            Allocations::Deferred => claims.flat_map(|claim| [allocation(claim), reservation(claim)]).collect(),
        }
    }
}

impl Scheduler {
    pub(super) fn place(&mut self, placed: Placed) -> Result<Reaction, IllegalTransition> {
        let start = BindingStart {
            gates: self.options.gates,
            pre_flights: &placed.pre_flights,
            permit: placed.permit,
            nnn: self.known_nnn(&placed.pod.uid),
            host: &placed.node,
        };
        let decision = start.decide();
        let mut commands = self.assume(&placed, &decision)?;
        let Reaction { commands: next, notices } = match decision {
            Ok(patch) => self.start_binding(placed, patch),
            Err(error) => self.fail_pre_flight(&placed.pod, &error)?,
        };
        commands.extend(next);
        Ok(Reaction { commands, notices })
    }

    /// The pod has a node: its nomination ends, and its binding cycle begins.
    fn assume(
        &mut self,
        placed: &Placed,
        decision: &Result<Patch, PreFlightError>,
    ) -> Result<Vec<Command>, IllegalTransition> {
        let Placed { pod, permit, claims, .. } = placed;
        let node = placed.node.clone();
        let event = match decision {
            Ok(patch) if is_announced(*patch) => Event::AssumedAndAnnounced { node },
            _ => Event::AssumedQuietly { node },
        };
        let allocations = match (decision, permit) {
            (Err(_), _) => Allocations::Chosen,
            (Ok(_), PermitWait::Waiting) => Allocations::Deferred,
            (Ok(_), PermitWait::None) => Allocations::Written,
        };
        let state = self.next_state(&pod.uid, &event)?;
        let before = self.nominator.remove(&pod.uid).map(|nomination| nomination.node);
        if let Some(tracked) = self.pods.get_mut(&pod.uid) {
            tracked.state = state;
            tracked.binding = Some(Binding { permit: *permit, claims: claims.clone(), allocations });
        }
        Ok(self.memory_commands(pod, before.as_deref()))
    }

    fn start_binding(&mut self, placed: Placed, patch: Patch) -> Reaction {
        let Placed { pod, node, permit, claims, .. } = placed;
        let mut commands = match patch {
            Patch::Needed => announce(&pod, &node, &claims, permit),
            Patch::None(reason) => {
                let nothing = Command::None { pod: pod.clone(), reason };
                std::iter::once(nothing).chain(persist(&pod, &claims, permit)).collect()
            }
        };
        for command in &commands {
            self.note_write(command);
        }
        let has_chosen = claims.iter().any(|claim| *claim != ClaimState::Allocated);
        let is_partial = is_announced(patch) && permit == PermitWait::Waiting && has_chosen;
        let notices = is_partial.then(|| Notice::PartialReservation { pod: pod.clone() });
        commands.push(Command::Bind { pod, node });
        Reaction { commands, notices: notices.into_iter().collect() }
    }

    fn fail_pre_flight(&mut self, pod: &PodKey, error: &PreFlightError) -> Result<Reaction, IllegalTransition> {
        let popped = self.pods.get(&pod.uid).map(|tracked| tracked.view.clone()).unwrap_or_default();
        let condition = ScheduledCondition::failed("SchedulerError", &error.to_string());
        self.fail_binding(&popped, FailedStage::PreFlight, &condition)
    }

    pub(super) fn fail_binding(
        &mut self,
        popped: &PodView,
        failed_at: FailedStage,
        condition: &ScheduledCondition,
    ) -> Result<Reaction, IllegalTransition> {
        let pod = &popped.key;
        let info = match self.state(&pod.uid) {
            State::AssumedAnnounced { node } => self.options.on_binding_failure.decide(failed_at, &node),
            _ => NominatingInfo::clear(),
        };
        let info = self.by_policy(pod, info);
        let info = if self.displaces(pod, &info) { NominatingInfo::Noop } else { info };
        if !self.is_overtaken(&pod.uid) {
            let keeps = matches!(info, NominatingInfo::Override(Some(_)));
            let event = if keeps { Event::BindingFailedKept } else { Event::BindingFailed };
            let state = self.next_state(&pod.uid, &event)?;
            self.set_state(&pod.uid, state);
        }
        let mut commands = match self.end_binding(&pod.uid) {
            Some(binding) => Binding { allocations: binding.allocations.at(failed_at), ..binding }.unreserve(pod),
            None => Vec::new(),
        };
        // A rejected pod must not be woken by the room that it gives back itself, so it is served before the others.
        if condition.is_unschedulable() {
            commands.extend(self.finish_failure(popped, &info, condition));
            commands.push(Command::WakeAll { except: Some(pod.uid.clone()) });
        } else {
            commands.push(Command::WakeAll { except: None });
            commands.extend(self.finish_failure(popped, &info, condition));
        }
        Ok(Reaction { commands, notices: Vec::new() })
    }

    pub(super) fn bind(&mut self, pod: &PodKey) -> Result<Reaction, IllegalTransition> {
        if !self.is_overtaken(&pod.uid) {
            let state = self.next_state(&pod.uid, &Event::Bound)?;
            self.nominator.forget(&pod.uid);
            if let Some(tracked) = self.pods.get_mut(&pod.uid) {
                tracked.view.node = state.node().map(str::to_owned);
                tracked.state = state;
            }
        }
        self.end_binding(&pod.uid);
        Ok(Reaction { commands: vec![Command::Done { pod: pod.clone() }], notices: Vec::new() })
    }

    /// The watch was faster than the binding cycle: the pod is bound or gone before the cycle tells its end.
    fn is_overtaken(&self, uid: &str) -> bool {
        let Some(tracked) = self.pods.get(uid) else { return true };
        matches!(tracked.state, State::Bound { .. }) && tracked.binding.is_some()
    }

    fn end_binding(&mut self, uid: &str) -> Option<Binding> {
        self.pods.get_mut(uid)?.binding.take()
    }
}

/// The status has the node of the binding cycle, or will.
fn is_announced(patch: Patch) -> bool {
    matches!(patch, Patch::Needed | Patch::None(NoPatch::AlreadySet))
}
