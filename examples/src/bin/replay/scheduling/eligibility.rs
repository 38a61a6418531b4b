//! The operation `scheduling.may_preempt`: the reason for which a pod may preempt no others.

use std::collections::BTreeSet;

use dra_alloc::pods::StatusCode;
use dra_alloc::preemption::{Eligibility, GroupPreemption, PreemptorSituation, VictimDevices, may_preempt as decide};
use k8s_openapi::api::core::v1::{Node, Pod};
use serde::Deserialize;
use serde_json::{Value, json};

use super::input::{pod, result};
use super::preemption::FilterStatus;
use crate::operation::Operation;
use crate::refusal::{Refusal, objects, read};

#[derive(Deserialize)]
struct MayPreemptInput {
    pod: Value,
    #[serde(default)]
    nodes: Vec<Value>,
    #[serde(default)]
    pods: Vec<Value>,
    #[serde(default)]
    nominated_status: FilterStatus,
    #[serde(default)]
    reclaiming: bool,
    group: Option<Group>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Group {
    WorkloadAware,
    Placement,
}

pub(crate) fn may_preempt(input: Value) -> Result<Operation, Refusal> {
    let input: MayPreemptInput = read(input)?;
    let preemptor = pod("pod", input.pod)?;
    let nodes: Vec<Node> = objects("nodes", input.nodes.into_iter())?;
    let pods: Vec<Pod> = objects("pods", input.pods.into_iter())?;
    let code = match input.nominated_status {
        FilterStatus::Unschedulable => StatusCode::Unschedulable,
        FilterStatus::UnschedulableAndUnresolvable => StatusCode::UnschedulableAndUnresolvable,
        FilterStatus::Error => StatusCode::Error,
    };
    let group = match input.group {
        None => GroupPreemption::ByPod,
        Some(Group::WorkloadAware) => GroupPreemption::ByGroup,
        Some(Group::Placement) => GroupPreemption::Constrained,
    };
    let devices = if input.reclaiming { VictimDevices::Reclaimed } else { VictimDevices::Free };
    Ok(result(move || {
        let names: BTreeSet<&str> = nodes.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
        let nominated = preemptor.status.as_ref().and_then(|status| status.nominated_node_name.as_deref());
        let on_node: Option<Vec<&Pod>> = nominated.filter(|node| names.contains(node)).map(|node| {
            let is_there = |pod: &&Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
            pods.iter().filter(is_there).collect()
        });
        let situation =
            PreemptorSituation { on_nominated: on_node.as_deref(), nominated_status: Some(code), devices, group };
        let eligibility = decide(&preemptor, &situation);
        let reason = match eligibility {
            Eligibility::PolicyNever => Some("policy_never"),
            Eligibility::TerminatingVictim => Some("terminating_victim"),
            Eligibility::DevicesReclaimed => Some("devices_reclaimed"),
            Eligibility::ByGroup => Some("workload_aware"),
            Eligibility::Constrained => Some("placement"),
            _ => None,
        };
        let is_eligible = eligibility == Eligibility::Eligible;
        json!({"eligible": is_eligible, "reason": reason, "message": eligibility.message()})
    }))
}
