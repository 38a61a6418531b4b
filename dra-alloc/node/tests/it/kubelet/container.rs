//! Tests of the CDI IDs of a container.

use dra_attrs::{Component, Gate, GateSet, Profile};
use dra_node::kubelet::PreparedDevice;
use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::{Value, from_value, json};

use super::world::{GPU, NIC, World, claim, pod};

fn container(claims: Value) -> Container {
    from_value(json!({"name": "main", "resources": {"claims": claims}})).unwrap()
}

/// Prepares a claim with two drivers: three devices for different requests, and one of a driver that is not called.
fn prepared() -> (World, Pod) {
    let object = claim("c", &[(GPU, json!(null)), (NIC, json!(null)), ("virtual.example.com", json!(["*"]))]);
    let pod = pod("p", &["c"]);
    let mut world = World::new(Profile::V1_37, &[]);
    let mut plan =
        world.cache.plan_prepare(&pod, &[object], |driver| driver == GPU || driver == NIC, world.settings).unwrap();
    let device = |requests: &[&str], ids: &[&str]| PreparedDevice {
        requests: requests.iter().map(|&request| request.to_owned()).collect(),
        cdi_ids: ids.iter().map(|&id| id.to_owned()).collect(),
        ..PreparedDevice::default()
    };
    let answers = |devices| Ok([("c-claim".to_owned(), Ok(devices))].into());
    let nics = vec![device(&["n"], &["nic=0"])];
    let gpus = vec![device(&["big", "small"], &["gpu=1", "gpu=common"]), device(&[], &["gpu=all"])];
    world.cache.apply_prepare(&mut plan, NIC, answers(nics)).unwrap();
    world.cache.apply_prepare(&mut plan, GPU, answers(gpus)).unwrap();
    world.cache.finish_prepare(plan).unwrap();
    (world, pod)
}

#[test]
fn devices_by_request() {
    let (world, pod) = prepared();
    let rows: [(Value, &[&str]); 6] = [
        (json!([]), &[]),
        (json!([{"name": "other"}]), &[]),
        (json!([{"name": "c"}]), &["gpu=1", "gpu=common", "gpu=all", "nic=0"]),
        (json!([{"name": "c", "request": "n"}]), &["gpu=all", "nic=0"]),
        (json!([{"name": "c", "request": "unknown"}]), &["gpu=all"]),
        (
            json!([{"name": "c", "request": "big"}, {"name": "c", "request": "small"}]),
            &["gpu=1", "gpu=common", "gpu=all", "gpu=1", "gpu=common", "gpu=all"],
        ),
    ];
    for (claims, expected) in rows {
        assert_eq!(world.cache.container_devices(&pod, &container(claims.clone()), world.settings).unwrap(), expected);
    }
}

#[test]
fn a_claim_that_is_not_remembered() {
    let (world, _) = prepared();
    let other = pod("p", &["other"]);
    let error =
        world.cache.container_devices(&other, &container(json!([{"name": "other"}])), world.settings).unwrap_err();
    assert_eq!(error.to_string(), "internal error: unable to get claim info for ResourceClaim other in namespace ns");
}

#[test]
fn extended_resources_of_the_container() {
    let (world, mut pod) = prepared();
    let mapping = |container, resource, request| json!({"containerName": container, "resourceName": resource, "requestName": request});
    let status = json!({"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": [
        mapping("main", "example.com/nic", "n"),
        mapping("main", "example.com/none", "big"),
        mapping("side", "example.com/nic", "small"),
        mapping("main", "cpu", "small"),
    ]}});
    pod.spec.as_mut().unwrap().resource_claims = None;
    pod.status = from_value(status).unwrap();
    let asks = |requests: Value| -> Container {
        from_value(json!({"name": "main", "resources": {"requests": requests}})).unwrap()
    };
    let ids = |container| world.cache.container_devices(&pod, &container, world.settings).unwrap();
    assert_eq!(ids(asks(json!({"example.com/nic": "1", "example.com/none": "0", "cpu": "1"}))), ["gpu=all", "nic=0"]);
    assert!(ids(asks(json!({}))).is_empty());
}

#[test]
fn only_the_first_request_of_extended_resources_counts_in_1_34() {
    let (world, mut pod) = prepared();
    let mapping = |request| json!({"containerName": "main", "resourceName": "example.com/x", "requestName": request});
    let mappings = [mapping("n"), mapping("big")];
    pod.spec.as_mut().unwrap().resource_claims = None;
    pod.status =
        from_value(json!({"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": mappings}}))
            .unwrap();
    let container: Container =
        from_value(json!({"name": "main", "resources": {"requests": {"example.com/x": "2"}}})).unwrap();
    let ids = |profile: Profile| {
        let gates = GateSet::of(profile).with(Gate::ExtendedResource);
        let options = Component::new(profile, gates);
        world.cache.container_devices(&pod, &container, options).unwrap()
    };
    assert_eq!(ids(Profile::V1_34), ["gpu=all", "nic=0"]);
    for profile in [Profile::V1_35, Profile::V1_36, Profile::V1_37] {
        assert_eq!(ids(profile), ["gpu=all", "nic=0", "gpu=1", "gpu=common", "gpu=all"], "{profile}");
    }
}

#[test]
fn which_resources_devices_may_stand_behind() {
    let (world, mut pod) = prepared();
    pod.spec.as_mut().unwrap().resource_claims = None;
    let rows = [
        ("example.com/nic", true),
        ("deviceclass.resource.kubernetes.io/nic", true),
        ("other.kubernetes.io/nic", false),
        ("requests.example.com/nic", false),
        ("nic", false),
    ];
    for (resource, stands) in rows {
        let mapping = json!({"containerName": "main", "resourceName": resource, "requestName": "n"});
        let status = json!({"resourceClaimName": "c", "requestMappings": [mapping]});
        pod.status = from_value(json!({"extendedResourceClaimStatus": status})).unwrap();
        let container = from_value(json!({"name": "main", "resources": {"requests": {resource: "1"}}})).unwrap();
        let ids = |settings| world.cache.container_devices(&pod, &container, settings).unwrap();
        assert_eq!(ids(world.settings).is_empty(), !stands, "{resource}");
        assert!(
            ids(Component::new(world.settings.profile(), world.settings.gates().without(Gate::ExtendedResource)))
                .is_empty(),
            "{resource}"
        );
    }
}
