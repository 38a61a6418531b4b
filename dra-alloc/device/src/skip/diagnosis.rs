//! Diagnosis of problems with skipped node operations (KEP-5945, Troubleshooting).

use std::fmt;

use dra_attrs::{Gate, Profile};
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim, ResourceSlice};
use serde::Serialize;

use super::aggregate::declared;
use super::{SkipDeclaration, SkipSet};
use crate::allocated::published;
use crate::{DeviceId, allocated_devices};

/// Observed problem, as input of [`SkipEvidence::diagnose`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipSymptom<'a> {
    /// No observed problem: only the objects are checked.
    None,
    /// The claim is not allocated. The text is the message of the scheduler.
    AllocationFailed(&'a str),
    /// The pod does not start. The text is the message of the event `FailedPrepareDynamicResources`, or of the kubelet's
    /// rejection (`PodFeatureUnsupported`).
    PrepareFailed(&'a str),
    /// The pod ended, and the kubelet did not call the driver, although the feature gate for `skipNodeOperations` is
    /// off on the kubelet.
    UnprepareSkipped,
    /// The pod started, but its container does not find its hardware.
    HardwareMissing,
}

/// Objects and observed problem from which [`SkipEvidence::diagnose`] finds causes.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by the caller; the KEP's advice looks at these")]
pub struct SkipEvidence<'a> {
    /// Profile of the cluster, which determines the name of the gate.
    pub profile: Profile,
    /// Published slices with the claim's devices. Other slices are ignored.
    pub slices: &'a [ResourceSlice],
    /// Claim with the observed problem.
    pub claim: &'a ResourceClaim,
    /// The observed problem.
    pub symptom: SkipSymptom<'a>,
}

/// A likely cause of a problem. Its `Display` text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "cause")]
#[non_exhaustive]
pub enum SkipDiagnosis {
    /// The slice of a device sets `skipNodeOperations`, but its allocation result does not.
    NotCopied {
        /// Device whose allocation result lacks the field.
        device: DeviceId,
        /// Name of the device's slice.
        slice: String,
    },
    /// An allocation result sets `skipNodeOperations`, but the slice of its device no longer does.
    SliceChanged {
        /// Device whose slice has changed.
        device: DeviceId,
        /// Name of the device's slice.
        slice: String,
    },
    /// The feature gate for `skipNodeOperations` is off in the scheduler.
    SchedulerGateOff {
        /// Name of the feature gate.
        gate: &'static str,
    },
    /// The feature gate for `skipNodeOperations` is off on the kubelet.
    KubeletGateOff {
        /// Name of the feature gate.
        gate: &'static str,
    },
    /// `skipNodeOperations` of the allocation result names unprepare, which a kubelet skips even while its feature gate
    /// for the field is off.
    SkipRecorded {
        /// Device whose allocation result skips unprepare.
        device: DeviceId,
    },
    /// The slice lets prepare be skipped, but the device seems to need it.
    SliceMisconfigured {
        /// Device that seems to need prepare.
        device: DeviceId,
        /// Name of the device's slice.
        slice: String,
    },
    /// The driver must be called, but is not registered on the node.
    DriverMissing {
        /// Name of the driver.
        driver: String,
    },
}

impl fmt::Display for SkipDiagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCopied { device, slice } => write!(
                f,
                "ResourceSlice {slice} skips node operations, but the allocation of device {device} does not: check that \
                 the scheduler or custom allocator copies skipNodeOperations; or the slice was changed after the allocation"
            ),
            Self::SliceChanged { device, slice } => write!(
                f,
                "the allocation of device {device} skips node operations, but ResourceSlice {slice} does not (any more): \
                 the claim keeps skipping until it is allocated anew"
            ),
            Self::SchedulerGateOff { gate } => {
                write!(f, "enable the feature gate {gate} in the scheduler or custom allocator")
            }
            Self::KubeletGateOff { gate } => write!(f, "enable the feature gate {gate} on the kubelet of the node"),
            Self::SkipRecorded { device } => write!(
                f,
                "the allocation of device {device} skips node operations, which a kubelet honours at the end of a pod also \
                 with the feature gate off"
            ),
            Self::SliceMisconfigured { device, slice } => write!(
                f,
                "if device {device} needs its node driver, ResourceSlice {slice} must not set skipNodeOperations"
            ),
            Self::DriverMissing { driver } => write!(
                f,
                "driver {driver} must be called and is not registered on the node: start it, or a driver that does nothing"
            ),
        }
    }
}

impl SkipEvidence<'_> {
    /// Returns the likely causes of a problem, the most likely first: causes found in the symptom, then causes found in the
    /// objects. Linear in the devices of the claim times the slices.
    ///
    /// ```
    /// use dra_device::skip::{SkipDiagnosis, SkipEvidence, SkipSymptom};
    /// use dra_attrs::Profile;
    /// use k8s_openapi::api::resource::v1::ResourceClaim;
    /// let evidence = SkipEvidence {
    ///     profile: Profile::Kep,
    ///     slices: &[],
    ///     claim: &ResourceClaim::default(),
    ///     symptom: SkipSymptom::PrepareFailed("… DRAOptionalNodePreparationDisabled: …"),
    /// };
    /// assert_eq!(evidence.diagnose(), [SkipDiagnosis::KubeletGateOff { gate: "DRAOptionalNodePreparation" }]);
    /// ```
    #[must_use]
    pub fn diagnose(self) -> Vec<SkipDiagnosis> {
        let gate = Gate::OptionalNodeOperations.name(self.profile);
        let feature = self.profile.rules().skip.declared_feature;
        let mut causes = Vec::new();
        match self.symptom {
            SkipSymptom::AllocationFailed(message) if message.contains(gate) || message.contains(feature) => {
                // A node that does not declare the feature has a kubelet with the gate off. In Kubernetes 1.37, the feature
                // has the name of the gate.
                let is_of_node = ["declares the feature", "not declared by the node", "required features"]
                    .iter()
                    .any(|words| message.contains(words));
                let (of_node, of_scheduler) =
                    (SkipDiagnosis::KubeletGateOff { gate }, SkipDiagnosis::SchedulerGateOff { gate });
                causes.push(if is_of_node { of_node } else { of_scheduler });
            }
            SkipSymptom::PrepareFailed(message) if message.contains(gate) || message.contains(feature) => {
                causes.push(SkipDiagnosis::KubeletGateOff { gate });
            }
            SkipSymptom::PrepareFailed(message) => causes.extend(missing_driver(message)),
            _ => {}
        }
        for result in allocated_devices(self.claim) {
            causes.extend(of_device(result, self.slices, self.symptom));
        }
        causes
    }
}

fn missing_driver(message: &str) -> Option<SkipDiagnosis> {
    let (before, _) = message.split_once(" is not registered")?;
    let (_, driver) = before.rsplit_once("DRA driver ")?;
    Some(SkipDiagnosis::DriverMissing { driver: driver.to_owned() })
}

fn of_device(
    result: &DeviceRequestAllocationResult,
    slices: &[ResourceSlice],
    symptom: SkipSymptom<'_>,
) -> Vec<SkipDiagnosis> {
    let device = DeviceId::new(&result.driver, &result.pool, &result.device);
    let recorded = declared(result);
    let slice = published(result, slices).map(|(slice, _)| slice);
    let published = slice
        .map_or(SkipSet::NONE, |slice| SkipDeclaration::from_kube(slice.spec.skip_node_operations.as_deref()).set());
    let name = slice.and_then(|slice| slice.metadata.name.clone());
    let mut causes = Vec::new();
    match symptom {
        SkipSymptom::UnprepareSkipped if recorded.unprepare => {
            causes.push(SkipDiagnosis::SkipRecorded { device: device.clone() });
        }
        SkipSymptom::HardwareMissing if recorded.prepare => {
            let slice = name.clone().unwrap_or_default();
            causes.push(SkipDiagnosis::SliceMisconfigured { device: device.clone(), slice });
        }
        _ => {}
    }
    match name {
        Some(slice) if recorded.is_empty() && !published.is_empty() => {
            causes.push(SkipDiagnosis::NotCopied { device, slice });
        }
        Some(slice) if !recorded.is_empty() && published.is_empty() => {
            causes.push(SkipDiagnosis::SliceChanged { device, slice });
        }
        _ => {}
    }
    causes
}
