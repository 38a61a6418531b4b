//! The operations that ask one decision table: `nnn.nominator_update`, `nnn.binding_start`, `nnn.cycle_result`,
//! `nnn.prebind_groups` and `nnn.needs_patch`.

use nnn::binding::prebind::{Concurrency, Plugin, Work, groups_under};
use nnn::binding::start::{BindingStart, PermitWait, PreFlight};
use nnn::gates::{Gate, Gates};
use nnn::nominating::NominatingInfo;
use nnn::nominator::decide_update;
use nnn::patch::{Change, Patch, decide_patch};
use nnn::pod::node_name;
use nnn::profile::Profile;
use nnn::scheduling::cycle::{CycleOutcome, decide_cycle};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::replay::refusal::{Refusal, read};
use crate::replay::{Operation, Stopwatch};

fn answer(decide: impl Fn() -> Value + 'static) -> Operation {
    Box::new(move |stopwatch: &mut Stopwatch| Ok(json!({"result": stopwatch.run(&decide)})))
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

pub(in crate::replay) fn nominator_update(input: Value) -> Result<Operation, Refusal> {
    let UpdateInput { old, new, memory } = read(input)?;
    let [old, new, memory] = [old, new, memory].map(|node| node_name(Some(&node)));
    Ok(answer(move || json!(decide_update(old.as_deref(), new.as_deref(), memory.as_deref()).unwrap_or_default())))
}

/// A plugin's status, which may come with its name and error.
#[derive(Deserialize)]
#[serde(untagged, expecting = "neither a status nor an object with plugin, status and error")]
pub(super) enum PreFlightInput {
    Status(String),
    Plugin { plugin: Option<String>, status: String, error: Option<String> },
}

/// A plugin without a name has its position.
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

pub(in crate::replay) fn binding_start(input: Value) -> Result<Operation, Refusal> {
    let input: StartInput = read(input)?;
    if input.host.is_empty() {
        return Err(Refusal::field("host", "must be set"));
    }
    let nnn = node_name(Some(&input.nnn));
    let pre_flights = pre_flights(&input.preflight);
    Ok(answer(move || {
        let mut start = BindingStart::new(&pre_flights, &input.host);
        start.gates = if input.gate { Gates::default() } else { Gates::default().without(Gate::Expectation) };
        start.permit = if input.waiting { PermitWait::Waiting } else { PermitWait::None };
        start.nnn = nnn.as_deref();
        match start.decide() {
            Ok(Patch::Needed) => json!(["PatchNnn", input.host]),
            Ok(Patch::None(reason)) => json!(["None", reason]),
            Err(_) => json!(["Fail", "PreFlight"]),
        }
    }))
}

/// The outcome of a cycle by name; `node` goes with those that have one.
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
    #[serde(default)]
    profile: Profile,
    outcome: OutcomeName,
    #[serde(default)]
    node: String,
}

pub(in crate::replay) fn cycle_result(input: Value) -> Result<Operation, Refusal> {
    let CycleInput { profile, outcome, node } = read(input)?;
    let outcome = outcome.on(&node);
    Ok(answer(move || shown(decide_cycle(&outcome, profile))))
}

/// Name, skipped, may run beside others.
#[derive(Deserialize)]
struct PluginInput(String, bool, bool);

#[derive(Deserialize)]
struct GroupsInput {
    gate: Option<bool>,
    #[serde(default)]
    plugins: Vec<PluginInput>,
}

pub(in crate::replay) fn prebind_groups(input: Value) -> Result<Operation, Refusal> {
    let input: GroupsInput = read(input)?;
    let gates = match input.gate {
        Some(false) => Gates::default().without(Gate::Expectation),
        _ => Gates::default(),
    };
    Ok(answer(move || {
        let plugin = |PluginInput(name, skipped, parallel): &'_ PluginInput| {
            let work = if *skipped { Work::Skipped } else { Work::Runs };
            let concurrency = if *parallel { Concurrency::Parallel } else { Concurrency::Alone };
            (name.clone(), work, concurrency)
        };
        let named: Vec<_> = input.plugins.iter().map(plugin).collect();
        let plugins: Vec<Plugin<'_>> =
            named.iter().map(|(name, work, concurrency)| Plugin::new(name, *work, *concurrency)).collect();
        let groups = groups_under(gates, &plugins);
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

pub(in crate::replay) fn needs_patch(input: Value) -> Result<Operation, Refusal> {
    let input: PatchInput = read(input)?;
    let info = info(input.mode, &input.node)?;
    let known = node_name(Some(&input.known));
    let condition = if input.condition_changed { Change::Changed } else { Change::Same };
    Ok(answer(move || json!(decide_patch(&info, known.as_deref(), condition) == Patch::Needed)))
}

/// Mode 0 says nothing, mode 1 overrides.
pub(super) fn info(mode: u8, node: &str) -> Result<NominatingInfo, Refusal> {
    match mode {
        0 => Ok(NominatingInfo::Noop),
        1 => Ok(NominatingInfo::to(node)),
        _ => Err(Refusal::field("mode", "0 (leave) or 1 (override)")),
    }
}
