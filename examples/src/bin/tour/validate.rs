//! Step "validate": the API server checks the slices that the drivers publish (KEP-5945, KEP-6072).

use dra_alloc::validate::{ApiServer, Write};
use dra_alloc::{Gate, GateSet, Profile};
use dra_attrs::Component;

use super::cluster::{Cluster, PROFILE, gates, name};
use super::error::TourError;
use super::page::Page;

pub(super) fn validate(cluster: &Cluster, page: &mut Page) -> Result<(), TourError> {
    page.step("The API server checks the slices");
    let server = ApiServer::new(Component::new(PROFILE, gates()));
    for slice in &cluster.slices {
        server.validate_slice(Write::create(slice))?;
    }
    let names: Vec<&str> = cluster.slices.iter().map(|slice| name(&slice.metadata)).collect();
    page.input(names.join(", "));
    page.decision("all are accepted");

    let skipping = cluster.slices.iter().find(|slice| slice.spec.skip_node_operations.is_some());
    let Some(mut broken) = skipping.cloned() else { return Ok(()) };
    broken.spec.pool.resource_slice_count = 0;
    page.input(format!("{} with resourceSliceCount 0, and a server whose gates are off", name(&broken.metadata)));
    let off = GateSet::of(Profile::V1_37).without(Gate::OptionalNodeOperations);
    for profile in [PROFILE, Profile::Kep] {
        if let Err(errors) = ApiServer::new(Component::new(profile, off)).validate_slice(Write::create(&broken)) {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            page.decision(format!("refused, profile {profile}:\n{}", errors.join("\n")));
        }
    }
    page.reason("Every problem is named at once, with the path of its field, in the API server's words.");
    Ok(())
}
