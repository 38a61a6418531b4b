//! Attempts to find a node for a pod, and their repetition.

use std::collections::VecDeque;
use std::sync::Arc;

use dra_alloc::claims::ClaimKey;
use dra_alloc::fit::{Allocatable, Misfit, PodNeeds};
use dra_alloc::pods::{
    Binding, BindingMemory, ClaimCalls, GroupRound, PodCycle, PodExplanation, PostFilter, pre_enqueue,
};
use dra_alloc::preemption::Holds;
use dra_alloc::queue::{QueueAttempt, Refusal, Remedy};
use dra_alloc::{Gate, allocated_devices};
use dra_live::claim_calls::carry_out;
use dra_live::failure::text;
use dra_live::touched::Nodes;
use dra_live::{now, pod_calls};
use examples::candidates::foreign_wish;
use examples::live::kinds::KindName;
use examples::placing::{NoNode, NodeVerdict, Rank, take_in, with_deadline};
use examples::room::usage_with_devices;
use k8s_openapi::api::core::v1::{Node, NodeSelector, Pod};
use nnn::PodKey;
use nnn::memory::{PodStage, PodUsage};
use tokio::time::Instant;

use super::binding::OpenBinding;
use super::calls::{Call, claim_of};
use super::counts::Outcome;
use super::ending::{Ending, Verdict};
use super::{LiveError, LiveScheduler, allocator, key_of, note, profile_of};

/// Number of attempts that take too long after which a pod waits as one that was refused.
const PATIENCE: u32 = 4;

/// Reason that a pod has no node, and its cycle if nodes were tried.
struct Unplaced {
    reason: String,
    verdict: Verdict,
    cycle: Option<Box<PodCycle>>,
}

impl Unplaced {
    fn new(reason: &dyn ToString, refusal: Refusal) -> Self {
        Self { reason: reason.to_string(), verdict: Verdict::Refused(refusal), cycle: None }
    }

    fn failed(reason: &dyn ToString) -> Self {
        Self { reason: reason.to_string(), verdict: Verdict::Failed, cycle: None }
    }
}

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

    /// Chooses a node, and takes what the pod needs of it in memory: devices, resources, ports.
    fn place(&mut self, pod: &Pod, key: &PodKey) -> Result<Binding, Unplaced> {
        let of_requests = || Refusal::new([Remedy::OwnRequests]);
        let needs = PodNeeds::new(pod).map_err(|error| Unplaced::new(&error, of_requests()))?;
        let mut round = GroupRound::default();
        let view = &self.view;
        let mut cycle = PodCycle::pre_filter(pod, None, &view.claims, &view.classes, &round, self.options)
            .map_err(|blocked| Unplaced::new(&blocked, Refusal::blocked(pod, &blocked)))?;
        if let Some((reason, refusal)) = cycle.as_ref().and_then(|cycle| self.left.refusal(cycle)) {
            return Err(Unplaced::new(&reason, refusal));
        }
        let (chosen, mut refusal) = self.choose(pod, &needs, cycle.as_mut());
        let claims = cycle.as_ref().map(PodCycle::claims).unwrap_or_default().iter();
        for claim in claims.filter(|claim| !claim.is_for_extended_resources()) {
            refusal.add(Remedy::Claim { claim: ClaimKey::from_metadata(&claim.claim().metadata) });
        }
        let node = match chosen {
            Ok(node) => node,
            Err(NoNode::Failed(reason)) => {
                for remedy in [Remedy::AnyDevices, Remedy::NodeAllocatable, Remedy::NodeLabels] {
                    refusal.add(remedy);
                }
                return Err(Unplaced::new(&reason, refusal));
            }
            Err(NoNode::TimedOut(reason)) => return Err(Unplaced::failed(&reason)),
            Err(NoNode::Nowhere(explanation)) => {
                let reason = self.left.complete(explanation.to_string());
                return Err(Unplaced { cycle: cycle.map(Box::new), ..Unplaced::new(&reason, refusal) });
            }
        };
        let usage = self.usage(pod, &needs, cycle.as_ref(), &node);
        let usage = usage.map_err(|error| Unplaced::new(&error, of_requests()))?;
        if let Some(cycle) = &mut cycle {
            let reserved = cycle.reserve(&node, &mut self.view.claims, &mut round);
            self.touch_devices_of(cycle);
            if let Err(error) = reserved {
                let _ = cycle.unreserve(&mut self.view.claims);
                return Err(Unplaced::failed(&error));
            }
        }
        let mut memory = BindingMemory { pods: &mut self.view.pods, claims: &mut self.view.claims };
        let binding = Binding::begin(key, &node, usage, cycle, &mut memory);
        // Nobody waits for a node of which more is taken: verdicts change, and no pod is brought forward.
        self.kinds.touch(&Nodes::These(self.view.pods.take_changed_nodes()));
        binding.map_err(|error| Unplaced::failed(&error))
    }

    /// Returns what a pod takes of a node, with what its devices take of it (KEP-5517).
    fn usage(&self, pod: &Pod, needs: &PodNeeds<'_>, cycle: Option<&PodCycle>, node: &str) -> Result<PodUsage, String> {
        match (cycle, self.view.nodes.get(node)) {
            (Some(cycle), Some(node)) if self.settings.gates.has(Gate::NodeAllocatableResources) => {
                usage_with_devices(pod, cycle, &self.view.inventory, node)
            }
            _ => Ok(needs.usage().clone()),
        }
    }

    /// Chooses the node with the highest score, of several the one where the devices are best, the first by name of these; and
    /// returns what the others have refused the pod for.
    fn choose(
        &mut self,
        pod: &Pod,
        needs: &PodNeeds<'_>,
        mut cycle: Option<&mut PodCycle>,
    ) -> (Result<String, NoNode>, Refusal) {
        let allocator = allocator(self.settings, &self.view, &self.selectors);
        let holds = if cycle.is_some() { self.holds(&allocator) } else { Holds::default() };
        let has_holds = holds.iter().next().is_some();
        let (view, counts, now) = (&self.view, &self.counts, now());
        // Beside holds a verdict depends on the priority of the pod.
        let is_nominated = pod.metadata.uid.as_deref().is_some_and(|uid| view.pods.nomination(uid).is_some());
        let kind = KindName::of(pod, cycle.as_deref()).filter(|_| !is_nominated && !has_holds);
        let best_score = cycle.as_ref().map_or(0, |cycle| cycle.best_score());
        let counts_devices = self.settings.gates.has(Gate::NodeAllocatableResources);
        let only = cycle.as_ref().and_then(|cycle| only_node(cycle)).and_then(|name| view.nodes.get(&name));
        let mut refusal = Refusal::of_nodes();
        let chosen = with_deadline(|budget| {
            let mut judge = |node: &Node| {
                counts.judged(1);
                let name = node_name(node);
                let has = match Allocatable::new(node) {
                    Ok(has) => has.without_unstated_limits(),
                    Err(error) => {
                        refusal.add(Remedy::NodeAllocatable);
                        return Ok(refused(name, [error]));
                    }
                };
                let usage = view.pods.usage_for(pod, name);
                let misfits = needs.misfits(node, &has, &usage, &view.classes);
                if !misfits.is_empty() {
                    return Ok(misfit(name, misfits, &mut refusal));
                }
                let Some(cycle) = cycle.as_deref_mut() else { return Ok(NodeVerdict::Fits(Rank::new(0, None))) };
                let state = holds.beside(view.claims.state(), pod, name);
                let verdict = cycle.filter(node, &allocator, &state, now, budget);
                if let Some(reason) = verdict.refusal() {
                    refusal.add_node(cycle, &allocator, reason);
                    // Room that is kept for a nominated pod is none.
                    if has_holds {
                        refusal.add(Remedy::Room);
                    }
                }
                let verdict = take_in(cycle, node, verdict)?;
                if !counts_devices || matches!(verdict, NodeVerdict::Refused(_)) {
                    return Ok(verdict);
                }
                let taken = usage_with_devices(pod, cycle, &view.inventory, node).map_err(NoNode::Failed)?;
                let misfits = has.misfits(&taken, &usage, &view.classes);
                Ok(if misfits.is_empty() { verdict } else { misfit(name, misfits, &mut refusal) })
            };
            match only {
                Some(only) if matches!(judge(only)?, NodeVerdict::Fits(_)) => Ok(node_name(only).to_owned()),
                _ => self.kinds.best_node(kind.as_ref(), &view.nodes, best_score, judge),
            }
        });
        let refusal = self.kinds.add_refusal(kind.as_ref(), &refusal);
        (chosen, refusal)
    }

    /// Notes that devices of a cycle are taken or given back: nodes that see them are judged anew.
    pub(super) fn touch_devices_of(&mut self, cycle: &PodCycle) {
        let allocations = cycle.claims().iter().flat_map(|claim| {
            let chosen = claim.chosen().and_then(|chosen| chosen.devices.as_ref()?.results.as_deref());
            chosen.into_iter().flatten().chain(allocated_devices(claim.claim()))
        });
        let nodes = self.view.nodes_of(allocations);
        self.touch(&nodes);
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

    /// Says why a pod is not placed: in an event, and the first time in a line and in its condition. Returns the call.
    fn say_refused(&mut self, pod: &Pod, reason: &str) -> Option<Call> {
        let key = key_of(pod);
        self.events.warning(&key, "FailedScheduling", reason.to_owned());
        if self.queue.is_first_refusal(&key.uid) {
            note(format_args!("{key}: {reason}"));
            return Call::write_reason(pod, "Unschedulable", reason);
        }
        // A node that is promised to a pod which does not fit there is no other's.
        let is_nominated = self.preempt.is_none() && self.view.pods.nomination(&key.uid).is_some();
        is_nominated.then(|| Call::clear(key))
    }

    /// Makes a call about the status of a pod before anything else.
    pub(super) async fn write_now(&mut self, call: Call) {
        let Call::Status { pod, command } = call else { return };
        match pod_calls::write_status(&self.cluster.client, &pod, &command).await {
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

fn misfit(node: &str, misfits: Vec<Misfit>, refusal: &mut Refusal) -> NodeVerdict {
    for misfit in &misfits {
        refusal.add_misfit(misfit);
    }
    refused(node, misfits)
}

fn refused(node: &str, reasons: impl IntoIterator<Item = impl ToString>) -> NodeVerdict {
    let mut explanation = PodExplanation::default();
    for reason in reasons {
        explanation.add_other(node, reason.to_string());
    }
    NodeVerdict::Refused(explanation)
}

fn node_name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

/// Returns the only node on which an allocated claim of the cycle can be used, if its allocation names one.
fn only_node(cycle: &PodCycle) -> Option<String> {
    let mut allocations = cycle.claims().iter().filter_map(|claim| claim.claim().status.as_ref()?.allocation.as_ref());
    allocations.find_map(|allocation| named_node(allocation.node_selector.as_ref()?))
}

fn named_node(selector: &NodeSelector) -> Option<String> {
    let [term] = selector.node_selector_terms.as_slice() else { return None };
    let names =
        term.match_fields.iter().flatten().find(|field| field.key == "metadata.name" && field.operator == "In")?;
    match names.values.as_deref() {
        Some([name]) => Some(name.clone()),
        _ => None,
    }
}
