//! The IO half of dra-sdk: what talks is here, what decides is in the libraries.
//!
//! A driver is a [`Plugin`](plugin::Plugin), the answers about some hardware, in `driver::run`, which does the rest:
//!
//! ```
//! use dra_live::plugin::{Plugin, PluginError, Pool};
//! use dra_live::prepared_claims::{ClaimSettings, LostLedger, PreparedClaims};
//! use dra_node::driver::{CdiEdits, DeviceConfig, HeldDevice};
//! use dra_node::kubelet::ClaimRef;
//! use k8s_openapi::api::resource::v1::{Device, ResourceClaim};
//! use jiff::Timestamp;
//!
//! struct Lamp;
//!
//! impl Plugin for Lamp {
//!     fn pools(&self) -> Result<Vec<Pool>, PluginError> {
//!         let lamp = Device { name: "lamp".to_owned(), ..Device::default() };
//!         Ok(vec![Pool { name: "node-1".to_owned(), devices: vec![lamp], ..Pool::default() }])
//!     }
//!     fn set_up(&self, _: &HeldDevice, _: &str, _: &[DeviceConfig<'_>]) -> Result<(), PluginError> {
//!         Ok(()) // light it
//!     }
//!     fn take_down(&self, _: &HeldDevice, _: &str) -> Result<(), PluginError> {
//!         Ok(())
//!     }
//!     fn edits(&self, device: &HeldDevice, _: &str) -> CdiEdits {
//!         let mut edits = CdiEdits::default();
//!         edits.env = vec![format!("LAMP={}", device.device)];
//!         edits
//!     }
//! }
//!
//! # let folder = tempfile::tempdir()?;
//! # let (state, cdi) = (folder.path().join("state"), folder.path().join("cdi"));
//! // One of the parts, alone: claims that are prepared over crashes.
//! let (driver, boot_id) = ("lamp.example.com".to_owned(), "boot".to_owned());
//! let settings = ClaimSettings { driver, boot_id, state, cdi, metadata: None, lost: LostLedger::Refused };
//! let claims = PreparedClaims::new(Lamp, settings)?;
//! let claim: ResourceClaim = serde_json::from_str(r#"{"metadata": {"namespace": "default", "name": "c", "uid": "5f1c"},
//!     "status": {"allocation": {"devices": {"results": [
//!         {"request": "r", "driver": "lamp.example.com", "pool": "node-1", "device": "lamp"}]}}}}"#)?;
//! let find = |_: &ClaimRef| Ok(Some(claim.clone()));
//! let devices = claims.prepare(&ClaimRef::new("default", "c", "5f1c"), &find, Timestamp::UNIX_EPOCH)?;
//! assert_eq!(devices[0].cdi_ids, ["k8s.lamp.example.com/claim=5f1c-lamp"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | feature | module | what it does |
//! |---|---|---|
//! | – | [`plugin`] | the answers of a driver's author |
//! | – | [`prepared_claims`] | prepares claims by the ledger: hardware, CDI and metadata files |
//! | – | [`state_file`] | keeps files over a crash, and locks them |
//! | – | [`metrics`], [`slice_lines`], [`say`], [`causes`], [`allocation_part`] | counts, and texts for people |
//! | `plugin` | `grpc` | the calls between kubelet and driver, both sides |
//! | `kube` | `connect` | finds the cluster, and asks for its version |
//! | `kube` | `retry`, `failure`, `outage`, `pages` | repeats calls without an answer, says what went wrong, lets pauses grow, reads long lists |
//! | `kube` | `slice_publisher`, `reports`, `node_owner`, `claim_lookup`, `slice_calls`, `device_status_calls` | a driver on the API server |
//! | `kube` | `events`, `lease`, `vitals`, `http`, `stop` | the rest of a program that stays on a cluster |
//! | `kube` and `plugin` | `driver` | a whole driver |
//! | `scheduling` | `watching`, `listing`, `lists`, `cluster_view`, `touched` | the objects of a cluster, watched or listed once |
//! | `scheduling` | `claim_calls`, `pod_calls`, `node_calls`, `controller_calls` | the calls of schedulers and controllers |
//!
//! Whatever is sent may have been carried out although no answer came. Each write therefore names the version or the UID of
//! what was read, so that a repetition does nothing or is a conflict; and after a conflict the stored object tells whose
//! write it was.

pub mod allocation_part;
pub mod causes;
pub mod metrics;
pub mod plugin;
pub mod prepared_claims;
pub mod say;
pub mod slice_lines;
pub mod state_file;

#[cfg(all(feature = "kube", feature = "plugin"))]
pub mod driver;
#[cfg(all(feature = "kube", feature = "plugin"))]
mod hardware_look;

#[cfg(feature = "plugin")]
pub mod grpc;

#[cfg(feature = "kube")]
mod answers;
#[cfg(feature = "kube")]
pub mod claim_lookup;
#[cfg(feature = "kube")]
pub mod connect;
#[cfg(feature = "kube")]
pub mod device_status_calls;
#[cfg(feature = "kube")]
pub mod events;
#[cfg(feature = "kube")]
pub mod failure;
#[cfg(feature = "kube")]
pub mod http;
#[cfg(feature = "kube")]
pub mod lease;
#[cfg(feature = "kube")]
pub mod node_owner;
#[cfg(feature = "kube")]
pub mod outage;
#[cfg(feature = "kube")]
pub mod pages;
#[cfg(feature = "kube")]
pub mod reports;
#[cfg(feature = "kube")]
pub mod retry;
#[cfg(feature = "kube")]
pub mod slice_calls;
#[cfg(feature = "kube")]
pub mod slice_publisher;
#[cfg(feature = "kube")]
pub mod stop;
#[cfg(feature = "kube")]
mod times;
#[cfg(feature = "kube")]
pub mod vitals;

#[cfg(feature = "scheduling")]
pub mod claim_calls;
#[cfg(feature = "scheduling")]
pub mod cluster_view;
#[cfg(feature = "scheduling")]
pub mod controller_calls;
#[cfg(feature = "scheduling")]
pub mod listing;
#[cfg(feature = "scheduling")]
pub mod lists;
#[cfg(feature = "scheduling")]
pub mod node_calls;
#[cfg(feature = "scheduling")]
pub mod pod_calls;
#[cfg(feature = "scheduling")]
mod readable;
#[cfg(feature = "scheduling")]
pub mod taint_rules;
#[cfg(feature = "scheduling")]
pub mod touched;
#[cfg(feature = "scheduling")]
pub mod watching;

use std::time::SystemTime;

use k8s_openapi::jiff::Timestamp;

/// Returns the time. A clock before 1970 counts as 1970.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
}
