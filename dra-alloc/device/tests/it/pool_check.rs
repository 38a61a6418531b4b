//! Mistakes that no single slice of a pool shows.

use dra_device::pool::validate_pool;
use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::{Value, json};

fn slice(spec: Value) -> ResourceSlice {
    let mut whole = json!({"driver": "gpu.example.com", "nodeName": "node-1",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2}});
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": whole})).unwrap()
}

fn findings(specs: &[Value]) -> Vec<String> {
    let slices: Vec<ResourceSlice> = specs.iter().cloned().map(slice).collect();
    let level = |is_error: bool| if is_error { "error" } else { "warning" };
    validate_pool(&slices).iter().map(|finding| format!("{}: {finding}", level(finding.mistake.is_error()))).collect()
}

#[test]
fn each_mistake_across_slices_has_its_path() {
    let cases = [
        (
            [json!({"devices": [{"name": "a"}]}), json!({"devices": [{"name": "b"}, {"name": "a"}]})],
            "error: slice 1: spec.devices[1].name: duplicate device a",
        ),
        (
            [
                json!({"sharedCounters": [{"name": "s", "counters": {"m": {"value": "1"}}}]}),
                json!({"devices": [{"name": "a", "consumesCounters": [
                    {"counterSet": "s", "counters": {"m": {"value": "1"}}},
                    {"counterSet": "t", "counters": {"m": {"value": "1"}}}]}]}),
            ],
            "error: slice 1: spec.devices[0].consumesCounters[1].counterSet: device a: the pool has no counter set t",
        ),
        (
            [json!({}), json!({"pool": {"name": "p", "generation": 1, "resourceSliceCount": 6}})],
            "error: slice 1: spec.pool.resourceSliceCount: slices disagree about resourceSliceCount",
        ),
        (
            [json!({}), json!({"nodeName": "node-2"})],
            "error: slice 1: spec.nodeName: slices disagree about the nodes of the devices",
        ),
        (
            [json!({}), json!({"pool": {"name": "p", "generation": 2, "resourceSliceCount": 2}})],
            "error: slice 1: spec.pool.generation: slices disagree about the generation",
        ),
        (
            [
                json!({"devices": [{"name": "a", "consumesCounters": [
                    {"counterSet": "s", "counters": {"m": {"value": "2Gi"}}}]}]}),
                json!({"sharedCounters": [{"name": "s", "counters": {"m": {"value": "1Gi"}}}]}),
            ],
            "warning: slice 0: spec.devices[0].consumesCounters[0].counters[m]: device a consumes more of counter m than \
             counter set s has",
        ),
        (
            [
                json!({}),
                json!({"devices": [
                {"name": "a", "attributes": {"resource.kubernetes.io/numaNode": {"string": "0"}}}]}),
            ],
            "error: slice 1: spec.devices[0].attributes[resource.kubernetes.io/numaNode]: device a: attribute \
             resource.kubernetes.io/numaNode: a NUMA node must be int or ints, not string",
        ),
        (
            [
                json!({}),
                json!({"devices": [
                {"name": "a", "attributes": {"resource.kubernetes.io/pciBusID": {"string": "zz"}}}]}),
            ],
            "error: slice 1: spec.devices[0].attributes[resource.kubernetes.io/pciBusID]: device a: attribute \
             resource.kubernetes.io/pciBusID: ",
        ),
        (
            [
                json!({}),
                json!({"devices": [
                {"name": "a", "attributes": {"resource.kubernetes.io/numaNode": {"ints": [0, 0]}}}]}),
            ],
            "error: slice 1: spec.devices[0].attributes[resource.kubernetes.io/numaNode]: device a: attribute \
             resource.kubernetes.io/numaNode: ",
        ),
        (
            [
                json!({}),
                json!({"devices": [
                {"name": "a", "attributes": {"resource.kubernetes.io/pcieRoot": {"int": 1}}}]}),
            ],
            "error: slice 1: spec.devices[0].attributes[resource.kubernetes.io/pcieRoot]: device a: attribute \
             resource.kubernetes.io/pcieRoot: neither a string nor a list of strings",
        ),
        (
            [json!({"sharedCounters": [{"name": "s", "counters": {"m": {"value": "1"}}}]}), json!({})],
            "warning: slice 0: spec.sharedCounters[0]: no device consumes from counter set s",
        ),
    ];
    for (specs, expected) in cases {
        let found = findings(&specs);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(expected), "{found:?} is not {expected}");
    }
}

#[test]
fn duplicates_are_found_once_and_in_the_order_of_slices() {
    let one = json!({"devices": [{"name": "b"}, {"name": "a"}, {"name": "b"}]});
    let other = json!({"devices": [{"name": "a"}, {"name": "b"}]});
    assert_eq!(
        findings(&[one, other]),
        [
            "error: slice 0: spec.devices[2].name: duplicate device b",
            "error: slice 1: spec.devices[0].name: duplicate device a"
        ]
    );
    assert_eq!(findings(&[]), [""; 0]);
}

#[test]
fn numa_node_zero_is_the_first_one() {
    let found = |node: i64| {
        let attributes = json!({"resource.kubernetes.io/numaNode": {"int": node}});
        let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
        findings(&[json!({"pool": pool, "devices": [{"name": "a", "attributes": attributes}]})])
    };
    assert_eq!((found(0), found(3)), (vec![], vec![]));
    assert!(matches!(&found(-1)[..], [one] if one.ends_with("no NUMA node -1")), "{:?}", found(-1));
}
