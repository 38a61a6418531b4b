//! Test fixture: one node with its gates, its agents, a clock and an evaluator.

use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::{
    BlockReason, ConditionStatus, EffectiveStatus, EvaluatorRole, GateDecision, GatedNode, GatedNodeView, NodeChange,
    NodeReadinessGate, NodeState, NodeWrite, Policy, StepResult, step,
};
use serde_json::{from_value, json};

pub(crate) const A: &str = "a.example/Ready";
pub(crate) const B: &str = "b.example/Ready";

/// Returns a list of a state as it is stored, such as `ownedTaints`.
pub(crate) fn stored(state: &NodeState, list: &str) -> Vec<serde_json::Value> {
    serde_json::to_value(state).unwrap()[list].as_array().unwrap().clone()
}

/// Returns a gate with a change.
pub(crate) fn with(mut gate: NodeReadinessGate, change: impl FnOnce(&mut NodeReadinessGate)) -> NodeReadinessGate {
    change(&mut gate);
    gate
}

/// Returns the instant `seconds` after the start of every test.
pub(crate) fn at(seconds: i64) -> Timestamp {
    let zero: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    zero.checked_add(SignedDuration::from_secs(seconds)).unwrap()
}

pub(crate) fn taint(key: &str, effect: &str) -> Taint {
    Taint { key: key.to_owned(), effect: effect.to_owned(), ..Taint::default() }
}

/// Returns gate A: 3 s, then the taint `a`.
pub(crate) fn gate_a() -> NodeReadinessGate {
    NodeReadinessGate::new(A, 3).with_taint(taint("a", "NoSchedule"))
}

/// Returns gate B: 2 s, then a warning.
pub(crate) fn gate_b() -> NodeReadinessGate {
    NodeReadinessGate::new(B, 2).with_bypass_warning()
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) policy: Policy,
    pub(crate) role: EvaluatorRole,
    pub(crate) node: GatedNode,
    pub(crate) state: NodeState,
    pub(crate) instance: String,
    pub(crate) is_synced: bool,
    pub(crate) bootstrap_only: Vec<String>,
}

/// Returns the decision of a gate whose condition is not True, without a timer.
pub(crate) fn blocked(observation: ConditionStatus) -> GateDecision {
    GateDecision::Blocked { reason: BlockReason::Condition(EffectiveStatus::Observed(observation)), deadline: None }
}

/// Result of a step, without borrows of the node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) writes: Vec<NodeWrite>,
    pub(crate) schedulable: bool,
    pub(crate) gates: Vec<(String, GateDecision)>,
    pub(crate) requeue_at: Option<Timestamp>,
}

impl World {
    pub(crate) fn new(policy: Policy, gates: &[NodeReadinessGate]) -> Self {
        let node: Node = from_value(json!({
            "metadata": {"name": "node-1", "uid": "u1"}, "status": {"nodeInfo": {"bootID": "boot-1"}}
        }))
        .unwrap();
        Self {
            policy,
            role: EvaluatorRole::Combined,
            node: GatedNode { node, gates: gates.to_vec() },
            state: NodeState::default(),
            instance: "kubelet-1".to_owned(),
            is_synced: true,
            bootstrap_only: Vec::new(),
        }
    }

    /// Sets Ready to True.
    pub(crate) fn ready(mut self, seconds: i64) -> Self {
        self.report("Ready", "True", "KubeletReady", seconds);
        self
    }

    pub(crate) fn with_role(self, role: EvaluatorRole) -> Self {
        Self { role, ..self }
    }

    pub(crate) fn conditions(&mut self) -> &mut Vec<NodeCondition> {
        self.node.node.status.get_or_insert_default().conditions.get_or_insert_default()
    }

    /// Writes a condition, as an agent or kubelet does.
    pub(crate) fn report(&mut self, name: &str, status: &str, reason: &str, seconds: i64) {
        let conditions = self.conditions();
        let old = conditions.iter().position(|condition| condition.type_ == name).map(|index| conditions.remove(index));
        let kept = old.filter(|old| old.status == status).and_then(|old| old.last_transition_time);
        conditions.push(NodeCondition {
            type_: name.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            last_heartbeat_time: Some(Time(at(seconds))),
            last_transition_time: kept.or_else(|| Some(Time(at(seconds)))),
            ..NodeCondition::default()
        });
    }

    pub(crate) fn forget(&mut self, name: &str) {
        self.conditions().retain(|condition| condition.type_ != name);
    }

    pub(crate) fn condition(&self, name: &str) -> Option<(String, String)> {
        let conditions = self.node.node.status.as_ref()?.conditions.as_ref()?;
        let condition = conditions.iter().find(|condition| condition.type_ == name)?;
        Some((condition.status.clone(), condition.reason.clone().unwrap_or_default()))
    }

    pub(crate) fn boot(&mut self, id: &str) {
        let info = self.node.node.status.as_mut().unwrap().node_info.as_mut().unwrap();
        id.clone_into(&mut info.boot_id);
    }

    pub(crate) fn taints(&self) -> Vec<String> {
        let taints = self.node.node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
        taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
    }

    pub(crate) fn put_taint(&mut self, taint: Taint) {
        self.node.node.spec.get_or_insert_default().taints.get_or_insert_default().push(taint);
    }

    pub(crate) fn labels(&self) -> Vec<String> {
        self.node.node.metadata.labels.iter().flatten().map(|(key, value)| format!("{key}={value}")).collect()
    }

    pub(crate) fn view(&self) -> GatedNodeView<'_> {
        let view = self.node.view().with_kubelet_instance(&self.instance).with_bootstrap_only(&self.bootstrap_only);
        if self.is_synced { view } else { view.with_unsynced_cache() }
    }

    /// Makes a step without applying its writes.
    pub(crate) fn look(&mut self, seconds: i64) -> Seen {
        self.look_at(at(seconds))
    }

    pub(crate) fn look_at(&mut self, now: Timestamp) -> Seen {
        let before = std::mem::take(&mut self.state);
        let (seen, state) = {
            let StepResult { writes, verdict, requeue_at, state, .. } =
                step(&self.policy, self.role, &self.view(), now, before);
            let gates = verdict.gates.iter().map(|(name, decision)| ((*name).to_owned(), *decision)).collect();
            (Seen { writes, schedulable: verdict.schedulable, gates, requeue_at }, state)
        };
        self.state = state;
        seen
    }

    /// Makes a step and applies its writes.
    pub(crate) fn run(&mut self, seconds: i64) -> Seen {
        let seen = self.look(seconds);
        assert!(self.write(&seen.writes, seconds).is_empty(), "refused at {seconds}");
        seen
    }

    pub(crate) fn write(&mut self, writes: &[NodeWrite], seconds: i64) -> Vec<NodeWrite> {
        writes.iter().filter(|write| !write.apply(&mut self.node.node, at(seconds))).cloned().collect()
    }
}

impl Seen {
    pub(crate) fn decision(&self, name: &str) -> GateDecision {
        self.gates.iter().find(|(gate, _)| gate == name).unwrap_or_else(|| panic!("no gate {name}")).1
    }

    /// Returns the changes of taints and conditions in short form.
    pub(crate) fn changes(&self) -> Vec<String> {
        let is_write = |change: &NodeChange| {
            !matches!(change, NodeChange::Event { .. } | NodeChange::SetLabel { .. } | NodeChange::RemoveLabel { .. })
        };
        self.writes.iter().map(|write| &write.change).filter(|change| is_write(change)).map(short).collect()
    }

    pub(crate) fn events(&self) -> Vec<&str> {
        let reason = |write: &'_ NodeWrite| match &write.change {
            NodeChange::Event { reason, .. } => Some(reason.clone().leak() as &str),
            _ => None,
        };
        self.writes.iter().filter_map(reason).collect()
    }

    pub(crate) fn by_kubelet(&self) -> Vec<String> {
        self.writes.iter().filter(|write| write.is_by_kubelet()).map(|write| short(&write.change)).collect()
    }

    pub(crate) fn by_controller(&self) -> Vec<String> {
        self.writes.iter().filter(|write| !write.is_by_kubelet()).map(|write| short(&write.change)).collect()
    }

    pub(crate) fn wakes(&self, seconds: i64) -> bool {
        self.requeue_at == Some(at(seconds))
    }
}

/// Formats a change in one or two words.
pub(crate) fn short(change: &NodeChange) -> String {
    match change {
        NodeChange::AddTaint { taint, .. } => format!("+{}:{}", taint.key, taint.effect),
        NodeChange::RemoveTaint { taint, .. } => format!("-{}:{}", taint.key, taint.effect),
        NodeChange::PatchCondition { condition_type, reason, .. } => format!("{condition_type}={reason}"),
        NodeChange::SetLabel { key, value } => format!("+{key}={value}"),
        NodeChange::RemoveLabel { key } => format!("-{key}"),
        NodeChange::Event { reason, .. } => reason.clone(),
        other => panic!("{other:?}"),
    }
}
