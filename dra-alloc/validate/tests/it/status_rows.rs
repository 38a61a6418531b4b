//! Tests of every rule for the status of claims, with valid and invalid objects.

use dra_attrs::ErrorType::*;
use dra_attrs::{Component, Gate, GateSet, Profile};
use dra_validate::{ApiServer, NamespaceAccess};
use serde_json::{Value, json};

use super::world::{Expected, allocated, changed, claim, expect, shipped, update_status};

const RESULTS: &str = "status.allocation.devices.results";

/// Checks the errors for changes of a status that is written for the first time.
fn check_first(rows: &[(Value, &[Expected<'_>])]) {
    for (changes, expected) in rows {
        let new = changed(&allocated(), changes.clone());
        expect(&changes.to_string(), update_status(shipped(), claim(), new), expected);
    }
}

/// Checks the errors for changes of a stored status.
fn check_later(rows: &[(Value, &[Expected<'_>])]) {
    for (changes, expected) in rows {
        let new = changed(&allocated(), changes.clone());
        expect(&changes.to_string(), update_status(shipped(), allocated(), new), expected);
    }
}

fn consumer(uid: &str) -> Value {
    json!({"resource": "pods", "name": uid, "uid": uid})
}

const UUID: &str = "must be a lowercase UUID in 8-4-4-4-12 format";

#[test]
fn consumers() {
    let reserved = |list: Value| json!({"/status/reservedFor": list});
    let many = |count: usize| -> Value { (0..count).map(|index| consumer(&format!("u{index}"))).collect() };
    const FOR: &str = "status.reservedFor";
    check_later(&[
        (reserved(json!([])), &[]),
        (reserved(many(256)), &[]),
        (reserved(many(257)), &[(FOR, TooMany, "must have at most 256 items")]),
        (reserved(json!([consumer("a"), consumer("a")])), &[("status.reservedFor[1]", Duplicate, "")]),
        (
            reserved(json!([{"resource": "", "name": "", "uid": ""}])),
            &[
                ("status.reservedFor[0].resource", Required, ""),
                ("status.reservedFor[0].name", Required, ""),
                ("status.reservedFor[0].uid", Required, ""),
            ],
        ),
        (json!({"/status/allocation": null, "/status/devices": null, "/status/reservedFor": null}), &[]),
        (
            json!({"/status/allocation": null, "/status/devices": null}),
            &[(FOR, Forbidden, "may not be specified when `allocated` is not set")],
        ),
        (
            json!({"/status/allocation": null, "/status/devices/0/device": "nic-7"}),
            &[
                ("status.devices[0]", Invalid, "must be an allocated device in the claim"),
                (FOR, Forbidden, "may not be specified when `allocated` is not set"),
            ],
        ),
    ]);
}

#[test]
fn a_claim_that_is_being_deleted_gets_no_new_consumers() {
    let deleted = changed(&allocated(), json!({"/metadata/deletionTimestamp": "2026-11-01T00:00:00Z"}));
    let more = changed(&deleted, json!({"/status/reservedFor/-": consumer("q-uid")}));
    let less = changed(&deleted, json!({"/status/reservedFor": []}));
    expect("less", update_status(shipped(), deleted.clone(), less), &[]);
    expect("same", update_status(shipped(), deleted.clone(), deleted.clone()), &[]);
    expect(
        "more",
        update_status(shipped(), deleted, more),
        &[("status.reservedFor", Forbidden, "new entries may not be added while")],
    );
}

#[test]
fn an_allocation_stays_until_it_is_gone() {
    let gone = json!({"/status/allocation": null, "/status/reservedFor": null, "/status/devices": null});
    check_later(&[
        (json!({}), &[]),
        (gone, &[]),
        (json!({"/status/allocation/devices/results/0/consumedCapacity/memory": "8192Mi"}), &[]),
        (
            json!({"/status/allocation/devices/results/1/device": "nic-1", "/status/devices": null}),
            &[("status.allocation", Invalid, "field cannot be modified once set")],
        ),
    ]);
    check_first(&[(json!({}), &[])]);
    // A stored allocation is not validated again.
    let bad = changed(&allocated(), json!({"/status/allocation/devices/results/0/request": "unknown"}));
    expect("stored", update_status(shipped(), bad.clone(), bad), &[]);
}

#[test]
fn devices_that_are_written_alike_are_not_the_same() {
    let share = "29b5e2c1-0000-4000-8000-000000000001";
    let devices = json!([
        {"driver": "d", "pool": "p", "device": "x", "shareID": share},
        {"driver": "d", "pool": "p/x", "device": share},
    ]);
    let mut results = devices.clone();
    results.as_array_mut().unwrap().iter_mut().for_each(|result| result["request"] = json!("gpu"));
    let both = |devices: Value| json!({"/status/allocation/devices/results": results, "/status/devices": devices});
    let mut twice = devices.clone();
    twice[1] = twice[0].clone();
    check_first(&[(both(devices), &[]), (both(twice), &[("status.devices[1]", Duplicate, "")])]);
}

#[test]
fn results_of_a_new_allocation() {
    let result = |field: &str, value: Value| json!({format!("/status/allocation/devices/results/0/{field}"): value});
    let path = |field: &str| format!("{RESULTS}[0].{field}");
    let one = json!({"request": "gpu", "driver": "d", "pool": "p", "device": "x"});
    let many =
        |count: usize| json!({"/status/allocation/devices/results": vec![one.clone(); count], "/status/devices": null});
    check_first(&[
        // The API server accepts the same device twice.
        (many(32), &[]),
        (many(33), &[(RESULTS, TooMany, "must have at most 32 items")]),
        (result("request", json!("cpu")), &[(&path("request"), Invalid, "must be the name of a request")]),
        (result("request", json!("nic/slow")), &[]),
        (result("driver", json!("")), &[(&path("driver"), Required, "")]),
        (result("pool", json!("a//b")), &[(&path("pool"), Invalid, "segment 1: must not be empty")]),
        (result("driver", json!("a_b")), &[(&path("driver"), Invalid, "an RFC 1123 subdomain must consist of")]),
        (result("driver", json!("GPU.example.com")), &[]),
        (result("device", json!("")), &[(&path("device"), Invalid, "RFC 1123 label")]),
        (
            result("bindingConditions", json!(["a"])),
            &[(&path("bindingFailureConditions"), Invalid, "are required to use bindingConditions")],
        ),
        (result("tolerations", json!([{"operator": "x"}])), &[(&path("tolerations[0].operator"), NotSupported, "")]),
        (result("shareID", json!("12345678-90AB-cdef-1234-567890abcdef")), &[(&path("shareID"), Invalid, UUID)]),
        (result("shareID", json!("1")), &[(&path("shareID"), Invalid, UUID)]),
        (result("shareID", json!("1234567890abcdef1234567890abcdef")), &[(&path("shareID"), Invalid, UUID)]),
        (result("shareID", json!("1234567890abcdefg234567890abcdef")), &[(&path("shareID"), Invalid, UUID)]),
        (result("shareID", json!("{12345678-90ab-cdef-1234-567890abcdef}")), &[(&path("shareID"), Invalid, UUID)]),
        (
            result("shareID", json!("URN:uuid:12345678-90ab-cdef-1234-567890abcdef")),
            &[(&path("shareID"), Invalid, UUID)],
        ),
        (
            result("shareID", json!("urn:guid:12345678-90ab-cdef-1234-567890abcdef")),
            &[(&path("shareID"), Invalid, UUID)],
        ),
        (result("adminAccess", json!(true)), &[]),
        (
            result("consumedCapacity", json!({"m": "x"})),
            &[(&path("consumedCapacity[m]"), Invalid, "quantities must match")],
        ),
        (
            json!({"/status/allocation/nodeSelector/nodeSelectorTerms": []}),
            &[("status.allocation.nodeSelector.nodeSelectorTerms", Required, "must have at least one")],
        ),
    ]);
}

#[test]
fn configuration_of_a_new_allocation() {
    const CONFIG: &str = "status.allocation.devices.config";
    let config = |list: Value| json!({"/status/allocation/devices/config": list});
    let one = |source: &str| json!({"source": source, "opaque": {"driver": "d", "parameters": {}}});
    check_first(&[
        (config(json!(vec![one("FromClaim"); 64])), &[]),
        (config(json!(vec![one("FromClaim"); 65])), &[(CONFIG, TooMany, "must have at most 64 items")]),
        (config(json!([one("")])), &[(&format!("{CONFIG}[0].source"), Required, "")]),
        (
            config(json!([one("FromPod")])),
            &[(&format!("{CONFIG}[0].source"), NotSupported, "supported values: \"FromClaim\", \"FromClass\"")],
        ),
        (config(json!([{"source": "FromClass"}])), &[(&format!("{CONFIG}[0].opaque"), Required, "")]),
        (
            config(json!([{"source": "FromClass", "requests": ["x"], "opaque": {"driver": "d", "parameters": {}}}])),
            &[(&format!("{CONFIG}[0].requests[0]"), Invalid, "must be the name of a request")],
        ),
    ]);
}

#[test]
fn admin_access_of_a_new_allocation() {
    let admin = changed(&allocated(), json!({"/status/allocation/devices/results/0/adminAccess": true}));
    let ordinary = shipped().with_namespace(NamespaceAccess::Ordinary);
    let field = format!("{RESULTS}[0].adminAccess");
    expect("new", update_status(ordinary, claim(), admin.clone()), &[(&field, Forbidden, "admin access to devices")]);
    let renamed = changed(&admin, json!({"/metadata/name": "other"}));
    expect(
        "before all else",
        update_status(ordinary, claim(), renamed),
        &[(&field, Forbidden, "admin access to devices"), ("metadata.name", Invalid, "field is immutable")],
    );
    expect("granted", update_status(ordinary, admin.clone(), admin.clone()), &[]);
    expect("label", update_status(shipped().with_namespace(NamespaceAccess::Admin), claim(), admin), &[]);
}

#[test]
fn what_drivers_say_about_devices() {
    const DEVICE: &str = "status.devices[0]";
    let device = |field: &str, value: Value| json!({format!("/status/devices/0/{field}"): value});
    let path = |field: &str| format!("{DEVICE}.{field}");
    let condition = |field: &str, value: Value| device(&format!("conditions/0/{field}"), value);
    let of_condition = |field: &str| path(&format!("conditions[0].{field}"));
    let network = |field: &str, value: Value| device(&format!("networkData/{field}"), value);
    let second = json!({"driver": "nic.example.com", "pool": "node-1", "device": "nic-0"});
    let conditions = |count: usize| -> Value {
        (0..count)
            .map(|index| {
                json!({"type": format!("T{index}"), "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2026-11-01T00:00:00Z"})
            })
            .collect()
    };
    let ips = |count: usize| -> Value { (0..count).map(|index| json!(format!("10.0.0.{index}/24"))).collect() };
    let sized = |bytes: usize| json!({"a": "x".repeat(bytes - r#"{"a":""}"#.len())});
    const ALLOCATED: &str = "must be an allocated device in the claim";
    check_later(&[
        (json!({"/status/devices/-": second}), &[("status.devices[1]", Duplicate, "")]),
        (device("device", json!("nic-7")), &[(DEVICE, Invalid, ALLOCATED)]),
        (device("driver", json!("")), &[(&path("driver"), Required, ""), (DEVICE, Invalid, ALLOCATED)]),
        (device("shareID", json!("1")), &[(&path("shareID"), Invalid, UUID), (DEVICE, Invalid, ALLOCATED)]),
        (device("conditions", conditions(8)), &[]),
        (device("conditions", conditions(9)), &[(&path("conditions"), TooMany, "must have at most 8 items")]),
        (condition("type", json!("")), &[(&of_condition("type"), Required, "is required")]),
        (condition("type", json!("a/b c")), &[(&of_condition("type"), Invalid, "name part must consist of")]),
        (condition("status", json!("")), &[(&of_condition("status"), Required, "")]),
        (
            condition("type", json!("/")),
            &[
                (&of_condition("type"), Invalid, "prefix part must be non-empty"),
                (&of_condition("type"), Invalid, "name part must be non-empty"),
                (&of_condition("type"), Invalid, "name part must consist of"),
            ],
        ),
        (
            condition("status", json!("Maybe")),
            &[(&of_condition("status"), NotSupported, "supported values: \"False\", \"True\", \"Unknown\"")],
        ),
        (
            condition("observedGeneration", json!(-1)),
            &[(&of_condition("observedGeneration"), Invalid, "must be greater than or equal to zero")],
        ),
        (
            condition("lastTransitionTime", json!("0001-01-01T00:00:00Z")),
            &[(&of_condition("lastTransitionTime"), Required, "")],
        ),
        (condition("reason", json!("")), &[(&of_condition("reason"), Required, "")]),
        (condition("reason", json!("a,b:c_D9")), &[]),
        (condition("reason", json!("9a")), &[(&of_condition("reason"), Invalid, "a condition reason must start with")]),
        (condition("reason", json!("a".repeat(1025))), &[(&of_condition("reason"), TooLong, "1024 bytes")]),
        (condition("message", json!("a".repeat(32 * 1024 + 1))), &[(&of_condition("message"), TooLong, "32768 bytes")]),
        (device("data", json!([])), &[(&path("data"), Invalid, "must be a valid JSON object")]),
        (device("data", sized(10 * 1024)), &[]),
        (device("data", sized(10 * 1024 + 1)), &[(&path("data"), TooLong, "10240 bytes")]),
        (network("interfaceName", json!("a".repeat(256))), &[]),
        (
            network("interfaceName", json!("a".repeat(257))),
            &[(&path("networkData.interfaceName"), TooLong, "256 bytes")],
        ),
        (network("hardwareAddress", json!("a".repeat(128))), &[]),
        (
            network("hardwareAddress", json!("a".repeat(129))),
            &[(&path("networkData.hardwareAddress"), TooLong, "128 bytes")],
        ),
        (network("ips", ips(16)), &[]),
        (network("ips", ips(17)), &[(&path("networkData.ips"), TooMany, "must have at most 16 items")]),
        (network("ips", json!(["::1/128", "::1/128"])), &[(&path("networkData.ips[1]"), Duplicate, "")]),
    ]);
}

#[test]
fn conditions_that_are_empty_or_there_twice() {
    const AT: &str = "status.devices[0].conditions[0]";
    let conditions = |list: Value| changed(&allocated(), json!({"/status/devices/0/conditions": list}));
    let said = |list: Value| update_status(shipped(), allocated(), conditions(list)).unwrap_err().to_string();
    let empty = json!({"type": "", "status": "", "reason": "", "message": "",
        "lastTransitionTime": "0001-01-01T00:00:00Z"});
    let fields = ["type: Required value: is required", "status: Required value", "lastTransitionTime: Required value"];
    let required = fields.map(|field| format!("{AT}.{field}")).join(", ");
    assert_eq!(said(json!([empty])), format!("[{required}, {AT}.reason: Required value]"));
    let mut one = allocated()["status"]["devices"][0]["conditions"][0].clone();
    one["status"] = json!("Maybe");
    let twice = update_status(shipped(), allocated(), conditions(json!([one, one])));
    let path = |index: usize, field: &str| format!("status.devices[0].conditions[{index}]{field}");
    expect(
        "twice",
        twice,
        &[
            (&path(0, ".status"), NotSupported, ""),
            (&path(1, ""), Duplicate, ""),
            (&path(1, ".status"), NotSupported, ""),
        ],
    );
}

#[test]
fn addresses_of_interfaces() {
    const FORM: &str = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
    let path = "status.devices[0].networkData.ips[0]";
    let canonical = |text: &str| format!("must be in canonical form (\"{text}\")");
    for good in ["1.2.3.4/24", "1.1.1.1/32", "0.0.0.0/0", "2001:4860:4860::1/48", "::1/128"] {
        let new = changed(&allocated(), json!({"/status/devices/0/networkData/ips": [good]}));
        expect(good, update_status(shipped(), allocated(), new), &[]);
    }
    for (bad, detail) in [
        ("", FORM.to_owned()),
        ("10.9.8.7", FORM.to_owned()),
        ("300.9.8.0/24", FORM.to_owned()),
        ("10.9.8.7/33", FORM.to_owned()),
        ("10.9.8.7/-1", FORM.to_owned()),
        ("10.9.8.7/+8", FORM.to_owned()),
        ("10.9.8.7/", FORM.to_owned()),
        ("1.2.3.4/0/99", FORM.to_owned()),
        ("2001:db8::1/129", FORM.to_owned()),
        ("010.009.008.000/24", canonical("10.9.8.0/24")),
        ("10.9.8.7/024", canonical("10.9.8.7/24")),
        ("2001:0db8::1/64", canonical("2001:db8::1/64")),
        ("::ffff:192.168.0.1/120", canonical("192.168.0.1/24")),
        ("::ffff:192.168.0.1/33", canonical("192.168.0.1/0")),
        ("::ffff:192.168.0.1/32", canonical("192.168.0.1/32")),
    ] {
        let new = changed(&allocated(), json!({"/status/devices/0/networkData/ips": [bad]}));
        expect(bad, update_status(shipped(), allocated(), new), &[(path, Invalid, &detail)]);
    }
}

#[test]
fn what_was_said_about_a_device_goes_with_it() {
    let gone = changed(&allocated(), json!({"/status/allocation": null, "/status/reservedFor": null}));
    let admitted = update_status(shipped(), allocated(), gone).unwrap();
    assert_eq!(admitted.object.status.unwrap().devices, None);
}

#[test]
fn fields_are_dropped_before_what_was_said_about_a_device_goes_with_it() {
    let off = ApiServer::new(Component::new(Profile::V1_37, GateSet::all().without(Gate::ConsumableCapacity)));
    let plain = json!({"spec": {"devices": {"requests": [{"name": "nic", "exactly": {"deviceClassName": "nic"}}]}}});
    let result = json!({"request": "nic", "driver": "nic.example.com", "pool": "node-1", "device": "nic-0"});
    let stored = changed(&plain, json!({"/status": {"allocation": {"devices": {"results": [result]}}}}));
    let said = json!({"driver": "nic.example.com", "pool": "node-1", "device": "nic-0",
        "shareID": "12345678-90ab-cdef-1234-567890abcdef"});
    // After `shareID` is dropped, the entry is for the device that is no longer allocated.
    let gone = changed(&plain, json!({"/status": {"devices": [said]}}));
    let admitted = update_status(off, stored, gone).unwrap();
    assert_eq!(admitted.object.status.unwrap().devices, None);
}

#[test]
fn a_status_update_keeps_the_rest_and_another_update_keeps_the_status() {
    let new = changed(
        &allocated(),
        json!({
        "/metadata/labels": {"a": "b"}, "/spec": {"devices": {}}, "/status/reservedFor": []}),
    );
    let admitted = update_status(shipped(), allocated(), new).unwrap().object;
    let stored = serde_json::to_value(&admitted).unwrap();
    assert_eq!(stored["spec"], allocated()["spec"]);
    assert_eq!(stored["metadata"].get("labels"), None);
    assert_eq!(stored["status"].get("reservedFor"), Some(&json!([])));

    let relabelled = changed(&allocated(), json!({"/metadata/labels": {"a": "b"}, "/status": {}}));
    let update = super::world::update::<k8s_openapi::api::resource::v1::ResourceClaim>;
    let stored = serde_json::to_value(update(shipped(), allocated(), relabelled).unwrap().object).unwrap();
    assert_eq!((&stored["metadata"]["labels"], &stored["status"]), (&json!({"a": "b"}), &allocated()["status"]));
    let create = super::world::create::<k8s_openapi::api::resource::v1::ResourceClaim>;
    assert_eq!(create(shipped(), allocated()).unwrap().object.status, None);
}
