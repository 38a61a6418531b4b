//! Operation `alloc.allocate`.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use dra_alloc::explain::Detail;
use dra_alloc::objective::{Alternatives, NodeScale, Objective, ObjectiveError, Proof, Score, node_scores};
use dra_alloc::selector::SelectorCache;
use dra_alloc::skip::{SkipField, WireForm, WireFormError};
use dra_alloc::{
    AllocateError, AllocatedState, Allocator, Budget, Classes, DeviceId, GateSet, Inventory, Outcome, Share, Verdict,
};
use dra_attrs::{Component, Profile, Quantity};
use examples::objects::KubeObject;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::operation::Operation;
use super::refusal::{Refusal, object, objects, read};
use super::stopwatch::Stopwatch;

/// Combined name of two gates that belong together.
const BINDING_GATES: &str = "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus";

#[derive(Deserialize)]
struct AllocateInput {
    #[serde(default = "crate::operation::kep")]
    profile: Profile,
    #[serde(default, alias = "gates", deserialize_with = "crate::settings::gates")]
    features: BTreeMap<String, bool>,
    node: Option<Value>,
    nodes: Option<Vec<Value>>,
    #[serde(default)]
    claims: Vec<Value>,
    #[serde(default)]
    classes: Vec<Value>,
    #[serde(default)]
    slices: Vec<Value>,
    #[serde(default)]
    taint_rules: Vec<Value>,
    #[serde(default)]
    allocated: Allocated,
    #[serde(default)]
    allocated_claims: Vec<Value>,
    /// Budget of work for each node.
    steps: Option<u64>,
    /// Budget of work for the call.
    call_steps: Option<u64>,
    #[serde(default)]
    explain: Detail,
    /// Levels of an objective; absent for the first solution.
    objective: Option<Value>,
    #[serde(default)]
    alternatives: Competing,
    /// Budget of the search for the best solution.
    objective_steps: Option<u64>,
}

/// Subrequests that compete for the best solution.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Competing {
    #[default]
    First,
    Scored,
}

#[derive(Default, Deserialize)]
struct Allocated {
    #[serde(default)]
    devices: Vec<DeviceId>,
    #[serde(default)]
    shared: Vec<String>,
    #[serde(default)]
    capacity: BTreeMap<DeviceId, BTreeMap<String, Quantity>>,
}

impl AllocateInput {
    fn objective(&self) -> Result<Option<Objective>, Refusal> {
        let Some(levels) = &self.objective else { return Ok(None) };
        let read = Objective::from_json(levels).map_err(|error| objective_refusal(&error))?;
        let read = read.with_alternatives(match self.alternatives {
            Competing::First => Alternatives::First,
            Competing::Scored => Alternatives::Scored,
        });
        Ok(Some(match self.objective_steps {
            Some(steps) => read.with_steps(steps),
            None => read,
        }))
    }

    fn state(&self, claims: &[ResourceClaim], gates: GateSet) -> Result<AllocatedState, Refusal> {
        let state = AllocatedState::from_claims(claims, Component::new(Profile::V1_37, gates));
        let mut state = state.map_err(|error| Refusal::field("allocated_claims", error.to_string()))?;
        self.allocated.devices.iter().for_each(|device| state.hold(device));
        for (index, share) in self.allocated.shared.iter().enumerate() {
            let field = format!("allocated.shared[{index}]");
            let invalid = || Refusal::field(&field, format!("{share:?} is not driver/pool/device/share"));
            let (device, id) = share.rsplit_once('/').ok_or_else(invalid)?;
            state.share(&device.parse().map_err(|_| invalid())?, id);
        }
        for (device, amounts) in &self.allocated.capacity {
            for (capacity, amount) in amounts {
                state.consume(device, capacity, *amount);
            }
        }
        Ok(state)
    }
}

/// Returns the set of the gates that are on; gates that are not named are off, but for that of taint rules: a caller who has
/// no rules gives none.
pub(super) fn features(profile: Profile, gates: &BTreeMap<String, bool>) -> GateSet {
    let is_on = |gate: &str| gates.get(gate).copied().unwrap_or(gate == "DRADeviceTaintRules");
    GateSet::from_names(profile, |gate| {
        Some(is_on(gate) || BINDING_GATES.split('+').any(|both| both == gate) && is_on(BINDING_GATES))
    })
}

/// Returns the number of a share in the form of a UUID: the door documents these IDs.
fn numbered(share: Share<'_>) -> String {
    format!("00000000-0000-0000-0000-{:012x}", share.number)
}

/// Largest work of a call over all its nodes, unless the input says another one: some seconds.
pub(super) const WORK_PER_CALL: u64 = 100_000_000;

pub(super) fn allocate(input: Value) -> Result<Operation, Refusal> {
    let mut input: AllocateInput = read(input)?;
    if input.node.is_some() == input.nodes.is_some() {
        return Err(Refusal::field("node", "exactly one of node and nodes must be given"));
    }
    let slices: Vec<ResourceSlice> = carriers("slices", input.slices.drain(..))?;
    let slices: Vec<Arc<ResourceSlice>> = slices.into_iter().map(Arc::new).collect();
    let allocated: Vec<ResourceClaim> = carriers("allocated_claims", input.allocated_claims.drain(..))?;
    let rules: Vec<DeviceTaintRule> = objects("taint_rules", input.taint_rules.drain(..))?;
    let rules: Vec<Arc<DeviceTaintRule>> = rules.into_iter().map(Arc::new).collect();
    let classes: Vec<DeviceClass> = objects("classes", input.classes.drain(..))?;
    let node: Option<Node> = input.node.take().map(|node| object("node", node)).transpose()?;
    let nodes: Vec<Node> = objects("nodes", input.nodes.take().unwrap_or_default().into_iter())?;
    let claims: Vec<ResourceClaim> = carriers("claims", input.claims.drain(..))?;
    let budget = input.steps.map_or_else(|| Budget::default().with_work_per_call(WORK_PER_CALL), Budget::work);
    let budget = input.call_steps.map_or(budget, |work| budget.with_work_per_call(work));
    let objective = input.objective()?;
    let (features, form) = (features(input.profile, &input.features), WireForm::from_profile(input.profile));
    let selectors = SelectorCache::default();
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let (inventory, state) = stopwatch.index(|| {
            let inventory = Inventory::new(slices.iter().cloned()).with_taint_rules(rules.iter().cloned());
            (inventory, input.state(&allocated, features))
        });
        let state = state?;
        let classes = Classes::new(classes.iter().cloned());
        let allocator = Allocator::new(Component::new(input.profile, features), &inventory, &classes)
            .with_selector_cache(&selectors)
            .with_share_ids(&numbered)
            .with_explanation(input.explain);
        let allocator = match &objective {
            Some(objective) => allocator.with_objective(objective),
            None => allocator,
        };
        let answer = |verdict: &Verdict| answer(verdict, form, objective.is_some());
        stopwatch.index(|| allocator.prepare(&state, node.iter().chain(&nodes)));
        if let Some(node) = &node {
            let verdict = stopwatch.run(|| allocator.allocate(&state, node, &claims, budget));
            if !stopwatch.is_asked() {
                return Ok(Value::Null);
            }
            return answer(&verdict.map_err(|error| refusal(&error))?);
        }
        let verdicts = stopwatch.run(|| {
            allocator.allocate_each(&state, &nodes, &claims, budget).collect::<Result<Vec<Verdict>, AllocateError>>()
        });
        if !stopwatch.is_asked() {
            return Ok(Value::Null);
        }
        let verdicts = verdicts.map_err(|error| refusal(&error))?;
        let answers = verdicts.iter().map(answer);
        Ok(json!({"nodes": answers.collect::<Result<Vec<_>, _>>()?}))
    }))
}

/// Reads the objects of a field, which carry `skipNodeOperations` in either form.
pub(super) fn carriers<T: KubeObject + SkipField>(
    field: &str,
    values: impl Iterator<Item = Value>,
) -> Result<Vec<T>, Refusal> {
    values.enumerate().map(|(index, value)| carrier(&format!("{field}[{index}]"), value)).collect()
}

/// Reads the object of a field, which carries `skipNodeOperations` in either form.
pub(super) fn carrier<T: KubeObject + SkipField>(field: &str, value: Value) -> Result<T, Refusal> {
    let refused = |error: WireFormError| match &error {
        WireFormError::NotADeclaration { field: place } => {
            Refusal::field(&format!("{field}.{place}"), error.to_string())
        }
        _ => Refusal::field(field, error.to_string()),
    };
    let value = T::normalize_to_list(value).map_err(refused)?;
    object(field, value)
}

/// Writes a verdict. Only with an objective has it a value and a proof.
fn answer(verdict: &Verdict, form: WireForm, is_scored: bool) -> Result<Value, Refusal> {
    let (outcome, results, reason) = match &verdict.outcome {
        Outcome::Allocated(results) => ("allocated", Some(written(results, form)?), None),
        Outcome::FailedOnNode(failure) => ("failed_on_node", None, Some(failure.to_string())),
        Outcome::Stopped(_) => ("stopped", None, None),
        _ => ("unsatisfied", None, None),
    };
    let mut answer =
        json!({"outcome": outcome, "results": results, "reason": reason, "steps": verdict.steps, "work": verdict.work});
    if let (Outcome::Allocated(_), true, Some(fields)) = (&verdict.outcome, is_scored, answer.as_object_mut()) {
        fields.extend(written_score(verdict.score.as_deref()));
    }
    if let (Outcome::Stopped(stopped), Some(fields)) = (&verdict.outcome, answer.as_object_mut()) {
        fields.insert("stopped".to_owned(), json!(stopped));
    }
    if let (Some(explanation), Some(fields)) = (&verdict.explanation, answer.as_object_mut()) {
        let explanation = json!({"summary": explanation.to_string(), "tree": &**explanation});
        fields.insert("explanation".to_owned(), explanation);
    }
    Ok(answer)
}

/// Writes a score. Without one, the devices are the first that fit.
fn written_score(score: Option<&Score>) -> Map<String, Value> {
    let Some(score) = score else {
        return Map::from_iter([("value".to_owned(), json!([])), ("proof".to_owned(), json!("first_fit"))]);
    };
    let proof = match &score.proof {
        Proof::Least => json!("least"),
        Proof::Best { bound } => json!({"best": {"bound": bound}}),
        _ => json!("first_fit"),
    };
    let fields = [
        ("value", json!(score.value)),
        ("proof", proof),
        ("displaced", json!(score.displaced)),
        ("objective_steps", json!(score.steps)),
        ("reason_of_choice", json!(score.reason.as_ref().map(ToString::to_string))),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the error of an objective, with the path of its field.
fn objective_refusal(error: &ObjectiveError) -> Refusal {
    let text = error.to_string();
    let (field, reason) = text.split_once(": ").unwrap_or(("objective", &text));
    Refusal::new(&variant(error), reason).at(field)
}

#[derive(Deserialize)]
struct NodeScoresInput {
    values: Vec<Option<Vec<u64>>>,
    #[serde(default)]
    scale: Scale,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Scale {
    #[default]
    Rank,
    Linear,
}

/// Operation `alloc.node_scores`.
pub(super) fn scores_of_nodes(input: Value) -> Result<Operation, Refusal> {
    let NodeScoresInput { values, scale } = read(input)?;
    let scale = match scale {
        Scale::Rank => NodeScale::Rank,
        Scale::Linear => NodeScale::Linear,
    };
    if scale == NodeScale::Linear && values.iter().flatten().any(|value| value.len() != 1) {
        return Err(Refusal::field("values", "scale linear needs values of one level"));
    }
    Ok(Box::new(move |stopwatch: &mut Stopwatch| Ok(json!({"scores": stopwatch.run(|| node_scores(&values, scale))}))))
}

fn written(results: &[AllocationResult], form: WireForm) -> Result<Vec<Value>, Refusal> {
    let written = results.iter().map(|result| result.write(form));
    written.collect::<Result<_, _>>().map_err(|error: WireFormError| Refusal::new(&variant(&error), error.to_string()))
}

fn refusal(error: &AllocateError) -> Refusal {
    let kind = match error {
        AllocateError::Request { source, .. } => variant(source),
        error => variant(error),
    };
    Refusal::new(&kind, error.to_string())
}

/// Returns the name of an error's variant.
fn variant(error: &impl Debug) -> String {
    format!("{error:?}").chars().take_while(char::is_ascii_alphanumeric).collect()
}
