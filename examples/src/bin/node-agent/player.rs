//! One node of a simulation: the steps of the reconciler on it, and the conditions that are written to it.

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use readiness::network::NetworkCondition;
use readiness::{EvaluatorRole, GatedNode, NodeState, Policy, step};

use super::network::NetworkWatch;
use super::rules::OnNode;
use super::scene::Scene;
use super::timeline::ConditionReport;

/// Maximum number of steps at one instant. Two are enough for every policy.
const MAX_STEPS: usize = 4;

/// Node with what kubelet and the reconciler remember of it.
pub(crate) struct Player {
    pub(crate) node: GatedNode,
    pub(crate) state: NodeState,
    pub(crate) kubelet: u32,
    pub(crate) boots: u32,
    pub(crate) requeue_at: Option<Timestamp>,
    pub(crate) network: Option<NetworkWatch>,
    pub(crate) of_rules: OnNode,
}

/// Steps and applies the writes until a step has none.
pub(crate) fn settle(player: &mut Player, policy: &Policy, role: EvaluatorRole, now: Timestamp) -> Scene {
    let mut scene = Scene {
        at: 0,
        node: String::new(),
        happened: Vec::new(),
        writes: Vec::new(),
        schedulable: false,
        gates: Vec::new(),
        network: None,
        taints: Vec::new(),
        requeue_at: None,
    };
    for _ in 0..MAX_STEPS {
        let instance = player.kubelet.to_string();
        let view = player.node.view().with_kubelet_instance(&instance);
        let step = step(policy, role, &view, now, std::mem::take(&mut player.state));
        let gates = step.verdict.gates.iter().map(|(name, decision)| ((*name).to_owned(), *decision));
        (scene.schedulable, scene.gates) = (step.verdict.schedulable, gates.collect());
        (player.state, player.requeue_at) = (step.state, step.requeue_at);
        let writes = step.writes;
        if writes.is_empty() {
            break;
        }
        // Nobody else writes here, so nothing can be refused.
        for write in &writes {
            write.apply(&mut player.node.node, now);
        }
        scene.writes.extend(writes);
    }
    let taints = player.node.view();
    scene.taints = taints.taints().iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
    scene
}

/// Lets kubelet write the condition of the node's network, and returns it in words if it has changed.
pub(crate) fn report_network(player: &mut Player, now: Timestamp) -> Option<String> {
    let network = player.network.as_mut()?;
    let changed = network.observe(&player.node.view(), now);
    player.requeue_at = player.requeue_at.into_iter().chain(network.next(now)).min();
    let condition = changed?;
    let report = ConditionReport {
        type_: NetworkCondition::TYPE.to_owned(),
        status: condition.status.to_owned(),
        reason: condition.reason.to_owned(),
        message: condition.message,
    };
    write(player, &report, now);
    Some(format!("{} is {} ({}): {}", report.type_, report.status, report.reason, report.message))
}

/// Writes a condition of the node. Its time of transition stays if its status does.
pub(crate) fn write(player: &mut Player, report: &ConditionReport, instant: Timestamp) {
    let conditions = player.node.node.status.get_or_insert_default().conditions.get_or_insert_default();
    let place = conditions.iter().position(|condition| condition.type_ == report.type_);
    let old = place.map(|index| conditions.remove(index));
    let kept = old.filter(|old| old.status == report.status).and_then(|old| old.last_transition_time);
    let condition = NodeCondition {
        type_: report.type_.clone(),
        status: report.status.clone(),
        reason: Some(report.reason.clone()),
        message: Some(report.message.clone()),
        last_heartbeat_time: Some(Time(instant)),
        last_transition_time: kept.or(Some(Time(instant))),
    };
    conditions.insert(place.unwrap_or(conditions.len()), condition);
}
