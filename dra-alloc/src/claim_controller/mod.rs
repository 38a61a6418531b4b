//! Decisions of the controller for resource claims, one of kube-controller-manager's.
//!
//! It makes the claims that templates of pods and pod groups stand for, records their names, reserves claims for pods that
//! came to a node without a scheduler, and takes back reservations, allocations and claims of pods that are gone or done.
//! [`ClaimController`] is its memory: what a watch shows goes in, and keys of what is to be looked at come out.
//! [`ClaimController::sync`] looks at one of them; [`ControllerSync`] has the calls to the API server as values, in their
//! order.
//!
//! ```
//! use dra_alloc::claim_controller::{ClaimController, ControllerResponse, ControllerCall, SyncStep};
//! use dra_alloc::pods::PodOptions;
//! use dra_alloc::Profile;
//! use k8s_openapi::api::core::v1::Pod;
//! use k8s_openapi::api::resource::v1::ResourceClaimTemplate;
//! use serde_json::{from_value, json};
//!
//! let template: ResourceClaimTemplate = from_value(json!({"metadata": {"namespace": "ns", "name": "gpu"}, "spec": {
//!     "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}}))?;
//! let pod: Pod = from_value(json!({"metadata": {"namespace": "ns", "name": "p", "uid": "1"},
//!     "spec": {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "gpu"}]}}))?;
//!
//! let mut controller = ClaimController::new(PodOptions::new(Profile::V1_37));
//! controller.observe_template(template);
//! let keys = controller.observe_pod(pod);
//! assert_eq!(keys[0].to_string(), "pod:ns/p");
//!
//! let mut sync = controller.sync(&keys[0]);
//! let SyncStep::Call(ControllerCall::CreateClaim { mut claim }) = sync.next_step() else { panic!("the claim is missing") };
//! assert_eq!(claim.metadata.generate_name.as_deref(), Some("p-a-"));
//! claim.metadata.name = Some("p-a-x7k2p".to_owned()); // the API server gives it a name
//! controller.observe_claim(claim.clone());
//! sync.answer(ControllerResponse::Claim(claim));
//! let SyncStep::Call(ControllerCall::RecordClaims { body, .. }) = sync.next_step() else { panic!("the name is not recorded") };
//! assert_eq!(body["status"]["resourceClaimStatuses"][0]["resourceClaimName"], "p-a-x7k2p");
//! sync.answer(ControllerResponse::Done);
//! assert!(matches!(sync.next_step(), SyncStep::Done));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Source of the rules: `pkg/controller/resourceclaim` of Kubernetes 1.36.
//!
//! Tests: `tests/it/claim_controller.rs`.

mod call;
mod clean;
mod clean_sync;
mod controller;
mod deleted;
mod error;
mod links;
mod made_claim;
mod owner;
mod owner_sync;
mod queue;
mod step;
mod sync;

pub use call::{ControllerCall, ControllerResponse, PodGroupVersion};
pub(crate) use clean::{CleanStep, OwnerPhase};
pub use controller::ClaimController;
pub use error::{ClaimMakingError, SyncError};
pub use made_claim::generate_name;
pub use queue::{QueueKey, QueueKeyError, QueueKind};
pub use step::SyncStep;
pub use sync::ControllerSync;
