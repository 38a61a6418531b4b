//! Objects that are made of parts of a description, checked as the API server checks them.

use dra_alloc::validate::{ApiServer, Write};
use dra_alloc::{GateSet, Profile};
use dra_attrs::{Component, FieldErrors};
use k8s_openapi::api::resource::v1::{Device, DeviceClass, ResourceClaim, ResourceSlice};
use serde::Serialize;
use serde_json::{Value, json};

use super::description::{DescriptionError, DeviceGroup};
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

    /// Makes a claim of `spec.devices`. Pods get copies of it.
    pub(super) fn claim(self, pod: &str, devices: &Value, place: String) -> Result<ResourceClaim, DescriptionError> {
        let json = json!({"metadata": {"namespace": "default", "name": pod}, "spec": {"devices": devices}});
        let claim = object(&json, &place)?;
        let checked = self.0.validate_claim(Write::create(&claim)).map(drop);
        checked.map(|()| claim).map_err(|source| invalid(place, source))
    }
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
