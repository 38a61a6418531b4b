//! Steps of `alloc.kubelet`: pods that come and go, and responses of drivers, as they are written.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::kubelet::PreparedDevice;
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde::Deserialize;
use serde_json::Value;

use crate::alloc::carriers;
use crate::refusal::Refusal;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Prepare(PrepareStep),
    PrepareResponse(Response<PreparedClaim>),
    FinishPrepare {},
    Unprepare(UnprepareStep),
    UnprepareResponse(Response<UnpreparedClaim>),
    FinishUnprepare {},
    Reconcile(ReconcileStep),
    ContainerDevices(ContainerStep),
    Restart(RestartStep),
}

#[derive(Deserialize)]
pub(super) struct PrepareStep {
    pub(super) pod: Pod,
    #[serde(default)]
    claims: Vec<Value>,
    /// Parts of `claims` that were read.
    #[serde(skip)]
    pub(super) read_claims: Vec<ResourceClaim>,
    #[serde(default, alias = "features", deserialize_with = "crate::settings::gates")]
    pub(super) gates: BTreeMap<String, bool>,
    #[serde(default)]
    pub(super) registered: BTreeSet<String>,
}

#[derive(Deserialize)]
pub(super) struct UnprepareStep {
    pub(super) pod: Pod,
    #[serde(default, alias = "features", deserialize_with = "crate::settings::gates")]
    pub(super) gates: BTreeMap<String, bool>,
    #[serde(default)]
    pub(super) registered: BTreeSet<String>,
}

#[derive(Deserialize)]
pub(super) struct Response<T> {
    pub(super) driver: String,
    pub(super) claims: Option<BTreeMap<String, T>>,
    error: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct PreparedClaim {
    #[serde(default)]
    pub(super) devices: Vec<DeviceInput>,
    pub(super) error: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct DeviceInput {
    #[serde(default)]
    pool: String,
    #[serde(default)]
    device: String,
    #[serde(default)]
    requests: Vec<String>,
    #[serde(default)]
    cdi_ids: Vec<String>,
    share_id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct UnpreparedClaim {
    pub(super) error: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ReconcileStep {
    #[serde(default)]
    pub(super) active_pods: BTreeSet<String>,
    pub(super) registered: Option<BTreeSet<String>>,
}

#[derive(Deserialize)]
pub(super) struct ContainerStep {
    pub(super) pod: Pod,
    container: String,
}

#[derive(Deserialize)]
pub(super) struct RestartStep {
    pub(super) checkpoint: Option<String>,
}

impl Step {
    /// Reads what the types leave open.
    pub(super) fn finish_reading(&mut self) -> Result<(), Refusal> {
        match self {
            Self::Prepare(step) => {
                step.read_claims = carriers("prepare.claims", step.claims.drain(..))?;
                Ok(())
            }
            Self::ContainerDevices(step) => step.container().map(|_| ()),
            _ => Ok(()),
        }
    }
}

impl ContainerStep {
    pub(super) fn container(&self) -> Result<&Container, Refusal> {
        container(&self.pod, &self.container).ok_or_else(|| {
            let reason = format!("the pod has no container {:?}", self.container);
            Refusal::field("container_devices.container", reason)
        })
    }
}

impl<T> Response<T> {
    pub(super) fn outcome<A, C: FromIterator<(String, Result<A, String>)>>(
        &self,
        answer: impl Fn(&T) -> Result<A, String>,
    ) -> Result<C, String> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => Ok(self.claims.iter().flatten().map(|(uid, claim)| (uid.clone(), answer(claim))).collect()),
        }
    }
}

impl DeviceInput {
    pub(super) fn prepared(&self) -> PreparedDevice {
        PreparedDevice {
            pool: self.pool.clone(),
            device: self.device.clone(),
            share_id: self.share_id.clone(),
            requests: self.requests.clone(),
            cdi_ids: self.cdi_ids.clone(),
        }
    }
}

/// Treats an empty error text as success.
pub(super) fn success(error: Option<&str>) -> Result<(), String> {
    error.filter(|error| !error.is_empty()).map_or(Ok(()), |error| Err(error.to_owned()))
}

fn container<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let inits = spec.init_containers.iter().flatten();
    inits.chain(&spec.containers).find(|container| container.name == name)
}
