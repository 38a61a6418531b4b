//! The operation `driver.plan`: devices and counter sets, split into slices.

use dra_alloc::Profile;
use dra_alloc::driver::{NodeChoice, PlanError, PoolSpec, SliceContents, SliceLimits, SlicePlan, split_into_slices};
use k8s_openapi::api::core::v1::NodeSelector;
use k8s_openapi::api::resource::v1::{CounterSet, Device};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::operation::Operation;
use crate::refusal::Refusal;

/// Pool with its name and nodes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pool {
    pub(super) name: String,
    pub(super) node_name: Option<String>,
    node_selector: Option<NodeSelector>,
    #[serde(default)]
    all_nodes: bool,
}

impl Pool {
    /// Returns the nodes that can use the devices: those that each device names itself, if the pool names none.
    pub(super) fn nodes(&self) -> NodeChoice<'_> {
        match (&self.node_name, &self.node_selector) {
            (Some(node), _) => NodeChoice::Node(node),
            (None, Some(selector)) => NodeChoice::Selector(selector),
            (None, None) if self.all_nodes => NodeChoice::All,
            (None, None) => NodeChoice::PerDevice,
        }
    }
}

/// API server by its version.
#[derive(Deserialize)]
struct Server {
    minor: u32,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ChunkName {
    #[default]
    Always64,
    WhenNeeded,
}

/// Contents of a slice by name, as in an answer.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PreviousSlice {
    devices: Vec<String>,
    shared_counters: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlanInput {
    driver: String,
    pool: Pool,
    server: Server,
    #[serde(default)]
    chunk: ChunkName,
    #[serde(default)]
    devices: Vec<Device>,
    #[serde(default)]
    shared_counters: Vec<CounterSet>,
    partition_type_attribute: Option<String>,
    previous: Option<Vec<PreviousSlice>>,
}

pub(crate) fn plan(input: Value) -> Result<Operation, Refusal> {
    super::operation(input, |input: &PlanInput| Ok(answer(input)))
}

fn answer(input: &PlanInput) -> Value {
    let pool = PoolSpec::new(&input.driver, &input.pool.name, input.pool.nodes())
        .with_devices(&input.devices)
        .with_counter_sets(&input.shared_counters)
        .with_partition_type_attribute(input.partition_type_attribute.as_deref());
    let limits = match (SliceLimits::of(Profile::of_minor(input.server.minor)), input.chunk) {
        (limits, ChunkName::Always64) => limits,
        (limits, ChunkName::WhenNeeded) => limits.filling_slices(),
    };
    let stored: Option<Vec<SliceContents<'_>>> =
        input.previous.as_ref().map(|slices| slices.iter().map(contents).collect());
    match split_into_slices(&pool, &limits, stored.as_deref()) {
        Ok(plan) => json!({"slices": plan.slices.iter().map(shown).collect::<Vec<_>>()}),
        Err(error) => json!({"error": refusal(&error)}),
    }
}

fn contents(slice: &PreviousSlice) -> SliceContents<'_> {
    SliceContents {
        devices: slice.devices.iter().map(String::as_str).collect(),
        counter_sets: slice.shared_counters.iter().map(String::as_str).collect(),
    }
}

fn shown(slice: &SlicePlan<'_>) -> Value {
    json!({
        "devices": slice.devices.iter().flatten().map(|device| &device.name).collect::<Vec<_>>(),
        "sharedCounters": slice.counter_sets.iter().map(|set| &set.name).collect::<Vec<_>>(),
        "partitionTypeAttribute": slice.partition_type_attribute,
    })
}

fn refusal(error: &PlanError) -> Value {
    match error {
        PlanError::CannotSplit { counter_sets, device_count } => {
            json!({"kind": "CannotSplit", "counterSets": counter_sets, "deviceCount": device_count})
        }
        PlanError::CounterSetMissing { device, counter_set } => {
            json!({"kind": "CounterSetMissing", "device": device, "counterSet": counter_set})
        }
        _ => json!({"kind": error.to_string()}),
    }
}
