//! Objects that are made of parts of a description, checked as the API server checks them.

use dra_alloc::validate::{ApiServer, Write};
use dra_alloc::{GateSet, Profile};
use dra_attrs::{Component, FieldErrors};
use k8s_openapi::api::resource::v1::{CounterSet, Device, DeviceClass, ResourceClaim, ResourceSlice};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::description::{CardGroup, DescriptionError, DeviceGroup, Partition};
use crate::manifest::{only_in, path_text};
use crate::objects::KubeObject;

/// Maker of objects, with the API server that would store them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Templates(ApiServer);

impl Templates {
    pub(super) fn new(profile: Profile, gates: GateSet) -> Self {
        Self(ApiServer::new(Component::new(profile, gates)))
    }

    /// Makes a class of a CEL expression.
    pub(super) fn class(self, name: &str, expression: &str) -> Result<DeviceClass, DescriptionError> {
        let json = json!({"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}});
        let place = format!("classes.{name}");
        let class = object(&json, &place)?;
        let checked = self.0.validate_class(Write::create(&class)).map(drop);
        checked.map(|()| class).map_err(|source| invalid(place, source))
    }

    /// Makes the devices of a group on the node with this name. Their numbers begin with `first`.
    pub(super) fn devices(
        self,
        group: &DeviceGroup,
        first: usize,
        node: &str,
        place: String,
    ) -> Result<Vec<Device>, DescriptionError> {
        let kind = group.driver.split('.').next().unwrap_or_default();
        let count = usize::try_from(group.count).unwrap_or(usize::MAX);
        let names = (first..first.saturating_add(count)).map(|number| format!("{kind}-{number}"));
        let device = |name| json!({"name": name, "attributes": group.attributes, "capacity": group.capacity});
        let devices: Vec<Value> = names.map(device).collect();
        let slice: ResourceSlice = object(
            &json!({"metadata": {"name": format!("{node}-{}", group.driver)}, "spec": {
                "driver": group.driver, "nodeName": node, "devices": devices,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}),
            &place,
        )?;
        self.0.validate_slice(Write::create(&slice)).map_err(|source| invalid(place, source))?;
        Ok(slice.spec.devices.unwrap_or_default())
    }

    /// Makes the counters and the partitions of a card on the node with this name.
    pub(super) fn card(
        self,
        group: &CardGroup,
        card: u32,
        node: &str,
        place: &str,
    ) -> Result<(CounterSet, Vec<Device>), DescriptionError> {
        let name = format!("{}-{card}", group.driver.split('.').next().unwrap_or_default());
        let mut devices = Vec::new();
        for Partition { name: partition, attributes, capacity, places } in &group.partitions {
            for (number, counters) in places.iter().enumerate() {
                let consumed = json!([{"counterSet": name, "counters": quantities(counters)}]);
                let name = format!("{name}-{partition}-{number}");
                devices.push(
                    json!({"name": name, "attributes": attributes, "capacity": capacity, "consumesCounters": consumed}),
                );
            }
        }
        let set = json!({"name": name, "counters": quantities(&group.counters)});
        let slice = |field: &str, list: Value| -> Result<ResourceSlice, DescriptionError> {
            let slice: ResourceSlice = object(
                &json!({"metadata": {"name": format!("{node}-{}-00", group.driver)}, "spec": {
                    "driver": group.driver, "nodeName": node, field: list,
                    "pool": {"name": node, "generation": 1, "resourceSliceCount": 2}}}),
                place,
            )?;
            let checked = self.0.validate_slice(Write::create(&slice)).map(drop);
            checked.map(|()| slice).map_err(|source| invalid(place.to_owned(), source))
        };
        let sets = slice("sharedCounters", json!([set]))?.spec.shared_counters.unwrap_or_default();
        let devices = slice("devices", json!(devices))?.spec.devices.unwrap_or_default();
        Ok((sets.into_iter().next().unwrap_or_default(), devices))
    }

    /// Makes a claim of `spec.devices`. Pods get copies of it.
    pub(super) fn claim(self, pod: &str, devices: &Value, place: String) -> Result<ResourceClaim, DescriptionError> {
        let json = json!({"metadata": {"namespace": "default", "name": pod}, "spec": {"devices": devices}});
        let claim = object(&json, &place)?;
        let checked = self.0.validate_claim(Write::create(&claim)).map(drop);
        checked.map(|()| claim).map_err(|source| invalid(place, source))
    }
}

/// Writes amounts as counters have them: a number is a quantity, too.
fn quantities(amounts: &Map<String, Value>) -> Value {
    let quantity = |amount: &Value| amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    amounts.iter().map(|(name, amount)| (name.clone(), json!({"value": quantity(amount)}))).collect()
}

/// Reads an object, and refuses fields that it has not.
fn object<T: KubeObject + Serialize>(json: &Value, place: &str) -> Result<T, DescriptionError> {
    let place = || place.to_owned();
    let object = T::from_json(json.clone()).map_err(|source| DescriptionError::Object { place: place(), source })?;
    let read = serde_json::to_value(&object).unwrap_or_default();
    match only_in(json, &read).first() {
        None => Ok(object),
        Some(path) => Err(DescriptionError::Unknown { place: place(), field: path_text(path) }),
    }
}

const fn invalid(place: String, source: FieldErrors) -> DescriptionError {
    DescriptionError::Invalid { place, source }
}
