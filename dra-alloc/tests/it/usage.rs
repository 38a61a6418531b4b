//! Whether an attribute is in use, and works.

use dra_alloc::outcome::Outcome;
use dra_alloc::usage::{attribute_usage, common_values, matched_values};
use dra_attrs::value::Scalar;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimStatus, ResourceSlice};
use serde_json::json;

use crate::cluster::{Cluster, NUMA, ROOT, claim, on_numa, pool, request, together};

/// The claim as it is once it has its devices.
fn allocated(cluster: &Cluster, claim: &ResourceClaim) -> ResourceClaim {
    let Outcome::Allocated(mut results) = cluster.allocate("node-1", std::slice::from_ref(claim)) else {
        panic!("not allocated");
    };
    let status = ResourceClaimStatus { allocation: results.pop(), ..Default::default() };
    ResourceClaim { status: Some(status), ..claim.clone() }
}

fn cluster() -> Cluster {
    Cluster::new([
        pool("cpu.example.com", "node-1", json!([on_numa("cpu-0", &[0]), on_numa("cpu-4", &[4])])),
        pool("nic.example.com", "node-1", json!([on_numa("nic", &[4, 5]), {"name": "plain"}])),
    ])
}

#[test]
fn in_use_needs_devices_and_claims() {
    // req: 6072-OBS-1
    let cluster = cluster();
    let slices = || cluster.slices.iter().map(|slice| &**slice);
    let claims = [together("pair", &["cpu", "nic"], NUMA), together("other", &["cpu", "nic"], ROOT)];
    let usage = attribute_usage(slices(), &claims, NUMA);
    assert_eq!((usage.devices, usage.claims), (3, 1));
    assert!(usage.is_in_use());
    assert!(!attribute_usage(slices(), &claims[1..], NUMA).is_in_use());
    assert!(!attribute_usage([], &claims, NUMA).is_in_use());
    assert!(!attribute_usage(slices(), &claims, ROOT).is_in_use());
}

#[test]
fn it_works_when_the_devices_of_a_claim_share_a_node() {
    // req: 6072-OBS-1
    let cluster = cluster();
    let slices: Vec<ResourceSlice> = cluster.slices.iter().map(|slice| (**slice).clone()).collect();
    let pair = together("pair", &["cpu", "nic"], NUMA);
    assert_eq!(common_values(&slices, &pair, NUMA), []);
    let pair = allocated(&cluster, &pair);
    assert_eq!(common_values(&slices, &pair, NUMA), [Scalar::Int(4)]);

    // Without the constraint the first devices are taken, which have no node in common.
    let mut free = pair.clone();
    free.spec.as_mut().unwrap().devices.as_mut().unwrap().constraints = None;
    assert_eq!(common_values(&slices, &allocated(&cluster, &free), NUMA), []);
    assert_eq!(common_values(&[], &pair, NUMA), [], "unknown devices have nothing in common");
}

#[test]
fn only_the_devices_that_a_constraint_binds_have_to_share_a_node() {
    // req: 6072-OBS-1
    let cluster = Cluster::new([
        pool("cpu.example.com", "node-1", json!([on_numa("cpu-0", &[0]), on_numa("cpu-4", &[4])])),
        pool("nic.example.com", "node-1", json!([on_numa("nic", &[4, 5])])),
        pool("disk.example.com", "node-1", json!([{"name": "disk"}])),
    ]);
    let slices: Vec<ResourceSlice> = cluster.slices.iter().map(|slice| (**slice).clone()).collect();
    let requests = ["cpu", "nic", "disk"].map(|class| request(class, class, json!({})));
    let bound = json!([
        {"matchAttribute": NUMA, "requests": ["cpu", "nic"]},
        {"matchAttribute": NUMA, "requests": ["nic"]},
        {"matchAttribute": ROOT, "requests": []},
    ]);
    let mut three = claim("three", json!(requests), bound);
    assert_eq!(matched_values(&slices, &three, NUMA), [[], []], "not allocated");
    three.spec.as_mut().unwrap().devices.as_mut().unwrap().constraints.as_mut().unwrap().pop();
    let three = allocated(&cluster, &three);
    assert_eq!(matched_values(&slices, &three, NUMA), [vec![Scalar::Int(4)], vec![Scalar::Int(4), Scalar::Int(5)]]);
    assert_eq!(common_values(&slices, &three, NUMA), [], "the disk is nowhere");
}

#[test]
fn the_newest_generation_says_what_a_device_has() {
    let cluster = cluster();
    let claim = allocated(&cluster, &together("pair", &["cpu", "nic"], NUMA));
    let newest: Vec<ResourceSlice> = cluster.slices.iter().map(|slice| (**slice).clone()).collect();
    let mut stale = newest.clone();
    for slice in &mut stale {
        slice.spec.pool.generation -= 1;
        slice.spec.devices.iter_mut().flatten().for_each(|device| device.attributes = None);
    }
    for slices in [[newest.clone(), stale.clone()].concat(), [stale, newest].concat()] {
        assert_eq!(common_values(&slices, &claim, NUMA), [Scalar::Int(4)]);
    }
}
