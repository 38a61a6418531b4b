//! Simulated node with one kubelet and drivers that respond as a test wants.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{Component, Gate, GateSet, Profile};
use dra_device::skip::SkipField;
use dra_node::kubelet::{
    ClaimCache, ClaimRef, Operation, PrepareError, PreparedDevice, Responses, SkipCounts, UnprepareError,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, from_value, json};

pub(super) const BOTH: [Profile; 2] = [Profile::Kep, Profile::V1_37];

/// Name of the driver of most tests.
pub(super) const GPU: &str = "gpu.example.com";
/// Name of a second driver.
pub(super) const NIC: &str = "nic.example.com";

/// Creates a pod that names claims.
pub(super) fn pod(name: &str, claims: &[&str]) -> Pod {
    let entries: Vec<Value> = claims.iter().map(|claim| json!({"name": claim, "resourceClaimName": claim})).collect();
    from_value(json!({
        "metadata": {"namespace": "ns", "name": name, "uid": format!("{name}-uid")},
        "spec": {"containers": [], "resourceClaims": entries},
    }))
    .unwrap()
}

/// Creates an allocated claim, reserved for the pods `p` and `q`, with a device for each driver and declaration.
pub(super) fn claim(name: &str, devices: &[(&str, Value)]) -> ResourceClaim {
    let devices: Vec<Value> = devices
        .iter()
        .enumerate()
        .map(|(index, (driver, skip))| {
            json!({"request": "r", "driver": driver, "pool": "node-1", "device": format!("dev-{index}"),
                "skipNodeOperations": skip})
        })
        .collect();
    let reserved = ["p", "q"].map(|pod| json!({"resource": "pods", "name": pod, "uid": format!("{pod}-uid")}));
    SkipField::read(json!({
        "metadata": {"namespace": "ns", "name": name, "uid": format!("{name}-claim")},
        "spec": {},
        "status": {"reservedFor": reserved, "allocation": {"devices": {"results": devices}}},
    }))
    .unwrap()
}

/// Returns an object with another value at a JSON pointer.
pub(super) fn changed<T: SkipField>(object: &T, pointer: &str, value: Value) -> T {
    let mut json = serde_json::to_value(object).unwrap();
    *json.pointer_mut(pointer).unwrap() = value;
    SkipField::read(json).unwrap()
}

/// A kubelet, the driver plugins on its node, and a log of their calls.
#[derive(Clone)]
pub(super) struct World {
    pub(super) cache: ClaimCache,
    pub(super) settings: Component,
    pub(super) registered: BTreeSet<String>,
    /// Names of the drivers whose calls fail.
    pub(super) failing: BTreeSet<String>,
    /// Log of calls: operation, driver, UIDs of the claims.
    pub(super) calls: Vec<(Operation, String, Vec<String>)>,
    pub(super) counts: SkipCounts,
    /// Names of the drivers that were looked up in the registry since the test cleared the set.
    pub(super) asked: BTreeSet<String>,
    /// Text of the checkpoint file on disk.
    pub(super) file: String,
}

impl World {
    /// Creates a kubelet with its gate on and with registered plugins.
    pub(super) fn new(profile: Profile, registered: &[&str]) -> Self {
        let cache = ClaimCache::default();
        let file = cache.to_checkpoint(profile);
        Self {
            cache,
            settings: Component::new(profile, GateSet::of(Profile::V1_37).with(Gate::OptionalNodeOperations)),
            registered: registered.iter().map(|&driver| driver.to_owned()).collect(),
            failing: BTreeSet::new(),
            calls: Vec::new(),
            counts: SkipCounts::default(),
            asked: BTreeSet::new(),
            file,
        }
    }

    pub(super) fn profile(&self) -> Profile {
        self.settings.profile()
    }

    pub(super) fn gate_off(mut self) -> Self {
        self.settings =
            Component::new(self.settings.profile(), self.settings.gates().without(Gate::OptionalNodeOperations));
        self
    }

    pub(super) fn gate_on(mut self) -> Self {
        self.settings =
            Component::new(self.settings.profile(), self.settings.gates().with(Gate::OptionalNodeOperations));
        self
    }

    /// Restarts the kubelet.
    pub(super) fn restart(mut self) -> Self {
        self.cache = ClaimCache::from_checkpoint(self.file.as_bytes()).unwrap();
        self
    }

    /// Restarts the kubelet as one of the previous release, which drops unknown fields when it writes the file.
    pub(super) fn restart_in_older_release(mut self) -> Self {
        self.file = forget_skips(&self.file);
        self.restart()
    }

    fn save(&mut self) {
        let profile = self.profile();
        if let Some(text) = self.cache.take_checkpoint(profile) {
            self.file = text;
        }
    }

    fn outcome<T>(
        &self,
        driver: &str,
        claims: &[ClaimRef],
        answer: impl Fn(&ClaimRef) -> T,
    ) -> Result<Responses<T>, String> {
        if self.failing.contains(driver) {
            return Err("rpc error: code = Unavailable".to_owned());
        }
        Ok(claims.iter().map(|claim| (claim.uid.clone(), Ok(answer(claim)))).collect())
    }

    pub(super) fn prepare(&mut self, pod: &Pod, claims: &[ResourceClaim]) -> Result<(), PrepareError> {
        let (registered, asked) = (self.registered.clone(), RefCell::new(BTreeSet::new()));
        let look_up = |driver: &str| {
            asked.borrow_mut().insert(driver.to_owned());
            registered.contains(driver)
        };
        let plan = self.cache.plan_prepare(pod, claims, look_up, self.settings);
        self.asked.extend(asked.into_inner());
        self.save();
        let mut plan = plan?;
        self.counts.add(plan.skipped());
        for (driver, claims) in plan.calls().clone() {
            let outcome = self.outcome(&driver, &claims, |claim| vec![device(&driver, claim)]);
            self.calls.push((Operation::Prepare, driver.clone(), uids(&claims)));
            self.cache.apply_prepare(&mut plan, &driver, outcome)?;
        }
        self.cache.finish_prepare(plan)?;
        self.save();
        Ok(())
    }

    pub(super) fn unprepare(&mut self, pod: &Pod) -> Result<(), UnprepareError> {
        let (registered, asked) = (self.registered.clone(), RefCell::new(BTreeSet::new()));
        let look_up = |driver: &str| {
            asked.borrow_mut().insert(driver.to_owned());
            registered.contains(driver)
        };
        let plan = self.cache.plan_unprepare(pod, look_up, self.settings);
        self.asked.extend(asked.into_inner());
        let mut plan = plan?;
        self.counts.add(plan.skipped());
        for (driver, claims) in plan.calls().clone() {
            let outcome = self.outcome(&driver, &claims, |_| ());
            self.calls.push((Operation::Unprepare, driver.clone(), uids(&claims)));
            self.cache.apply_unprepare(&mut plan, &driver, outcome)?;
        }
        self.cache.finish_unprepare(plan)?;
        self.save();
        Ok(())
    }

    /// Returns the drivers that were called for an operation, with the claims of each call.
    pub(super) fn called(&self, operation: Operation) -> BTreeMap<&str, Vec<Vec<String>>> {
        let mut called: BTreeMap<&str, Vec<Vec<String>>> = BTreeMap::new();
        for (_, driver, claims) in self.calls.iter().filter(|(done, ..)| *done == operation) {
            called.entry(driver).or_default().push(claims.clone());
        }
        called
    }
}

/// Returns the device that a driver prepares for a claim.
pub(super) fn device(driver: &str, claim: &ClaimRef) -> PreparedDevice {
    PreparedDevice {
        pool: "node-1".to_owned(),
        device: "dev-0".to_owned(),
        cdi_ids: vec![format!("{driver}/class={}", claim.uid)],
        ..PreparedDevice::default()
    }
}

pub(super) fn uids(claims: &[ClaimRef]) -> Vec<String> {
    claims.iter().map(|claim| claim.uid.clone()).collect()
}

/// Returns the file as written by a release that does not know the field.
pub(super) fn forget_skips(file: &str) -> String {
    edit(file, |data| {
        for claim in data["ClaimInfoStateList"].as_array_mut().unwrap() {
            for state in claim["DriverState"].as_object_mut().unwrap().values_mut() {
                state.as_object_mut().unwrap().remove("SkipNodeOperations");
            }
        }
    })
}

/// Returns the file with changed data and the checksum for it.
pub(super) fn edit(file: &str, change: impl FnOnce(&mut Value)) -> String {
    let file: Value = serde_json::from_str(file).unwrap();
    let mut data: Value = serde_json::from_str(file["Data"].as_str().unwrap()).unwrap();
    change(&mut data);
    sealed(&data.to_string())
}

/// Returns the file with this data and the checksum for it.
pub(super) fn sealed(data: &str) -> String {
    json!({"Data": data, "Checksum": crc32fast::hash(data.as_bytes())}).to_string()
}
