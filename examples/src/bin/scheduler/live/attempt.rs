//! Attempts to find a node for a pod, and their repetition.

use std::collections::VecDeque;
use std::sync::Arc;

use dra_alloc::pods::{ClaimCalls, PodCycle, PostFilter, pre_enqueue};
use dra_alloc::queue::{QueueAttempt, Refusal, Remedy};
use dra_live::claim_calls::carry_out;
use dra_live::failure::text;
use dra_live::pod_calls;
use examples::candidates::foreign_wish;
use examples::live::kinds::KindName;
use k8s_openapi::api::core::v1::Pod;
use nnn::NominatingInfo;
use nnn::memory::PodStage;
use tokio::time::Instant;

use super::binding::OpenBinding;
use super::calls::{Call, claim_of};
use super::counts::Outcome;
use super::ending::{Ending, Verdict};
use super::placement::Unplaced;
use super::{LiveError, LiveScheduler, key_of, note, profile_of};

/// Number of attempts that take too long after which a pod waits as one that was refused.
const PATIENCE: u32 = 4;

/// Pod that was kept back before its attempt, with the reason.
pub(super) type KeptBack = (Arc<Pod>, String);

impl LiveScheduler<'_> {
    /// Tries pods while there is one to try, and room for one more binding.
    pub(super) async fn decide(&mut self) -> Result<(), LiveError> {
        while self.under_way() < self.at_a_time {
            let mut kept_back: Vec<KeptBack> = Vec::new();
            let (claims, options) = (&self.view.claims, self.options);
            let attempt = self.queue.pop(|pods| {
                let mut refused = pods.iter().map(|pod| (pod, pre_enqueue(pod, claims, options)));
                let blocked = refused.find_map(|(pod, outcome)| Some((pod, outcome.err()?)));
                let Some((pod, reason)) = blocked else { return Ok(()) };
                kept_back.extend(pods.iter().map(|pod| (Arc::clone(pod), reason.to_string())));
                Err(Refusal::blocked(pod, &reason))
            });
            for (pod, reason) in &kept_back {
                let pods = self.say_refused(pod, reason).into_iter().collect();
                self.end(Ending { pods, ..Ending::default() });
            }
            let Some(attempt) = attempt else { return Ok(()) };
            self.vitals.round();
            Box::pin(self.attempt(attempt)).await?;
            // The lease is looked at, and answers come.
            tokio::task::yield_now().await;
            self.take_changes()?;
            self.take_answers()?;
        }
        Ok(())
    }

    /// Returns the number of pods with a call under way.
    pub(super) fn under_way(&self) -> usize {
        self.open.values().filter(|open| !open.waits).count().saturating_add(self.endings.len())
    }

    async fn attempt(&mut self, attempt: QueueAttempt) -> Result<(), LiveError> {
        let begin = Instant::now();
        let Some(pod) = attempt.pods().first().cloned() else { return Ok(()) };
        let key = key_of(&pod);
        self.counts.looked_at(1);
        if let Some(wish) = foreign_wish(&pod) {
            let message = format!("{wish}: this scheduler knows no volumes, other pods, spread and groups");
            self.refuse(attempt, &message, Verdict::Refused(Refusal::default()), ClaimCalls::default(), begin);
            return Ok(());
        }
        // One that has a node, or is on its way to one, is not tried again, whatever the watch still shows.
        if !self.view.pods.stage(&key.uid).is_some_and(PodStage::is_waiting) {
            self.queue.done(attempt);
            return Ok(());
        }
        let placed = self.place(&pod, &key);
        self.counts.decision(begin.elapsed());
        match placed {
            Err(Unplaced { reason, verdict, cycle }) => {
                let verdict = match verdict {
                    Verdict::Failed if attempt.number() > PATIENCE => Verdict::Refused(Refusal::default()),
                    verdict => verdict,
                };
                let freed = cycle.as_ref().and_then(|cycle| self.free(&pod, cycle));
                match cycle {
                    // Where a claim of its own was in the way, the pod is tried anew first.
                    Some(_) if freed.is_none() && self.preempt.is_some() => {
                        self.counts.attempt(Outcome::Unschedulable, profile_of(&pod), begin.elapsed());
                        if let Some(call) = self.say_refused(&pod, &reason) {
                            self.write_now(call).await;
                        }
                        self.make_room(&pod, &key).await?;
                        self.end(Ending { attempt: Some((attempt, verdict)), ..Ending::default() });
                    }
                    _ => self.refuse(attempt, &reason, verdict, freed.unwrap_or_default(), begin),
                }
                Ok(())
            }
            Ok(binding) => {
                let choice = binding.cycle().and_then(|cycle| cycle.choice_on(binding.node())?.reason.as_ref());
                if let Some(reason) = choice {
                    note(format_args!("{key}: {reason}"));
                }
                let open = OpenBinding {
                    attempt,
                    profile: profile_of(&pod).to_owned(),
                    since: self.queue.waiting_since(&key.uid).unwrap_or(begin),
                    begin,
                    waits: false,
                    remedies: binding.cycle().map_or_else(|| vec![Remedy::Room], Remedy::given_back),
                    binding,
                };
                self.open.insert(key.uid.clone(), open);
                self.go_on_with(&key.uid)
            }
        }
    }

    /// Says why the pods of an attempt are not placed, and gives the attempt back to the queue once that is written.
    fn refuse(&mut self, attempt: QueueAttempt, reason: &str, verdict: Verdict, claims: ClaimCalls, begin: Instant) {
        let mut pods = VecDeque::new();
        for pod in attempt.pods() {
            self.counts.attempt(Outcome::Unschedulable, profile_of(pod), begin.elapsed());
            pods.extend(self.say_refused(pod, reason));
        }
        self.end(Ending { attempt: Some((attempt, verdict)), claims, pods });
    }

    /// Says why a pod is not placed: in an event, in its condition, and the first time in a line. Returns the call.
    fn say_refused(&mut self, pod: &Pod, reason: &str) -> Option<Call> {
        let key = key_of(pod);
        self.events.warning(&key, "FailedScheduling", reason.to_owned());
        if self.queue.is_first_refusal(&key.uid) {
            note(format_args!("{key}: {reason}"));
        }
        // A node that is promised to a pod which does not fit there is no other's. With preemption the pod may wait for it.
        let clears = self.preempt.is_none();
        let nnn = if clears { NominatingInfo::clear() } else { NominatingInfo::Noop };
        let is_nominated = self.view.pods.nomination(&key.uid).is_some();
        Call::write_reason(pod, "Unschedulable", reason, nnn)
            .or_else(|| (clears && is_nominated).then(|| Call::clear(key)))
    }

    /// Makes a call about the status of a pod before anything else.
    pub(super) async fn write_now(&mut self, call: Call) {
        let Call::Status { pod, command, since } = call else { return };
        match pod_calls::write_status(&self.cluster.client, &pod, &command, since).await {
            Ok(written) => self.learn(written),
            Err(error) => note(format_args!("{pod}: its status is not written: {}", text(&error))),
        }
    }

    /// Makes calls that take something back, one after the other, before anything else.
    pub(super) async fn make(&mut self, mut calls: ClaimCalls) {
        while let Some(write) = calls.next() {
            let answer = carry_out(&self.cluster.client, &write).await;
            let queue = &mut self.queue;
            let take = |_: &mut _, claims: &mut _| calls.answer(claims, answer);
            self.view.change(None, claim_of(&write).as_ref(), take, |event| queue.observe(event));
        }
        calls.errors().iter().for_each(note);
    }

    /// Decides to free a claim that keeps a pod from all nodes, if nobody else uses it. Returns the calls; `None` if there is none.
    fn free(&mut self, pod: &Pod, cycle: &PodCycle) -> Option<ClaimCalls> {
        let decision = cycle.post_filter(0);
        if decision == PostFilter::Nothing {
            return None;
        }
        note(decision.reason());
        self.touch_devices_of(cycle);
        // Should the write fail, the decision is made again, and from verdicts that are new.
        if let Some(kind) = KindName::of(pod, Some(cycle)) {
            self.kinds.forget(&kind);
        }
        Some(decision.calls())
    }
}
