//! Objects that are valid, changes of them, and what an API server says.

use dra_alloc::features::Features;
use dra_alloc::skip::wire::{Carrier, read};
use dra_alloc::validate::{Admission, Admitted, ApiServer};
use dra_attrs::field::{ErrorType, FieldErrors};
use dra_attrs::profile::Profile;
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

pub(super) const BOTH: [Profile; 2] = [Profile::Kep, Profile::V1_37];

/// The one device of [`slice`].
pub(super) const DEVICE: &str = "spec.devices[0]";

/// A field of that device.
pub(super) fn at(field: &str) -> String {
    format!("{DEVICE}.{field}")
}

/// A text of so many bytes.
pub(super) fn text(len: usize) -> String {
    "a".repeat(len)
}

/// Field, kind, and a part of the detail.
pub(super) type Expected<'a> = (&'a str, ErrorType, &'a str);

/// A server as shipped with every feature on.
pub(super) fn shipped() -> ApiServer {
    ApiServer::new(Profile::V1_37, Features::all())
}

/// A slice with one device of each kind of content.
pub(super) fn slice() -> Value {
    json!({
        "metadata": {"name": "node-1-gpu"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "node-1", "generation": 0, "resourceSliceCount": 1},
            "nodeName": "node-1",
            "devices": [{
                "name": "gpu-0",
                "attributes": {"model": {"string": "a100"}, "other.example.com/numaNode": {"ints": [0, 1]}},
                "allowMultipleAllocations": true,
                "capacity": {"memory": {"value": "80Gi", "requestPolicy": {
                    "default": "8Gi", "validRange": {"min": "4Gi", "max": "40Gi", "step": "4Gi"}}}},
                "taints": [{"key": "example.com/broken", "effect": "NoSchedule"}],
                "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}],
                "bindingConditions": ["example.com/ready"],
                "bindingFailureConditions": ["example.com/failed"],
                "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "2"}}},
            }],
            "skipNodeOperations": ["*"],
        }
    })
}

/// A slice of counters.
pub(super) fn counters() -> Value {
    json!({
        "metadata": {"name": "node-1-counters"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "node-1", "generation": 0, "resourceSliceCount": 1},
            "allNodes": true,
            "sharedCounters": [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}],
        }
    })
}

/// A claim with a request of each kind.
pub(super) fn claim() -> Value {
    json!({
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"devices": {
            "requests": [
                {"name": "gpu", "exactly": {
                    "deviceClassName": "gpu.example.com",
                    "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}],
                    "allocationMode": "ExactCount", "count": 1,
                    "tolerations": [{"key": "example.com/broken", "operator": "Exists", "effect": "NoSchedule"}],
                    "derivedAttributes": [{"name": "derived/node", "expression": "device.driver"}],
                }},
                {"name": "nic", "firstAvailable": [
                    {"name": "fast", "deviceClassName": "nic", "allocationMode": "All"},
                    {"name": "slow", "deviceClassName": "nic"},
                ]},
            ],
            "constraints": [
                {"requests": ["gpu", "nic/fast"], "matchAttribute": "derived/node"},
                {"distinctAttribute": "gpu.example.com/model"},
            ],
            "config": [{"requests": ["nic"], "opaque": {"driver": "nic.example.com", "parameters": {"mtu": 9000}}}],
        }}
    })
}

/// A claim that is allocated, reserved and reported on.
pub(super) fn allocated() -> Value {
    let mut claim = claim();
    claim["status"] = json!({
        "allocation": {
            "devices": {
                "results": [
                    {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0",
                        "shareID": "12345678-90ab-cdef-1234-567890abcdef", "consumedCapacity": {"memory": "8Gi"}},
                    {"request": "nic/fast", "driver": "nic.example.com", "pool": "node-1", "device": "nic-0",
                        "skipNodeOperations": ["*"]},
                ],
                "config": [{"source": "FromClass", "requests": ["nic"],
                    "opaque": {"driver": "nic.example.com", "parameters": {"mtu": 9000}}}],
            },
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]},
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "p-uid"}],
        "devices": [{"driver": "nic.example.com", "pool": "node-1", "device": "nic-0",
            "conditions": [{"type": "Ready", "status": "True", "reason": "Up", "message": "",
                "lastTransitionTime": "2026-11-01T00:00:00Z"}],
            "data": {"speed": 100},
            "networkData": {"interfaceName": "eth0", "hardwareAddress": "aa:bb", "ips": ["10.9.8.7/24"]}}],
    });
    claim
}

/// A class.
pub(super) fn class() -> Value {
    json!({
        "metadata": {"name": "gpu.example.com"},
        "spec": {
            "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}],
            "config": [{"opaque": {"driver": "gpu.example.com", "parameters": {"mode": "fast"}}}],
            "extendedResourceName": "example.com/gpu",
        }
    })
}

/// A template.
pub(super) fn template() -> Value {
    json!({"metadata": {"name": "train", "namespace": "default"}, "spec": {"spec": claim()["spec"]}})
}

/// A taint rule.
pub(super) fn rule() -> Value {
    json!({
        "metadata": {"name": "broken"},
        "spec": {
            "deviceSelector": {"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"},
            "taint": {"key": "example.com/broken", "value": "yes", "effect": "NoExecute"},
        }
    })
}

/// An object with other values at some JSON pointers; null removes, and `-` is the end of a list.
pub(super) fn changed(object: &Value, changes: Value) -> Value {
    let mut object = object.clone();
    for (pointer, value) in changes.as_object().unwrap() {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = object.pointer_mut(parent).unwrap_or_else(|| panic!("no {pointer}"));
        let key = key.replace("~1", "/");
        match parent {
            Value::Array(items) if key == "-" => items.push(value.clone()),
            Value::Array(items) => items[key.parse::<usize>().unwrap()] = value.clone(),
            Value::Object(fields) if value.is_null() => drop(fields.remove(&key)),
            Value::Object(fields) => drop(fields.insert(key, value.clone())),
            _ => panic!("no {pointer}"),
        }
    }
    object
}

/// An object of a kind, written to a server.
pub(super) trait Written: Sized + DeserializeOwned + Clone + PartialEq + std::fmt::Debug {
    fn parse(json: Value) -> Self {
        from_value(json).unwrap()
    }
    fn write(server: ApiServer, write: Admission<'_, Self>) -> Result<Admitted<Self>, FieldErrors>;
}

impl Written for ResourceSlice {
    fn parse(json: Value) -> Self {
        carrier(json)
    }
    fn write(server: ApiServer, write: Admission<'_, Self>) -> Result<Admitted<Self>, FieldErrors> {
        server.slice(write)
    }
}

impl Written for ResourceClaim {
    fn parse(json: Value) -> Self {
        carrier(json)
    }
    fn write(server: ApiServer, write: Admission<'_, Self>) -> Result<Admitted<Self>, FieldErrors> {
        server.claim(write)
    }
}

impl Written for ResourceClaimTemplate {
    fn write(server: ApiServer, write: Admission<'_, Self>) -> Result<Admitted<Self>, FieldErrors> {
        server.claim_template(write)
    }
}

impl Written for DeviceClass {
    fn write(server: ApiServer, write: Admission<'_, Self>) -> Result<Admitted<Self>, FieldErrors> {
        server.class(write)
    }
}

impl Written for DeviceTaintRule {
    fn write(server: ApiServer, write: Admission<'_, Self>) -> Result<Admitted<Self>, FieldErrors> {
        server.taint_rule(write)
    }
}

fn carrier<T: Carrier>(json: Value) -> T {
    read(json).unwrap()
}

/// What a server says to a create.
pub(super) fn create<T: Written>(server: ApiServer, json: Value) -> Result<Admitted<T>, FieldErrors> {
    T::write(server, Admission::create(&T::parse(json)))
}

/// What a server says to an update.
pub(super) fn update<T: Written>(server: ApiServer, old: Value, new: Value) -> Result<Admitted<T>, FieldErrors> {
    T::write(server, Admission::update(&T::parse(old), &T::parse(new)))
}

/// What a server says to an update of a claim's status.
pub(super) fn update_status(server: ApiServer, old: Value, new: Value) -> Result<Admitted<ResourceClaim>, FieldErrors> {
    server.claim_status(Admission::update(&carrier(old), &carrier(new)))
}

/// Checks that the problems are exactly these.
pub(super) fn expect<T: std::fmt::Debug>(
    what: &str,
    outcome: Result<Admitted<T>, FieldErrors>,
    expected: &[Expected<'_>],
) {
    let errors = outcome.err().unwrap_or_default();
    let found: Vec<_> = errors.iter().map(|error| (error.field.as_str(), error.r#type, &*error.detail)).collect();
    let fits = |(found, wanted): (&(&str, ErrorType, &str), &Expected<'_>)| {
        found.0 == wanted.0 && found.1 == wanted.1 && found.2.contains(wanted.2)
    };
    let fits = found.len() == expected.len() && found.iter().zip(expected).all(fits);
    assert!(fits, "{what}:\n found    {found:?}\n expected {expected:?}");
}

/// Changes of a valid object with the problems that they make, checked on a create by a server with every feature on.
pub(super) fn check_rows<T: Written>(base: &Value, rows: &[(Value, &[Expected<'_>])]) {
    expect::<T>("base", create(shipped(), base.clone()), &[]);
    for (changes, expected) in rows {
        expect::<T>(&changes.to_string(), create(shipped(), changed(base, changes.clone())), expected);
    }
}
