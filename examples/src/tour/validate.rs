//! The API server checks what the drivers publish (KEP-5945, KEP-6072).

use dra_alloc::features::{Feature, Features};
use dra_alloc::validate::{Admission, ApiServer};

use super::TourError;
use super::cluster::{Cluster, PROFILE, features, name};
use super::page::Page;

pub(super) fn validate(cluster: &Cluster, page: &mut Page) -> Result<(), TourError> {
    page.step("The API server checks the slices");
    let server = ApiServer::new(PROFILE, features());
    for slice in &cluster.slices {
        server.slice(Admission::create(slice))?;
    }
    let names: Vec<&str> = cluster.slices.iter().map(|slice| name(&slice.metadata)).collect();
    page.input(names.join(", "));
    page.decision("all are accepted");

    let skipping = cluster.slices.iter().find(|slice| slice.spec.skip_node_operations.is_some());
    let Some(mut broken) = skipping.cloned() else { return Ok(()) };
    broken.spec.pool.resource_slice_count = 0;
    page.input(format!("{} with resourceSliceCount 0, and a server whose gates are off", name(&broken.metadata)));
    if let Err(errors) = ApiServer::new(PROFILE, Features::default().without(Feature::OptionalNodeOperations))
        .slice(Admission::create(&broken))
    {
        let errors: Vec<String> = errors.as_slice().iter().map(ToString::to_string).collect();
        page.decision(format!("refused:\n{}", errors.join("\n")));
    }
    page.reason("Every problem is named at once, with the path of its field, in the API server's words.");
    Ok(())
}
