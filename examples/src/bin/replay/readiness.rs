//! Operations `readiness.filter`, `readiness.step` and `readiness.validate`.

mod policy;
mod state;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::validate::{self, ValidationOptions};
use readiness::{
    EvaluatorRole, FilterOptions, FilterReason, GatedNode, GatedPod, NodeReadinessGate, NodeReadinessRequirement,
    NodeState, NodeVerdict, NodeWrite, Policy, PolicyMode, filter, step,
};
use serde::Deserialize;
use serde_json::{Value, json};

use self::policy::PolicyFields;
use super::operation::Operation;
use super::refusal::{Refusal, object, read};
use super::settings::Settings;
use super::steps::{States, StepOperation, StepWriter};
use super::stopwatch::Stopwatch;

#[derive(Deserialize)]
struct FilterInput {
    #[serde(default)]
    policy: Settings<Preset, FilterKnobs>,
    node: Value,
    #[serde(default)]
    pod: Value,
}

/// Presets of settings.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Preset {
    #[default]
    Kep,
    Hardened,
}

#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
struct FilterKnobs {
    additive: bool,
    #[serde(alias = "await_taint")]
    await_taint: bool,
}

impl Settings<Preset, FilterKnobs> {
    const fn options(&self) -> FilterOptions {
        match self {
            Self::Named(Preset::Kep) => FilterOptions::kep(),
            Self::Named(Preset::Hardened) => FilterOptions::hardened(),
            Self::Changed(knobs) => {
                let options = if knobs.await_taint { FilterOptions::hardened() } else { FilterOptions::kep() };
                if knobs.additive { options.with_added_requirements() } else { options }
            }
        }
    }
}

pub(super) fn filter_node(input: Value) -> Result<Operation, Refusal> {
    let input: FilterInput = read(input)?;
    let node = gated_node("node", &input.node)?;
    let pod = if input.pod.is_null() { GatedPod::default() } else { gated_pod("pod", &input.pod)? };
    let options = input.policy.options();
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let view = stopwatch.index(|| node.view());
        let verdict = stopwatch.run(|| filter(options, &view, pod.view()));
        let reasons: Vec<Value> = verdict.reasons.iter().map(reason).collect();
        Ok(json!({"allow": verdict.is_allowed(), "reasons": reasons}))
    }))
}

fn reason(reason: &FilterReason<'_>) -> Value {
    json!({
        "conditionType": reason.condition_type,
        "status": reason.condition.map(|condition| &condition.status),
        "reason": reason.condition.and_then(|condition| condition.reason.as_ref()),
        "message": reason.to_string(),
    })
}

/// Reads a node and its gates separately, so that an error names its place.
fn gated_node(place: &str, value: &Value) -> Result<GatedNode, Refusal> {
    let node = object::<Node>(place, value.clone())?;
    let gates = |field| in_spec::<Vec<NodeReadinessGate>>(place, value, field);
    match (gates("readinessGates")?, gates("nodeReadinessGates")?) {
        (Some(_), Some(_)) => Err(Refusal::field(&format!("{place}.spec"), "duplicate field `readinessGates`")),
        (one, other) => Ok(GatedNode { node, gates: one.or(other).unwrap_or_default() }),
    }
}

/// Reads a pod and its requirements separately, so that an error names its place.
fn gated_pod(place: &str, value: &Value) -> Result<GatedPod, Refusal> {
    let pod = object::<Pod>(place, value.clone())?;
    let requirements = in_spec::<Vec<NodeReadinessRequirement>>(place, value, "nodeReadinessRequirements")?;
    Ok(GatedPod { pod, requirements: requirements.unwrap_or_default() })
}

/// Reads a field of an object's spec, which may be absent.
fn in_spec<T: serde::de::DeserializeOwned>(place: &str, value: &Value, field: &str) -> Result<Option<T>, Refusal> {
    let part = value.pointer(&format!("/spec/{field}")).cloned().unwrap_or_default();
    read(part).map_err(|refusal| refusal.below(&format!("{place}.spec.{field}")))
}

#[derive(Deserialize)]
struct StepInput {
    #[serde(default)]
    policy: Settings<Preset, PolicyFields>,
    #[serde(default)]
    role: EvaluatorRole,
    #[serde(default)]
    state: States,
    #[serde(default)]
    steps: Vec<StepAt>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StepAt {
    now: Timestamp,
    node: Value,
    #[serde(alias = "kubelet_instance")]
    kubelet_instance: Option<String>,
    #[serde(default = "yes")]
    synced: bool,
    /// Seconds by which the clock was set forward since the step before, as far as the caller knows.
    #[serde(default)]
    clock_shift: i64,
}

const fn yes() -> bool {
    true
}

/// Switches that set the `mode` of the policy.
#[derive(Deserialize)]
struct Switches {
    enabled: Option<bool>,
    suspend: Option<bool>,
}

impl Switches {
    const fn mode(&self) -> Option<PolicyMode> {
        match (self.enabled, self.suspend) {
            (Some(false), _) => Some(PolicyMode::Off),
            (_, Some(true)) => Some(PolicyMode::Suspended),
            (None, None) => None,
            _ => Some(PolicyMode::Active),
        }
    }
}

pub(super) fn steps(input: Value) -> Result<StepOperation, Refusal> {
    let switches = input.get("policy").filter(|policy| policy.is_object()).cloned();
    let input: StepInput = read(input)?;
    let mut policy = match input.policy {
        Settings::Named(Preset::Kep) => Policy::kep(),
        Settings::Named(Preset::Hardened) => Policy::hardened(),
        Settings::Changed(fields) => fields.into(),
    };
    let switches = switches.map(read::<Switches>).transpose().map_err(|refusal| refusal.below("policy"))?;
    policy.mode = switches.and_then(|switches| switches.mode()).unwrap_or(policy.mode);
    let (role, states) = (input.role, input.state);
    let mut steps = Vec::with_capacity(input.steps.len());
    for (index, at) in input.steps.into_iter().enumerate() {
        let node = gated_node(&format!("steps[{index}].node"), &at.node)?;
        let shift = SignedDuration::from_secs(at.clock_shift);
        steps.push((at.now, node, at.kubelet_instance, at.synced, shift));
    }
    Ok(Box::new(move |stopwatch: &mut Stopwatch, shown: &mut StepWriter<'_>| {
        let mut state = NodeState::default();
        for (index, (now, node, instance, synced, shift)) in steps.iter().enumerate() {
            state.shift_clock(*shift);
            let view = node.view();
            let view = instance.iter().fold(view, |view, instance| view.with_kubelet_instance(instance));
            let view = if *synced { view } else { view.with_unsynced_cache() };
            let step = stopwatch.run(|| step(&policy, role, &view, *now, std::mem::take(&mut state)));
            state = step.state;
            if shown.is_asked() {
                let state = states.has(index, steps.len()).then_some(&state);
                let written = written_step(&step.writes, &step.verdict, step.requeue_at, state);
                shown.write(&written.unwrap_or_else(|refusal| json!({"error": refusal})))?;
            }
        }
        Ok(())
    }))
}

fn written_step(
    writes: &[NodeWrite],
    of_node: &NodeVerdict<'_>,
    requeue_at: Option<Timestamp>,
    state: Option<&NodeState>,
) -> Result<Value, Refusal> {
    let outputs = writes.iter().map(output).collect::<Result<Vec<_>, _>>()?;
    let mut step = json!({"outputs": outputs, "verdict": verdict(of_node), "wake_up": requeue_at});
    if let (Some(state), Some(fields)) = (state, step.as_object_mut()) {
        fields.insert("state".to_owned(), state::printed(state)?);
    }
    Ok(step)
}

/// Returns a write as the library serialises it, without the fields that only a writer needs.
fn output(write: &NodeWrite) -> Result<Value, Refusal> {
    let mut tree = written(write)?;
    if let Some(fields) = tree.as_object_mut() {
        fields.remove("resourceVersion");
        fields.remove("evicting");
    }
    Ok(tree)
}

fn verdict(verdict: &NodeVerdict<'_>) -> Value {
    let gates = verdict.gates.iter().map(|(condition_type, decision)| {
        json!({"conditionType": condition_type, "state": decision.name(), "why": decision.reason()})
    });
    json!({"schedulable": verdict.schedulable, "gates": gates.collect::<Vec<_>>()})
}

fn written(value: &impl serde::Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(value).map_err(|error| Refusal::new("NotExpressible", error.to_string()))
}

#[derive(Deserialize)]
struct ValidateInput {
    gates: Option<Vec<NodeReadinessGate>>,
    old: Option<Vec<NodeReadinessGate>>,
    new: Option<Vec<NodeReadinessGate>>,
    actor: Option<String>,
    #[serde(default)]
    lengths: Lengths,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Lengths {
    #[default]
    Strict,
    PrefixOnly,
}

/// Actors that are nodes. Any other actor is an administrator.
const NODES: [&str; 2] = ["node", "kubelet"];

pub(super) fn validate_gates(input: Value) -> Result<Operation, Refusal> {
    let input: ValidateInput = read(input)?;
    if input.gates.is_some() == (input.old.is_some() || input.new.is_some()) {
        return Err(Refusal::field("gates", "either gates, or old and new must be given"));
    }
    let options = match input.lengths {
        Lengths::Strict => ValidationOptions::default(),
        Lengths::PrefixOnly => ValidationOptions::default().with_limit_of_domain(),
    };
    let name = input.actor.unwrap_or_default();
    let is_node = NODES.contains(&name.as_str()) || name.starts_with("system:node:");
    let options = if is_node { options.by_node() } else { options };
    let (gates, old, new) = (input.gates, input.old.unwrap_or_default(), input.new.unwrap_or_default());
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let report = stopwatch.run(|| match &gates {
            Some(gates) => validate::validate_gates(gates, &options),
            None => validate::validate_gate_update(&old, &new, &options),
        });
        let warnings: Vec<String> = report.warnings.iter().map(ToString::to_string).collect();
        Ok(json!({"errors": written(&report.errors)?, "warnings": warnings}))
    }))
}
