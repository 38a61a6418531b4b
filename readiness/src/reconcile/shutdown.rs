//! End of the reconciler: the writes that remove its taints and labels.

use k8s_openapi::api::core::v1::Taint;

use super::evaluator_role::EvaluatorRole;
use super::label_sync::key_writer;
use super::node_state::NodeState;
use super::node_write::{NodeChange, NodeWrite, WriteActor};
use super::step_result::StepResult;
use super::verdict::NodeVerdict;
use crate::node::{CacheSync, GatedNodeView};

impl NodeState {
    /// Returns the writes that remove all taints and labels that the reconciler set, for a cluster that stops using gates
    /// (a downgrade). Conditions stay: they belong to their agents.
    #[must_use]
    pub fn shutdown_writes(&self) -> Vec<NodeWrite> {
        let taints = self.owned_taints.union(&self.leaving_taints).map(|id| {
            let taint = Taint { key: id.key.clone(), effect: id.effect.clone(), ..Taint::default() };
            NodeWrite { actor: WriteActor::Nlc, change: NodeChange::RemoveTaint { taint, resource_version: None } }
        });
        let labels = self.owned_labels.union(&self.leaving_labels);
        let labels = labels
            .map(|key| NodeWrite { actor: key_writer(key), change: NodeChange::RemoveLabel { key: key.clone() } });
        taints.chain(labels).collect()
    }
}

/// Computes a step in [`PolicyMode::Off`](crate::PolicyMode::Off): removes the taints and labels that the reconciler
/// set, once.
pub(super) fn switched_off<'a>(role: EvaluatorRole, view: &GatedNodeView<'a>, mut state: NodeState) -> StepResult<'a> {
    state.ready = view.is_ready();
    let mut writes = Vec::new();
    if view.cache_sync == CacheSync::Synced {
        writes = state.shutdown_writes();
        writes.retain(|write| role.plays(write.actor));
        let kept = NodeState {
            uid: state.uid,
            boot_id: state.boot_id,
            kubelet_instance: state.kubelet_instance,
            ready: state.ready,
            counters: state.counters,
            is_warm: true,
            ..NodeState::default()
        };
        state = kept;
    }
    let verdict = NodeVerdict { schedulable: state.ready, gates: Vec::new() };
    state.open = verdict.schedulable;
    StepResult { writes, verdict, requeue_at: None, state }
}
