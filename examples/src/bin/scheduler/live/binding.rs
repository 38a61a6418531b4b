//! Bindings: the writes of a pod's claims one after the other, the wait for devices, the binding itself.

use dra_alloc::pods::BindStep;
use examples::live::claim_calls::carry_out;
use examples::live::failure::text;
use examples::live::{now, pod_calls};
use examples::placing::rival;
use nnn::memory::{BindingAnswer, PodStage};

use super::attempt::OpenBinding;
use super::counts::Outcome;
use super::line::Line;
use super::queue::Setback;
use super::{LiveError, LiveScheduler, note, place_of};

/// State of a binding after its claims were looked at.
enum Progress {
    Ready,
    Again,
    Waits,
    Failed(String),
}

impl LiveScheduler<'_> {
    /// Goes on with each binding that waits.
    pub(super) async fn go_on_with_bindings(&mut self) -> Result<(), LiveError> {
        let waiting: Vec<String> = self.open.keys().cloned().collect();
        for uid in waiting {
            self.go_on_with(&uid).await?;
        }
        Ok(())
    }

    /// Goes on with the binding of a pod, and keeps it if devices have to become ready.
    pub(super) async fn go_on_with(&mut self, uid: &str) -> Result<(), LiveError> {
        let Some(mut open) = self.open.remove(uid) else { return Ok(()) };
        let progress = match self.view.pods.stage(uid) {
            Some(PodStage::Bound { node }) if node == open.node => return self.bound(&open).await,
            Some(PodStage::Assumed { .. }) => self.write_claims(&mut open).await,
            // Its claims were written before: the same binding is sent once more.
            Some(PodStage::InDoubt { .. }) => Progress::Again,
            Some(PodStage::Bound { node }) => Progress::Failed(format!("it is bound to {node} already")),
            _ => Progress::Failed("the pod is gone".to_owned()),
        };
        match progress {
            Progress::Waits => {
                self.open.insert(uid.to_owned(), open);
                Ok(())
            }
            Progress::Failed(reason) => {
                self.give_up(open, &reason).await;
                Ok(())
            }
            Progress::Ready if self.gives_way(&open)? => {
                self.give_way(open).await;
                Ok(())
            }
            Progress::Ready | Progress::Again => {
                match pod_calls::bind(&self.cluster.client, &open.pod, &open.node).await {
                    Ok(()) => self.bound(&open).await,
                    Err(error) => {
                        self.not_bound(open, &error).await;
                        Ok(())
                    }
                }
            }
        }
    }

    async fn write_claims(&mut self, open: &mut OpenBinding) -> Progress {
        let Some((cycle, binding)) = &mut open.claims else { return Progress::Ready };
        loop {
            match binding.next(cycle, &mut self.view.claims, now()) {
                BindStep::Write(write) => {
                    let answer = carry_out(&self.cluster.client, &write).await;
                    binding.answer(cycle, &mut self.view.claims, answer, now());
                }
                BindStep::Wait { .. } => return Progress::Waits,
                BindStep::Failed(error) => return Progress::Failed(error.to_string()),
                _ => return Progress::Ready,
            }
        }
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

    /// Gives the devices of a binding back that another claim holds as well, and tries the pod later.
    async fn give_way(&mut self, mut open: OpenBinding) {
        if let Some((cycle, _)) = &mut open.claims {
            let calls = cycle.give_way(&mut self.view.claims);
            self.make(calls).await;
        }
        self.give_up(open, "another scheduler has given its devices away").await;
    }

    /// Keeps a binding that may be stored, and gives up one that is not.
    async fn not_bound(&mut self, open: OpenBinding, error: &kube::Error) {
        let (uid, answer) = (open.pod.uid.clone(), pod_calls::binding_answer(error));
        let is_in_doubt = |stage: Option<PodStage<'_>>| matches!(stage, Some(PodStage::InDoubt { .. }));
        self.view.pods.answer_binding(&uid, answer);
        if answer == BindingAnswer::Refused && is_in_doubt(self.view.pods.stage(&uid)) {
            // The lost call is over by now: what is stored tells if it was carried out.
            match pod_calls::find(&self.cluster.client, &open.pod).await {
                Ok(found) => drop(found.map(|pod| self.view.pods.settle(pod))),
                Err(error) => note(format_args!("{}: not read: {}", open.pod, text(&error))),
            }
        }
        match self.view.pods.stage(&uid) {
            Some(PodStage::InDoubt { .. } | PodStage::Bound { .. }) => {
                note(format_args!("{}: not known to be bound: {}", open.pod, text(error)));
                self.open.insert(uid, open);
            }
            _ => self.give_up(open, &text(error)).await,
        }
    }

    async fn bound(&mut self, open: &OpenBinding) -> Result<(), LiveError> {
        let OpenBinding { pod, node, .. } = open;
        // Until the watch shows it, memory has the pod on its node: it is not placed twice.
        self.view.pods.answer_binding(&pod.uid, BindingAnswer::Stored);
        let place = place_of(pod);
        self.counts.attempt(Outcome::Scheduled, open.begin.elapsed());
        if let Some(since) = self.queue.waiting_since(&place) {
            self.counts.bound(since.elapsed());
        }
        self.queue.remove(&place);
        self.awaited.remove(&pod.uid);
        self.tell(&Line::Bound { pod: pod.to_string(), node: node.clone() })?;
        let message = format!("Successfully assigned {pod} to {node}");
        self.events.normal(&self.cluster.client, pod, "Scheduled", &message).await;
        Ok(())
    }

    /// Takes back what a binding has reserved, and tries the pod later.
    pub(super) async fn give_up(&mut self, open: OpenBinding, reason: &str) {
        let OpenBinding { pod, claims, begin, .. } = open;
        self.counts.attempt(Outcome::Error, begin.elapsed());
        note(format_args!("{pod}: not bound: {reason}"));
        self.view.pods.forget_assumed(&pod.uid).map_or_else(note, drop);
        self.touch_changed();
        if let Some((mut cycle, _)) = claims {
            let before = cycle.clone();
            let calls = cycle.unreserve(&mut self.view.claims);
            self.make(calls).await;
            self.touch_devices_of(&before);
        }
        if self.view.pods.nomination(&pod.uid).is_some() {
            self.clear_nomination(&pod).await;
        }
        self.queue.delay(&place_of(&pod), Setback::Write);
        self.events.warning(&self.cluster.client, &pod, "FailedScheduling", reason).await;
    }
}
