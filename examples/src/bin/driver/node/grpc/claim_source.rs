//! Source of claims, and place for reports about their devices: files, or a cluster.

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
    Cluster(kube::Client, crate::live::Counts, crate::live::Reports),
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
            Self::Cluster(client, ..) => examples::live::claim_calls::find(client, &asked.key).await,
        }
    }

    /// Counts a claim of a call.
    #[cfg_attr(not(feature = "live"), expect(clippy::unused_self, reason = "a cluster's driver has metrics"))]
    pub(super) fn count(&self, method: &'static str, is_error: bool) {
        #[cfg(feature = "live")]
        if let Self::Cluster(_, counts, _) = self {
            counts.claim(method, is_error);
        }
        #[cfg(not(feature = "live"))]
        let _ = (method, is_error);
    }

    /// Reports prepared devices in the status of their claim, in the background: a claim is prepared also if the report is
    /// not written.
    pub(crate) fn report(&self, driver: &str, claim: &ClaimRef, devices: &[PreparedDevice]) {
        #[cfg(feature = "live")]
        if let Self::Cluster(client, _, reports) = self {
            reports.begin(client, driver, claim, devices);
        }
        #[cfg(not(feature = "live"))]
        let _ = (self, driver, claim, devices);
    }

    /// Ends the report about a claim that is not prepared any more.
    pub(super) fn end_report(&self, claim: &ClaimRef) {
        #[cfg(feature = "live")]
        if let Self::Cluster(_, _, reports) = self {
            reports.end(claim);
        }
        #[cfg(not(feature = "live"))]
        let _ = (self, claim);
    }
}
