//! The question `evict`: what taint rules would do to the pods of a cluster, before they are written.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use dra_alloc::eviction::{RulePreview, RuleUpdate, TaintIndex, rule_update, rule_warning};
use dra_alloc::pods::PodOptions;
use examples::instant::instant;
use examples::manifest::{Manifests, name_of};
use examples::output::{OutputError, Trouble, as_json, as_yaml, put, say};
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::args::Output;

/// Kinds of objects that the question reads.
const USED: [&str; 5] = ["DeviceTaintRule", "Pod", "PodGroup", "ResourceClaim", "ResourceSlice"];

/// Rules, and the cluster in which they would be written.
#[derive(Args, Clone, Debug)]
pub(crate) struct EvictArgs {
    /// File with one or more `DeviceTaintRule`s
    #[arg(value_name = "RULE-FILE")]
    rules: String,
    /// Manifests of the cluster: its slices, claims, pods and other rules [default: the built-in cluster]
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Time that a rule without timeAdded gets when it is written, such as 2026-11-21T12:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = instant)]
    now: Option<Timestamp>,
}

/// Reason that there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EvictError {
    /// The file has no rule.
    #[error("{file}: no DeviceTaintRule")]
    NoRule {
        /// Name of the file.
        file: String,
    },
    /// The answer was not printed.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Trouble for EvictError {}

/// Answer for one rule.
struct Answer {
    rule: DeviceTaintRule,
    preview: RulePreview,
    /// Message of the condition that the controller would write.
    message: String,
}

/// Prints what each rule of a file would do, beside all rules of the cluster.
///
/// # Errors
/// See [`EvictError`].
pub(crate) fn run(
    args: &EvictArgs,
    built_in: (&str, &str),
    options: PodOptions,
    output: Output,
) -> Result<ExitCode, EvictError> {
    let mut candidates = Manifests::default();
    candidates.read_argument(&args.rules);
    let mut cluster = Manifests::of_arguments(&args.files, built_in);
    cluster.fill_pod_uids();
    reserve_for_named_pods(&mut cluster);
    for manifests in [&candidates, &cluster] {
        manifests.problems.iter().chain(&manifests.notes).for_each(say);
    }
    cluster.ignored_lines("scheduler evict", &USED).iter().for_each(say);
    if candidates.taint_rules.is_empty() {
        return Err(EvictError::NoRule { file: args.rules.clone() });
    }
    let now = args.now.unwrap_or_else(|| Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH));
    let answers: Vec<Answer> =
        candidates.taint_rules.iter().map(|rule| Answer::new(with_time(rule, now), &cluster, options)).collect();
    match output {
        Output::Table => put(&answers.iter().map(Answer::text).collect::<String>())?,
        Output::Json => put(&as_json(&json!({"rules": answers.iter().map(Answer::json).collect::<Vec<_>>()}))?)?,
        Output::Yaml => put(&as_yaml(&answers.iter().map(Answer::json).collect::<Vec<_>>())?)?,
    }
    let is_whole = candidates.problems.is_empty() && cluster.problems.is_empty();
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Gives reservations by name the UID of the pod: manifests as people write them have no UIDs of pods.
fn reserve_for_named_pods(cluster: &mut Manifests) {
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

/// Returns the rule as an API server stores it.
fn with_time(rule: &DeviceTaintRule, now: Timestamp) -> DeviceTaintRule {
    let mut rule = rule.clone();
    rule.spec.taint.time_added.get_or_insert(Time(now));
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
