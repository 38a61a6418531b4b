//! Preemption: pods of lower priority give up their devices for one that no node can serve.

use std::collections::BTreeSet;
use std::sync::Arc;

use dra_alloc::claims::ClaimKey;
use dra_alloc::fit::{Allocatable, PodNeeds};
use dra_alloc::pods::{ClaimLookup, FitQuestion, PodIdentity};
use dra_alloc::preemption::{
    Eligibility, Holds, InMemoryPlace, InMemoryStage, Preemption, PreemptionAnswer, PreemptionView, PreemptorSituation,
    Room, VictimDevices, may_preempt,
};
use dra_alloc::{Allocator, Budget};
use dra_live::failure::text;
use dra_live::listing::list;
use dra_live::{now, pod_calls};
use examples::candidates::{claims_of, is_pending};
use examples::placing::with_deadline;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::ResourceClaim;
use nnn::memory::{PodStage, PodUsage};
use nnn::{Command, PodKey};

use super::calls::Call;
use super::line::Line;
use super::{LiveError, LiveScheduler, allocator, key_of, note, place_of, profile_of};
use crate::args::Preempt;

impl LiveScheduler<'_> {
    /// Looks for pods that make room for one that no node can serve, and preempts them.
    pub(super) async fn make_room(&mut self, pod: &Pod, key: &PodKey) -> Result<(), LiveError> {
        let Some(rule) = self.preempt else { return Ok(()) };
        self.counts.preemption();
        if self.eligibility(pod, key) != Eligibility::Eligible {
            return Ok(());
        }
        let budgets = match list::<PodDisruptionBudget>(&self.cluster.client, "poddisruptionbudgets").await {
            Ok(budgets) => budgets,
            Err(error) => {
                note(format_args!("{key}: nobody is preempted: {error}"));
                return Ok(());
            }
        };
        match self.room_for(pod, rule, &budgets) {
            // Its devices are free already, or it lacks others than those of its claims.
            Ok(PreemptionAnswer::Room(room)) if room.victims.is_empty() && room.deallocate.is_empty() => Ok(()),
            Ok(PreemptionAnswer::Room(room)) if rule == Preempt::Say => {
                note(format_args!("{key}: would fit on {} if {} went", room.node(), names(&room.victims).join(", ")));
                Ok(())
            }
            Ok(PreemptionAnswer::Room(room)) => self.preempt_for(key, &room).await,
            Ok(PreemptionAnswer::NoRoom(_)) => self.give_up_nomination(pod, key).await,
            Err(reason) => {
                note(format_args!("{key}: nobody is preempted: {reason}"));
                Ok(())
            }
        }
    }

    /// Returns the holds of nominated pods that wait, whoever has nominated them: this scheduler, which preempts for them, another
    /// one, or an autoscaler.
    pub(super) fn holds(&self, allocator: &Allocator<'_>) -> Holds {
        let is_open =
            |claim: &ClaimKey| self.view.claims.claim(&claim.namespace, &claim.name).is_some_and(is_unallocated);
        let nominated = self.view.pods.nominated_pods().filter(|(pod, _)| claims_of(pod).iter().any(is_open));
        let nodes: BTreeSet<&str> = nominated.map(|(_, node)| node).collect();
        if nodes.is_empty() {
            return Holds::default();
        }
        let view = self.preemption_view(nodes.into_iter().filter_map(|node| self.view.nodes.get(node)), &[]);
        let preemption = Preemption::new(allocator, self.view.claims.state(), &view, now());
        // A pod whose claims are invalid holds nothing, and nor does any other then: they are asked for anew at the next attempt.
        with_deadline(|budget| Holds::of_cluster(&preemption, budget)).unwrap_or_default()
    }

    fn eligibility(&self, pod: &Pod, key: &PodKey) -> Eligibility {
        let on_nominated: Option<Vec<&Pod>> =
            self.view.pods.nomination(&key.uid).map(|node| self.view.pods.pods_on(node).map(|pod| &**pod).collect());
        let is_allocated = |claim: &ClaimKey| {
            self.view.claims.claim(&claim.namespace, &claim.name).is_some_and(|claim| !is_unallocated(claim))
        };
        let awaited = self.awaited.get(&key.uid).is_some_and(|claims| claims.iter().any(is_allocated));
        let situation = PreemptorSituation {
            on_nominated: on_nominated.as_deref(),
            devices: if awaited { VictimDevices::Reclaimed } else { VictimDevices::Free },
            ..PreemptorSituation::default()
        };
        may_preempt(pod, &situation)
    }

    fn preemption_view<'v>(
        &'v self,
        nodes: impl Iterator<Item = &'v Node>,
        budgets: &'v [PodDisruptionBudget],
    ) -> PreemptionView<'v> {
        let claims = self.view.claims.claims().map(|claim| &**claim);
        let is_unbound = |pod: &Pod| pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none());
        let known = self.view.pods.pods().filter(|(pod, _)| is_unbound(pod));
        let places = known.filter_map(|(pod, stage)| {
            let (uid, node) = (pod.metadata.uid.as_deref()?, stage.placed_on()?);
            Some(InMemoryPlace { uid, node, stage: InMemoryStage::PreBind })
        });
        PreemptionView::new(nodes, self.view.all_pods(), claims)
            .with_budgets(budgets)
            .with_in_memory(places)
            .with_releasing(self.awaited.values().flatten())
    }

    fn room_for(&self, pod: &Pod, rule: Preempt, budgets: &[PodDisruptionBudget]) -> Result<PreemptionAnswer, String> {
        let allocator = allocator(self.settings, &self.view, &self.selectors);
        let view = self.preemption_view(self.view.nodes.values(), budgets);
        let fit = |question: &FitQuestion<'_>| self.fits_without(question);
        let preemption = Preemption::new(&allocator, self.view.claims.state(), &view, now());
        let preemption = preemption.with_harm(rule.into()).with_fit(&fit);
        let answer = with_deadline(|budget: Budget<'_>| preemption.make_room(pod, budget));
        answer.map_err(|error| error.to_string())
    }

    /// Judges a node for a pod, apart from its devices, once some pods are gone.
    fn fits_without(&self, question: &FitQuestion<'_>) -> Result<(), String> {
        let (pod, node) = (question.pod(), question.node());
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let needs = PodNeeds::new(pod).map_err(|error| error.to_string())?;
        let has = Allocatable::new(node).map_err(|error| error.to_string())?.without_unstated_limits();
        let mut usage = self.view.pods.usage_for(pod, name).into_owned();
        for gone in question.gone().iter().filter(|gone| self.is_on(gone, name)) {
            usage.remove(&PodUsage::held_by(gone).map_err(|error| error.to_string())?);
        }
        let misfits = needs.misfits(node, &has, &usage, &self.view.classes);
        misfits.first().map_or(Ok(()), |misfit| Err(misfit.to_string()))
    }

    fn is_on(&self, pod: &Pod, node: &str) -> bool {
        let stage = pod.metadata.uid.as_deref().and_then(|uid| self.view.pods.stage(uid));
        stage.and_then(PodStage::placed_on) == Some(node)
    }

    /// Preempts the victims, takes back what nobody uses, and nominates the pod. Should a victim stay, the pod is not nominated,
    /// and the decision is made anew.
    async fn preempt_for(&mut self, key: &PodKey, room: &Room) -> Result<(), LiveError> {
        let client = &self.cluster.client;
        for victim in &room.victims {
            let pod = PodKey::new(&victim.namespace, &victim.name, &victim.uid);
            if self.cancel(&victim.uid, key, room)? {
                continue;
            }
            if !self.is_leaving(&pod) {
                let scheduler = self.view.pod_at(&place_of(key)).map(profile_of).unwrap_or_default();
                if let Err(error) = pod_calls::preempt(client, &pod, scheduler).await {
                    note(format_args!("{key}: {pod} is not preempted: {}", text(&error)));
                    return Ok(());
                }
                let message = format!("Preempted by pod {} on node {}", key.uid, room.node());
                self.events.normal(&pod, "Preempted", message);
            }
        }
        self.counts.victims(room.victims.len());
        self.make(room.calls(&self.view.claims)).await;
        self.clear_nominations(key, room.node()).await;
        let command = Command::PatchNnn { pod: key.clone(), node: room.node().to_owned() };
        self.write_now(Call::Status { pod: key.clone(), command, since: None }).await;
        self.await_devices(key, room);
        self.tell(&Line::Preempted {
            pod: key.to_string(),
            node: room.node().to_owned(),
            victims: names(&room.victims),
        })?;
        Ok(())
    }

    /// Remembers the claims that become free for a pod.
    fn await_devices(&mut self, key: &PodKey, room: &Room) {
        let waiting = self.view.all_pods().filter(|pod| is_pending(pod, None));
        let waiting: BTreeSet<&str> = waiting.filter_map(|pod| pod.metadata.uid.as_deref()).collect();
        self.awaited.retain(|uid, _| waiting.contains(uid.as_str()));
        self.awaited.insert(key.uid.clone(), room.freed.clone());
    }

    /// Cancels the binding of a victim that is not bound yet; false if there is none, or it may be bound already.
    fn cancel(&mut self, uid: &str, preemptor: &PodKey, room: &Room) -> Result<bool, LiveError> {
        let Some(open) = self.open.get_mut(uid) else { return Ok(false) };
        if !open.binding.cancel("preempted before it was bound") {
            return Ok(false);
        }
        let message = format!("Preempted by pod {} on node {} (in kube-scheduler memory).", preemptor.uid, room.node());
        self.events.normal(open.binding.pod(), "Preempted", message);
        if open.waits {
            self.go_on_with(uid)?;
        }
        Ok(true)
    }

    fn is_leaving(&self, pod: &PodKey) -> bool {
        self.view.pod_at(&place_of(pod)).is_some_and(|pod| pod.metadata.deletion_timestamp.is_some())
    }

    /// Takes back the nominations for a node of pods that are less important than a preemptor.
    async fn clear_nominations(&mut self, preemptor: &PodKey, node: &str) {
        let priority = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default();
        let own = self.view.pod_at(&place_of(preemptor)).map(priority).unwrap_or_default();
        let nominated = self.view.pods.pods_nominated_to(node);
        let lower: Vec<PodKey> = nominated.filter(|pod| priority(pod) < own).map(|pod| key_of(pod)).collect();
        for pod in &lower {
            self.write_now(Call::clear(pod.clone())).await;
        }
    }

    /// Takes back the nomination of a pod for which nobody makes room.
    async fn give_up_nomination(&mut self, pod: &Pod, key: &PodKey) -> Result<(), LiveError> {
        self.awaited.remove(&key.uid);
        if nomination(pod).is_some() {
            self.write_now(Call::clear(key.clone())).await;
        }
        Ok(())
    }
}

fn is_unallocated(claim: &Arc<ResourceClaim>) -> bool {
    claim.status.as_ref().is_none_or(|status| status.allocation.is_none())
}

/// Returns the node that a pod is nominated for, until it is bound.
fn nomination(pod: &Pod) -> Option<&str> {
    let is_bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let node = pod.status.as_ref().and_then(|status| status.nominated_node_name.as_deref());
    node.filter(|node| !is_bound && !node.is_empty())
}

fn names(pods: &[PodIdentity]) -> Vec<String> {
    pods.iter().map(|pod| format!("{}/{}", pod.namespace, pod.name)).collect()
}
