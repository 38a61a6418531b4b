//! Ends of attempts without a binding: the calls that have to be made before the queue has the pods back.

use std::collections::VecDeque;

use dra_alloc::pods::ClaimCalls;
use dra_alloc::queue::{QueueAttempt, Refusal};
use dra_live::failure::{Trouble, text, trouble};
use kube::Error;
use nnn::PodKey;
use nnn::memory::NominationAnswer;

use super::calls::{Answer, Asker, Call, claim_of};
use super::{LiveScheduler, note};

/// End of an attempt, or a call that belongs to none.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Attempt that the queue gets back, and how it ended.
    pub(super) attempt: Option<(QueueAttempt, Verdict)>,
    /// Writes that take back claims, one after the other.
    pub(super) claims: ClaimCalls,
    /// Calls about pods, made afterwards.
    pub(super) pods: VecDeque<Call>,
}

/// Verdict of an attempt that placed no pod.
#[derive(Debug)]
pub(super) enum Verdict {
    /// No node fits.
    Refused(Refusal),
    /// A write was refused, or the search took too long: only time brings the pods back.
    Failed,
}

impl LiveScheduler<'_> {
    /// Begins to end an attempt.
    pub(super) fn end(&mut self, ending: Ending) {
        let number = self.next_ending;
        self.next_ending = number.wrapping_add(1);
        self.endings.insert(number, ending);
        self.go_on_ending(number);
    }

    fn go_on_ending(&mut self, number: u64) {
        let Some(ending) = self.endings.get_mut(&number) else { return };
        let call = ending.claims.next().map(Call::Claim).or_else(|| ending.pods.pop_front());
        if let Some(call) = call {
            return self.calls.make(Asker::Ending(number), call);
        }
        let Some(ending) = self.endings.remove(&number) else { return };
        ending.claims.errors().iter().for_each(note);
        match ending.attempt {
            Some((attempt, Verdict::Refused(refusal))) => self.queue.refused(attempt, refusal),
            Some((attempt, Verdict::Failed)) => self.queue.failed(attempt),
            None => {}
        }
    }

    /// Takes the answer to a call of an end.
    pub(super) fn answer_ending(&mut self, number: u64, answer: Answer) {
        match answer {
            Answer::Claim(response) => {
                let Self { endings, view, queue, .. } = self;
                if let Some(ending) = endings.get_mut(&number) {
                    let claim = ending.claims.next().as_ref().and_then(claim_of);
                    let answer = |_: &mut _, claims: &mut _| ending.claims.answer(claims, response);
                    view.change(None, claim.as_ref(), answer, |event| queue.observe(event));
                }
            }
            Answer::Pod(_, Ok(pod)) => self.learn(*pod),
            Answer::Pod(pod, Err(error)) => {
                note(format_args!("{pod}: its status was not written: {}", text(&error)));
                self.end_doubt(&pod, &error);
            }
            Answer::Binding(..) => {}
        }
        self.go_on_ending(number);
    }

    /// Takes a refusal as the end of a doubt about a nomination: what the watch shows counts. A binding settles its own.
    fn end_doubt(&mut self, pod: &PodKey, error: &Error) {
        let says_nothing = matches!(trouble(error), Trouble::Unanswered | Trouble::Later);
        if says_nothing || self.open.contains_key(&pod.uid) || !self.view.pods.in_doubt().any(|known| known == pod) {
            return;
        }
        if let Err(error) = self.view.pods.answer_nomination(&pod.uid, NominationAnswer::Refused) {
            note(format_args!("{pod}: {error}"));
        }
        self.touch_changed();
    }
}
