//! Placement of a pod: the choice of a node, and what the pod takes of it in memory.

use dra_alloc::claims::ClaimKey;
use dra_alloc::fit::{Allocatable, Misfit, PodNeeds};
use dra_alloc::pods::{Binding, BindingMemory, GroupRound, PodCycle, PodExplanation};
use dra_alloc::preemption::Holds;
use dra_alloc::queue::{Refusal, Remedy};
use dra_alloc::{Gate, allocated_devices};
use dra_live::now;
use dra_live::touched::Nodes;
use examples::live::kinds::KindName;
use examples::placing::{NoNode, NodeVerdict, Rank, take_in, with_deadline};
use examples::room::usage_with_devices;
use k8s_openapi::api::core::v1::{Node, NodeSelector, Pod};
use nnn::PodKey;
use nnn::memory::PodUsage;

use super::ending::Verdict;
use super::{LiveScheduler, allocator};

/// Reason that a pod has no node, and its cycle if nodes were tried.
pub(super) struct Unplaced {
    pub(super) reason: String,
    pub(super) verdict: Verdict,
    pub(super) cycle: Option<Box<PodCycle>>,
}

impl Unplaced {
    fn new(reason: &dyn ToString, refusal: Refusal) -> Self {
        Self { reason: reason.to_string(), verdict: Verdict::Refused(refusal), cycle: None }
    }

    fn failed(reason: &dyn ToString) -> Self {
        Self { reason: reason.to_string(), verdict: Verdict::Failed, cycle: None }
    }
}

impl LiveScheduler<'_> {
    /// Chooses a node, and takes what the pod needs of it in memory: devices, resources, ports.
    pub(super) fn place(&mut self, pod: &Pod, key: &PodKey) -> Result<Binding, Unplaced> {
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
