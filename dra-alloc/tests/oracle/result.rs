//! Allocation results for the claims' status.

use dra_alloc::Gate;
use dra_attrs::Profile;
use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::api::resource::v1::{
    AllocationResult, DeviceAllocationConfiguration, DeviceAllocationResult, DeviceRequestAllocationResult,
    ResourceSlice,
};

use super::requests::Ask;
use super::search::{Candidate, Chosen, Decisions, Search};
use super::{Failure, fatal, nodes};

/// Returns true if the driver of a slice declares `skipNodeOperations`.
pub fn skips_operations(slice: &ResourceSlice) -> bool {
    slice.spec.skip_node_operations.as_ref().is_some_and(|names| !names.is_empty())
}

/// Returns the results of all claims. By the KEP, fails for devices that skip node operations while the gate is off.
pub fn results(search: &Search<'_>, decisions: &Decisions) -> Result<Vec<AllocationResult>, Failure> {
    let refuses = search.case.profile == Profile::Kep && !search.has(Gate::OptionalNodeOperations);
    let mut slices = decisions.devices.iter().map(|chosen| search.candidates[chosen.candidate].slice);
    if refuses && slices.any(skips_operations) {
        return Err(Failure::OnNode("a chosen device skips node operations, but the feature is disabled".to_owned()));
    }
    (0..search.claims.len()).map(|claim| result(search, decisions, claim)).collect()
}

fn result(search: &Search<'_>, decisions: &Decisions, claim: usize) -> Result<AllocationResult, Failure> {
    let of_claim = decisions.devices.iter().enumerate().filter(|(_, chosen)| chosen.claim == claim);
    let results = of_claim.clone().map(|(index, chosen)| {
        let before = decisions.devices[..index].iter().filter(|chosen| chosen.consumed.is_some()).count();
        device(search, chosen, before + 1)
    });
    let slices: Vec<_> = of_claim.map(|(_, chosen)| &search.candidates[chosen.candidate]).collect();
    let asks: Vec<_> = decisions.picks.iter().filter(|pick| pick.claim == claim).collect();
    let asks: Vec<_> = asks.iter().map(|pick| search.ask(pick.claim, pick.request, pick.ask)).collect();
    Ok(AllocationResult {
        devices: Some(DeviceAllocationResult {
            config: Some(configs(search, claim, &asks)),
            results: Some(results.collect()),
        }),
        node_selector: node_selector(search, &slices)?,
        ..AllocationResult::default()
    })
}

fn device(search: &Search<'_>, chosen: &Chosen, share: usize) -> DeviceRequestAllocationResult {
    let ask = search.ask(chosen.claim, chosen.request, chosen.ask);
    let Candidate { id, slice, device, .. } = &search.candidates[chosen.candidate];
    let with_conditions = search.has(Gate::DeviceBindingConditions);
    let consumed = chosen.consumed.as_ref().filter(|amounts| !amounts.is_empty());
    DeviceRequestAllocationResult {
        request: ask.full_name(),
        driver: id.driver.clone(),
        pool: id.pool.clone(),
        device: id.device.clone(),
        admin_access: ask.admin.then_some(true),
        tolerations: ask.tolerations.cloned(),
        share_id: chosen.consumed.as_ref().map(|_| format!("00000000-0000-0000-0000-{share:012x}")),
        consumed_capacity: consumed
            .map(|amounts| amounts.iter().map(|(name, amount)| (name.clone(), amount.to_kube())).collect()),
        binding_conditions: device.binding_conditions.clone().filter(|_| with_conditions),
        binding_failure_conditions: device.binding_failure_conditions.clone().filter(|_| with_conditions),
        skip_node_operations: slice.spec.skip_node_operations.clone(),
    }
}

/// Returns the configuration of the classes, then that of the claim.
fn configs(search: &Search<'_>, claim: usize, asks: &[&Ask<'_>]) -> Vec<DeviceAllocationConfiguration> {
    let mut classes: Vec<(&Ask<'_>, Vec<String>)> = Vec::new();
    for ask in asks {
        match classes.iter_mut().find(|(first, _)| first.class == ask.class) {
            Some((_, requests)) => requests.push(ask.full_name()),
            None => classes.push((ask, vec![ask.full_name()])),
        }
    }
    let mut all = Vec::new();
    for (ask, requests) in classes {
        all.extend(ask.class_config.iter().map(|config| DeviceAllocationConfiguration {
            opaque: config.opaque.clone(),
            requests: Some(requests.clone()),
            source: "FromClass".to_owned(),
        }));
    }
    for config in search.claims[claim].config {
        let named = config.requests.as_deref().unwrap_or_default();
        if named.is_empty() || asks.iter().any(|ask| is_named(ask, named)) {
            all.push(DeviceAllocationConfiguration {
                opaque: config.opaque.clone(),
                requests: config.requests.clone(),
                source: "FromClaim".to_owned(),
            });
        }
    }
    for config in &mut all {
        let named = config.requests.as_deref().unwrap_or_default();
        if asks.iter().all(|ask| is_named(ask, named)) {
            config.requests = None;
        }
    }
    all
}

/// Returns true if a list of names contains the request, or the alternative that was chosen for it.
fn is_named(ask: &Ask<'_>, names: &[String]) -> bool {
    names.iter().any(|name| name == ask.request || *name == ask.full_name())
}

/// Returns the node selector of the claim: the nodes that all its devices have in common.
fn node_selector(search: &Search<'_>, devices: &[&Candidate<'_>]) -> Result<Option<NodeSelector>, Failure> {
    let mut term = NodeSelectorTerm::default();
    for Candidate { slice, device, .. } in devices {
        let per_device = slice.spec.per_device_node_selection == Some(true);
        let (node_name, selector) = if per_device {
            (&device.node_name, &device.node_selector)
        } else {
            (&slice.spec.node_name, &slice.spec.node_selector)
        };
        if node_name.is_some() || device.binds_to_node == Some(true) {
            return Ok(Some(only_node(nodes::name(&search.case.node))));
        }
        let terms = selector.as_ref().map(|selector| selector.node_selector_terms.as_slice()).unwrap_or_default();
        match terms {
            [] => {}
            [one] => {
                merge(&mut term.match_fields, one.match_fields.as_ref());
                merge(&mut term.match_expressions, one.match_expressions.as_ref());
            }
            more => return fatal(format!("unsupported ResourceSlice.NodeSelector with {} terms", more.len())),
        }
    }
    let is_empty = term.match_fields.is_none() && term.match_expressions.is_none();
    Ok((!is_empty).then(|| NodeSelector { node_selector_terms: vec![term] }))
}

fn only_node(name: &str) -> NodeSelector {
    let requirement = NodeSelectorRequirement {
        key: nodes::NAME_FIELD.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![name.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![requirement]), match_expressions: None };
    NodeSelector { node_selector_terms: vec![term] }
}

/// Adds requirements that are not there yet; the order of values is ignored.
fn merge(into: &mut Option<Vec<NodeSelectorRequirement>>, from: Option<&Vec<NodeSelectorRequirement>>) {
    let values = |requirement: &NodeSelectorRequirement| {
        requirement.values.iter().flatten().cloned().collect::<std::collections::BTreeSet<_>>()
    };
    for new in from.into_iter().flatten() {
        let all = into.get_or_insert_default();
        let is_same = |old: &NodeSelectorRequirement| {
            old.key == new.key && old.operator == new.operator && values(old) == values(new)
        };
        if !all.iter().any(is_same) {
            all.push(new.clone());
        }
    }
}
