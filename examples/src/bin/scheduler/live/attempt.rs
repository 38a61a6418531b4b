//! Attempts to find a node for a pod, and their repetition.

use dra_alloc::fit::{Allocatable, PodNeeds};
use dra_alloc::pods::{ClaimCalls, GroupRound, PodCycle, PodExplanation, PostFilter, PreBind, pre_enqueue};
use dra_alloc::{Gate, allocated_devices};
use examples::candidates::foreign_wish;
use examples::live::claim_calls::carry_out;
use examples::live::failure::text;
use examples::live::kinds::KindName;
use examples::live::touched::Nodes;
use examples::live::{now, pod_calls};
use examples::placing::{self, NoNode, NodeVerdict, Rank, with_deadline};
use examples::room::usage_with_devices;
use k8s_openapi::api::core::v1::{Node, NodeSelector, Pod};
use nnn::memory::{PodStage, PodUsage};
use nnn::{PodKey, PreFlight};
use tokio::time::Instant;

use super::counts::Outcome;
use super::queue::Setback;
use super::{LiveError, LiveScheduler, allocator, note, place_of};

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

/// Reason that a pod has no node, and its cycle if nodes were tried.
struct Unplaced {
    reason: String,
    setback: Setback,
    cycle: Option<Box<PodCycle>>,
}

impl Unplaced {
    fn new(reason: &dyn ToString) -> Self {
        Self { reason: reason.to_string(), setback: Setback::NoNode, cycle: None }
    }
}

impl LiveScheduler<'_> {
    /// Goes on with bindings, then tries the pods whose time has come.
    pub(super) async fn look(&mut self) -> Result<(), LiveError> {
        self.go_on_with_bindings().await?;
        let doubts = self.view.claims.calls_in_doubt();
        self.make(doubts).await;
        for place in self.queue.take_due() {
            let Some(pod) = self.view.pods.pod(&place.0, &place.1).cloned() else { continue };
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            // One that has a node, or is on its way to one, is not tried again, whatever the watch still shows.
            if self.view.pods.stage(&uid).is_some_and(PodStage::is_waiting) {
                self.counts.looked_at(1);
                self.attempt(&pod, &uid).await?;
            }
        }
        Ok(())
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
            let message = format!("{wish}: this scheduler knows no volumes, other pods, spread and groups");
            return self.refuse(&key, &message, Setback::Foreign, begin).await;
        }
        match self.place(pod, uid) {
            Err(Unplaced { reason, setback, cycle }) => {
                self.refuse(&key, &reason, setback, begin).await?;
                match cycle {
                    // Where a claim of its own was in the way, the pod is tried anew first.
                    Some(cycle) if !self.free(pod, &cycle).await => self.make_room(pod, &key).await,
                    _ => Ok(()),
                }
            }
            Ok((node, cycle)) => {
                let choice = cycle.as_ref().and_then(|cycle| cycle.choice_on(&node)?.reason.as_ref());
                if let Some(reason) = choice {
                    note(format_args!("{key}: {reason}"));
                }
                if let Err(error) = self.announce(&key, &node, cycle.as_ref()).await {
                    self.view.pods.forget_assumed(uid).map_or_else(note, drop);
                    self.touch_changed();
                    self.counts.attempt(Outcome::Error, begin.elapsed());
                    note(format_args!("{key}: not nominated to {node}: {}", text(&error)));
                    self.queue.delay(&place_of(&key), Setback::Write);
                    if let Some(mut cycle) = cycle {
                        self.touch_devices_of(&cycle);
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

    /// Writes the nomination of a pod if claims are written before its binding, and it is not nominated to the node already.
    async fn announce(&mut self, pod: &PodKey, node: &str, cycle: Option<&PodCycle>) -> Result<(), kube::Error> {
        let has_work = cycle.is_some_and(|cycle| cycle.pre_flight() == PreFlight::Success);
        let is_nominated = self.view.pods.nomination(&pod.uid) == Some(node);
        if has_work && !is_nominated {
            let nominated = pod_calls::nominate(&self.cluster.client, pod, node).await?;
            self.learn(nominated);
        }
        Ok(())
    }

    /// Chooses a node, and takes what the pod needs of it in memory: devices, resources, ports.
    fn place(&mut self, pod: &Pod, uid: &str) -> Result<(String, Option<PodCycle>), Unplaced> {
        let needs = PodNeeds::new(pod).map_err(|error| Unplaced::new(&error))?;
        let mut round = GroupRound::default();
        let view = &self.view;
        let begun = pre_enqueue(pod, &view.claims, self.options)
            .and_then(|()| PodCycle::pre_filter(pod, None, &view.claims, &view.classes, &round, self.options));
        let mut cycle = begun.map_err(|blocked| Unplaced::new(&blocked))?;
        let node = match self.choose(pod, &needs, cycle.as_mut()) {
            Ok(node) => node,
            Err(NoNode::Failed(reason)) => return Err(Unplaced::new(&reason)),
            Err(NoNode::TimedOut(reason)) => {
                return Err(Unplaced { setback: Setback::TimedOut, ..Unplaced::new(&reason) });
            }
            Err(NoNode::Nowhere(explanation)) => {
                return Err(Unplaced { cycle: cycle.map(Box::new), ..Unplaced::new(&explanation) });
            }
        };
        let usage = self.usage(pod, &needs, cycle.as_ref(), &node).map_err(|error| Unplaced::new(&error))?;
        if let Some(cycle) = &mut cycle {
            let reserved = cycle.reserve(&node, &mut self.view.claims, &mut round);
            self.touch_devices_of(cycle);
            if let Err(error) = reserved {
                let _ = cycle.unreserve(&mut self.view.claims);
                return Err(Unplaced::new(&error));
            }
        }
        let assumed = self.view.pods.assume(uid, &node, usage);
        // Nobody waits for a node of which more is taken: verdicts change, and no pod is brought forward.
        self.kinds.touch(&Nodes::These(self.view.pods.take_changed_nodes()));
        match assumed {
            Ok(()) => Ok((node, cycle)),
            Err(error) => {
                cycle.map(|mut cycle| cycle.unreserve(&mut self.view.claims));
                Err(Unplaced::new(&error))
            }
        }
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

    /// Chooses the node with the highest score, of several the one where the devices are best, the first by name of these.
    fn choose(&mut self, pod: &Pod, needs: &PodNeeds<'_>, mut cycle: Option<&mut PodCycle>) -> Result<String, NoNode> {
        let allocator = allocator(self.settings, &self.view, &self.selectors);
        let holds = self.holds(&allocator);
        let (view, counts, now) = (&self.view, &self.counts, now());
        // Beside holds a verdict depends on the priority of the pod.
        let is_nominated = pod.metadata.uid.as_deref().is_some_and(|uid| view.pods.nomination(uid).is_some());
        let kind = KindName::of(pod, cycle.as_deref()).filter(|_| !is_nominated && holds.iter().next().is_none());
        let best_score = cycle.as_ref().map_or(0, |cycle| cycle.best_score());
        let counts_devices = self.settings.gates.has(Gate::NodeAllocatableResources);
        let only = cycle.as_ref().and_then(|cycle| only_node(cycle)).and_then(|name| view.nodes.get(&name));
        with_deadline(|budget| {
            let mut judge = |node: &Node| {
                counts.judged(1);
                let name = node_name(node);
                let has = match Allocatable::new(node) {
                    Ok(has) => has.without_unstated_limits(),
                    Err(error) => return Ok(refused(name, [error])),
                };
                let usage = view.pods.usage_for(pod, name);
                let misfits = needs.misfits(node, &has, &usage, &view.classes);
                let Some(cycle) = cycle.as_deref_mut().filter(|_| misfits.is_empty()) else {
                    return Ok(if misfits.is_empty() {
                        NodeVerdict::Fits(Rank::new(0, None))
                    } else {
                        refused(name, misfits)
                    });
                };
                let state = holds.beside(view.claims.state(), pod, name);
                let verdict = placing::judge(cycle, node, &allocator, &state, now, budget)?;
                if !counts_devices || matches!(verdict, NodeVerdict::Refused(_)) {
                    return Ok(verdict);
                }
                let taken = usage_with_devices(pod, cycle, &view.inventory, node).map_err(NoNode::Failed)?;
                let misfits = has.misfits(&taken, &usage, &view.classes);
                Ok(if misfits.is_empty() { verdict } else { refused(name, misfits) })
            };
            match only {
                Some(only) if matches!(judge(only)?, NodeVerdict::Fits(_)) => Ok(node_name(only).to_owned()),
                _ => self.kinds.best_node(kind.as_ref(), &view.nodes, best_score, judge),
            }
        })
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

    /// Says why a pod is not placed, once, and tries it later.
    async fn refuse(&mut self, pod: &PodKey, reason: &str, setback: Setback, begin: Instant) -> Result<(), LiveError> {
        self.counts.attempt(Outcome::Unschedulable, begin.elapsed());
        let client = &self.cluster.client;
        if self.queue.delay(&place_of(pod), setback) {
            note(format_args!("{pod}: {reason}"));
            match pod_calls::write_unschedulable(client, pod, reason).await {
                Ok(written) => self.learn(written),
                Err(error) => note(format_args!("{pod}: condition not written: {}", text(&error))),
            }
        } else if self.preempt.is_none() && self.view.pods.nomination(&pod.uid).is_some() {
            // A node that is promised to a pod which does not fit there is no other's.
            self.clear_nomination(pod).await;
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

    /// Frees a claim that keeps a pod from all nodes, if nobody else uses it. Returns false if there is none.
    async fn free(&mut self, pod: &Pod, cycle: &PodCycle) -> bool {
        let decision = cycle.post_filter(0);
        self.make(decision.calls()).await;
        if decision == PostFilter::Nothing {
            return false;
        }
        note(decision.reason());
        self.touch_devices_of(cycle);
        // Should the write have failed, the decision is made again, and from verdicts that are new.
        if let Some(kind) = KindName::of(pod, Some(cycle)) {
            self.kinds.forget(&kind);
        }
        true
    }
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
