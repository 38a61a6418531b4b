//! Operations that ask one decision table: `nnn.nominator_update`, `nnn.binding_start`, `nnn.cycle_result`,
//! `nnn.prebind_groups` and `nnn.needs_patch`.

use dra_attrs::{Component, Gate, GateSet, Profile};
use nnn::binding::{BindingStart, PreBindPlugin};
use nnn::{CycleOutcome, NominatingInfo, Nominator, PreFlight};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::operation::Operation;
use crate::refusal::{Refusal, read};
use crate::stopwatch::Stopwatch;

fn answer(decide: impl Fn() -> Value + 'static) -> Operation {
    Box::new(move |stopwatch: &mut Stopwatch| Ok(json!({"result": stopwatch.run(&decide)})))
}

/// Reads a field with a node name. The empty name is `None`.
fn node_name(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}

fn shown(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[derive(Deserialize)]
struct UpdateInput {
    #[serde(default)]
    old: String,
    #[serde(default)]
    new: String,
    #[serde(default)]
    memory: String,
}

pub(crate) fn nominator_update(input: Value) -> Result<Operation, Refusal> {
    let UpdateInput { old, new, memory } = read(input)?;
    Ok(answer(move || {
        json!(Nominator::decide_update(node_name(&old), node_name(&new), node_name(&memory)).unwrap_or_default())
    }))
}

/// Status of a plugin, alone or with its name and error.
#[derive(Deserialize)]
#[serde(untagged, expecting = "neither a status nor an object with plugin, status and error")]
pub(super) enum PreFlightInput {
    Status(String),
    Plugin { plugin: Option<String>, status: String, error: Option<String> },
}

/// Reads pre-flights. A plugin without a name gets its position.
pub(super) fn pre_flights(inputs: &[PreFlightInput]) -> Vec<PreFlight> {
    let read = |(index, input): (usize, &PreFlightInput)| {
        let (plugin, status, error) = match input {
            PreFlightInput::Status(status) => (None, status, None),
            PreFlightInput::Plugin { plugin, status, error } => (plugin.as_deref(), status, error.as_deref()),
        };
        PreFlight::from_status(plugin.unwrap_or(&index.to_string()), status, error.unwrap_or_default())
    };
    inputs.iter().enumerate().map(read).collect()
}

#[derive(Deserialize)]
struct StartInput {
    #[serde(default)]
    gate: bool,
    #[serde(default)]
    preflight: Vec<PreFlightInput>,
    #[serde(default)]
    waiting: bool,
    #[serde(default)]
    nnn: String,
    host: String,
}

pub(crate) fn binding_start(input: Value) -> Result<Operation, Refusal> {
    let input: StartInput = read(input)?;
    if input.host.is_empty() {
        return Err(Refusal::field("host", "must be set"));
    }
    let pre_flights = pre_flights(&input.preflight);
    Ok(answer(move || {
        let gates = GateSet::of(Profile::V1_37).with_values([(Gate::NominatedNodeNameForExpectation, input.gate)]);
        let scheduler = Component::new(Profile::V1_37, gates);
        let mut start = BindingStart::new(scheduler, &pre_flights, &input.host);
        start.waits_on_permit = input.waiting;
        start.nnn = node_name(&input.nnn);
        match start.no_patch_reason() {
            Ok(None) => json!(["PatchNnn", input.host]),
            Ok(Some(reason)) => json!(["None", reason]),
            Err(_) => json!(["Fail", "PreFlight"]),
        }
    }))
}

/// Outcome of a cycle by its name, without the node.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OutcomeName {
    SnapshotFailed,
    NoNodes,
    Error,
    NofitPodgroup,
    NofitNoPostfilter,
    #[serde(alias = "nominated", alias = "postfilter_success")]
    PostfilterNominated,
    PostfilterNoCandidates,
    PolicyNever,
    #[serde(alias = "postfilter_victims_terminating")]
    VictimsTerminating,
    DevicesReclaimed,
    ExtendersLeftNone,
    PostfilterError,
    AssumeFailed,
    ReserveFailed,
    #[serde(alias = "permit_rejected")]
    PermitFailed,
    #[serde(alias = "scheduled")]
    Success,
}

impl OutcomeName {
    pub(super) fn on(&self, node: &str) -> CycleOutcome {
        let node = || node.to_owned();
        match self {
            Self::SnapshotFailed => CycleOutcome::SnapshotFailed,
            Self::NoNodes => CycleOutcome::NoNodes,
            Self::Error => CycleOutcome::Error,
            Self::NofitPodgroup => CycleOutcome::NoFitInPodGroup,
            Self::NofitNoPostfilter => CycleOutcome::NoFitNoPostFilter,
            Self::PostfilterNominated => CycleOutcome::Nominated { node: node() },
            Self::PostfilterNoCandidates => CycleOutcome::NoCandidates,
            Self::PolicyNever => CycleOutcome::PolicyNever,
            Self::VictimsTerminating => CycleOutcome::VictimsTerminating,
            Self::DevicesReclaimed => CycleOutcome::DevicesReclaimed,
            Self::ExtendersLeftNone => CycleOutcome::ExtendersLeftNone,
            Self::PostfilterError => CycleOutcome::PostFilterError,
            Self::AssumeFailed => CycleOutcome::AssumeFailed,
            Self::ReserveFailed => CycleOutcome::ReserveFailed,
            Self::PermitFailed => CycleOutcome::PermitFailed,
            Self::Success => CycleOutcome::Scheduled { node: node() },
        }
    }
}

#[derive(Deserialize)]
struct CycleInput {
    #[serde(default = "crate::operation::kep")]
    profile: Profile,
    outcome: OutcomeName,
    #[serde(default)]
    node: String,
}

pub(crate) fn cycle_result(input: Value) -> Result<Operation, Refusal> {
    let CycleInput { profile, outcome, node } = read(input)?;
    let outcome = outcome.on(&node);
    Ok(answer(move || shown(outcome.nominating_info(profile))))
}

/// A plugin: name, true if it is skipped, true if it may run in parallel with others.
#[derive(Deserialize)]
struct PluginInput(String, bool, bool);

impl PluginInput {
    fn plugin(&self) -> PreBindPlugin<'_> {
        let Self(name, is_skipped, is_parallel) = self;
        let mut plugin = PreBindPlugin::new(name);
        (plugin.is_skipped, plugin.is_parallel) = (*is_skipped, *is_parallel);
        plugin
    }
}

#[derive(Deserialize)]
struct GroupsInput {
    gate: Option<bool>,
    #[serde(default)]
    plugins: Vec<PluginInput>,
}

pub(crate) fn prebind_groups(input: Value) -> Result<Operation, Refusal> {
    let input: GroupsInput = read(input)?;
    let gates =
        GateSet::of(Profile::V1_37).with_values([(Gate::NominatedNodeNameForExpectation, input.gate != Some(false))]);
    Ok(answer(move || {
        let plugins: Vec<PreBindPlugin<'_>> = input.plugins.iter().map(PluginInput::plugin).collect();
        let groups = PreBindPlugin::group(gates, &plugins);
        json!(groups.iter().map(|group| group.iter().map(|plugin| plugin.name).collect()).collect::<Vec<Vec<_>>>())
    }))
}

#[derive(Deserialize)]
struct PatchInput {
    mode: u8,
    #[serde(default)]
    node: String,
    #[serde(default)]
    known: String,
    #[serde(default)]
    condition_changed: bool,
}

pub(crate) fn needs_patch(input: Value) -> Result<Operation, Refusal> {
    let input: PatchInput = read(input)?;
    let info = info(input.mode, &input.node)?;
    Ok(answer(move || json!(input.condition_changed || info.no_patch_reason(node_name(&input.known)).is_none())))
}

/// Reads a mode and a node: mode 0 leaves the nomination, mode 1 sets it.
pub(super) fn info(mode: u8, node: &str) -> Result<NominatingInfo, Refusal> {
    match mode {
        0 => Ok(NominatingInfo::Noop),
        1 => Ok(NominatingInfo::nominate(node)),
        _ => Err(Refusal::field("mode", "0 (leave) or 1 (override)")),
    }
}
