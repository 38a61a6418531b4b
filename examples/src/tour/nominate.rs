//! The scheduler announces the pod before it waits (KEP-5278): nomination and allocation in order, then the binding.

use k8s_openapi::api::resource::v1::ResourceClaim;
use nnn::binding::claims::ClaimState;
use nnn::binding::start::PreFlight;
use nnn::gates::{Gate, Gates};
use nnn::options::Options;
use nnn::pod::PodView;
use nnn::scheduler::{Input, Placed, Scheduler};

use super::TourError;
use super::cluster::{Cluster, name};
use super::page::Page;
use super::slow_volume::{Moment, tell};

pub(super) fn nominate(cluster: &Cluster, page: &mut Page) -> Result<(), TourError> {
    page.step("The scheduler announces the pod, then binds it");
    let pod = PodView::from_pod(&cluster.pod)?;
    let Some((claim, node)) = cluster.claims.iter().find_map(|claim| Some((claim, node_of(claim)?))) else {
        return Ok(());
    };
    page.input(format!("pod {} fits on {node}; its claim {} is to be written first", pod.key, name(&claim.metadata)));
    let claims = [ClaimState::Chosen(claim.metadata.uid.clone().unwrap_or_default())];
    for (state, gates) in [("on", Gates::default()), ("off", Gates::default().without(Gate::Expectation))] {
        let mut scheduler = Scheduler::new(Options::default().with_gates(gates));
        scheduler.handle(Input::PodObserved(pod.clone()))?;
        let placed = Placed::new(&pod.key, &node).pre_flights(vec![PreFlight::Success]).claims(claims.to_vec());
        let reaction = scheduler.handle(Input::CycleSucceeded(placed))?;
        let commands: Vec<String> = reaction.commands.iter().map(ToString::to_string).collect();
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

/// The node that the devices of an allocated claim are on, by the node selector of the allocation.
fn node_of(claim: &ResourceClaim) -> Option<String> {
    let selector = claim.status.as_ref()?.allocation.as_ref()?.node_selector.as_ref()?;
    let name = selector.node_selector_terms.first()?.match_fields.as_ref()?.first()?;
    name.values.as_ref()?.first().cloned()
}
