//! Binding conditions of allocated devices (KEP-5007): ready, pending, failed, timed out.

use std::fmt;

use dra_attrs::internal::release::BindingTexts;
use dra_attrs::{Profile, Quoted};
use dra_device::DeviceId;
use jiff::Timestamp;
use k8s_openapi::api::resource::v1::{AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::lookup::allocation_of;
use super::options::PodOptions;

/// Binding conditions of one allocated device that has any.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceBinding {
    /// The device.
    pub device: DeviceId,
    /// Binding conditions that are not `True`: `False`, `Unknown` or absent.
    pub pending: Vec<String>,
    /// Failure conditions that are `True`.
    pub failed: Vec<String>,
}

/// Failure of the binding of a device, as its driver reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BindingFailure {
    /// Name of the claim.
    pub claim: String,
    /// The device.
    pub device: DeviceId,
    /// Type of the failure condition.
    pub condition: String,
    /// Reason of the condition.
    pub reason: String,
    /// Message of the condition.
    pub message: String,
    /// Release of the scheduler, of which the text is.
    pub profile: Profile,
}

impl fmt::Display for BindingFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claim, reason, profile, .. } = self;
        let message = Quoted(&self.message);
        match profile.rules().plugin.binding_texts {
            BindingTexts::Claim => write!(f, "claim {claim} binding failed: reason={reason}, message={message}"),
            BindingTexts::Device => {
                write!(f, "device binding failed: claim={claim}, reason={reason}, message={message}")
            }
        }
    }
}

/// Readiness of a claim's devices for the binding of its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "devices are ready, not yet, or never")]
pub enum BindingState {
    /// All binding conditions are `True`, or there are none.
    Ready,
    /// The claim is not allocated, or a binding condition is not `True`.
    Pending,
    /// A failure condition is `True`.
    Failed(Box<BindingFailure>),
}

/// Binding conditions of a claim at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BindingReport {
    /// Readiness of the claim's devices.
    pub state: BindingState,
    /// True if the time since the allocation is more than the timeout, whatever the state.
    pub timed_out: bool,
    /// Devices with binding conditions, in the order of the results.
    pub devices: Vec<DeviceBinding>,
}

impl BindingReport {
    /// Returns true if the devices will not become ready in time: the claim needs another allocation.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        match self.state {
            BindingState::Ready => false,
            BindingState::Pending => self.timed_out,
            BindingState::Failed(_) => true,
        }
    }

    /// Returns the binding conditions of a claim's devices, by the timeout and the texts of `options`.
    ///
    /// Assumes that the gates of the feature are on.
    ///
    /// Devices are looked at in the order of the results, as kube-scheduler does: one without binding conditions is passed
    /// over, its failure conditions too; a failure counts before readiness; a device that is not ready hides the failure of a
    /// later one.
    ///
    /// ```
    /// use dra_alloc::Profile;
    /// use dra_alloc::pods::{BindingReport, BindingState, PodOptions};
    /// use k8s_openapi::api::resource::v1::ResourceClaim;
    /// use serde_json::{from_value, json};
    /// let claim: ResourceClaim = from_value(json!({"status": {"allocation": {"allocationTimestamp": "2026-01-01T00:00:00Z",
    ///     "devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "a",
    ///         "bindingConditions": ["attached"]}]}}}}))?;
    /// let options = PodOptions::new(Profile::V1_37);
    /// let report = |now: &str| BindingReport::of_claim(&claim, now.parse().unwrap(), options);
    /// let early = report("2026-01-01T00:10:00Z");
    /// assert_eq!((&early.state, early.timed_out), (&BindingState::Pending, false));
    /// assert!(report("2026-01-01T00:10:01Z").is_lost());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn of_claim(claim: &ResourceClaim, now: Timestamp, options: PodOptions) -> Self {
        let Some(allocation) = allocation_of(claim) else {
            return Self { state: BindingState::Pending, timed_out: false, devices: Vec::new() };
        };
        let results = allocation.devices.iter().flat_map(|devices| devices.results.iter().flatten());
        let waiting: Vec<_> = results.filter(|result| has_conditions(result)).collect();
        let limit = |begin: Timestamp| begin.checked_add(options.binding_timeout()).unwrap_or(Timestamp::MAX);
        let timed_out =
            !waiting.is_empty() && allocation.allocation_timestamp.as_ref().is_some_and(|begin| limit(begin.0) < now);
        let devices: Vec<DeviceBinding> = waiting.iter().map(|result| device_binding(claim, result)).collect();
        Self { state: state_of(claim, &devices, options.profile()), timed_out, devices }
    }
}

/// Returns true if a claim is allocated with a device that has binding conditions.
pub(super) fn has_binding_conditions(claim: &ResourceClaim) -> bool {
    let devices = allocation_of(claim).and_then(|allocation| allocation.devices.as_ref());
    devices.is_some_and(|devices| devices.results.iter().flatten().any(has_conditions))
}

fn has_conditions(result: &DeviceRequestAllocationResult) -> bool {
    result.binding_conditions.as_ref().is_some_and(|conditions| !conditions.is_empty())
}

fn state_of(claim: &ResourceClaim, devices: &[DeviceBinding], profile: Profile) -> BindingState {
    let Some(first) = devices.iter().find(|device| !device.failed.is_empty() || !device.pending.is_empty()) else {
        return BindingState::Ready;
    };
    let Some(failed) = first.failed.first() else { return BindingState::Pending };
    let condition = conditions_of(claim, &first.device).find(|condition| condition.type_ == *failed);
    BindingState::Failed(Box::new(BindingFailure {
        claim: claim.metadata.name.clone().unwrap_or_default(),
        device: first.device.clone(),
        condition: failed.clone(),
        reason: condition.map(|condition| condition.reason.clone()).unwrap_or_default(),
        message: condition.map(|condition| condition.message.clone()).unwrap_or_default(),
        profile,
    }))
}

fn device_binding(claim: &ResourceClaim, result: &DeviceRequestAllocationResult) -> DeviceBinding {
    let device = DeviceId::new(&result.driver, &result.pool, &result.device);
    let is_true = |name: &&String| {
        conditions_of(claim, &device)
            .find(|condition| condition.type_ == **name)
            .is_some_and(|found| found.status == "True")
    };
    let pending = result.binding_conditions.iter().flatten().filter(|name| !is_true(name)).cloned().collect();
    let failed = result.binding_failure_conditions.iter().flatten().filter(is_true).cloned().collect();
    DeviceBinding { device, pending, failed }
}

/// Returns the conditions of the first entry of `status.devices` for a device.
fn conditions_of<'c>(claim: &'c ResourceClaim, device: &DeviceId) -> impl Iterator<Item = &'c Condition> {
    let is_it = |status: &&AllocatedDeviceStatus| {
        status.driver == device.driver && status.pool == device.pool && status.device == device.device
    };
    let mut devices = claim.status.iter().flat_map(|status| status.devices.iter().flatten());
    devices.find(is_it).into_iter().flat_map(|status| status.conditions.iter().flatten())
}
