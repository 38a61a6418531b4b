//! Tests of lists of selectors that are too large.

use dra_alloc::validate::{ApiServer, Write};
use dra_alloc::{AllocateError, GateSet, Profile};
use dra_attrs::Component;
use serde_json::{Value, json};

use crate::cluster::{Cluster, claim, node, pool, request};

#[test]
fn a_list_of_selectors_is_refused_by_validation_and_allocation_alike() {
    let selector = |number: usize| format!("!device.driver.matches(r'^\\pL{{24}}x{number}$')");
    let list =
        |count: usize| -> Value { (0..count).map(|number| json!({"cel": {"expression": selector(number)}})).collect() };
    let device = json!([{"name": "gpu-0"}]);
    for (count, refused) in [(7, None), (9, Some(7))] {
        let requests = json!([request("gpu", "gpu", json!({"selectors": list(count)}))]);
        let claim = claim("claim", requests, json!([]));
        let written =
            ApiServer::new(Component::new(Profile::V1_37, GateSet::all())).validate_claim(Write::create(&claim));
        let found = written.err().unwrap_or_default();
        let found: Vec<&str> = found.iter().map(|error| error.field.as_str()).collect();
        let path = |index| format!("spec.devices.requests[0].exactly.selectors[{index}].cel.expression");
        assert_eq!(found.first().map(ToString::to_string), refused.map(path));
        let cluster = Cluster::new([pool("gpu.example", "node-1", device.clone())]);
        let allocated = cluster.try_allocate(&node("node-1"), &[claim]);
        let index = match allocated {
            Ok(_) => None,
            Err(AllocateError::SelectorCompile { index, .. }) => Some(usize::from(index)),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(index, refused);
    }
}
