//! Rules of older releases, each with the answer that an API server of that release gave.

use dra_attrs::{Component, DropCause, ErrorType, Gate, GateSet, Profile};
use dra_validate::{ApiServer, Write, read};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{Value, json};

use super::world::*;

/// A further release needs an answer in each row.
const RELEASES: [Profile; 4] = Profile::RELEASES;

/// A server of a release with every gate that it has.
fn server(release: Profile) -> ApiServer {
    let gates: GateSet = GateSet::all();
    let has = gates.iter().filter(|gate| gate.stage(release).exists()).collect();
    ApiServer::new(Component::new(release, has))
}

/// Returns the fields and types of the errors of a create, in each release; none if it is accepted.
fn slice_errors(slice: &Value) -> [Vec<String>; 4] {
    RELEASES.map(|release| {
        let slice: ResourceSlice = serde_json::from_value(slice.clone()).unwrap();
        let errors = server(release).validate_slice(Write::create(&slice)).err().unwrap_or_default();
        errors.iter().map(|error| format!("{} {}", error.field, error.r#type.name())).collect()
    })
}

/// A slice without lists, which releases before 1.36 do not know.
fn scalars() -> Value {
    let mut slice = slice();
    slice["spec"]["devices"][0]["attributes"]["other.example.com/numaNode"] = json!({"int": 1});
    slice
}

#[test]
fn totals_of_counters_in_1_34() {
    let counters = |count: usize| (0..count).map(|n| (format!("c{n}"), json!({"value": "1"}))).collect::<Value>();
    let errors = |in_second: usize, devices: usize| {
        let set = |name: &str, count: usize| json!({"name": name, "counters": counters(count)});
        let of = |name: &str, count: usize| json!({"counterSet": name, "counters": counters(count)});
        let device = |n: usize| json!({"name": format!("d{n}"), "consumesCounters": [of("a", 16), of("b", in_second)]});
        let slice = json!({"metadata": {"name": "s"}, "spec": {"driver": "gpu.example.com", "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "sharedCounters": [set("a", 16), set("b", in_second)],
            "devices": (0..devices).map(device).collect::<Vec<_>>()}});
        let slice: ResourceSlice = serde_json::from_value(slice).unwrap();
        let errors = server(Profile::V1_34).validate_slice(Write::create(&slice)).err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let refused = |field: &str, total: usize, of: &str, most: usize| {
        format!("{field}: Invalid value: {total}: the total number of {of} must not exceed {most}")
    };
    assert_eq!(errors(16, 32), [""; 0]);
    let shared = refused("spec.sharedCounters", 33, "shared counters", 32);
    assert_eq!(errors(17, 1), [refused("spec.devices[0]", 33, "counters", 32), shared]);
    assert_eq!(errors(16, 33), [refused("spec.devices", 1056, "counters in devices", 1024)]);
}

/// Row of a table: changes of a slice, and the errors of 1.34, 1.35, 1.36 and 1.37.
type Row<'a> = (Value, [&'a [&'a str]; 4]);

#[test]
fn slices() {
    let effect: &[&str] = &["spec.devices[0].taints[0].effect FieldValueNotSupported"];
    let absent = "spec.devices[0].attributes[model]";
    let (required, invalid) = (format!("{absent} FieldValueRequired"), format!("{absent} FieldValueInvalid"));
    let by_entry: &[&str] = &["spec.devices[0].attributes[a b] FieldValueInvalid"];
    let by_map: &[&str] = &["spec.devices[0].attributes FieldValueInvalid"];
    let step = "spec.devices[0].capacity[memory].requestPolicy.validRange.step";
    let (stops, zero) = (format!("{step} ServerStops"), format!("{step} FieldValueInvalid"));
    let twice = ["spec.devices[1].name FieldValueDuplicate", "spec.devices[1] FieldValueDuplicate"];
    let driver: &[&str] = &["spec.driver FieldValueRequired"];
    let rows: [Row<'_>; 7] = [
        (json!({"/spec/devices/0/taints/0/effect": "None"}), [effect, &[], &[], &[]]),
        (json!({"/spec/devices/0/attributes/model": {}}), [&[&required], &[&invalid], &[&invalid], &[&invalid]]),
        (json!({"/spec/devices/0/attributes/a b": {"int": 1}}), [by_entry, by_entry, by_map, by_map]),
        (
            json!({"/spec/devices/0/capacity/memory/requestPolicy/validRange/step": "0"}),
            [&[&stops], &[&stops], &[&stops], &[&zero]],
        ),
        (json!({"/spec/devices/-": {"name": "gpu-0"}}), [&twice[..1], &twice[1..], &twice[1..], &twice[1..]]),
        (
            json!({"/spec/driver": ""}),
            [&["spec.driver FieldValueRequired", "spec.driver FieldValueInvalid"], driver, driver, driver],
        ),
        (
            json!({"/spec/devices/0/attributes/a~1b~1c": {"int": 1}}),
            [&[], &[], &[], &["spec.devices[0].attributes FieldValueInvalid"]],
        ),
    ];
    for (changes, expected) in rows {
        // The oldest release wants the counter sets of devices in their slice.
        let mut slice = changed(&scalars(), changes.clone());
        slice["spec"]["devices"][0]["consumesCounters"] = Value::Null;
        assert_eq!(slice_errors(&slice), expected.map(<[&str]>::to_vec), "{changes}");
    }
}

#[test]
fn a_capital_in_the_name_of_a_driver_was_silent_at_first() {
    let mut slice = scalars();
    slice["spec"]["driver"] = json!("GPU.example.com");
    slice["spec"]["devices"] = json!([{"name": "gpu-0"}]);
    let slice: ResourceSlice = serde_json::from_value(slice).unwrap();
    let warnings =
        RELEASES.map(|release| server(release).validate_slice(Write::create(&slice)).unwrap().warnings.len());
    assert_eq!(warnings, [0, 1, 1, 1]);
}

#[test]
fn counters_were_in_the_slice_of_their_devices() {
    let together = json!({"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}});
    let mut slice = scalars();
    slice["spec"]["devices"][0]["consumesCounters"] =
        json!([{"counterSet": "gpu-0", "counters": {"memory": {"value": "10Gi"}}}]);
    let unknown = "spec.devices[0].consumesCounters[0].counterSet FieldValueInvalid";
    let [first, later @ ..] = slice_errors(&slice);
    assert_eq!((first, later), (vec![unknown.to_owned()], [vec![], vec![], vec![]]));
    slice["spec"]["sharedCounters"] = json!([together]);
    let [first, later @ ..] = slice_errors(&slice);
    assert_eq!((first, later), (vec![], [(); 3].map(|()| vec!["spec FieldValueInvalid".to_owned()])));
}

#[test]
fn an_unknown_field_goes_before_all_else() {
    let mut slice = scalars();
    slice["spec"]["devices"][0]["attributes"]["numa"] = json!({"ints": [1]});
    let typed: ResourceSlice = serde_json::from_value(slice.clone()).unwrap();
    // Without its list the attribute has no value, although the stored slice has the list.
    let refused = server(Profile::V1_35).validate_slice(Write::update(&typed, &typed)).unwrap_err();
    assert_eq!(refused[0].field, "spec.devices[0].attributes[numa]");
    slice["spec"]["skipNodeOperations"] = json!(["*"]);
    slice["spec"]["devices"][0]["attributes"]["numa"] = json!({"int": 1});
    let typed: ResourceSlice = serde_json::from_value(slice).unwrap();
    let accepted = server(Profile::V1_36).validate_slice(Write::create(&typed)).unwrap();
    let causes: Vec<_> = accepted.dropped.iter().map(|field| (field.field.as_str(), field.cause)).collect();
    assert!(causes.contains(&("spec.skipNodeOperations", DropCause::Unknown)), "{causes:?}");
    assert_eq!(accepted.object.spec.skip_node_operations, None);
}

#[test]
fn fields_whose_gate_is_off_are_dropped_by_default() {
    let typed: ResourceSlice = serde_json::from_value(scalars()).unwrap();
    let dropped = |release: Profile| -> Vec<Gate> {
        let server = ApiServer::new(Component::of(release));
        let accepted = server.validate_slice(Write::create(&typed)).unwrap();
        accepted.dropped.iter().map(|field| field.gate.gate).collect()
    };
    assert!(dropped(Profile::V1_35).contains(&Gate::DeviceTaints));
    assert!(!dropped(Profile::V1_36).contains(&Gate::DeviceTaints));
    let class: DeviceClass = serde_json::from_value(json!({"spec": {"extendedResourceName": "a b"}})).unwrap();
    let answer = |release: Profile| ApiServer::new(Component::of(release)).validate_class(Write::create(&class));
    assert_eq!(answer(Profile::V1_35).unwrap().object.spec.unwrap().extended_resource_name, None);
    assert_eq!(answer(Profile::V1_36).unwrap_err()[0].r#type, ErrorType::Invalid);
}

#[test]
fn other_forms_are_read() {
    let basic = json!({"attributes": {"model": {"string": "a"}}, "nodeName": "node-1"});
    let slice = json!({
        "apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceSlice",
        "spec": {"devices": [{"name": "gpu-0", "basic": basic}]},
    });
    let found = read(slice, Profile::V1_36).unwrap();
    assert_eq!(found.object["apiVersion"], "resource.k8s.io/v1");
    assert_eq!(found.object["spec"]["devices"][0]["attributes"]["model"]["string"], "a");
    assert_eq!(found.object["spec"]["devices"][0]["basic"], Value::Null);

    let request = json!({"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]});
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaim", "spec": {"devices": {"requests": [request]}},
    });
    let found = read(claim, Profile::V1_37).unwrap();
    let claim: ResourceClaim = serde_json::from_value(found.object).unwrap();
    let request = claim.spec.unwrap().devices.unwrap().requests.unwrap().remove(0);
    assert_eq!((request.exactly, request.first_available.unwrap().len()), (None, 1));

    let selector = json!({"driver": "d.example.com", "deviceClassName": "gpu", "selectors": [{"cel": {}}]});
    let rule = json!({
        "apiVersion": "resource.k8s.io/v1alpha3", "kind": "DeviceTaintRule",
        "spec": {"deviceSelector": selector, "taint": {"key": "k", "effect": "NoSchedule"}},
    });
    let found = read(rule, Profile::V1_34).unwrap();
    assert_eq!(found.dropped, ["spec.deviceSelector.deviceClassName", "spec.deviceSelector.selectors"]);

    let pod = json!({"kind": "Pod", "spec": {"resourceClaims": [{"name": "a", "source": {"resourceClaimName": "c"}}]}});
    let found = read(pod, Profile::V1_37).unwrap();
    assert_eq!(found.object["spec"]["resourceClaims"][0]["resourceClaimName"], "c");
    assert_eq!(found.converted.as_deref(), Some("spec.resourceClaims[*].source"));
}

#[test]
fn node_resources_of_1_36_have_another_form() {
    let mappings = json!({"cpu": {"capacityKey": "cores"}, "memory": {"allocationMultiplier": "2Gi"}});
    let device = json!({
        "name": "cpu-0", "nodeAllocatableResourceMappings": mappings, "nodeAllocatableResources": {"cpu": {}},
    });
    let slice = json!({"kind": "ResourceSlice", "spec": {"devices": [device]}});
    let found = read(slice.clone(), Profile::V1_36).unwrap();
    let resources = &found.object["spec"]["devices"][0]["nodeAllocatableResources"];
    assert_eq!(resources["cpu"]["mapping"], json!({"capacityKey": "cores", "capacityMultiplier": "1"}));
    assert_eq!(resources["memory"]["mapping"], json!({"deviceMultiplier": "2Gi"}));
    assert_eq!(found.unknown[0].field, "spec.devices[0].nodeAllocatableResources");
    assert_eq!(found.unknown[0].gate.map(|gate| gate.gate), Some(Gate::NodeAllocatableResources));
    // In 1.37 it is the other way round.
    let found = read(slice, Profile::V1_37).unwrap();
    assert_eq!(found.unknown[0].field, "spec.devices[0].nodeAllocatableResourceMappings");
}

#[test]
fn new_selectors_compile_as_in_their_release() {
    let compiles = |expression: &str| {
        let spec = json!({"selectors": [{"cel": {"expression": expression}}]});
        let class: DeviceClass = serde_json::from_value(json!({"metadata": {"name": "c"}, "spec": spec})).unwrap();
        RELEASES.map(|release| server(release).validate_class(Write::create(&class)).is_ok())
    };
    assert_eq!(compiles("1 in lists.range(3)"), [false, true, true, true]);
    assert_eq!(compiles("device.attributes['a.b'].c.includes(1)"), [false, false, true, true]);
}
