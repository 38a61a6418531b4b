//! One node with its gates, its agents, a clock and an evaluator.

use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::condition::Observation;
use readiness::gate::NodeReadinessGate;
use readiness::node::{GatedNode, NodeView};
use readiness::policy::Policy;
use readiness::reconcile::output::{Actor, Change, Output};
use readiness::reconcile::{Decision, Role, Sighting, State, Step, Why, apply, step};
use serde_json::{from_value, json};

pub(crate) const A: &str = "a.example/Ready";
pub(crate) const B: &str = "b.example/Ready";

/// Seconds after the beginning of all tests.
pub(crate) fn at(seconds: i64) -> Timestamp {
    let zero: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    zero.checked_add(SignedDuration::from_secs(seconds)).unwrap()
}

pub(crate) fn taint(key: &str, effect: &str) -> Taint {
    Taint { key: key.to_owned(), effect: effect.to_owned(), ..Taint::default() }
}

/// Gate A: three seconds, then the taint `a`.
pub(crate) fn gate_a() -> NodeReadinessGate {
    NodeReadinessGate::new(A, 3).tainting(taint("a", "NoSchedule"))
}

/// Gate B: two seconds, then a warning.
pub(crate) fn gate_b() -> NodeReadinessGate {
    NodeReadinessGate::new(B, 2).bypassing()
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) policy: Policy,
    pub(crate) role: Role,
    pub(crate) node: GatedNode,
    pub(crate) state: State,
    pub(crate) instance: String,
    pub(crate) is_synced: bool,
    pub(crate) bootstrap_only: Vec<String>,
}

/// What a gate says whose condition is not True, without a timer.
pub(crate) fn blocked(observation: Observation) -> Decision {
    Decision::Blocked { why: Why::Condition(Sighting::Observed(observation)), deadline: None }
}

/// A step without borrows of the node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) outputs: Vec<Output>,
    pub(crate) schedulable: bool,
    pub(crate) gates: Vec<(String, Decision)>,
    pub(crate) wake_up: Option<Timestamp>,
}

impl World {
    pub(crate) fn new(policy: Policy, gates: &[NodeReadinessGate]) -> Self {
        let node: Node = from_value(json!({
            "metadata": {"name": "node-1", "uid": "u1"}, "status": {"nodeInfo": {"bootID": "boot-1"}}
        }))
        .unwrap();
        Self {
            policy,
            role: Role::Combined,
            node: GatedNode { node, gates: gates.to_vec() },
            state: State::default(),
            instance: "kubelet-1".to_owned(),
            is_synced: true,
            bootstrap_only: Vec::new(),
        }
    }

    /// The same world with Ready True.
    pub(crate) fn ready(mut self, seconds: i64) -> Self {
        self.report("Ready", "True", "KubeletReady", seconds);
        self
    }

    pub(crate) fn playing(self, role: Role) -> Self {
        Self { role, ..self }
    }

    pub(crate) fn conditions(&mut self) -> &mut Vec<NodeCondition> {
        self.node.node.status.get_or_insert_default().conditions.get_or_insert_default()
    }

    /// An agent, or kubelet, writes a condition.
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

    pub(crate) fn view(&self) -> NodeView<'_> {
        let view = self.node.view().with_kubelet_instance(&self.instance).with_bootstrap_only(&self.bootstrap_only);
        if self.is_synced { view } else { view.unsynced() }
    }

    /// Decides; nothing is written.
    pub(crate) fn look(&mut self, seconds: i64) -> Seen {
        self.look_at(at(seconds))
    }

    pub(crate) fn look_at(&mut self, now: Timestamp) -> Seen {
        let before = std::mem::take(&mut self.state);
        let (seen, state) = {
            let Step { outputs, verdict, wake_up, state, .. } =
                step(&self.policy, self.role, &self.view(), now, before);
            let gates = verdict.gates.iter().map(|gate| (gate.condition_type.to_owned(), gate.decision)).collect();
            (Seen { outputs, schedulable: verdict.schedulable, gates, wake_up }, state)
        };
        self.state = state;
        seen
    }

    /// Decides and writes.
    pub(crate) fn run(&mut self, seconds: i64) -> Seen {
        let seen = self.look(seconds);
        assert!(self.write(&seen.outputs, seconds).is_empty(), "refused at {seconds}");
        seen
    }

    pub(crate) fn write(&mut self, outputs: &[Output], seconds: i64) -> Vec<Output> {
        apply(&mut self.node.node, outputs, at(seconds)).into_iter().cloned().collect()
    }
}

impl Seen {
    pub(crate) fn decision(&self, name: &str) -> Decision {
        self.gates.iter().find(|(gate, _)| gate == name).unwrap_or_else(|| panic!("no gate {name}")).1
    }

    /// What is written to the node, without labels and events.
    pub(crate) fn writes(&self) -> Vec<String> {
        let is_write = |change: &Change| {
            !matches!(change, Change::Event { .. } | Change::SetLabel { .. } | Change::RemoveLabel { .. })
        };
        self.outputs.iter().map(|output| &output.change).filter(|change| is_write(change)).map(short).collect()
    }

    pub(crate) fn events(&self) -> Vec<&str> {
        let reason = |output: &'_ Output| match &output.change {
            Change::Event { reason, .. } => Some(reason.clone().leak() as &str),
            _ => None,
        };
        self.outputs.iter().filter_map(reason).collect()
    }

    pub(crate) fn by(&self, actor: Actor) -> Vec<String> {
        self.outputs.iter().filter(|output| output.actor == actor).map(|output| short(&output.change)).collect()
    }

    pub(crate) fn wakes(&self, seconds: i64) -> bool {
        self.wake_up == Some(at(seconds))
    }
}

/// A change in a word or two.
pub(crate) fn short(change: &Change) -> String {
    match change {
        Change::AddTaint { taint, .. } => format!("+{}:{}", taint.key, taint.effect),
        Change::RemoveTaint { taint, .. } => format!("-{}:{}", taint.key, taint.effect),
        Change::PatchCondition { condition_type, reason, .. } => format!("{condition_type}={reason}"),
        Change::SetLabel { key, value } => format!("+{key}={value}"),
        Change::RemoveLabel { key } => format!("-{key}"),
        Change::Event { reason, .. } => reason.clone(),
        other => panic!("{other:?}"),
    }
}
