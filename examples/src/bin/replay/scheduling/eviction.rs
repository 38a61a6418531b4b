//! The operation `scheduling.evict`: pods that taints of devices evict, and the conditions of taint rules.

use std::collections::BTreeMap;

use dra_alloc::eviction::{Eviction, Evictions, RulePreview, RuleUpdate, TaintIndex};
use dra_alloc::pods::PodOptions;
use examples::manifest::name_of;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::input::{options, result};
use crate::alloc::carriers;
use crate::operation::Operation;
use crate::refusal::{Refusal, objects, read};

/// Gate of taint rules. Without it, a cluster has none.
const RULES_GATE: &str = "DRADeviceTaintRules";

/// Name that stands for all rules.
const ALL: &str = "all";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EvictInput {
    #[serde(default)]
    pods: Vec<Value>,
    #[serde(default)]
    claims: Vec<Value>,
    #[serde(default)]
    slices: Vec<Value>,
    #[serde(default)]
    rules: Vec<Value>,
    /// Names of the rules whose conditions are asked for.
    #[serde(default)]
    status: Vec<String>,
    /// Number of pods that are gone because of a rule, by its UID.
    #[serde(default)]
    evicted_by_rule: BTreeMap<String, u64>,
}

struct World {
    options: PodOptions,
    pods: Vec<Pod>,
    claims: Vec<ResourceClaim>,
    slices: Vec<ResourceSlice>,
    rules: Vec<DeviceTaintRule>,
}

pub(crate) fn evict(mut input: Value) -> Result<Operation, Refusal> {
    let rules_are_on = input.get_mut("gates").and_then(Value::as_object_mut).and_then(|gates| gates.remove(RULES_GATE));
    let options = options(&input)?;
    let input: EvictInput = read(input)?;
    let rules: Vec<DeviceTaintRule> = objects("rules", input.rules.into_iter())?;
    let world = World {
        options,
        pods: objects("pods", input.pods.into_iter())?,
        claims: carriers("claims", input.claims.into_iter())?,
        slices: carriers("slices", input.slices.into_iter())?,
        rules: if rules_are_on == Some(json!(false)) { Vec::new() } else { rules },
    };
    let (asked, evicted) = (input.status, input.evicted_by_rule);
    Ok(result(move || json!({"pods": world.evictions(), "conditions": world.conditions(&asked, &evicted)})))
}

impl World {
    fn evictions(&self) -> BTreeMap<String, Value> {
        let taints = TaintIndex::new(&self.slices).with_rules(&self.rules);
        let evictions = Evictions::new(&taints, &self.claims, self.options);
        self.pods.iter().map(|pod| (name_of(&pod.metadata), shown(evictions.of_pod(pod).as_ref()))).collect()
    }

    fn conditions(&self, asked: &[String], evicted: &BTreeMap<String, u64>) -> BTreeMap<String, Value> {
        let is_asked =
            |rule: &&DeviceTaintRule| asked.iter().any(|name| name == ALL || *name == name_of(&rule.metadata));
        let condition = |rule: &DeviceTaintRule| {
            let rule = DeviceTaintRule { status: None, ..rule.clone() };
            let evicted = evicted.get(rule.metadata.uid.as_deref().unwrap_or_default()).copied().unwrap_or_default();
            let update = RuleUpdate::of_rule(&rule, evicted, Timestamp::UNIX_EPOCH, || self.preview(&rule));
            let RuleUpdate::Write(condition) = update else { return Value::Null };
            json!({"type": condition.type_, "status": condition.status, "reason": condition.reason,
                "message": condition.message, "observedGeneration": condition.observed_generation})
        };
        self.rules.iter().filter(is_asked).map(|rule| (name_of(&rule.metadata), condition(rule))).collect()
    }

    /// Counts what a rule does beside the others; one without effect is thought alone.
    fn preview(&self, rule: &DeviceTaintRule) -> RulePreview {
        let others = if rule.spec.taint.effect == "NoExecute" { self.rules.as_slice() } else { &[] };
        let taints = TaintIndex::new(&self.slices).with_rules(others);
        RulePreview::new(rule, &taints, &self.claims, &self.pods, self.options)
    }
}

fn shown(eviction: Option<&Eviction<'_>>) -> Value {
    let Some(Eviction { at, reasons, .. }) = eviction else { return Value::Null };
    let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    json!({"when": at, "reasons": reasons})
}
