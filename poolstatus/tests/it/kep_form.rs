//! Status in the KEP's form, `v1alpha1`.

use k8s_openapi::api::resource::v1::ResourceClaim;
use std::collections::BTreeSet;

use dra_attrs::Profile;
use k8s_openapi::{ClusterResourceScope, Metadata, Resource};
use poolstatus::Cluster;
use poolstatus::kep::ResourcePoolStatusRequest;
use serde_json::{Value, json};

use crate::cluster::{DRIVER, NOW, claim, devices, gpus, node, now, query, report, slice};

fn errors(slices: &[k8s_openapi::api::resource::v1::ResourceSlice]) -> Vec<String> {
    report(slices, &[]).to_kep().validation_errors
}

/// Builds two slices of one pool.
fn pair(first: Value, second: Value) -> [k8s_openapi::api::resource::v1::ResourceSlice; 2] {
    let both = |name, spec: Value| {
        let mut all = slice(name, "node-1", json!({"pool": {"resourceSliceCount": 2}}));
        all.spec = serde_json::from_value(merged(serde_json::to_value(&all.spec).unwrap(), spec)).unwrap();
        all
    };
    [both("a", first), both("b", second)]
}

fn merged(mut into: Value, from: Value) -> Value {
    for (key, value) in from.as_object().unwrap() {
        if key == "pool" {
            into["pool"] = merged(into["pool"].clone(), value.clone());
        } else {
            into[key] = value.clone();
        }
    }
    into
}

#[test]
fn a_request_has_its_metadata() {
    let mut request = ResourcePoolStatusRequest::default();
    request.metadata_mut().name = Some("r".to_owned());
    assert_eq!((request.metadata().name.as_deref(), request.metadata.name.as_deref()), (Some("r"), Some("r")));
}

#[test]
fn the_whole_status() {
    // req: 5677-FORM-1, 5677-COND-1, 5677-COND-4, 5677-TRUNC-1
    let slices = [node("node-1", 4), node("node-2", 4), node("node-3", 1)];
    let claims = [claim("c", &["node-1/gpu-0"])];
    let status = Cluster::new(Profile::V1_37, &slices, &claims).report(&query().with_limit(2), now()).to_kep();
    let pool = |name: &str, allocated: i32| {
        json!({
            "driver": DRIVER, "poolName": name, "nodeName": name, "totalDevices": 4, "allocatedDevices": allocated,
            "availableDevices": 4 - allocated, "unavailableDevices": 0, "sliceCount": 1, "generation": 1,
        })
    };
    let expected = json!({
        "observationTime": NOW,
        "pools": [pool("node-1", 1), pool("node-2", 0)],
        "conditions": [{
            "type": "Complete", "status": "True", "reason": "CalculationComplete", "message": "Processed 3 pools",
            "lastTransitionTime": NOW,
        }],
        "validationErrors": [],
        "truncated": true,
        "totalMatchingPools": 3,
    });
    assert_eq!(serde_json::to_value(&status).unwrap(), expected);
    assert_eq!(status.observation_time.as_ref(), Some(&status.conditions[0].last_transition_time));
    assert_eq!(serde_json::from_value::<poolstatus::kep::Status>(expected).unwrap(), status);
}

#[test]
fn names_of_the_api() {
    // req: 5677-API-1
    fn is_cluster_scoped<T: Resource<Scope = ClusterResourceScope>>() -> &'static str {
        T::API_VERSION
    }
    type Request = ResourcePoolStatusRequest;
    assert_eq!(is_cluster_scoped::<Request>(), "resource.k8s.io/v1alpha1");
    assert_eq!(format!("{}/{}", Request::GROUP, Request::VERSION), Request::API_VERSION);
    assert_eq!(Request::KIND, "ResourcePoolStatusRequest");
    assert_eq!(Request::URL_PATH_SEGMENT, "resourcepoolstatusrequests");
    assert_eq!(Request::short_names(Profile::Kep), ["rpsr"]);
    assert!(Request::short_names(Profile::V1_37).is_empty());
}

#[test]
fn no_pool_is_no_error() {
    // req: 5677-COND-3
    let status = report(&[], &[claim("c", &["node-1/gpu-0"])]).to_kep();
    assert_eq!((status.pools.len(), status.total_matching_pools, status.truncated), (0, 0, false));
    assert!(status.validation_errors.is_empty());
    assert_eq!((status.conditions[0].type_.as_str(), status.conditions[0].status.as_str()), ("Complete", "True"));
    assert_eq!(status.conditions[0].message, "Processed 0 pools");
}

#[test]
fn a_device_in_several_slices() {
    // req: 5677-VALID-1, 5677-VALID-6
    let slices = pair(json!({"devices": gpus(2)}), json!({"devices": devices(&["gpu-0", "x"])}));
    assert_eq!(errors(&slices), ["pool node-1: device gpu-0 appears in multiple slices"]);
    let status = report(&slices, &[]).to_kep();
    assert_eq!(status.pools[0].total_devices, 4, "as they are listed");
    assert_eq!((status.conditions[0].type_.as_str(), status.conditions[0].status.as_str()), ("Complete", "True"));
}

#[test]
fn a_pool_with_missing_slices() {
    // req: 5677-VALID-2, 5677-VALID-6
    let slices =
        [slice("a", "node-1", json!({"pool": {"generation": 5, "resourceSliceCount": 2}, "devices": gpus(3)}))];
    assert_eq!(errors(&slices), ["pool node-1: incomplete: observed 1/2 slices at generation 5"]);
    assert_eq!(report(&slices, &[]).to_kep().pools[0].total_devices, 3, "what is there is counted");
}

#[test]
fn slices_that_disagree() {
    // req: 5677-VALID-4
    let counts = pair(json!({}), json!({"pool": {"resourceSliceCount": 1}}));
    assert_eq!(errors(&counts), ["pool node-1: slices disagree on resourceSliceCount: 1, 2"]);
    let nodes = pair(json!({"nodeName": "n"}), json!({"nodeName": "m"}));
    assert_eq!(errors(&nodes), ["pool node-1: slices disagree on nodeName"]);
    let one = pair(json!({"nodeName": "n"}), json!({"allNodes": true}));
    assert_eq!(errors(&one), ["pool node-1: slices disagree on nodeName"]);
    assert!(errors(&pair(json!({"nodeName": "n"}), json!({"nodeName": "n"}))).is_empty());
    assert!(errors(&pair(json!({"allNodes": true}), json!({"nodeSelector": {"nodeSelectorTerms": []}}))).is_empty());
}

#[test]
fn ten_errors_of_256_characters() {
    // req: 5677-VALID-3, 5677-VALID-5
    let twice = |count: usize| pair(json!({"devices": gpus(count)}), json!({"devices": gpus(count)}));
    for (count, expected) in [(9, 9), (10, 10), (11, 10)] {
        let status = report(&twice(count), &[]).to_kep();
        assert_eq!(status.validation_errors.len(), expected);
        assert_eq!(status.pools[0].total_devices, i32::try_from(2 * count).unwrap());
        assert!(!status.truncated);
    }
    // Sorted by name, `gpu-10` comes before `gpu-2`, so that `gpu-9` is the eleventh and is dropped.
    let kept = errors(&twice(11));
    assert_eq!(kept.len(), 10);
    assert!(kept[0].contains("gpu-0 ") && kept[9].contains("gpu-8 "), "the first ten stay: {kept:?}");
    // The text adds "pool node-1: device " and " appears in multiple slices" to the name.
    for (len, expected) in [(209, 256), (210, 256), (300, 256), (208, 255)] {
        let name = "ü".repeat(len);
        let slices = pair(json!({"devices": devices(&[&name])}), json!({"devices": devices(&[&name])}));
        let errors = errors(&slices);
        assert_eq!(errors[0].chars().count(), expected, "{len}");
    }
}

#[test]
fn errors_are_those_of_the_listed_pools() {
    // req: 5677-VALID-5
    let slices: Vec<_> = (0..3)
        .map(|index| slice(&format!("s-{index}"), &format!("p-{index}"), json!({"pool": {"resourceSliceCount": 2}})))
        .collect();
    let status =
        Cluster::new::<_, ResourceClaim>(Profile::V1_37, &slices, []).report(&query().with_limit(2), now()).to_kep();
    assert_eq!((status.validation_errors.len(), status.total_matching_pools, status.truncated), (2, 3, true));
}

/// Collects the names of all fields.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(entries) => entries.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            fields(value, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        _ => {}
    }
}

#[test]
fn nothing_of_a_slice_but_its_counts() {
    // req: 5677-SEC-2
    let device = json!({
        "name": "gpu-0", "attributes": {"model": {"string": "secret-model"}},
        "capacity": {"secret-capacity": {"value": "80Gi"}}, "allowMultipleAllocations": true,
        "taints": [{"key": "secret-taint", "effect": "NoSchedule"}],
    });
    let slices = [slice("secret-slice", "p", json!({"devices": [device]}))];
    let status = serde_json::to_value(report(&slices, &[]).to_kep()).unwrap();
    let allowed = [
        "observationTime",
        "pools",
        "conditions",
        "validationErrors",
        "truncated",
        "totalMatchingPools",
        "driver",
        "poolName",
        "nodeName",
        "totalDevices",
        "allocatedDevices",
        "availableDevices",
        "unavailableDevices",
        "sliceCount",
        "generation",
        "type",
        "status",
        "reason",
        "message",
        "lastTransitionTime",
    ];
    let mut found = BTreeSet::new();
    fields(&status, &mut found);
    assert_eq!(found, allowed.map(str::to_owned).into());
    assert!(!status.to_string().contains("secret"), "{status}");
}

#[test]
fn a_status_is_written_when_it_is_set() {
    let mut request = ResourcePoolStatusRequest::default();
    assert_eq!(serde_json::to_value(&request).unwrap().get("status"), None);
    request.status = report(&[node("node-1", 1)], &[]).to_kep();
    let written = serde_json::to_value(&request).unwrap();
    assert_eq!(written["status"]["pools"][0]["totalDevices"], 1);
    assert_eq!(serde_json::from_value::<ResourcePoolStatusRequest>(written).unwrap(), request);
}
