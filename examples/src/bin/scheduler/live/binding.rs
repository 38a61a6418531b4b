//! Bindings of pods on their way: `dra_alloc::pods::Binding` says the next call of each, and what has become of it.

use dra_alloc::pods::{Binding, BindingMemory, BindingStep, UnboundError};
use dra_alloc::queue::{QueueAttempt, Remedy};
use dra_live::now;
use nnn::NominatingInfo;
use tokio::time::Instant;

use super::calls::{Answer, Asker, Call, written_claim};
use super::counts::Outcome;
use super::ending::{Ending, Verdict};
use super::line::Line;
use super::{LiveError, LiveScheduler, key_of, note, place_of};

/// Pod with a node, on its way to it.
#[derive(Debug)]
pub(super) struct OpenBinding {
    pub(super) attempt: QueueAttempt,
    pub(super) binding: Binding,
    /// Name that the pod asks for in `schedulerName`.
    pub(super) profile: String,
    /// Time since which the pod waits, and beginning of the attempt.
    pub(super) since: Instant,
    pub(super) begin: Instant,
    /// True if it waits for something else than the answer to its own call.
    pub(super) waits: bool,
    /// Remedies that the pod brings to others if it is not bound.
    pub(super) remedies: Vec<Remedy>,
}

impl LiveScheduler<'_> {
    /// Goes on with each binding that waits for devices, for its turn at a claim, or for a time.
    pub(super) fn go_on_with_waiting(&mut self) -> Result<(), LiveError> {
        let waits = |(uid, open): (&String, &OpenBinding)| open.waits.then(|| uid.clone());
        let waiting: Vec<String> = self.open.iter().filter_map(waits).collect();
        waiting.iter().try_for_each(|uid| self.go_on_with(uid))
    }

    /// Takes the next step of a binding, once everything is known that has changed.
    pub(super) fn go_on_with(&mut self, uid: &str) -> Result<(), LiveError> {
        self.take_changes()?;
        let Some(open) = self.open.get_mut(uid) else { return Ok(()) };
        let mut memory = BindingMemory { pods: &mut self.view.pods, claims: &mut self.view.claims };
        let step = open.binding.next(&mut memory, now());
        open.waits = matches!(step, BindingStep::Wait { .. });
        match step {
            BindingStep::Call(call) => {
                self.calls.make(Asker::Binding(uid.to_owned()), Call::Binding(Box::new(call)));
            }
            BindingStep::Bound => return self.open.remove(uid).map_or(Ok(()), |open| self.bound(open)),
            BindingStep::GaveUp { reason, problems } => {
                problems.iter().for_each(note);
                if let Some(open) = self.open.remove(uid) {
                    self.given_up(open, &reason);
                }
            }
            _ => {}
        }
        self.touch_changed();
        Ok(())
    }

    /// Takes the answer to a call of a binding.
    pub(super) fn answer_binding(&mut self, uid: &str, answer: Answer) -> Result<(), LiveError> {
        let (Some(open), Answer::Binding(call, answer)) = (self.open.get_mut(uid), answer) else { return Ok(()) };
        let (claim, queue) = (written_claim(&call), &mut self.queue);
        // Others may wait for their turn.
        self.looked.1 |= claim.is_some();
        self.view.change(
            Some(&call.pod),
            claim.as_ref(),
            |pods, claims| open.binding.answer(&call, answer, &mut BindingMemory { pods, claims }, now()),
            |event| queue.observe(event),
        );
        self.go_on_with(uid)
    }

    fn bound(&mut self, open: OpenBinding) -> Result<(), LiveError> {
        let OpenBinding { attempt, binding, profile, since, begin, .. } = open;
        let (pod, node) = (binding.pod(), binding.node());
        self.counts.attempt(Outcome::Scheduled, &profile, begin.elapsed());
        self.counts.bound(since.elapsed(), attempt.number());
        self.queue.done(attempt);
        self.awaited.remove(&pod.uid);
        self.tell(&Line::Bound { pod: pod.to_string(), node: node.to_owned() })?;
        self.events.normal(pod, "Scheduled", format!("Successfully assigned {pod} to {node}"));
        Ok(())
    }

    /// Says why a pod is not bound, and tries it later; others may have what it had reserved.
    fn given_up(&mut self, open: OpenBinding, reason: &UnboundError) {
        let OpenBinding { attempt, binding, profile, begin, remedies, .. } = open;
        let (pod, message) = (binding.pod(), reason.to_string());
        self.counts.attempt(Outcome::Error, &profile, begin.elapsed());
        note(format_args!("{pod}: not bound: {message}"));
        if let Some(cycle) = binding.cycle() {
            self.touch_devices_of(cycle);
        }
        self.queue.wake(&remedies);
        self.queue.forget_refusal(&pod.uid);
        let known = self.view.pod_at(&place_of(pod)).filter(|known| key_of(known) == *pod);
        let write = condition_reason(reason).zip(known);
        let pods = write
            .and_then(|(reason, known)| Call::write_reason(known, reason, &message, NominatingInfo::clear()))
            .into_iter()
            .collect();
        self.events.warning(pod, "FailedScheduling", message);
        self.end(Ending { attempt: Some((attempt, Verdict::Failed)), pods, ..Ending::default() });
    }
}

/// Returns the reason in the condition of a pod that is not bound; `None` if it has a node, or is gone.
const fn condition_reason(reason: &UnboundError) -> Option<&'static str> {
    match reason {
        UnboundError::BoundAlready { .. } | UnboundError::Gone => None,
        // Somebody has preempted it.
        UnboundError::Cancelled { .. } => Some("Unschedulable"),
        _ => Some("SchedulerError"),
    }
}
