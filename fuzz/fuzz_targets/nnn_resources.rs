//! Reads any text as a request: nothing panics, and the sum of requests does not depend on the form of the text.
#![no_main]

use std::collections::BTreeMap;

use dra_attrs::Resources;
use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use libfuzzer_sys::fuzz_target;

fn list(cpu: String) -> BTreeMap<String, Quantity> {
    [("cpu".to_owned(), Quantity(cpu))].into()
}

fn container(cpu: &str, restart_policy: Option<&str>) -> Container {
    let resources = ResourceRequirements { requests: Some(list(cpu.to_owned())), ..Default::default() };
    Container { resources: Some(resources), restart_policy: restart_policy.map(str::to_owned), ..Default::default() }
}

fuzz_target!(|text: &str| {
    let spec = PodSpec {
        containers: vec![container(text, None), container("1", None)],
        init_containers: Some(vec![container(text, Some("Always")), container("250m", None)]),
        overhead: Some(list("1Ki".to_owned())),
        ..Default::default()
    };
    let parsed = Resources::parse(&list(text.to_owned()));
    let requested = Resources::requested_by(&spec);
    assert_eq!(parsed.is_ok(), requested.is_ok());
    let (Ok(parsed), Ok(requested)) = (parsed, requested) else { return };
    let canonical = Resources::parse(&list(parsed.quantity("cpu").to_string())).expect("canonical");
    assert_eq!(canonical, parsed);
    let mut sum = requested.clone();
    sum.add(&parsed);
    assert!(parsed.fits_into(&parsed) && sum.minus(&sum).fits_into(&Resources::default()));
});
