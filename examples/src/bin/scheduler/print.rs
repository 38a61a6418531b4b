//! Output of `scheduler`.

use std::collections::BTreeMap;
use std::fmt::Write;

use dra_alloc::declared_features::CandidateNodes;
use dra_alloc::explain::{Detail, Explanation};
use dra_alloc::objective::ChoiceReason;
use dra_alloc::skip::{SkipDeclaration, SkipField, WireForm, WireFormError};
use dra_alloc::{AllocateError, DeviceId, Outcome, RequestError, Verdict, allocated_devices, cluster_summary};
use dra_attrs::StandardAttribute;
use examples::manifest::name_of;
use examples::table::{Column, Table};
use k8s_openapi::api::resource::v1::{
    AllocationResult, Device, DeviceAttribute, DeviceRequestAllocationResult, ResourceClaim, ResourceSlice,
};
use serde_json::{Value, json};

use super::schedule::{Answer, Fate, RestrictedPod, allocation};

/// Text of an empty cell.
const NOTHING: &str = "-";

/// Largest number of nodes whose reasons are printed for a claim without being asked for.
const MOST_NODES: usize = 20;

/// Attributes of a device that the table shows.
const SHOWN: [(&str, &str); 2] =
    [(StandardAttribute::NUMA_NODE, "numaNode"), (StandardAttribute::PCIE_ROOT, "pcieRoot")];

/// Error of a claim that can't be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ResourceClaim {claim}: {error}")]
pub(crate) struct UnwritableClaim {
    /// Claim, as `namespace/name`.
    pub(crate) claim: String,
    /// Reason that it can't be written.
    pub(crate) error: WireFormError,
}

/// Claims in their written form.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Written {
    /// Claims as JSON.
    pub(crate) claims: Vec<Value>,
    /// Remarks about claims that are not written in the requested form.
    pub(crate) notes: Vec<String>,
}

/// Returns the table of allocations, with a row for each device.
pub(crate) fn table(answers: &[Answer], slices: &[ResourceSlice]) -> String {
    let devices = devices(slices);
    let mut table = Table::new([
        Column::always("CLAIM"),
        Column::always("NODE"),
        Column::ranked("REQUEST", 2),
        Column::always("DEVICE"),
        Column::ranked("NOTES", 1),
    ]);
    answers.iter().flat_map(|answer| rows(answer, &devices)).for_each(|row| table.add(row));
    table.text().trim_end().to_owned()
}

/// Returns the reasons of claims that are not allocated: a line for each claim, then one for each node, and with full
/// detail the tree of reasons below it.
pub(crate) fn refusals(answers: &[Answer], detail: Detail) -> String {
    let mut text = String::new();
    for answer in answers {
        let claim = name_of(&answer.claim.metadata);
        let lines = match &answer.fate {
            Fate::Nowhere { nodes, verdicts, undeclared, kept_off } => {
                let shown = if detail == Detail::Full { nodes.len() } else { MOST_NODES };
                let more = nodes.len().saturating_sub(shown);
                let more = (more > 0).then(|| format!("  and {more} more nodes, which --explain full prints"));
                let nodes = nodes.iter().zip(verdicts).take(shown);
                let nodes = nodes.flat_map(|(node, verdict)| node_lines(node, verdict, detail)).chain(more);
                let no_verdict = !undeclared.rejected.is_empty();
                let undeclared = no_verdict.then(|| format!("{claim}: {}", undeclared.message()));
                let summary = (!verdicts.is_empty()).then(|| format!("{claim}: {}", cluster_summary(verdicts)));
                let kept_off = (kept_off.number_of_nodes() > 0).then(|| format!("{claim}, for its pod: {kept_off}"));
                summary.into_iter().chain(nodes).chain(undeclared).chain(kept_off).collect()
            }
            Fate::Failed(error) => vec![format!("{claim}: {error}{}", advice(error))],
            Fate::Before | Fate::Allocated { .. } => continue,
        };
        for line in lines {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

/// Returns a line for each choice of other devices than the first ones that fit. Claims of one pod are named together.
pub(crate) fn choices(answers: &[Answer]) -> Vec<String> {
    let mut told: Vec<(&ChoiceReason, Vec<String>)> = Vec::new();
    for answer in answers {
        let Fate::Allocated { choice: Some(reason), .. } = &answer.fate else { continue };
        let claim = name_of(&answer.claim.metadata);
        match told.last_mut().filter(|(known, _)| *known == reason) {
            Some((_, claims)) => claims.push(claim),
            None => told.push((reason, vec![claim])),
        }
    }
    told.into_iter().map(|(reason, claims)| format!("{}: {reason}", claims.join(", "))).collect()
}

/// Returns what to do about an error that the manifests cause.
const fn advice(error: &AllocateError) -> &'static str {
    match error {
        AllocateError::Request { source: RequestError::ClassNotFound { .. }, .. } => {
            "; add the DeviceClass to the manifests"
        }
        _ => "",
    }
}

/// Returns a line for each pod that some nodes can't run, since they do not declare a feature that it requires.
pub(crate) fn restrictions(restricted: &[RestrictedPod]) -> Vec<String> {
    let some_rejected = restricted.iter().filter(|restricted| !restricted.nodes.rejected.is_empty());
    let lines = some_rejected.map(|RestrictedPod { pod, nodes }| match nodes.fitting.as_slice() {
        [] => format!("pod {pod}: {}: {}", CandidateNodes::FAILED_SCHEDULING, nodes.message()),
        fitting => format!("pod {pod}: fits {}: {}", fitting.join(", "), nodes.message()),
    });
    lines.collect()
}

/// Returns the claims as JSON in a wire form. A declaration that has no value in this form is written in the other one,
/// which every reader of the form understands too, with a note.
///
/// # Errors
/// A claim can't be written as JSON.
pub(crate) fn claims(answers: &[Answer], form: WireForm) -> Result<Written, UnwritableClaim> {
    let mut written = Written::default();
    for Answer { claim, .. } in answers {
        let name = || name_of(&claim.metadata);
        let json = match SkipField::write(claim, form) {
            Err(refused @ WireFormError::NotExpressible { .. }) => {
                written.notes.push(format!("ResourceClaim {}: {refused}; written as a list", name()));
                SkipField::write(claim, WireForm::List)
            }
            other => other,
        };
        written.claims.push(json.map_err(|error| UnwritableClaim { claim: name(), error })?);
    }
    Ok(written)
}

/// Returns the claims as one `List`.
pub(crate) fn list(claims: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": claims})
}

/// Returns the lines of a node: its first reason, or with full detail all reasons below its name.
fn node_lines(node: &str, verdict: &Verdict, detail: Detail) -> Vec<String> {
    let explanation = verdict.explanation.as_deref().filter(|_| detail == Detail::Full);
    let tree = explanation.map(Explanation::tree).unwrap_or_default();
    let head = if verdict.outcome == Outcome::Unsatisfied && !tree.is_empty() {
        format!("  {node}:")
    } else {
        format!("  {node}: {}", reason(verdict))
    };
    let tree = tree.lines().map(|line| format!("    {line}"));
    [head].into_iter().chain(tree).collect()
}

fn reason(verdict: &Verdict) -> String {
    match (&verdict.outcome, &verdict.explanation) {
        (Outcome::FailedOnNode(failure), _) => failure.to_string(),
        (Outcome::Stopped(stopped), _) => format!("stopped: {stopped}"),
        (_, Some(explanation)) => explanation.to_string(),
        (_, None) => "unsatisfied".to_owned(),
    }
}

fn rows(answer: &Answer, devices: &BTreeMap<DeviceId, &Device>) -> Vec<[String; 5]> {
    let claim = name_of(&answer.claim.metadata);
    let (node, remark) = match &answer.fate {
        Fate::Allocated { node, .. } => (node.clone(), ""),
        Fate::Before => (only_node(&answer.claim).unwrap_or(NOTHING).to_owned(), "allocated before"),
        Fate::Nowhere { .. } => return vec![row(&claim, NOTHING, [NOTHING, NOTHING, "not allocated"])],
        Fate::Failed(_) => return vec![row(&claim, NOTHING, [NOTHING, NOTHING, "error"])],
    };
    let results = allocated_devices(&answer.claim);
    if results.is_empty() {
        return vec![row(&claim, &node, [NOTHING, NOTHING, remark])];
    }
    let rows = results.iter().enumerate().map(|(index, result)| {
        let id = DeviceId::new(&result.driver, &result.pool, &result.device);
        let notes = notes(result, devices.get(&id).copied(), remark);
        let device = [result.request.as_str(), &id.to_string(), &notes];
        if index == 0 { row(&claim, &node, device) } else { row("", "", device) }
    });
    rows.collect()
}

fn row(claim: &str, node: &str, [request, device, notes]: [&str; 3]) -> [String; 5] {
    [claim, node, request, device, notes].map(str::to_owned)
}

/// Returns the node of an allocation that can be used on one node only.
fn only_node(claim: &ResourceClaim) -> Option<&str> {
    let AllocationResult { node_selector, .. } = allocation(claim)?;
    let mut terms = node_selector.as_ref()?.node_selector_terms.iter();
    let mut fields = terms.next()?.match_fields.iter().flatten();
    let field = fields.find(|field| field.key == "metadata.name" && field.operator == "In")?;
    match field.values.as_deref() {
        Some([name]) if terms.next().is_none() => Some(name),
        _ => None,
    }
}

/// Returns the notes on a device: its location, the share's consumption, and special properties of the result.
fn notes(result: &DeviceRequestAllocationResult, device: Option<&Device>, remark: &str) -> String {
    let attributes = device.and_then(|device| device.attributes.as_ref());
    let shown = SHOWN.iter().filter_map(|(attribute, short)| {
        let value = attributes?.get(*attribute)?;
        Some(format!("{short} {}", attribute_text(value)))
    });
    let mut notes: Vec<String> = shown.collect();
    let consumed = result.consumed_capacity.iter().flatten();
    let consumed: Vec<String> = consumed.map(|(capacity, amount)| format!("{capacity} {}", amount.0)).collect();
    if result.share_id.is_some() {
        notes.push(format!("share {}", consumed.join(" ")).trim_end().to_owned());
    }
    if result.admin_access == Some(true) {
        notes.push("admin access".to_owned());
    }
    if !SkipDeclaration::from_kube(result.skip_node_operations.as_deref()).set().is_empty() {
        notes.push("skips node operations".to_owned());
    }
    if !remark.is_empty() {
        notes.push(remark.to_owned());
    }
    notes.join(", ")
}

fn attribute_text(attribute: &DeviceAttribute) -> String {
    let mut text = String::new();
    let mut put = |value: &dyn std::fmt::Display| {
        let gap = if text.is_empty() { "" } else { " " };
        // Writing to a string can't fail.
        let _ = write!(text, "{gap}{value}");
    };
    attribute.int.iter().chain(attribute.ints.iter().flatten()).for_each(|value| put(value));
    attribute.string.iter().chain(attribute.strings.iter().flatten()).for_each(|value| put(value));
    if attribute.ints.is_some() || attribute.strings.is_some() { format!("[{text}]") } else { text }
}

fn devices(slices: &[ResourceSlice]) -> BTreeMap<DeviceId, &Device> {
    let all = slices.iter().flat_map(|slice| {
        let spec = &slice.spec;
        let id = |device: &Device| DeviceId::new(&spec.driver, &spec.pool.name, &device.name);
        spec.devices.iter().flatten().map(move |device| (id(device), device))
    });
    all.collect()
}
