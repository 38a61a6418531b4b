//! Service `DRAPlugin`, in both versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_node::driver::claim_responses;
use dra_node::kubelet::{ClaimRef, PreparedDevice, Responses};
use tonic::{Request, Response, Status};

use super::api::{dra, dra_v1beta1};
use super::calls::KubeletCalls;

/// Service over the calls of a driver.
#[derive(Debug)]
pub(super) struct PluginService<C>(pub(super) Arc<C>);

impl<C: KubeletCalls> PluginService<C> {
    /// Prepares each claim of a call on its own.
    async fn prepare(&self, claims: &[ClaimRef]) -> Vec<(String, Result<Vec<PreparedDevice>, String>)> {
        let mut outcomes = Vec::new();
        for claim in claims {
            outcomes.push((claim.uid.clone(), self.0.prepare(claim).await));
        }
        in_order(claims, outcomes)
    }

    async fn unprepare(&self, claims: &[ClaimRef]) -> Vec<(String, Result<(), String>)> {
        let mut outcomes = Vec::new();
        for claim in claims {
            outcomes.push((claim.uid.clone(), self.0.unprepare(claim).await));
        }
        in_order(claims, outcomes)
    }
}

fn in_order<T>(claims: &[ClaimRef], outcomes: Vec<(String, Result<T, String>)>) -> Vec<(String, Result<T, String>)> {
    let answers =
        claim_responses(claims.iter().map(|claim| claim.uid.as_str()), outcomes.into_iter().collect::<Responses<T>>());
    answers.into_iter().map(|(uid, answer)| (uid, answer.map_err(|failure| failure.to_string()))).collect()
}

/// The service of one version, with its way to write a device.
macro_rules! plugin_service {
    ($api:ident, $device:expr) => {
        #[tonic::async_trait]
        impl<C: KubeletCalls> $api::dra_plugin_server::DraPlugin for PluginService<C> {
            async fn node_prepare_resources(
                &self,
                request: Request<$api::NodePrepareResourcesRequest>,
            ) -> Result<Response<$api::NodePrepareResourcesResponse>, Status> {
                let claims = request.into_inner().claims;
                let asked = claims.iter().map(|claim| ClaimRef::new(&claim.namespace, &claim.name, &claim.uid));
                let answer = |outcome: Result<Vec<PreparedDevice>, String>| {
                    let (devices, error) = match outcome {
                        Ok(devices) => (devices.into_iter().map($device).collect(), String::new()),
                        Err(error) => (Vec::new(), error),
                    };
                    $api::NodePrepareResourceResponse { devices, error }
                };
                let outcomes = self.prepare(&asked.collect::<Vec<_>>()).await.into_iter();
                let claims: BTreeMap<String, _> = outcomes.map(|(uid, outcome)| (uid, answer(outcome))).collect();
                Ok(Response::new($api::NodePrepareResourcesResponse { claims }))
            }

            async fn node_unprepare_resources(
                &self,
                request: Request<$api::NodeUnprepareResourcesRequest>,
            ) -> Result<Response<$api::NodeUnprepareResourcesResponse>, Status> {
                let claims = request.into_inner().claims;
                let asked = claims.iter().map(|claim| ClaimRef::new(&claim.namespace, &claim.name, &claim.uid));
                let answer = |outcome: Result<(), String>| $api::NodeUnprepareResourceResponse {
                    error: outcome.err().unwrap_or_default(),
                };
                let outcomes = self.unprepare(&asked.collect::<Vec<_>>()).await.into_iter();
                let claims: BTreeMap<String, _> = outcomes.map(|(uid, outcome)| (uid, answer(outcome))).collect();
                Ok(Response::new($api::NodeUnprepareResourcesResponse { claims }))
            }
        }
    };
}

plugin_service!(dra, |device: PreparedDevice| dra::Device {
    request_names: device.requests,
    pool_name: device.pool,
    device_name: device.device,
    cdi_device_ids: device.cdi_ids,
    share_id: device.share_id,
});

// Without the share.
plugin_service!(dra_v1beta1, |device: PreparedDevice| dra_v1beta1::Device {
    request_names: device.requests,
    pool_name: device.pool,
    device_name: device.device,
    cdi_device_ids: device.cdi_ids,
});
