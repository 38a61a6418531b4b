//! Tests of what is stored: defaults, amounts, times; and of JSON that the API server does not decode.

use dra_attrs::Profile;
use dra_validate::read;
use k8s_openapi::api::resource::v1::{
    DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice, ResourceSliceSpec,
};
use serde_json::{Value, json};

use super::world::{
    allocated, changed, claim, counters, create, rule, shipped, slice, template, update, update_status,
};

const NOW: &str = "2026-11-22T10:00:00.75Z";
const NOW_IN_SECONDS: &str = "2026-11-22T10:00:00Z";

fn json_of(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).unwrap()
}

#[test]
fn absent_and_empty_values_become_the_defaults() {
    for (sent, stored) in [
        (json!({}), json!({"allocationMode": "ExactCount", "count": 1})),
        (json!({"allocationMode": ""}), json!({"allocationMode": "ExactCount", "count": 1})),
        (json!({"allocationMode": "", "count": 2}), json!({"allocationMode": "ExactCount", "count": 2})),
        (json!({"count": 0}), json!({"allocationMode": "ExactCount", "count": 1})),
        (json!({"allocationMode": "All", "count": 0}), json!({"allocationMode": "All"})),
        (json!({"allocationMode": "All"}), json!({"allocationMode": "All"})),
    ] {
        let with = |mut fields: Value| {
            fields["deviceClassName"] = json!("c");
            fields
        };
        let devices = |fields: &Value| {
            let mut sub = with(fields.clone());
            sub["name"] = json!("s");
            json!({"requests": [
                {"name": "a", "exactly": with(fields.clone())}, {"name": "b", "firstAvailable": [sub]}]})
        };
        let of_claim = create::<ResourceClaim>(shipped(), changed(&claim(), json!({"/spec/devices": devices(&sent)})));
        assert_eq!(json_of(&of_claim.unwrap().object)["spec"]["devices"], devices(&stored), "{sent}");
        let of_template = changed(&template(), json!({"/spec/spec/devices": devices(&sent)}));
        let of_template = create::<ResourceClaimTemplate>(shipped(), of_template).unwrap().object;
        assert_eq!(json_of(&of_template)["spec"]["spec"]["devices"], devices(&stored), "{sent}");
    }
    for operator in [json!({}), json!({"operator": ""})] {
        let path = "/status/allocation/devices/results/0/tolerations";
        let written = changed(&allocated(), json!({path: [operator], "/status/devices": null}));
        let stored = json_of(&update_status(shipped(), claim(), written).unwrap().object);
        assert_eq!(stored.pointer(path), Some(&json!([{"operator": "Equal"}])));
    }
}

#[test]
fn amounts_are_canonical_and_absent_ones_zero() {
    for (sent, stored) in [
        (json!({}), "0"),
        (json!({"value": "1.5"}), "1500m"),
        (json!({"value": "0.1n"}), "1n"),
        (json!({"value": " 1024Mi"}), "1Gi"),
        // Beyond the range of quantities here: valid, and kept as it was sent.
        (json!({"value": "1e30"}), "1e30"),
    ] {
        let path = "/spec/sharedCounters/0/counters/memory";
        let written = create::<ResourceSlice>(shipped(), changed(&counters(), json!({path: sent}))).unwrap().object;
        assert_eq!(json_of(&written).pointer(path), Some(&json!({"value": stored})), "{sent}");
    }
    let policy = "/spec/devices/0/capacity/memory/requestPolicy";
    let stored = create::<ResourceSlice>(
        shipped(),
        changed(&slice(), json!({format!("{policy}/default"): "8192Mi", format!("{policy}/validRange/max"): null})),
    );
    let stored = json_of(&stored.unwrap().object);
    assert_eq!(stored.pointer(&format!("{policy}/default")), Some(&json!("8Gi")));
    assert_eq!(stored.pointer(&format!("{policy}/validRange/max")), None);
}

#[test]
fn the_clock_of_the_server_dates_taints() {
    let at_ten = shipped().with_now(NOW.parse().unwrap());
    let time = |rule: DeviceTaintRule| rule.spec.taint.time_added.map(|time| time.0.to_string());
    assert_eq!(time(create::<DeviceTaintRule>(shipped(), rule()).unwrap().object), None, "no clock");
    let created = create::<DeviceTaintRule>(at_ten, rule()).unwrap().object;
    assert_eq!(time(created), Some(NOW_IN_SECONDS.to_owned()));
    let sent = "2026-01-01T00:00:00Z";
    let with = |time: &str| changed(&rule(), json!({"/spec/taint/timeAdded": time}));
    for (old, new, effect, stored) in [
        // What is sent stays, but the zero time is not written.
        (sent, sent, "NoExecute", Some(sent)),
        (sent, "0001-01-01T00:00:00Z", "NoExecute", None),
        // A new effect begins now, unless its time is sent too.
        (sent, sent, "None", Some(NOW_IN_SECONDS)),
        (sent, "2026-02-01T00:00:00Z", "None", Some("2026-02-01T00:00:00Z")),
    ] {
        let old = changed(&with(old), json!({"/spec/taint/effect": "NoExecute"}));
        let new = changed(&with(new), json!({"/spec/taint/effect": effect}));
        let updated = update::<DeviceTaintRule>(at_ten, old, new).unwrap().object;
        assert_eq!(time(updated).as_deref(), stored, "{effect}");
    }
    // A stored taint without a time is as new as the one that replaces it: nothing has changed.
    let bad = changed(&slice(), json!({"/spec/devices/0/taints/0/key": "a b"}));
    let again = update::<ResourceSlice>(at_ten, bad.clone(), bad).unwrap().object;
    assert_eq!(again.metadata.generation, None);
    let added = |spec: ResourceSliceSpec| json_of(&spec.devices.unwrap()[0].taints)[0]["timeAdded"].clone();
    let sliced = create::<ResourceSlice>(at_ten, slice()).unwrap().object;
    assert_eq!(added(sliced.spec), NOW_IN_SECONDS);
}

#[test]
fn what_the_api_server_does_not_decode() {
    let refused = |object: Value| -> Vec<String> {
        read(object, Profile::V1_37).err().into_iter().flatten().map(|error| error.field).collect()
    };
    let policy = "/spec/devices/0/capacity/memory/requestPolicy/validRange/step";
    for (object, field) in [
        (changed(&slice(), json!({policy: ""})), "spec.devices[0].capacity[memory].requestPolicy.validRange.step"),
        (
            changed(&template(), json!({"/spec/spec/devices/requests/0/exactly/capacity": {"requests": {"m": ""}}})),
            "spec.spec.devices.requests[0].exactly.capacity.requests[m]",
        ),
        (
            changed(&allocated(), json!({"/status/allocation/devices/results/0/consumedCapacity": {"m": ""}})),
            "status.allocation.devices.results[0].consumedCapacity[m]",
        ),
    ] {
        assert_eq!(refused(object), [field]);
    }
    for (time, is_read) in [
        ("2026-01-01T00:00:00Z", true),
        ("2026-01-01T00:00:00.123456789+01:00", true),
        ("2026-01-01T00:00:00,5Z", true),
        ("2026-01-01 00:00:00Z", false),
        ("2026-01-01t00:00:00Z", false),
        ("2026-01-01T00:00:00z", false),
        ("2026-01-01T00:00:00", false),
        ("2026-01-01T00:00:60Z", false),
        ("2026-01-01T00:00:00.Z", false),
        ("2026-01-01T00:00:00+0100", false),
        ("2026-01-01T00:00Z", false),
        ("", false),
        ("é026-01-01T00:00:00Z", false),
    ] {
        let timed = changed(&rule(), json!({"/spec/taint/timeAdded": time}));
        assert_eq!(refused(timed).is_empty(), is_read, "{time}");
    }
    let bare = json!({"status": {"devices": [{"conditions": [{"type": "a"}]}], "conditions": [{}]}});
    let read = read(bare, Profile::V1_37).unwrap().object;
    assert_eq!(read["status"]["devices"][0]["conditions"][0]["lastTransitionTime"], "0001-01-01T00:00:00Z");
    assert_eq!(read["status"]["conditions"][0]["lastTransitionTime"], "0001-01-01T00:00:00Z");
}
