//! Attempts to find a node for a pod, and their repetition.

use std::time::Duration;

use dra_alloc::pods::{ClaimCalls, GroupRound, PodCycle, PostFilter, PreBind, pre_enqueue};
use examples::candidates::{candidates, foreign_wish};
use examples::live::claim_calls::carry_out;
use examples::live::failure::{Trouble, text, trouble};
use examples::live::{now, pod_calls};
use examples::placing::{NoNode, Preference, best_node};
use k8s_openapi::api::core::v1::Pod;
use nnn::binding::announce;
use nnn::{BindingClaim, Command, PermitWait, PodKey};
use tokio::time::Instant;

use super::counts::Outcome;
use super::{LiveError, LiveScheduler, note};

/// Pause after the first attempt that failed.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Pod with a node, on its way to it.
#[derive(Debug)]
pub(super) struct OpenBinding {
    pub(super) pod: PodKey,
    pub(super) node: String,
    /// Claims of the pod, if it has any.
    pub(super) claims: Option<(PodCycle, PreBind)>,
    /// Beginning of the attempt.
    pub(super) begin: Instant,
}

/// Time of the next attempt for a pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    due: Instant,
    pause: Duration,
}

/// Reason that a pod has no node, and its cycle if nodes were tried.
struct Unplaced {
    reason: String,
    cycle: Option<Box<PodCycle>>,
}

impl Unplaced {
    fn new(reason: &dyn ToString) -> Self {
        Self { reason: reason.to_string(), cycle: None }
    }
}

impl LiveScheduler<'_> {
    /// Looks at every pod once: goes on with bindings, then places pods whose time has come.
    pub(super) async fn look(&mut self) -> Result<(), LiveError> {
        self.go_on_with_bindings().await?;
        let queue = self.queue();
        let is_known = |uid: &String| queue.iter().any(|pod| pod.metadata.uid.as_ref() == Some(uid));
        self.delayed.retain(|uid, _| is_known(uid));
        self.pending_since.retain(|uid, _| is_known(uid));
        for uid in queue.iter().filter_map(|pod| pod.metadata.uid.clone()) {
            self.pending_since.entry(uid).or_insert_with(Instant::now);
        }
        for pod in &queue {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            let is_due = self.delayed.get(&uid).is_none_or(|delay| delay.due <= Instant::now());
            if is_due && !self.open.contains_key(&uid) {
                self.attempt(pod, &uid).await?;
            }
        }
        Ok(())
    }

    /// Notes that the cluster has changed: every pod is tried anew, as soon as its shortest pause is over.
    pub(super) fn something_changed(&mut self) {
        let now = Instant::now();
        for delay in self.delayed.values_mut() {
            delay.due = delay.due.min(now.checked_add(FIRST_PAUSE).unwrap_or(now));
        }
    }

    pub(super) fn delay(&mut self, uid: &str) {
        let pause = self.delayed.get(uid).map_or(FIRST_PAUSE, |known| known.pause.saturating_mul(2)).min(LONGEST_PAUSE);
        let now = Instant::now();
        let due = now.checked_add(pause).unwrap_or(now);
        self.delayed.insert(uid.to_owned(), Delay { due, pause });
    }

    async fn attempt(&mut self, pod: &Pod, uid: &str) -> Result<(), LiveError> {
        let begin = Instant::now();
        let metadata = &pod.metadata;
        let key = PodKey::new(
            metadata.namespace.as_deref().unwrap_or_default(),
            metadata.name.as_deref().unwrap_or_default(),
            uid,
        );
        if let Some(wish) = foreign_wish(pod) {
            let message = format!("{wish}: this scheduler knows claims, taints and node selectors only");
            return self.refuse(&key, &message, begin).await;
        }
        match self.place(pod) {
            Err(Unplaced { reason, cycle }) => {
                self.refuse(&key, &reason, begin).await?;
                if let Some(cycle) = cycle {
                    self.free(&cycle).await;
                }
                Ok(())
            }
            Ok((node, cycle)) => {
                if let Err(error) = self.announce(&key, &node, cycle.as_ref()).await {
                    self.counts.attempt(Outcome::Error, begin.elapsed());
                    note(format_args!("{key}: not nominated to {node}: {}", text(&error)));
                    let gone = matches!(trouble(&error), Trouble::Missing | Trouble::Conflict);
                    if !gone {
                        self.delay(uid);
                    }
                    if let Some(mut cycle) = cycle {
                        // Nothing is written yet: there is nothing to take back but memory.
                        let _ = cycle.unreserve(&mut self.view.claims);
                    }
                    return Ok(());
                }
                let claims = cycle.map(|cycle| (cycle, PreBind::default()));
                self.open.insert(uid.to_owned(), OpenBinding { pod: key, node, claims, begin });
                self.go_on_with(uid).await
            }
        }
    }

    /// Writes the nomination of a pod if the writes of its binding take more than one call.
    async fn announce(&self, pod: &PodKey, node: &str, cycle: Option<&PodCycle>) -> Result<(), kube::Error> {
        let claims = cycle.into_iter().flat_map(PodCycle::claims).map(|claim| {
            let uid = claim.claim().metadata.uid.clone().unwrap_or_default();
            if claim.chosen().is_some() { BindingClaim::Chosen(uid) } else { BindingClaim::Shared(uid) }
        });
        let claims: Vec<BindingClaim> = claims.collect();
        for command in announce(pod, node, &claims, PermitWait::None) {
            if let (Command::PatchNnn { pod, node }, false) = (&command, claims.is_empty()) {
                pod_calls::nominate(&self.cluster.client, pod, node).await?;
            }
        }
        Ok(())
    }

    /// Chooses a node, and reserves the devices in memory.
    fn place(&mut self, pod: &Pod) -> Result<(String, Option<PodCycle>), Unplaced> {
        let mut round = GroupRound::default();
        let view = &self.view;
        let begun = pre_enqueue(pod, &view.claims, self.options)
            .and_then(|()| PodCycle::pre_filter(pod, None, &view.claims, &view.classes, &round, self.options));
        let cycle = begun.map_err(|blocked| Unplaced::new(&blocked))?;
        let (nodes, explanation) = candidates(pod, view.nodes.values());
        let Some(mut cycle) = cycle else {
            let first = nodes.first().and_then(|node| node.metadata.name.clone());
            return first.map(|node| (node, None)).ok_or_else(|| Unplaced::new(&explanation));
        };
        let found =
            best_node(&mut cycle, nodes, &self.allocator(), view.claims.state(), explanation, now(), Preference::First);
        let node = match found {
            Ok(node) => node,
            Err(NoNode::Failed(reason)) => return Err(Unplaced::new(&reason)),
            Err(NoNode::Nowhere(explanation)) => {
                return Err(Unplaced { reason: explanation.to_string(), cycle: Some(Box::new(cycle)) });
            }
        };
        match cycle.reserve(&node, &mut self.view.claims, &mut round) {
            Ok(()) => Ok((node, Some(cycle))),
            Err(error) => {
                let _ = cycle.unreserve(&mut self.view.claims);
                Err(Unplaced::new(&error))
            }
        }
    }

    /// Says why a pod is not placed, once, and tries it later.
    async fn refuse(&mut self, pod: &PodKey, reason: &str, begin: Instant) -> Result<(), LiveError> {
        self.counts.attempt(Outcome::Unschedulable, begin.elapsed());
        let client = &self.cluster.client;
        let is_first = !self.delayed.contains_key(&pod.uid);
        self.delay(&pod.uid);
        if is_first {
            note(format_args!("{pod}: {reason}"));
            if let Err(error) = pod_calls::write_unschedulable(client, pod, reason).await {
                note(format_args!("{pod}: condition not written: {}", text(&error)));
            }
        }
        self.events.warning(client, pod, "FailedScheduling", reason).await;
        Ok(())
    }

    /// Makes calls that take something back, one after the other.
    pub(super) async fn make(&mut self, mut calls: ClaimCalls) {
        while let Some(write) = calls.next() {
            let answer = carry_out(&self.cluster.client, &write).await;
            calls.answer(&mut self.view.claims, answer);
        }
        calls.errors().iter().for_each(note);
    }

    /// Frees a claim that keeps a pod from all nodes, if nobody else uses it.
    async fn free(&mut self, cycle: &PodCycle) {
        let decision = cycle.post_filter(0);
        self.make(decision.calls()).await;
        if decision != PostFilter::Nothing {
            note(decision.reason());
        }
    }
}
