//! Announcement of a pod before its binding (KEP-5278): nomination, then allocation, then the binding.

use dra_attrs::{Component, Gate, GateSet, Profile};
use k8s_openapi::api::resource::v1::ResourceClaim;
use nnn::{
    Assumed, Behavior, BindingClaim, NominationOptions, NominationTracker, PodSnapshot, PreFlight, TrackerInput,
};

use super::cluster::{Cluster, name};
use super::error::TourError;
use super::page::Page;
use super::slow_volume::{Moment, tell};

pub(super) fn nominate(cluster: &Cluster, page: &mut Page) -> Result<(), TourError> {
    page.step("The scheduler announces the pod, then binds it");
    let pod = PodSnapshot::from_pod(&cluster.pod)?;
    let Some((claim, node)) = cluster.claims.iter().find_map(|claim| Some((claim, node_of(claim)?))) else {
        return Ok(());
    };
    page.input(format!("pod {} fits on {node}; its claim {} is to be written first", pod.key, name(&claim.metadata)));
    let claims = [BindingClaim::Chosen(claim.metadata.uid.clone().unwrap_or_default())];
    let options = NominationOptions::new(Profile::V1_37, Behavior::Safe);
    let off = GateSet::of(Profile::V1_37).without(Gate::NominatedNodeNameForExpectation);
    for (state, gates) in [("on", GateSet::of(Profile::V1_37)), ("off", off)] {
        let mut tracker = NominationTracker::new(options.with_scheduler(Component::new(Profile::V1_37, gates)));
        tracker.handle(TrackerInput::PodObserved(pod.clone()))?;
        let assumed = Assumed::new(&pod.key, &node).with_pre_flights(vec![PreFlight::Success]);
        let output = tracker.handle(TrackerInput::CycleSucceeded(assumed.with_claims(claims.to_vec())))?;
        let commands: Vec<String> = output.commands.iter().map(ToString::to_string).collect();
        page.decision(format!("with the gate {state}: {}", commands.join(", ")));
    }
    page.reason(
        "An autoscaler sees a nominated node as in use while volumes and devices are made ready; without the nomination it\n\
         may take the node away. Node resources and devices are one reservation, so that both are announced together.",
    );
    page.input("another pod, whose volume takes a minute to make on node-b");
    for Moment { what, on, off } in tell()? {
        page.decision(format!("{what}: {on} (with the gate off: {off})"));
    }
    Ok(())
}

/// Returns the node of an allocated claim, from the node selector of the allocation.
fn node_of(claim: &ResourceClaim) -> Option<String> {
    let selector = claim.status.as_ref()?.allocation.as_ref()?.node_selector.as_ref()?;
    let name = selector.node_selector_terms.first()?.match_fields.as_ref()?.first()?;
    name.values.as_ref()?.first().cloned()
}
