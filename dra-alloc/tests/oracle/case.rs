//! Input of an allocation, and its JSON form.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use dra_alloc::{Gate, GateSet};
use dra_attrs::{Profile, Quantity};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const BINDING_GATES: [&str; 2] = ["DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"];
const SKIP_FIELD: &str = "skipNodeOperations";

/// Device of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceId {
    pub driver: String,
    pub pool: String,
    pub device: String,
}

impl DeviceId {
    pub fn new(driver: &str, pool: &str, device: &str) -> Self {
        Self { driver: driver.to_owned(), pool: pool.to_owned(), device: device.to_owned() }
    }

    /// Parses `driver/pool/device`; the pool may contain slashes.
    pub fn parse(key: &str) -> Self {
        let (driver, rest) = key.split_once('/').expect("driver/pool/device");
        let (pool, device) = rest.rsplit_once('/').expect("driver/pool/device");
        Self::new(driver, pool, device)
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.pool, self.device)
    }
}

/// Devices in use.
#[derive(Clone, Debug, Default)]
pub struct Allocated {
    /// Devices that one claim holds exclusively.
    pub devices: BTreeSet<DeviceId>,
    /// Shares of devices, by share ID.
    pub shared: BTreeSet<(DeviceId, String)>,
    /// Total consumption of a device's shares.
    pub capacity: BTreeMap<DeviceId, BTreeMap<String, Quantity>>,
}

impl Allocated {
    /// Returns true if any claim has a share of the device.
    pub fn is_shared(&self, id: &DeviceId) -> bool {
        self.capacity.contains_key(id) || self.shared.iter().any(|(shared, _)| shared == id)
    }

    /// Returns true if any claim has the device or a share of it.
    pub fn is_allocated(&self, id: &DeviceId) -> bool {
        self.devices.contains(id) || self.is_shared(id)
    }
}

/// Gate of taint rules, which cases name only where it is off.
const TAINT_RULES: &str = "DRADeviceTaintRules";

/// Input of one allocation.
#[derive(Clone, Debug)]
pub struct Case {
    pub gates: GateSet,
    pub profile: Profile,
    pub node: Node,
    pub claims: Vec<ResourceClaim>,
    pub classes: Vec<DeviceClass>,
    pub slices: Vec<ResourceSlice>,
    pub taint_rules: Vec<DeviceTaintRule>,
    pub allocated: Allocated,
}

impl Case {
    pub fn has(&self, feature: Gate) -> bool {
        self.gates.has(feature)
    }

    /// Reads the layout of the corpus. Gates that are not named are off, but for that of taint rules; the default profile is
    /// 1.37.
    pub fn from_json(mut value: Value) -> Self {
        lists_for_bools(&mut value);
        let profile = field::<Option<Profile>>(&value, "profile").unwrap_or(Profile::V1_37);
        let gates: BTreeMap<String, bool> = field(&value, "features");
        let both = gates.get(&BINDING_GATES.join("+")).copied().unwrap_or(false);
        let named = |gate: &str| gates.get(gate).copied().unwrap_or(gate == TAINT_RULES);
        let is_on = |gate: &str| named(gate) || both && BINDING_GATES.contains(&gate);
        let allocated = &value["allocated"];
        let devices: Vec<String> = field(allocated, "devices");
        let shared: Vec<String> = field(allocated, "shared");
        let capacity: BTreeMap<String, BTreeMap<String, Quantity>> = field(allocated, "capacity");
        let share = |key: &String| {
            let (device, share) = key.rsplit_once('/').expect("driver/pool/device/share");
            (DeviceId::parse(device), share.to_owned())
        };
        Self {
            gates: GateSet::from_names(profile, |gate| Some(is_on(gate))),
            profile,
            node: field(&value, "node"),
            claims: field(&value, "claims"),
            classes: field(&value, "classes"),
            slices: field(&value, "slices"),
            taint_rules: field(&value, "taint_rules"),
            allocated: Allocated {
                devices: devices.iter().map(|key| DeviceId::parse(key)).collect(),
                shared: shared.iter().map(share).collect(),
                capacity: capacity.into_iter().map(|(key, map)| (DeviceId::parse(&key), map)).collect(),
            },
        }
    }

    /// Returns the case in the layout of the corpus, for reports.
    pub fn to_json(&self) -> Value {
        let on = Gate::ALL.iter().filter(|feature| self.has(**feature));
        let rules = (TAINT_RULES, self.has(Gate::DeviceTaintRules));
        let gates: BTreeMap<&str, bool> = on.map(|gate| (gate.name(self.profile), true)).chain([rules]).collect();
        let devices: Vec<String> = self.allocated.devices.iter().map(DeviceId::to_string).collect();
        let shared: Vec<String> = self.allocated.shared.iter().map(|(id, share)| format!("{id}/{share}")).collect();
        let capacity: BTreeMap<String, _> =
            self.allocated.capacity.iter().map(|(id, map)| (id.to_string(), map)).collect();
        json!({
            "profile": self.profile,
            "features": gates,
            "node": self.node,
            "claims": self.claims,
            "classes": self.classes,
            "slices": self.slices,
            "taint_rules": self.taint_rules,
            "allocated": {"devices": devices, "shared": shared, "capacity": capacity},
        })
    }
}

/// Reads a field that may be null or missing.
fn field<T: DeserializeOwned + Default>(value: &Value, name: &str) -> T {
    let found: Option<T> = serde_json::from_value(value[name].clone()).expect(name);
    found.unwrap_or_default()
}

/// Converts the KEP's form of skipNodeOperations to the list form of the types.
fn lists_for_bools(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::Bool(true) if name == SKIP_FIELD => *value = json!(["*"]),
                    Value::Bool(false) if name == SKIP_FIELD => *value = json!([]),
                    _ => lists_for_bools(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(lists_for_bools),
        _ => {}
    }
}
