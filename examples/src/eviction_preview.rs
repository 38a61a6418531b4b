//! Answers to the question what taint rules would do to the pods of a cluster, before they are written.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dra_alloc::Profile;
use dra_alloc::eviction::{RulePreview, RuleUpdate, RuleWarning, TaintIndex};
use dra_alloc::pods::PodOptions;
use dra_alloc::validate::{ApiServer, Write};
use dra_attrs::{Component, FieldErrors};
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

/// Reads the rules of a file, as a release does. Its problems and notes are said.
///
/// # Errors
/// The file has no rule.
pub fn read_rules(file: &str, profile: Profile) -> Result<Manifests, NoRule> {
    let mut rules = Manifests::of_release(profile);
    rules.read_argument(file);
    rules.problems.iter().chain(&rules.notes).for_each(say);
    rules.ignored_lines("evict", &["DeviceTaintRule"]).iter().for_each(say);
    if rules.taint_rules.is_empty() { Err(NoRule { file: file.to_owned() }) } else { Ok(rules) }
}

/// Returns a line for each rule that an API server refuses. Such a rule has no effect.
#[must_use]
pub fn refused_rules(rules: &[DeviceTaintRule]) -> Vec<String> {
    let line = |Refused { rule, errors }: Refused| {
        format!("DeviceTaintRule {rule}: an API server refuses it, and it has no effect here: {errors}")
    };
    rules.iter().filter_map(|rule| stored(rule).err()).map(line).collect()
}

/// Checks that an API server stores a rule.
fn stored(rule: &DeviceTaintRule) -> Result<(), Refused> {
    // No gate and no text of a KEP changes how a rule is validated.
    let server = ApiServer::new(Component::of(Profile::V1_37));
    let refused = |errors| Refused { rule: name_of(&rule.metadata), errors };
    server.validate_taint_rule(Write::create(rule)).map(drop).map_err(refused)
}

/// Answers about rules.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preview {
    /// The answers in their format.
    pub text: String,
    /// Number of rules that the API server would refuse.
    pub refused: usize,
}

/// Says for each rule, in a format, what it would do beside all rules of a cluster, or why the API server would refuse it.
/// `now` is the time that a rule without `timeAdded` gets when it is written.
///
/// # Errors
/// An answer can't be written in the format.
pub fn preview(
    rules: &[DeviceTaintRule],
    cluster: &Manifests,
    options: PodOptions,
    now: Timestamp,
    format: Format,
) -> Result<Preview, OutputError> {
    let answer = |rule| stored(rule).map(|()| Answer::new(with_time(rule, now), cluster, options));
    let answers: Vec<Result<Answer, Refused>> = rules.iter().map(answer).collect();
    let text = |answer: &Result<Answer, Refused>| answer.as_ref().map_or_else(Refused::text, Answer::text);
    let json = |answer: &Result<Answer, Refused>| answer.as_ref().map_or_else(Refused::json, Answer::json);
    let objects = || answers.iter().map(json).collect::<Vec<Value>>();
    let text = match format {
        Format::Table => answers.iter().map(text).collect(),
        Format::Json => as_json(&json!({"rules": objects()}))?,
        Format::Yaml => as_yaml(&objects())?,
    };
    Ok(Preview { text, refused: answers.iter().filter(|answer| answer.is_err()).count() })
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

/// Rule that the API server would refuse.
struct Refused {
    rule: String,
    errors: FieldErrors,
}

impl Refused {
    fn text(&self) -> String {
        let lines = self.errors.iter().map(|error| format!("  the API server would refuse it: {error}\n"));
        std::iter::once(format!("rule {}:\n", self.rule)).chain(lines).collect()
    }

    fn json(&self) -> Value {
        let errors: Vec<String> = self.errors.iter().map(ToString::to_string).collect();
        json!({"rule": self.rule, "refused": errors})
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
        let message = match RuleUpdate::of_rule(&rule, 0, Timestamp::UNIX_EPOCH, || preview(others)) {
            RuleUpdate::Write(condition) => condition.message,
            _ => String::new(),
        };
        Self { preview: preview(&cluster.taint_rules), rule, message }
    }

    /// Returns the reason to look at the rule again.
    fn warning(&self) -> Option<String> {
        let selects_none = self.preview.published == 0 && self.rule.spec.device_selector.is_some();
        let none = || "the deviceSelector selects no published device".to_owned();
        RuleWarning::of_rule(&self.rule).map(|warning| warning.to_string()).or_else(|| selects_none.then(none))
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
        if let Some(warning) = self.warning() {
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
            "warning": self.warning(),
            "devices": {"published": preview.published, "allocated": preview.allocated},
            "namespaces": preview.by_namespace(), "times": times, "pods": pods, "status": message})
    }
}
