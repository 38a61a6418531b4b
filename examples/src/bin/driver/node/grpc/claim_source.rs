//! Source of claims, and place for reports about their devices: files, or a cluster.

#[cfg(feature = "live")]
use dra_alloc::driver::{ConditionReport, DeviceReport};
use dra_alloc::kubelet::{ClaimRef, PreparedDevice};
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::super::command::ApiFiles;

/// Source of claims.
#[derive(Clone)]
pub(crate) enum ClaimSource {
    /// Manifests that stand for an API server.
    Files(ApiFiles),
    /// API server of a cluster.
    #[cfg(feature = "live")]
    Cluster(kube::Client, crate::live::Counts),
}

impl ClaimSource {
    /// Returns the claim that has the name now.
    ///
    /// # Errors
    /// Nothing is known about the claim.
    #[cfg_attr(not(feature = "live"), expect(clippy::unused_async, reason = "a cluster would be waited for"))]
    pub(super) async fn find(&self, asked: &ClaimRef) -> Result<Option<ResourceClaim>, String> {
        match self {
            Self::Files(files) => files.find(asked),
            #[cfg(feature = "live")]
            Self::Cluster(client, _) => examples::live::claim_calls::find(client, &asked.key).await,
        }
    }

    /// Counts a claim of a call.
    #[cfg_attr(not(feature = "live"), expect(clippy::unused_self, reason = "a cluster's driver has metrics"))]
    pub(super) fn count(&self, method: &'static str, is_error: bool) {
        #[cfg(feature = "live")]
        if let Self::Cluster(_, counts) = self {
            counts.claim(method, is_error);
        }
        #[cfg(not(feature = "live"))]
        let _ = (method, is_error);
    }

    /// Reports prepared devices in the status of their claim, in the background: a claim is prepared also if the report is
    /// not written.
    pub(super) fn report(&self, driver: &str, claim: &ClaimRef, devices: &[PreparedDevice]) {
        match self {
            Self::Files(_) => {}
            #[cfg(feature = "live")]
            Self::Cluster(..) if devices.is_empty() => {}
            #[cfg(feature = "live")]
            Self::Cluster(client, _) => {
                let reports: Vec<DeviceReport> = devices.iter().map(ready).collect();
                let (client, driver, claim) = (client.clone(), driver.to_owned(), claim.clone());
                tokio::spawn(async move {
                    let written = examples::live::device_status_calls::report(&client, &driver, &claim, &reports).await;
                    if let Err(reason) = written {
                        crate::note(&format_args!("{}: status not written: {reason}", claim.key));
                    }
                });
            }
        }
        #[cfg(not(feature = "live"))]
        let _ = (driver, claim, devices);
    }
}

#[cfg(feature = "live")]
fn ready(device: &PreparedDevice) -> DeviceReport {
    let condition = ConditionReport {
        type_: "Ready".to_owned(),
        status: "True".to_owned(),
        reason: "Prepared".to_owned(),
        message: String::new(),
    };
    DeviceReport {
        pool: device.pool.clone(),
        device: device.device.clone(),
        share_id: device.share_id.clone(),
        conditions: vec![condition],
        ..DeviceReport::default()
    }
}
