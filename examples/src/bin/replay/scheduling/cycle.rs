//! The operation `scheduling.cycle`: the extension points of one scheduler, step by step, against an API server.

use dra_alloc::pods::PodOptions;
use dra_alloc::{Classes, Inventory};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::api_server::ApiServer;
use super::input::{options, pod};
use super::rules::with_timeout;
use super::steps::Run;
use crate::alloc::carriers;
use crate::operation::Operation;
use crate::refusal::{Refusal, objects, read};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CycleInput {
    pod: Value,
    #[serde(default)]
    group_pods: Vec<Value>,
    #[serde(default)]
    pod_groups: Vec<Value>,
    #[serde(default)]
    claims: Vec<Value>,
    #[serde(default)]
    in_flight: Vec<Value>,
    #[serde(default)]
    classes: Vec<Value>,
    #[serde(default)]
    slices: Vec<Value>,
    #[serde(default)]
    nodes: Vec<Value>,
    #[serde(default)]
    group_cycle: bool,
    #[serde(default)]
    scheduled_in_group: usize,
    #[serde(default)]
    now: Timestamp,
    binding_timeout_seconds: Option<i64>,
    #[serde(default)]
    fail: Vec<String>,
    #[serde(default)]
    api_updates: Vec<Value>,
    #[serde(default)]
    api_deletes: Vec<String>,
    steps: Vec<String>,
}

/// Objects and settings of a replayed scheduler.
pub(super) struct World {
    pub(super) options: PodOptions,
    /// The pod of the first step, then the others of its group.
    pub(super) pods: Vec<Pod>,
    pub(super) groups: Vec<PodGroup>,
    pub(super) nodes: Vec<Node>,
    pub(super) inventory: Inventory,
    pub(super) classes: Classes,
    /// True if all pods are scheduled in one cycle of their group.
    pub(super) group_cycle: bool,
    pub(super) scheduled_in_group: usize,
    pub(super) now: Timestamp,
    /// Claims that somebody else writes at the first step `Api`.
    pub(super) updates: Vec<ResourceClaim>,
    /// Names of the claims that somebody else deletes at the first step `Api`.
    pub(super) deletes: Vec<String>,
}

pub(crate) fn cycle(input: Value) -> Result<Operation, Refusal> {
    let options = options(&input)?;
    let input: CycleInput = read(input)?;
    let mut pods = vec![pod("pod", input.pod)?];
    pods.extend(objects::<Pod>("groupPods", input.group_pods.into_iter())?);
    let slices: Vec<ResourceSlice> = carriers("slices", input.slices.into_iter())?;
    let classes: Vec<DeviceClass> = objects("classes", input.classes.into_iter())?;
    let claims: Vec<ResourceClaim> = carriers("claims", input.claims.into_iter())?;
    let in_flight: Vec<ResourceClaim> = carriers("inFlight", input.in_flight.into_iter())?;
    let world = World {
        options: with_timeout(options, input.binding_timeout_seconds),
        pods,
        groups: objects("podGroups", input.pod_groups.into_iter())?,
        nodes: objects("nodes", input.nodes.into_iter())?,
        inventory: Inventory::new(slices),
        classes: Classes::new(classes),
        group_cycle: input.group_cycle,
        scheduled_in_group: input.scheduled_in_group,
        now: input.now,
        updates: carriers("apiUpdates", input.api_updates.into_iter())?,
        deletes: input.api_deletes,
    };
    let (server, steps) = (ApiServer::new(claims, &input.fail)?, input.steps);
    Ok(Box::new(move |stopwatch| {
        let mut run = stopwatch.index(|| Run::new(&world, server.clone(), &in_flight))?;
        let answers = steps.iter().enumerate().map(|(index, step)| {
            stopwatch.run(|| run.step(step)).map_err(|error| error.at(&format!("steps[{index}]")))
        });
        let answers: Vec<Value> = answers.collect::<Result<_, _>>()?;
        Ok(json!({"result": {"steps": answers}}))
    }))
}
