//! Names of claims, and the claims of a pod.
//!
//! Tests: `../node/tests/it/kubelet/prepare.rs`.

mod key;
pub(crate) mod pod_claims;
pub(crate) mod pod_fields;

pub use key::ClaimKey;
pub use pod_claims::{ClaimOrigin, PodClaim, PodClaimError};
