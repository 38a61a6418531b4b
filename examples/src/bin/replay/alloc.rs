//! Operation `alloc.allocate`.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use dra_alloc::explain::Detail;
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
use serde_json::{Value, json};

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
        stopwatch.index(|| allocator.prepare(&state, node.iter().chain(&nodes)));
        if let Some(node) = &node {
            let verdict = stopwatch.run(|| allocator.allocate(&state, node, &claims, budget));
            if !stopwatch.is_asked() {
                return Ok(Value::Null);
            }
            return answer(&verdict.map_err(|error| refusal(&error))?, form);
        }
        let verdicts = stopwatch.run(|| {
            allocator.allocate_each(&state, &nodes, &claims, budget).collect::<Result<Vec<Verdict>, AllocateError>>()
        });
        if !stopwatch.is_asked() {
            return Ok(Value::Null);
        }
        let verdicts = verdicts.map_err(|error| refusal(&error))?;
        let answers = verdicts.iter().map(|verdict| answer(verdict, form));
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

fn answer(verdict: &Verdict, form: WireForm) -> Result<Value, Refusal> {
    let (outcome, results, reason) = match &verdict.outcome {
        Outcome::Allocated(results) => ("allocated", Some(written(results, form)?), None),
        Outcome::FailedOnNode(failure) => ("failed_on_node", None, Some(failure.to_string())),
        Outcome::Stopped(_) => ("stopped", None, None),
        _ => ("unsatisfied", None, None),
    };
    let mut answer =
        json!({"outcome": outcome, "results": results, "reason": reason, "steps": verdict.steps, "work": verdict.work});
    if let (Outcome::Stopped(stopped), Some(fields)) = (&verdict.outcome, answer.as_object_mut()) {
        fields.insert("stopped".to_owned(), json!(stopped));
    }
    if let (Some(explanation), Some(fields)) = (&verdict.explanation, answer.as_object_mut()) {
        let explanation = json!({"summary": explanation.to_string(), "tree": explanation});
        fields.insert("explanation".to_owned(), explanation);
    }
    Ok(answer)
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
