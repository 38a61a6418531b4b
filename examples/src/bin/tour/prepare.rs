//! Step "prepare": the kubelet prepares the pod's claim and calls only one of two drivers (KEP-5945).

use std::collections::BTreeMap;

use dra_alloc::GateSet;
use dra_alloc::kubelet::{ClaimCache, ClaimRef, Responses, Skipped};
use dra_attrs::{Component, Gate, Profile};

use super::cluster::{Cluster, PROFILE, name};
use super::error::TourError;
use super::page::Page;

/// Drivers that run on the node. The CPU driver does not.
const RUNNING: [&str; 2] = ["gpu.example.com", "nic.example.com"];

pub(super) fn prepare(cluster: &Cluster, page: &mut Page) -> Result<(), TourError> {
    page.step("The kubelet prepares the pod's devices");
    let settings = Component::new(PROFILE, GateSet::of(Profile::V1_37).with(Gate::OptionalNodeOperations));
    let is_running = |driver: &str| RUNNING.contains(&driver);
    page.input(format!(
        "pod {} with its claim; drivers on the node: {}",
        name(&cluster.pod.metadata),
        RUNNING.join(", ")
    ));
    let mut cache = ClaimCache::default();
    let mut plan = cache.plan_prepare(&cluster.pod, &cluster.claims, is_running, settings)?;
    page.decision(format!("call {}; skip {}", callees(plan.calls()), drivers(plan.skipped())));
    for (driver, claims) in plan.calls().clone() {
        let prepared: Responses<_> = claims.into_iter().map(|claim| (claim.uid, Ok(Vec::new()))).collect();
        cache.apply_prepare(&mut plan, &driver, Ok(prepared))?;
    }
    cache.finish_prepare(plan)?;
    page.reason("The allocation carries what the slice declared, so that the kubelet need not look at slices.");

    let file = cache.take_checkpoint(PROFILE).unwrap_or_default();
    page.input(format!("a restart in between: the checkpoint has {} bytes; the pod ends", file.len()));
    let mut cache = ClaimCache::from_checkpoint(file.as_bytes()).unwrap_or_default();
    let plan = cache.plan_unprepare(&cluster.pod, is_running, settings)?;
    page.decision(format!("call {}; skip {}", callees(plan.calls()), drivers(plan.skipped())));
    page.reason("What was skipped is in the checkpoint: the end needs neither the API server nor the gate.");
    Ok(())
}

fn callees(calls: &BTreeMap<String, Vec<ClaimRef>>) -> String {
    calls.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn drivers(skipped: &[Skipped]) -> String {
    skipped.iter().map(|skipped| skipped.driver.as_str()).collect::<Vec<_>>().join(", ")
}
