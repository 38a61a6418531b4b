//! Other pods that would have to move, or to go, so that a pod fits.

use std::sync::Arc;

use dra_alloc::Budget;
use dra_alloc::autoscaler::{ClusterSnapshot, ScaleSimulator, SnapshotFit};
use dra_alloc::consolidation::{MovePlan, MoveProof, MoveRules, MovesAnswer, PodMove};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use nnn::memory::PodUsage;

use super::place::{Cluster, MOST_QUESTIONS, NOW, Search};
use super::{Move, Moves};
use crate::movable::is_fixed;
use crate::placing::with_shared_budget;
use crate::preempt::{RuledRoom, WhoGoes};
use crate::workload::node_of;

/// Largest number of pods for which it is asked who would have to go: each reads all pods. Of pods that are alike, one is asked
/// for; those of a daemon set are all different.
const MOST_ASKED: usize = 50;

/// Largest number of pods for which it is asked who would have to move.
const MOST_ASKED_FOR_MOVES: usize = 3;

/// Largest number of pods that would have to move.
const MOST_MOVES: usize = 4;

/// Largest work of a search for moves on a node, and of the whole search.
const WORK: (u64, u64) = (10_000, 50_000);

impl Cluster<'_> {
    /// Asks for a pod that fits nowhere who would have to move, and who would have to go.
    pub(super) fn others_of(&mut self, pod: &Pod, search: &Search, pods: &[Pod]) -> (Option<Moves>, Vec<RuledRoom>) {
        self.asked = self.asked.saturating_add(1);
        if self.asked > MOST_ASKED || !matches!(self.begin(pod), Ok(Some(_))) {
            return (None, Vec::new());
        }
        let placed: Vec<Pod> =
            self.placed.iter().filter_map(|(index, node)| on_node(pods.get(*index)?, node)).collect();
        let is_pinned = node_of(pod).is_some();
        let moves = if self.asked > MOST_ASKED_FOR_MOVES || is_pinned { None } else { self.moves(pod, pods, &placed) };
        (moves, self.room_for(pod, search, pods, &placed))
    }

    /// Asks for the least moves after which a pod fits: of pods of the cluster that somebody would make anew, and of those that the
    /// plan has placed.
    fn moves(&self, pod: &Pod, pods: &[Pod], placed: &[Pod]) -> Option<Moves> {
        let bound = || pods.iter().filter(|pod| node_of(pod).is_some());
        let snapshot = ClusterSnapshot::new(&self.nodes, bound().chain(placed).chain([pod]));
        let fit = SnapshotFit::new(&snapshot, &self.classes);
        // Of pods without a UID all stay if one has to.
        let fixed = bound().filter(|pod| is_fixed(pod)).map(|pod| pod.metadata.uid.as_deref().unwrap_or_default());
        let rules = MoveRules::default().with_budgets(&self.budgets).with_pinned(fixed).with_most_moves(MOST_MOVES);
        let answer = with_shared_budget(&self.questions, MOST_QUESTIONS, |budget| {
            let simulator = ScaleSimulator::new(&self.classes, &self.selectors, self.options, NOW);
            let simulator = simulator.with_budget(budget).with_groups(&self.groups).with_fit(&fit);
            let work = Budget::work(WORK.0).with_work_per_call(WORK.1);
            simulator.make_moves(&self.inventory, &self.tracker, &snapshot, &[pod], &rules, work)
        });
        match answer {
            // Without any move, something else than devices keeps it off.
            MovesAnswer::Moves(plan) if !plan.waves.is_empty() => Moves::new(&plan),
            MovesAnswer::Moves(_) | MovesAnswer::NoMoves(_) => None,
        }
    }

    /// Asks who would have to go so that a pod fits: pods of the cluster, and those that the plan has placed.
    fn room_for(&self, pod: &Pod, search: &Search, pods: &[Pod], placed: &[Pod]) -> Vec<RuledRoom> {
        let allocator = self.allocator();
        let claims: Vec<Arc<ResourceClaim>> = self.tracker.claims().cloned().collect();
        let all = pods.iter().filter(|pod| node_of(pod).is_some()).chain(placed).chain([pod]);
        let claims = claims.iter().map(|claim| &**claim);
        let cluster = WhoGoes::new(&allocator, self.tracker.state(), &self.nodes, all, claims, NOW);
        let cluster = cluster.with_guards(&self.budgets, &self.groups);
        let demand = PodUsage::wanted_by(pod).unwrap_or_default();
        let kept_off = self.nodes.iter().enumerate().filter_map(|(index, node)| {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            let is_open = search.usable.contains(&index) && self.room.refusal(name, &demand, &self.classes).is_none();
            (!is_open).then_some(name)
        });
        let kept_off: Vec<&str> = kept_off.collect();
        with_shared_budget(&self.questions, MOST_QUESTIONS, |budget| {
            cluster.tell(pod, self.rules.who, &kept_off, budget)
        })
    }
}

impl Moves {
    fn new(plan: &MovePlan) -> Option<Self> {
        let node = plan.placed.first()?.to.clone()?;
        let moves = plan.waves.iter().flatten().filter_map(Move::new).collect();
        Some(Self { node, moves, waves: plan.waves.len(), is_least: plan.proof == MoveProof::Least })
    }
}

impl Move {
    fn new(moved: &PodMove) -> Option<Self> {
        let PodMove { pod, from: Some(from), to: Some(to), .. } = moved else { return None };
        let name = if pod.namespace.is_empty() { pod.name.clone() } else { format!("{}/{}", pod.namespace, pod.name) };
        Some(Self { pod: name, from: from.clone(), to: to.clone() })
    }
}

/// Returns a pod as it is once it is bound; `None` if it is bound already.
fn on_node(pod: &Pod, node: &str) -> Option<Pod> {
    let mut pod = Some(pod).filter(|pod| pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none()))?.clone();
    pod.spec.get_or_insert_default().node_name = Some(node.to_owned());
    Some(pod)
}
