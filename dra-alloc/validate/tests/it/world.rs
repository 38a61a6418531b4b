//! Valid objects, changes of them, and checks of an API server's errors.

use dra_attrs::{Component, ErrorType, FieldErrors, GateSet, Profile};
use dra_device::skip::SkipField;
use dra_validate::{Accepted, ApiServer, Write};
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

pub(super) const BOTH: [Profile; 2] = [Profile::Kep, Profile::V1_37];

/// Path of the only device of [`slice`].
pub(super) const DEVICE: &str = "spec.devices[0]";

/// Returns the path of a field of the device of [`slice`].
pub(super) fn at(field: &str) -> String {
    format!("{DEVICE}.{field}")
}

/// Returns a text of `len` bytes.
pub(super) fn text(len: usize) -> String {
    "a".repeat(len)
}

/// Returns the paths of the fields that were dropped.
pub(super) fn fields<T>(accepted: &Accepted<T>) -> Vec<&str> {
    accepted.dropped.iter().map(|dropped| dropped.field.as_str()).collect()
}

/// Expected error: path of the field, type, and a part of the detail.
pub(super) type Expected<'a> = (&'a str, ErrorType, &'a str);

/// Creates an API server of Kubernetes 1.37 with every feature on.
pub(super) fn shipped() -> ApiServer {
    ApiServer::new(Component::new(Profile::V1_37, GateSet::all()))
}

/// Creates a slice with one device that sets every kind of field.
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

/// Creates a slice with counter sets.
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

/// Creates a claim with a request of each kind.
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
                    {"name": "slow", "deviceClassName": "nic", "allocationMode": "ExactCount", "count": 1},
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

/// Creates a claim that is allocated and reserved, with a device status.
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

/// Creates a device class.
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

/// Creates a claim template.
pub(super) fn template() -> Value {
    json!({"metadata": {"name": "train", "namespace": "default"}, "spec": {"spec": claim()["spec"]}})
}

/// Creates a taint rule.
pub(super) fn rule() -> Value {
    json!({
        "metadata": {"name": "broken"},
        "spec": {
            "deviceSelector": {"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"},
            "taint": {"key": "example.com/broken", "value": "yes", "effect": "NoExecute"},
        }
    })
}

/// Returns an object with other values at some JSON pointers; null removes a value, and `-` is the end of a list.
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

/// An object type that can be parsed and written to an API server.
pub(super) trait Written: Sized + DeserializeOwned + Clone + PartialEq + std::fmt::Debug {
    fn parse(json: Value) -> Self {
        from_value(json).unwrap()
    }
    fn write(server: ApiServer, write: Write<'_, Self>) -> Result<Accepted<Self>, FieldErrors>;
}

impl Written for ResourceSlice {
    fn parse(json: Value) -> Self {
        carrier(json)
    }
    fn write(server: ApiServer, write: Write<'_, Self>) -> Result<Accepted<Self>, FieldErrors> {
        server.validate_slice(write)
    }
}

impl Written for ResourceClaim {
    fn parse(json: Value) -> Self {
        carrier(json)
    }
    fn write(server: ApiServer, write: Write<'_, Self>) -> Result<Accepted<Self>, FieldErrors> {
        server.validate_claim(write)
    }
}

impl Written for ResourceClaimTemplate {
    fn write(server: ApiServer, write: Write<'_, Self>) -> Result<Accepted<Self>, FieldErrors> {
        server.validate_claim_template(write)
    }
}

impl Written for DeviceClass {
    fn write(server: ApiServer, write: Write<'_, Self>) -> Result<Accepted<Self>, FieldErrors> {
        server.validate_class(write)
    }
}

impl Written for DeviceTaintRule {
    fn write(server: ApiServer, write: Write<'_, Self>) -> Result<Accepted<Self>, FieldErrors> {
        server.validate_taint_rule(write)
    }
}

fn carrier<T: SkipField>(json: Value) -> T {
    SkipField::read(json).unwrap()
}

/// Returns the server's result of a create.
pub(super) fn create<T: Written>(server: ApiServer, json: Value) -> Result<Accepted<T>, FieldErrors> {
    T::write(server, Write::create(&T::parse(json)))
}

/// Returns the server's result of an update.
pub(super) fn update<T: Written>(server: ApiServer, old: Value, new: Value) -> Result<Accepted<T>, FieldErrors> {
    T::write(server, Write::update(&T::parse(old), &T::parse(new)))
}

/// Returns the server's result of an update of a claim's status.
pub(super) fn update_status(server: ApiServer, old: Value, new: Value) -> Result<Accepted<ResourceClaim>, FieldErrors> {
    server.validate_claim_status(Write::update(&carrier(old), &carrier(new)))
}

/// Checks that the result has exactly the expected errors.
pub(super) fn expect<T: std::fmt::Debug>(
    what: &str,
    outcome: Result<Accepted<T>, FieldErrors>,
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

/// Checks the errors for changes of a valid object, on a create by a server with every feature on.
pub(super) fn check_rows<T: Written>(base: &Value, rows: &[(Value, &[Expected<'_>])]) {
    expect::<T>("base", create(shipped(), base.clone()), &[]);
    for (changes, expected) in rows {
        expect::<T>(&changes.to_string(), create(shipped(), changed(base, changes.clone())), expected);
    }
}
