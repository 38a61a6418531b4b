//! Bindings: the writes of a pod's claims one after the other, the wait for devices, the binding itself. Several pods are on
//! their way at a time; what each waits for is an answer, or the devices of its claims.

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{BindStep, ClaimCalls, ClaimTracker, PodCycle, PreBind};
use dra_alloc::queue::{QueueAttempt, Remedy};
use examples::live::failure::text;
use examples::live::{now, pod_calls};
use examples::placing::rival;
use nnn::PodKey;
use nnn::memory::{BindingAnswer, PodStage};
use tokio::time::Instant;

use super::calls::{Answer, Asker, Call, claim_of};
use super::counts::Outcome;
use super::ending::{Ending, Verdict};
use super::line::Line;
use super::{LiveError, LiveScheduler, note};

/// Pod with a node, on its way to it.
#[derive(Debug)]
pub(super) struct OpenBinding {
    pub(super) attempt: QueueAttempt,
    pub(super) pod: PodKey,
    /// Name that the pod asks for in `schedulerName`.
    pub(super) profile: String,
    pub(super) node: String,
    /// Claims of the pod, if it has any.
    pub(super) claims: Option<(PodCycle, PreBind)>,
    /// Time since which the pod waits, and beginning of the attempt.
    pub(super) since: Instant,
    pub(super) begin: Instant,
    pub(super) state: State,
    /// Claim that the call is about which is under way.
    pub(super) written: Option<ClaimKey>,
    /// Reason to give the binding up at its next answer.
    pub(super) cancelled: Option<String>,
}

/// State of a binding between two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The next step can be taken.
    Free,
    /// A call is under way.
    Calling,
    /// The call that binds the pod is under way: it can't be taken back.
    Binding,
    /// Devices have to become ready.
    Waiting,
}

/// State of a binding after its claims were looked at.
enum Progress {
    Ready,
    Again,
    Calls,
    Waits,
    Failed(String),
}

impl LiveScheduler<'_> {
    /// Goes on with each binding that waits for devices.
    pub(super) fn go_on_with_waiting(&mut self) -> Result<(), LiveError> {
        let waits = |(uid, open): (&String, &OpenBinding)| (open.state == State::Waiting).then(|| uid.clone());
        let waiting: Vec<String> = self.open.iter().filter_map(waits).collect();
        waiting.iter().try_for_each(|uid| self.go_on_with(uid))
    }

    /// Takes the next step of a binding.
    pub(super) fn go_on_with(&mut self, uid: &str) -> Result<(), LiveError> {
        let Some(mut open) = self.open.remove(uid) else { return Ok(()) };
        let progress = match self.view.pods.stage(uid) {
            Some(PodStage::Bound { node }) if node == open.node => return self.bound(open),
            Some(PodStage::Assumed { .. }) => match open.cancelled.take() {
                Some(reason) => Progress::Failed(reason),
                None => self.write_claims(uid, &mut open),
            },
            // Its claims were written before: the same binding is sent once more.
            Some(PodStage::InDoubt { .. }) => Progress::Again,
            Some(PodStage::Bound { node }) => Progress::Failed(format!("it is bound to {node} already")),
            _ => Progress::Failed(open.cancelled.take().unwrap_or_else(|| "the pod is gone".to_owned())),
        };
        open.state = match progress {
            Progress::Failed(reason) => {
                self.give_up(open, &reason, PodCycle::unreserve);
                return Ok(());
            }
            Progress::Ready if self.gives_way(&open)? => {
                self.give_up(open, "another scheduler has given its devices away", PodCycle::give_way);
                return Ok(());
            }
            Progress::Calls => State::Calling,
            Progress::Waits => State::Waiting,
            Progress::Ready | Progress::Again => {
                let call = Call::Bind { pod: open.pod.clone(), node: open.node.clone() };
                self.calls.make(Asker::Binding(uid.to_owned()), call);
                State::Binding
            }
        };
        self.open.insert(uid.to_owned(), open);
        Ok(())
    }

    fn write_claims(&mut self, uid: &str, open: &mut OpenBinding) -> Progress {
        let Some((cycle, binding)) = &mut open.claims else { return Progress::Ready };
        match binding.next(cycle, &mut self.view.claims, now()) {
            BindStep::Write(write) => {
                open.written = Some(claim_of(&write));
                self.calls.make(Asker::Binding(uid.to_owned()), Call::Claim(write));
                Progress::Calls
            }
            BindStep::Wait { .. } => Progress::Waits,
            BindStep::Failed(error) => Progress::Failed(error.to_string()),
            _ => Progress::Ready,
        }
    }

    /// Takes the answer to a call of a binding.
    pub(super) fn answer_binding(&mut self, uid: &str, answer: Answer) -> Result<(), LiveError> {
        let Some(open) = self.open.get_mut(uid) else { return Ok(()) };
        open.state = State::Free;
        match answer {
            Answer::Claim(response) => {
                if let Some((cycle, binding)) = &mut open.claims {
                    let (written, queue) = (open.written.take(), &mut self.queue);
                    let answer = |tracker: &mut _| binding.answer(cycle, tracker, response, now());
                    self.view.with_claim(written.as_ref(), answer, |event| queue.observe(event));
                }
            }
            Answer::Pod(Ok(pod)) => self.learn(pod),
            Answer::Pod(Err(error)) => {
                let reason = format!("not nominated to {}: {}", open.node, text(&error));
                open.cancelled = Some(reason);
            }
            Answer::Found(Ok(found)) => drop(found.map(|pod| self.view.pods.settle(pod))),
            Answer::Found(Err(error)) => {
                note(format_args!("{}: not read: {}", open.pod, text(&error)));
                open.state = State::Waiting;
                return Ok(());
            }
            Answer::Bound(Ok(())) => {
                let open = self.open.remove(uid);
                return open.map_or(Ok(()), |open| self.bound(open));
            }
            Answer::Bound(Err(error)) => return self.not_bound(uid, &error),
        }
        self.go_on_with(uid)
    }

    /// Looks at the claims once more, as they are watched now. Returns true if another claim holds a device that this binding has
    /// chosen: another scheduler has given it away, too. What is written after this look nobody undoes.
    fn gives_way(&mut self, open: &OpenBinding) -> Result<bool, LiveError> {
        self.take_changes()?;
        let Some((cycle, _)) = &open.claims else { return Ok(false) };
        let rival = rival(cycle, self.view.claims.state());
        if let Some((device, claim)) = &rival {
            note(format_args!(
                "{}: {device} is held by {claim} as well, which another scheduler has allocated",
                open.pod
            ));
        }
        Ok(rival.is_some())
    }

    /// Keeps a binding that may be stored, and gives up one that is not.
    fn not_bound(&mut self, uid: &str, error: &kube::Error) -> Result<(), LiveError> {
        let answer = pod_calls::binding_answer(error);
        self.view.pods.answer_binding(uid, answer);
        let Some(open) = self.open.get_mut(uid) else { return Ok(()) };
        match self.view.pods.stage(uid) {
            Some(PodStage::InDoubt { .. }) if answer == BindingAnswer::Refused => {
                // The lost call is over by now: the stored pod tells if it was carried out.
                (open.state, open.cancelled) = (State::Binding, Some(text(error)));
                self.calls.make(Asker::Binding(uid.to_owned()), Call::Find { pod: open.pod.clone() });
            }
            Some(PodStage::InDoubt { .. } | PodStage::Bound { .. }) => {
                note(format_args!("{}: not known to be bound: {}", open.pod, text(error)));
                open.state = State::Waiting;
            }
            _ => {
                let reason = text(error);
                if let Some(open) = self.open.remove(uid) {
                    self.give_up(open, &reason, PodCycle::unreserve);
                }
            }
        }
        Ok(())
    }

    fn bound(&mut self, open: OpenBinding) -> Result<(), LiveError> {
        let OpenBinding { attempt, pod, profile, node, since, begin, .. } = open;
        // Until the watch shows it, memory has the pod on its node: it is not placed twice.
        self.view.pods.answer_binding(&pod.uid, BindingAnswer::Stored);
        self.counts.attempt(Outcome::Scheduled, &profile, begin.elapsed());
        self.counts.bound(since.elapsed(), attempt.number());
        self.queue.done(attempt);
        self.awaited.remove(&pod.uid);
        self.tell(&Line::Bound { pod: pod.to_string(), node: node.clone() })?;
        self.events.normal(&pod, "Scheduled", format!("Successfully assigned {pod} to {node}"));
        Ok(())
    }

    /// Takes back what a binding has reserved, and tries the pod later.
    pub(super) fn give_up(
        &mut self,
        open: OpenBinding,
        reason: &str,
        take_back: impl FnOnce(&mut PodCycle, &mut ClaimTracker) -> ClaimCalls,
    ) {
        let OpenBinding { attempt, pod, profile, claims, begin, .. } = open;
        self.counts.attempt(Outcome::Error, &profile, begin.elapsed());
        note(format_args!("{pod}: not bound: {reason}"));
        self.view.pods.forget_assumed(&pod.uid).map_or_else(note, drop);
        self.touch_changed();
        let mut ending = Ending { attempt: Some((attempt, Verdict::Failed)), ..Ending::default() };
        let remedies = match claims {
            Some((mut cycle, _)) => {
                let (before, remedies) = (cycle.clone(), Remedy::given_back(&cycle));
                ending.claims = take_back(&mut cycle, &mut self.view.claims);
                self.touch_devices_of(&before);
                remedies
            }
            None => vec![Remedy::Room],
        };
        self.queue.wake(&remedies);
        if self.view.pods.nomination(&pod.uid).is_some() {
            ending.pods.push_back(Call::ClearNomination { pod: pod.clone() });
        }
        self.end(ending);
        self.events.warning(&pod, "FailedScheduling", reason.to_owned());
    }
}
