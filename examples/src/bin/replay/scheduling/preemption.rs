//! The operation `scheduling.preempt`: who gives up devices for a pod.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use dra_alloc::claims::ClaimKey;
use dra_alloc::preemption::{
    BudgetPolicy, CandidateLimit, DevicePreemption, Harm, InMemoryPlace, InMemoryStage, Preemption, PreemptionError,
    PreemptionView,
};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Component, GateSet, Index, Inventory};
use dra_attrs::Profile;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::input::pod;
use super::room::written;
use crate::alloc::{WORK_PER_CALL, carriers};
use crate::operation::Operation;
use crate::refusal::{Refusal, objects, read};

/// Gate of KEP-5690.
const GATE: &str = "DRAPreemption";

#[derive(Deserialize)]
struct PreemptInput {
    #[serde(default = "crate::operation::kep")]
    profile: Profile,
    #[serde(default, alias = "gates", deserialize_with = "crate::settings::gates")]
    features: BTreeMap<String, bool>,
    pod: Value,
    #[serde(default)]
    claims: Vec<Value>,
    #[serde(default)]
    classes: Vec<Value>,
    #[serde(default)]
    slices: Vec<Value>,
    #[serde(default)]
    taint_rules: Vec<Value>,
    #[serde(default)]
    nodes: Vec<Value>,
    #[serde(default)]
    pods: Vec<Value>,
    #[serde(default)]
    in_memory: BTreeMap<String, InMemory>,
    #[serde(default)]
    pod_groups: Vec<Value>,
    #[serde(default)]
    releasing: Vec<String>,
    #[serde(default)]
    filter_status: BTreeMap<String, FilterStatus>,
    #[serde(default)]
    pdbs: Vec<Value>,
    #[serde(default)]
    now: Timestamp,
    #[serde(default)]
    harm: HarmName,
    #[serde(default)]
    costs: BTreeMap<String, u64>,
    #[serde(default)]
    budgets: BudgetsName,
    candidates: Option<Limit>,
    /// Budget of work for each node.
    steps: Option<u64>,
    /// Budget of work for the call.
    call_steps: Option<u64>,
}

#[derive(Clone, Deserialize)]
struct InMemory {
    stage: Stage,
    node: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    Permit,
    PreBind,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
pub(super) enum FilterStatus {
    #[default]
    Unschedulable,
    UnschedulableAndUnresolvable,
    Error,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HarmName {
    #[default]
    Kube,
    KubeExact,
    Cost,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BudgetsName {
    #[default]
    LastResort,
    Never,
    Ignore,
}

#[derive(Clone, Copy, Deserialize)]
struct Limit {
    #[serde(default)]
    offset: usize,
    count: NonZeroUsize,
}

/// Objects and settings of a replayed preemption.
struct Situation {
    scheduler: Component,
    gate: DevicePreemption,
    pod: Pod,
    claims: Vec<ResourceClaim>,
    classes: Vec<DeviceClass>,
    slices: Vec<Arc<ResourceSlice>>,
    taint_rules: Vec<Arc<DeviceTaintRule>>,
    nodes: Vec<Node>,
    pods: Vec<Pod>,
    in_memory: BTreeMap<String, InMemory>,
    groups: Vec<PodGroup>,
    releasing: Vec<ClaimKey>,
    unresolvable: Vec<String>,
    pdbs: Vec<PodDisruptionBudget>,
    now: Timestamp,
    harm: Harm,
    costs: BTreeMap<String, u64>,
    budgets: BudgetPolicy,
    candidates: Option<CandidateLimit>,
    budget: Budget<'static>,
}

pub(crate) fn preempt(input: Value) -> Result<Operation, Refusal> {
    let input: PreemptInput = read(input)?;
    let situation = situation(input)?;
    let selectors = SelectorCache::default();
    Ok(Box::new(move |stopwatch| {
        let (inventory, classes, state) = stopwatch.index(|| {
            let inventory = Inventory::new(situation.slices.iter().cloned());
            let inventory = inventory.with_taint_rules(situation.taint_rules.iter().cloned());
            let state = AllocatedState::from_claims(&situation.claims, situation.scheduler);
            (inventory, Classes::new(situation.classes.iter().cloned()), state)
        });
        let state = state.map_err(|error| Refusal::field("claims", error.to_string()))?;
        let allocator = Allocator::new(situation.scheduler, &inventory, &classes).with_selector_cache(&selectors);
        let view = stopwatch.index(|| situation.view());
        stopwatch.index(|| allocator.prepare(&state, &situation.nodes));
        let cost = |pod: &Pod| situation.costs.get(&full_name(pod)).copied().unwrap_or(1);
        let preemption = Preemption::new(&allocator, &state, &view, situation.now)
            .with_harm(situation.harm)
            .with_devices(situation.gate)
            .with_budget_policy(situation.budgets)
            .with_unresolvable(situation.unresolvable.iter().map(String::as_str))
            .with_costs(&cost);
        let preemption = match situation.candidates {
            Some(limit) => preemption.with_candidates(limit),
            None => preemption,
        };
        let answer = stopwatch.run(|| preemption.make_room(&situation.pod, situation.budget));
        Ok(json!({"result": written(&answer.map_err(|error| refusal(&error))?)}))
    }))
}

fn situation(input: PreemptInput) -> Result<Situation, Refusal> {
    let gates = GateSet::from_names(input.profile, |gate| {
        let mut named = input.features.iter().filter(|(names, _)| names.split('+').any(|name| name == gate));
        named.next().map(|(_, is_on)| *is_on)
    });
    let slices: Vec<ResourceSlice> = carriers("slices", input.slices.into_iter())?;
    let taint_rules: Vec<DeviceTaintRule> = objects("taint_rules", input.taint_rules.into_iter())?;
    let releasing = input.releasing.iter().enumerate().map(|(index, name)| {
        let split = name.split_once('/');
        let invalid = || Refusal::field(&format!("releasing[{index}]"), format!("{name:?} is not namespace/name"));
        split.map(|(namespace, name)| ClaimKey::new(namespace, name)).ok_or_else(invalid)
    });
    let lost =
        |(node, status): (String, FilterStatus)| (status == FilterStatus::UnschedulableAndUnresolvable).then_some(node);
    let budget = input.steps.map_or_else(|| Budget::default().with_work_per_call(WORK_PER_CALL), Budget::work);
    Ok(Situation {
        scheduler: Component::new(input.profile, gates),
        gate: if input.features.get(GATE) == Some(&true) { DevicePreemption::On } else { DevicePreemption::Off },
        pod: pod("pod", input.pod)?,
        claims: carriers("claims", input.claims.into_iter())?,
        classes: objects("classes", input.classes.into_iter())?,
        slices: slices.into_iter().map(Arc::new).collect(),
        taint_rules: taint_rules.into_iter().map(Arc::new).collect(),
        nodes: objects("nodes", input.nodes.into_iter())?,
        pods: objects("pods", input.pods.into_iter())?,
        in_memory: input.in_memory,
        groups: objects("pod_groups", input.pod_groups.into_iter())?,
        releasing: releasing.collect::<Result<_, _>>()?,
        unresolvable: input.filter_status.into_iter().filter_map(lost).collect(),
        pdbs: objects("pdbs", input.pdbs.into_iter())?,
        now: input.now,
        harm: match input.harm {
            HarmName::Kube => Harm::Kube,
            HarmName::KubeExact => Harm::KubeExact,
            HarmName::Cost => Harm::Cost,
        },
        costs: input.costs,
        budgets: match input.budgets {
            BudgetsName::LastResort => BudgetPolicy::LastResort,
            BudgetsName::Never => BudgetPolicy::Never,
            BudgetsName::Ignore => BudgetPolicy::Ignore,
        },
        candidates: input
            .candidates
            .map(|limit| CandidateLimit { first: Index::from(limit.offset), count: limit.count }),
        budget: input.call_steps.map_or(budget, |work| budget.with_work_per_call(work)),
    })
}

impl Situation {
    fn view(&self) -> PreemptionView<'_> {
        let place = |pod: &'_ Pod| {
            let InMemory { stage, node } = self.in_memory.get(&full_name(pod))?;
            let stage = match stage {
                Stage::Permit => InMemoryStage::Permit,
                Stage::PreBind => InMemoryStage::PreBind,
            };
            Some((stage, node.as_str()))
        };
        let places = self.pods.iter().filter_map(|pod| {
            let (stage, node) = place(pod)?;
            Some(InMemoryPlace { uid: pod.metadata.uid.as_deref()?, node, stage })
        });
        PreemptionView::new(&self.nodes, &self.pods, &self.claims)
            .with_budgets(&self.pdbs)
            .with_groups(&self.groups)
            .with_in_memory(places)
            .with_releasing(&self.releasing)
    }
}

fn full_name(pod: &Pod) -> String {
    ClaimKey::from_metadata(&pod.metadata).to_string()
}

fn refusal(error: &PreemptionError) -> Refusal {
    let kind = match error {
        PreemptionError::Claim(_) | PreemptionError::ClaimNotFound { .. } => "InvalidInput",
        _ => "AllocateError",
    };
    Refusal::new(kind, error.to_string())
}
