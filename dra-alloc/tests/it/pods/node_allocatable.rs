//! Node resources that devices take (KEP-5517): amounts, demand, fit, sharing, and the forms of other versions.

use dra_alloc::pods::{
    PodNodeResources, PodNodeResourcesError, PodOptions, StatusCode, claim_amounts_from_json,
    with_node_allocatable_resources,
};
use dra_alloc::{Inventory, Profile};
use dra_attrs::Resources;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};

fn slice(name: &str, generation: i64, resources: &Value) -> ResourceSlice {
    from_value(json!({"metadata": {"name": name}, "spec": {"driver": "d.example.com", "nodeName": "n",
        "pool": {"name": "n", "generation": generation, "resourceSliceCount": 1},
        "devices": [{"name": "a", "nodeAllocatableResources": resources}, {"name": "plain"}]}}))
    .unwrap()
}

fn claim(devices: &[&str], consumed: &Value) -> ResourceClaim {
    let result = |device: &&str| json!({"request": "r", "driver": "d.example.com", "pool": "n", "device": device, "consumedCapacity": consumed});
    let results: Vec<Value> = devices.iter().map(result).collect();
    from_value(json!({"metadata": {"namespace": "ns", "name": "c", "uid": "c"},
        "status": {"allocation": {"devices": {"results": results}}}}))
    .unwrap()
}

fn pod(uses: &Value, pod_level: &Value) -> Pod {
    from_value(json!({"metadata": {"namespace": "ns", "name": "p", "uid": "p"}, "spec": {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}, "claims": uses}}, {"name": "side"}],
        "resources": {"requests": pod_level}, "resourceClaims": [{"name": "dev", "resourceClaimName": "c"}]}}))
    .unwrap()
}

fn node() -> Node {
    from_value(json!({"metadata": {"name": "n"}})).unwrap()
}

fn taken(
    pod: &Pod,
    claim: &ResourceClaim,
    slices: Vec<ResourceSlice>,
) -> Result<PodNodeResources, PodNodeResourcesError> {
    let allocation = claim.status.as_ref().unwrap().allocation.as_ref().unwrap();
    PodNodeResources::new(pod, [(claim, allocation)], &Inventory::new(slices), &node())
}

fn resources(cpu: &str, memory: &str) -> Resources {
    Resources::new([("cpu", cpu.parse().unwrap()), ("memory", memory.parse().unwrap())])
}

#[test]
fn each_amount_has_its_rule() {
    let uses = json!([{"name": "dev"}]);
    let mapping = |mapping: Value| json!({"cpu": {"mapping": mapping}});
    let rows = [
        (mapping(json!({"deviceMultiplier": "2"})), json!(null), "3"),
        (mapping(json!({"capacityKey": "cores", "capacityMultiplier": "1500m"})), json!({"cores": "3"}), "5500m"),
        (mapping(json!({"capacityKey": "cores"})), json!({"d.example.com/cores": "3"}), "4"),
        (mapping(json!({"capacityKey": "d.example.com/cores"})), json!({"cores": "3"}), "4"),
        (mapping(json!({"capacityKey": "other.example.com/cores"})), json!({"cores": "3"}), "1"),
        (json!({"cpu": {"overhead": {"perPod": "1", "perContainer": "500m"}}}), json!(null), "2500m"),
        (json!(null), json!(null), "1"),
    ];
    for (device, consumed, cpu) in rows {
        let found = taken(&pod(&uses, &json!({})), &claim(&["a"], &consumed), vec![slice("s", 1, &device)]).unwrap();
        assert_eq!(found.demand.quantity("cpu"), cpu.parse().unwrap(), "{device}");
        assert_eq!(found.amounts.is_empty(), cpu == "1", "{device}");
    }
}

#[test]
fn a_device_that_is_gone_is_an_error_only_beside_one_with_amounts() {
    let device = json!({"cpu": {"mapping": {"deviceMultiplier": "2"}}});
    let pod = pod(&json!([{"name": "dev"}]), &json!({}));
    let with = |devices: &[&str]| taken(&pod, &claim(devices, &json!(null)), vec![slice("s", 1, &device)]);
    assert_eq!(with(&["gone", "plain"]).unwrap().amounts, []);
    assert_eq!(
        with(&["a", "gone"]).unwrap_err().to_string(),
        "claim ns/c, device gone, driver d.example.com: device gone not found in pool n for driver d.example.com"
    );
}

#[test]
fn the_latest_generation_answers() {
    let [old, new] = ["2", "3"].map(|number| json!({"cpu": {"mapping": {"deviceMultiplier": number}}}));
    let pod = pod(&json!([{"name": "dev"}]), &json!({}));
    let found = taken(&pod, &claim(&["a"], &json!(null)), vec![slice("old", 1, &old), slice("new", 2, &new)]).unwrap();
    assert_eq!(found.demand.quantity("cpu"), "4".parse().unwrap());
}

#[test]
fn a_container_pays_once() {
    let device = json!({"cpu": {"overhead": {"perContainer": "1"}}});
    let uses = json!([{"name": "dev", "request": "x"}, {"name": "dev", "request": "y"}]);
    let found = taken(&pod(&uses, &json!({})), &claim(&["a"], &json!(null)), vec![slice("s", 1, &device)]).unwrap();
    assert_eq!(found.amounts[0].containers, ["main"]);
    assert_eq!(found.demand.quantity("cpu"), "2".parse().unwrap());
}

#[test]
fn devices_for_extended_resources_count() {
    let device = json!({"cpu": {"mapping": {"deviceMultiplier": "2"}, "overhead": {"perContainer": "500m"}}});
    let mut pod = pod(&json!([]), &json!({}));
    pod.spec.as_mut().unwrap().resource_claims = None;
    let status = |claim: &str| {
        from_value(json!({"extendedResourceClaimStatus": {"resourceClaimName": claim, "requestMappings": [
            {"containerName": "side", "resourceName": "example.com/dev", "requestName": "container-1-request-0"}]}}))
        .unwrap()
    };
    for (name, containers, cpu) in [("c", &["side"][..], "3500m"), ("other", &[], "3")] {
        pod.status = Some(status(name));
        let found = taken(&pod, &claim(&["a"], &json!(null)), vec![slice("s", 1, &device)]).unwrap();
        assert_eq!(found.amounts[0].containers, containers);
        assert_eq!(found.amounts[0].claim, "c");
        assert_eq!(found.demand.quantity("cpu"), cpu.parse().unwrap());
    }
}

#[test]
fn the_pod_fits_or_the_reasons_are_named() {
    let device = json!({"cpu": {"mapping": {"deviceMultiplier": "8"}}, "memory": {"overhead": {"perPod": "40Gi"}}});
    let pod_of = |pod_level: Value| pod(&json!([{"name": "dev"}]), &pod_level);
    let found = taken(&pod_of(json!({})), &claim(&["a"], &json!(null)), vec![slice("s", 1, &device)]).unwrap();
    let refused = |pod: &Pod, requested: &Resources| -> Vec<(String, StatusCode)> {
        let refusals = found.refusals(pod, &resources("16", "64Gi"), requested).unwrap();
        refusals.iter().map(|refusal| (refusal.to_string(), refusal.code())).collect()
    };
    let (now, never) = (StatusCode::Unschedulable, StatusCode::UnschedulableAndUnresolvable);
    let none = resources("0", "0");
    assert_eq!(refused(&pod_of(json!({})), &none), []);
    assert_eq!(
        refused(&pod_of(json!({})), &resources("10", "32Gi")),
        [("Insufficient cpu".to_owned(), now), ("Insufficient memory".to_owned(), now)]
    );
    let short =
        "pod level request for cpu is insufficient to cover the aggregated container and node-allocatable DRA requests";
    assert_eq!(refused(&pod_of(json!({"cpu": "8"})), &none), [(short.to_owned(), never)]);
    assert_eq!(refused(&pod_of(json!({"cpu": "12"})), &none), []);
    let small = found.refusals(&pod_of(json!({})), &resources("4", "64Gi"), &none).unwrap();
    assert_eq!(small[0].code(), never);
}

#[test]
fn a_claim_that_stands_for_node_resources_serves_one_pod() {
    let options = PodOptions::new(Profile::V1_37);
    let pod = pod(&json!([{"name": "dev"}]), &json!({}));
    let mut own = pod.clone();
    own.metadata.uid = Some("q".to_owned());
    for (device, is_shared) in [
        (json!({"cpu": {"mapping": {"deviceMultiplier": "8"}}}), false),
        (json!({"cpu": {"overhead": {"perPod": "1"}}}), true),
    ] {
        let mut claim = claim(&["a"], &json!(null));
        claim.status.as_mut().unwrap().reserved_for =
            from_value(json!([{"resource": "pods", "name": "q", "uid": "q"}])).unwrap();
        let found = taken(&pod, &claim, vec![slice("s", 1, &device)]).unwrap();
        assert_eq!(found.check_sharing(&pod, [&claim], options).is_ok(), is_shared);
        assert_eq!(found.check_sharing(&own, [&claim], options), Ok(()));
    }
}

#[test]
fn fields_of_other_versions_are_read() {
    let old = json!({"metadata": {"name": "s"}, "spec": {"driver": "d.example.com", "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "a",
            "nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "4"}}}]}});
    let slice: ResourceSlice = from_value(with_node_allocatable_resources(old)).unwrap();
    let found = taken(&pod(&json!([]), &json!({})), &claim(&["a"], &json!(null)), vec![slice]).unwrap();
    assert_eq!((found.amounts[0].containers.len(), found.demand.quantity("cpu")), (0, "5".parse().unwrap()));
    let mapping = json!([{"name": "cpu", "quantity": "4"}]);
    let forms = [
        json!({"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c", "resources": {"cpu": "4"}}]}),
        json!({"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c", "mapping": mapping}]}),
        json!({"additionalNodeAllocatableResources": [
            {"sourceKind": "ResourceClaim", "sourceName": "c", "mapping": mapping}]}),
    ];
    for status in forms {
        assert_eq!(claim_amounts_from_json(&json!({"status": status})).unwrap(), found.amounts, "{status}");
    }
    assert!(claim_amounts_from_json(&json!({"status": {"additionalNodeAllocatableResources": 7}})).is_err());
    assert_eq!(claim_amounts_from_json(&json!({})).unwrap(), []);
}
