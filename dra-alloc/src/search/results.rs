//! Construction of the allocation that is written into a claim's status: devices, configuration and node selector.
//!
//! Source: the result handling of kube-scheduler's allocator, 1.37.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::Gate;
use dra_attrs::internal::release::{ConfigOfAll, ResultTolerations};
use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::api::resource::v1::{
    AllocationResult, DeviceAllocationConfiguration, DeviceAllocationResult, DeviceClaimConfiguration,
    DeviceRequestAllocationResult, DeviceToleration,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;
use smallvec::SmallVec;

use super::allocate_error::AllocateError;
use super::candidates::Candidate;
use super::capacity_check::CapacityCheck;
use super::ix::AlternativeIx;
use super::partial_assignment::Chosen;
use super::request::{Alternative, Claim};
use super::share::Share;
use super::solution::Solution;
use super::table::Table;
use crate::cluster::scope::selector_of_node;

/// Number of parts of configuration whose copy is a unit of work.
const PARTS_OF_UNIT: usize = 4;

/// Consumed amounts by capacity name.
type Amounts = BTreeMap<String, Quantity>;

/// Returns the allocations of a solution, one for each claim.
#[inline]
pub(crate) fn results(table: &Table<'_>, solution: Solution<'_>) -> Result<Vec<AllocationResult>, AllocateError> {
    let mut results = Vec::with_capacity(table.plan.claims.len());
    let mut shares = 0;
    for (claim, selected, chosen) in solution.by_claim(table.plan) {
        let mut devices = Vec::with_capacity(chosen.len());
        for chosen in chosen {
            let share = if table.is_shareable(chosen.device) {
                shares += 1;
                let id = table.context.share_ids.share_id(Share { claim: claim.object, number: shares });
                Some((id, consumed(table, *chosen)?))
            } else {
                None
            };
            devices.push(device_result(table, *chosen, share));
        }
        let config = config(table, claim, selected);
        if !config.is_empty() {
            table.meter.add(weight(&config) / PARTS_OF_UNIT);
        }
        let config = some_if_any(config);
        let devices = DeviceAllocationResult { results: some_if_any(devices), config };
        let node_selector = node_selector(table, claim, chosen)?;
        results.push(AllocationResult { devices: Some(devices), node_selector, allocation_timestamp: None });
    }
    Ok(results)
}

/// Checks what [`results`] checks, without building the allocations.
pub(crate) fn check_results(table: &Table<'_>, solution: Solution<'_>) -> Result<(), AllocateError> {
    for (claim, _, chosen) in solution.by_claim(table.plan) {
        for chosen in chosen {
            match Reach::new(table, *chosen) {
                Reach::Node => break,
                Reach::Terms(terms) => only_term(claim, terms)?,
            };
        }
    }
    Ok(())
}

fn some_if_any<T>(list: Vec<T>) -> Option<Vec<T>> {
    if list.is_empty() { None } else { Some(list) }
}

/// Returns the device result of a chosen device. `share` is the ID and consumed capacity of a share, if a share is
/// allocated.
fn device_result(
    table: &Table<'_>,
    chosen: Chosen,
    share: Option<(String, Option<Amounts>)>,
) -> DeviceRequestAllocationResult {
    let (asked, candidate) = (table.alternative(chosen.alternative), table.candidate(chosen.device));
    let (spec, device) = (&candidate.slice.spec, candidate.device);
    let has_binding = table.has(Gate::DeviceBindingConditions);
    let conditions = |conditions: &Option<Vec<String>>| conditions.clone().filter(|_| has_binding);
    let (share_id, consumed_capacity) = share.unzip();
    DeviceRequestAllocationResult {
        request: asked.name.to_string(),
        driver: spec.driver.clone(),
        pool: spec.pool.name.clone(),
        device: device.name.clone(),
        admin_access: asked.admin_access.then_some(true),
        tolerations: tolerations(table, asked),
        consumed_capacity: consumed_capacity.flatten(),
        share_id,
        binding_conditions: conditions(&device.binding_conditions),
        binding_failure_conditions: conditions(&device.binding_failure_conditions),
        skip_node_operations: spec.skip_node_operations.clone(),
    }
}

/// Returns the tolerations of a request, as its results have them.
fn tolerations(table: &Table<'_>, asked: &Alternative<'_>) -> Option<Vec<DeviceToleration>> {
    match table.rules.allocator.tolerations {
        ResultTolerations::Absent => None,
        ResultTolerations::Copied => asked.tolerations.map(<[_]>::to_vec),
    }
}

/// Returns the amount that a share consumes of every capacity of its device.
fn consumed(table: &Table<'_>, chosen: Chosen) -> Result<Option<Amounts>, AllocateError> {
    let CapacityCheck::Takes(amounts) = table.fit(chosen.alternative, chosen.device)? else { return Ok(None) };
    let capacities = table.capacities(chosen.device)?.iter().zip(amounts);
    let consumed: BTreeMap<_, _> =
        capacities.map(|(capacity, amount)| (capacity.name.to_owned(), amount.to_kube())).collect();
    Ok(if consumed.is_empty() { None } else { Some(consumed) })
}

/// Returns the configuration of the classes, in the order in which the requests name them, then that of the claim.
fn config(table: &Table<'_>, claim: &Claim<'_>, selected: &[AlternativeIx]) -> Vec<DeviceAllocationConfiguration> {
    let chosen = selected.iter().map(|alternative| table.alternative(*alternative));
    let of_claim = claim.devices().and_then(|devices| devices.config.as_deref()).unwrap_or_default();
    if of_claim.is_empty() && chosen.clone().all(|asked| asked.class.config().is_empty()) {
        return Vec::new();
    }
    let chosen: SmallVec<[&Alternative<'_>; 8]> = chosen.collect();
    let mut config = class_config(&chosen);
    config.extend(claim_config(claim, of_claim, &chosen));
    match table.rules.allocator.config_of_all {
        ConfigOfAll::Kept => {}
        ConfigOfAll::Cleared => {
            for entry in &mut config {
                if entry.requests.as_ref().is_some_and(|names| covers_all(names, claim, &chosen)) {
                    entry.requests = None;
                }
            }
        }
    }
    config
}

/// Returns the number of parts of configuration, with long texts as several.
fn weight(config: &[DeviceAllocationConfiguration]) -> usize {
    let parameters = config.iter().filter_map(|entry| Some(&entry.opaque.as_ref()?.parameters.0));
    let (mut open, mut parts) = (parameters.collect::<Vec<_>>(), 0);
    while let Some(value) = open.pop() {
        parts += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.values()),
            Value::String(text) => parts += text.len() / 256,
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    parts
}

fn class_config(chosen: &[&Alternative<'_>]) -> Vec<DeviceAllocationConfiguration> {
    let mut config: Vec<DeviceAllocationConfiguration> = Vec::new();
    let mut classes: Vec<(&str, std::ops::Range<usize>)> = Vec::new();
    for asked in chosen {
        let (class, own) = (asked.class.name(), asked.class.config());
        if own.is_empty() {
            continue;
        }
        if let Some((_, entries)) = classes.iter().find(|(known, _)| *known == class) {
            let names =
                config.get_mut(entries.clone()).into_iter().flatten().filter_map(|entry| entry.requests.as_mut());
            names.for_each(|names| names.push(asked.name.to_string()));
            continue;
        }
        let start = config.len();
        config.extend(own.iter().map(|own| DeviceAllocationConfiguration {
            source: "FromClass".to_owned(),
            requests: Some(vec![asked.name.to_string()]),
            opaque: own.opaque.clone(),
        }));
        classes.push((class, start..config.len()));
    }
    config
}

/// Returns the configuration entries of the claim that apply to a request or a chosen subrequest.
fn claim_config<'a>(
    claim: &'a Claim<'_>,
    entries: &'a [DeviceClaimConfiguration],
    chosen: &'a [&Alternative<'_>],
) -> impl Iterator<Item = DeviceAllocationConfiguration> + 'a {
    let concerns = move |names: &[String]| {
        let is_named = |name: &str| names.iter().any(|other| other == name);
        names.is_empty()
            || claim.requests.iter().zip(chosen).any(|(request, asked)| is_named(request.name) || is_named(&asked.name))
    };
    let concerning = entries.iter().filter(move |entry| concerns(entry.requests.as_deref().unwrap_or_default()));
    concerning.map(|entry| DeviceAllocationConfiguration {
        source: "FromClaim".to_owned(),
        requests: entry.requests.clone().filter(|names| !names.is_empty()),
        opaque: entry.opaque.clone(),
    })
}

fn covers_all(names: &[String], claim: &Claim<'_>, chosen: &[&Alternative<'_>]) -> bool {
    let is_named = |name: &str| names.iter().any(|other| other == name);
    claim.requests.iter().zip(chosen).all(|(request, asked)| is_named(request.name) || is_named(&asked.name))
}

/// Nodes where a device is available.
enum Reach<'s> {
    /// The chosen node.
    Node,
    /// The nodes that one of the terms matches; all nodes without a term.
    Terms(&'s [NodeSelectorTerm]),
}

impl<'s> Reach<'s> {
    fn new(table: &Table<'s>, chosen: Chosen) -> Self {
        let Candidate { slice, device, .. } = table.candidate(chosen.device);
        let (node_name, selector) = if slice.spec.per_device_node_selection == Some(true) {
            (&device.node_name, &device.node_selector)
        } else {
            (&slice.spec.node_name, &slice.spec.node_selector)
        };
        if node_name.is_some() || device.binds_to_node == Some(true) {
            return Self::Node;
        }
        Self::Terms(selector.as_ref().map_or(&[][..], |selector| &selector.node_selector_terms))
    }
}

/// Returns the term of a device's node selector, if it has one; several can't be merged.
fn only_term<'t>(
    claim: &Claim<'_>,
    terms: &'t [NodeSelectorTerm],
) -> Result<Option<&'t NodeSelectorTerm>, AllocateError> {
    match terms {
        [] => Ok(None),
        [term] => Ok(Some(term)),
        terms => Err(AllocateError::NodeSelectorTerms { claim: claim.name(), terms: terms.len() }),
    }
}

/// Returns the node selector of an allocation, for the nodes where all devices of the claim are available; `None` for
/// all nodes.
///
/// A device with a node name, or with `bindsToNode`, restricts the allocation to the chosen node. Otherwise, the node
/// selectors of all devices are merged, without duplicate requirements.
fn node_selector(
    table: &Table<'_>,
    claim: &Claim<'_>,
    chosen: &[Chosen],
) -> Result<Option<NodeSelector>, AllocateError> {
    let mut term = NodeSelectorTerm::default();
    for chosen in chosen {
        let Reach::Terms(terms) = Reach::new(table, *chosen) else {
            return Ok(Some(selector_of_node(table.node_name())));
        };
        if let Some(other) = only_term(claim, terms)? {
            merge(&mut term.match_fields, other.match_fields.as_deref());
            merge(&mut term.match_expressions, other.match_expressions.as_deref());
        }
    }
    let is_empty = term == NodeSelectorTerm::default();
    Ok(if is_empty { None } else { Some(NodeSelector { node_selector_terms: vec![term] }) })
}

/// Adds the requirements of `other` to `into`, except those that `into` already has. Requirements with equal values in
/// another order count as equal.
fn merge(into: &mut Option<Vec<NodeSelectorRequirement>>, other: Option<&[NodeSelectorRequirement]>) {
    for requirement in other.unwrap_or_default() {
        let all = into.get_or_insert_default();
        if !all.iter().any(|known| is_same(known, requirement)) {
            all.push(requirement.clone());
        }
    }
}

fn is_same(left: &NodeSelectorRequirement, right: &NodeSelectorRequirement) -> bool {
    let values = |requirement: &'_ NodeSelectorRequirement| -> BTreeSet<String> {
        requirement.values.iter().flatten().cloned().collect()
    };
    left.key == right.key && left.operator == right.operator && values(left) == values(right)
}
