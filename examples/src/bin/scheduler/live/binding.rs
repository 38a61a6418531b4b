//! Bindings: the writes of a pod's claims one after the other, the wait for devices, the binding itself.

use dra_alloc::pods::BindStep;
use examples::live::claim_calls::carry_out;
use examples::live::failure::text;
use examples::live::{now, pod_calls};
use examples::placing::rival;

use super::attempt::OpenBinding;
use super::counts::Outcome;
use super::line::Line;
use super::queue::Setback;
use super::{LiveError, LiveScheduler, note, place_of};

/// State of a binding after its claims were looked at.
enum Progress {
    Ready,
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
        let pods = &self.view.pods;
        let place = place_of(&open.pod);
        let is_there = pods.get(&place).is_some_and(|pod| pod.metadata.uid.as_deref() == Some(uid));
        let progress =
            if is_there { self.write_claims(&mut open).await } else { Progress::Failed("the pod is gone".to_owned()) };
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
            Progress::Ready => match pod_calls::bind(&self.cluster.client, &open.pod, &open.node).await {
                Ok(()) => self.bound(&open).await,
                Err(error) => {
                    self.give_up(open, &text(&error)).await;
                    Ok(())
                }
            },
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

    async fn bound(&mut self, open: &OpenBinding) -> Result<(), LiveError> {
        let OpenBinding { pod, node, .. } = open;
        // Until the watch shows it, memory has the pod on its node: it is not placed twice.
        let place = place_of(pod);
        if let Some(known) = self.view.pods.get_mut(&place) {
            known.spec.get_or_insert_default().node_name = Some(node.clone());
        }
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
        if let Some((mut cycle, _)) = claims {
            let before = cycle.clone();
            let calls = cycle.unreserve(&mut self.view.claims);
            self.make(calls).await;
            self.touch_devices_of(&before);
        }
        self.queue.delay(&place_of(&pod), Setback::Write);
        self.events.warning(&self.cluster.client, &pod, "FailedScheduling", reason).await;
    }
}
