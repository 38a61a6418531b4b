//! Answers to the question what taint rules would do to the pods of a cluster, before they are written.

use std::collections::BTreeMap;
use std::fmt::Write;

use dra_alloc::eviction::{RulePreview, RuleUpdate, TaintIndex, rule_update, rule_warning};
use dra_alloc::pods::PodOptions;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::manifest::{Manifests, name_of};
use crate::output::{Format, OutputError, as_json, as_yaml, say};

/// Error of a file without a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: no DeviceTaintRule")]
#[non_exhaustive]
pub struct NoRule {
    /// Name of the file.
    pub file: String,
}

/// Reads the rules of a file. Its problems and notes are said.
///
/// # Errors
/// The file has no rule.
pub fn read_rules(file: &str) -> Result<Manifests, NoRule> {
    let mut rules = Manifests::default();
    rules.read_argument(file);
    rules.problems.iter().chain(&rules.notes).for_each(say);
    if rules.taint_rules.is_empty() { Err(NoRule { file: file.to_owned() }) } else { Ok(rules) }
}

/// Says for each rule, in a format, what it would do beside all rules of a cluster. `now` is the time that a rule without
/// `timeAdded` gets when it is written.
///
/// # Errors
/// An answer can't be written in the format.
pub fn preview(
    rules: &[DeviceTaintRule],
    cluster: &Manifests,
    options: PodOptions,
    now: Timestamp,
    format: Format,
) -> Result<String, OutputError> {
    let answers: Vec<Answer> = rules.iter().map(|rule| Answer::new(with_time(rule, now), cluster, options)).collect();
    let objects = || answers.iter().map(Answer::json).collect::<Vec<Value>>();
    Ok(match format {
        Format::Table => answers.iter().map(Answer::text).collect(),
        Format::Json => as_json(&json!({"rules": objects()}))?,
        Format::Yaml => as_yaml(&objects())?,
    })
}

/// Gives reservations by name the UID of the pod: manifests as people write them have no UIDs of pods.
pub fn reserve_for_named_pods(cluster: &mut Manifests) {
    let uids: BTreeMap<String, String> =
        cluster.pods.iter().filter_map(|pod| Some((name_of(&pod.metadata), pod.metadata.uid.clone()?))).collect();
    for ResourceClaim { metadata, status, .. } in &mut cluster.claims {
        let mut consumer = metadata.clone();
        let reserved = status.iter_mut().flat_map(|status| status.reserved_for.iter_mut().flatten());
        for entry in reserved.filter(|entry| entry.uid.is_empty() && entry.resource == "pods") {
            consumer.name = Some(entry.name.clone());
            entry.uid = uids.get(&name_of(&consumer)).cloned().unwrap_or_default();
        }
    }
}

/// Answer for one rule.
struct Answer {
    rule: DeviceTaintRule,
    preview: RulePreview,
    /// Message of the condition that the controller would write.
    message: String,
}

/// Returns the rule as an API server stores it.
fn with_time(rule: &DeviceTaintRule, now: Timestamp) -> DeviceTaintRule {
    let mut rule = rule.clone();
    // In whole seconds.
    let time = Timestamp::from_second(now.as_second()).unwrap_or(now);
    rule.spec.taint.time_added.get_or_insert(Time(time));
    rule
}

impl Answer {
    fn new(rule: DeviceTaintRule, cluster: &Manifests, options: PodOptions) -> Self {
        let preview = |others: &[DeviceTaintRule]| {
            let taints = TaintIndex::new(&cluster.slices).with_rules(others);
            RulePreview::new(&rule, &taints, &cluster.claims, &cluster.pods, options)
        };
        // The controller counts a rule without effect without the others.
        let others = if rule.spec.taint.effect == "None" { &[] } else { cluster.taint_rules.as_slice() };
        let message = match rule_update(&rule, 0, Timestamp::UNIX_EPOCH, || preview(others)) {
            RuleUpdate::Write(condition) => condition.message,
            _ => String::new(),
        };
        Self { preview: preview(&cluster.taint_rules), rule, message }
    }

    fn text(&self) -> String {
        let Self { rule, preview, message } = self;
        let effect = &rule.spec.taint.effect;
        let mut text =
            format!("rule {}: taint {} with effect {effect}\n", name_of(&rule.metadata), rule.spec.taint.key);
        let mut line = |line: String| {
            // Writing to a string can't fail.
            let _ = writeln!(text, "  {line}");
        };
        if let Some(warning) = rule_warning(rule) {
            line(format!("warning: {warning}"));
        }
        line(format!("devices: {} published, {} allocated", preview.published, preview.allocated));
        let would = if effect == "NoExecute" { "evicts" } else { "would evict, with effect NoExecute:" };
        line(format!("{would} pods: {}", preview.pods.len()));
        for (namespace, pods) in preview.by_namespace() {
            line(format!("  in namespace {namespace}: {pods}"));
        }
        for pod in &preview.pods {
            line(format!("  {} {}/{}", pod.at, pod.namespace, pod.name));
        }
        if !message.is_empty() {
            line(format!("status: {message}"));
        }
        text
    }

    fn json(&self) -> Value {
        let Self { rule, preview, message } = self;
        let pods: Vec<Value> = preview
            .pods
            .iter()
            .map(|pod| json!({"time": pod.at, "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}))
            .collect();
        let times: BTreeMap<String, usize> =
            preview.by_time().into_iter().map(|(time, pods)| (time.to_string(), pods)).collect();
        json!({"rule": name_of(&rule.metadata), "effect": rule.spec.taint.effect,
            "warning": rule_warning(rule).map(|warning| warning.to_string()),
            "devices": {"published": preview.published, "allocated": preview.allocated},
            "namespaces": preview.by_namespace(), "times": times, "pods": pods, "status": message})
    }
}
