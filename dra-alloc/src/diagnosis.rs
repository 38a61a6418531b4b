//! The likely cause when skipping node operations goes wrong (KEP-5945, Troubleshooting).

use std::fmt;

use dra_attrs::profile::Profile;
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim, ResourceSlice};
use serde::Serialize;

use crate::allocated::{of_claim, published};
use crate::device_id::DeviceId;
use crate::features::Feature;
use crate::skip::aggregate::declared;
use crate::skip::{SkipDeclaration, SkipSet};

/// What has been observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Symptom<'a> {
    /// Nothing in particular: the objects are looked over.
    None,
    /// The claim is not allocated; the scheduler's message.
    AllocationFailed(&'a str),
    /// The pod does not start; the message of the event `FailedPrepareDynamicResources`.
    PrepareFailed(&'a str),
    /// The pod ended without a call to the driver, while the gate of its kubelet is off.
    UnprepareSkipped,
    /// The pod was started, and its container does not find its hardware.
    HardwareMissing,
}

/// What a search for a cause looks at.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by the caller; the KEP's advice looks at these")]
pub struct Evidence<'a> {
    /// The profile of the cluster: it decides the name of the gate.
    pub profile: Profile,
    /// Slices; those of other drivers and pools do no harm.
    pub slices: &'a [ResourceSlice],
    /// The claim.
    pub claim: &'a ResourceClaim,
    /// What has been observed.
    pub symptom: Symptom<'a>,
}

/// A likely cause. Its text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "cause")]
#[non_exhaustive]
pub enum Diagnosis {
    /// The slice skips, the allocation does not.
    NotCopied {
        /// The device.
        device: DeviceId,
        /// Its slice.
        slice: String,
    },
    /// The allocation skips, the slice no longer does.
    SliceChanged {
        /// The device.
        device: DeviceId,
        /// Its slice.
        slice: String,
    },
    /// The gate of the scheduler is off.
    SchedulerGateOff {
        /// The gate.
        gate: &'static str,
    },
    /// The gate of the kubelet is off.
    KubeletGateOff {
        /// The gate.
        gate: &'static str,
    },
    /// The allocation says that the driver is not called. That holds with the gate off, too.
    SkipRecorded {
        /// The device.
        device: DeviceId,
    },
    /// The slice says that no node operation is needed, and one seems to be.
    SliceMisconfigured {
        /// The device.
        device: DeviceId,
        /// Its slice.
        slice: String,
    },
    /// The driver must be called and is not there.
    DriverMissing {
        /// The driver.
        driver: String,
    },
}

impl fmt::Display for Diagnosis {
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

/// The likely causes, the most telling first: what the symptom says, then what the objects say. Linear in the devices of the
/// claim times the slices.
///
/// ```
/// use dra_alloc::diagnosis::{Diagnosis, Evidence, Symptom, diagnose};
/// use dra_attrs::profile::Profile;
/// use k8s_openapi::api::resource::v1::ResourceClaim;
/// let evidence = Evidence {
///     profile: Profile::Kep,
///     slices: &[],
///     claim: &ResourceClaim::default(),
///     symptom: Symptom::PrepareFailed("… DRAOptionalNodePreparationDisabled: …"),
/// };
/// assert_eq!(diagnose(evidence), [Diagnosis::KubeletGateOff { gate: "DRAOptionalNodePreparation" }]);
/// ```
#[must_use]
pub fn diagnose(evidence: Evidence<'_>) -> Vec<Diagnosis> {
    let gate = Feature::OptionalNodeOperations.gates(evidence.profile).first().copied().unwrap_or_default();
    let mut causes = Vec::new();
    match evidence.symptom {
        Symptom::AllocationFailed(message) if message.contains(gate) => {
            // As shipped, the declared feature has the gate's name: a node without it has a kubelet with the gate off.
            let is_of_node = ["declares the feature", "required features"].iter().any(|words| message.contains(words));
            let (of_node, of_scheduler) = (Diagnosis::KubeletGateOff { gate }, Diagnosis::SchedulerGateOff { gate });
            causes.push(if is_of_node { of_node } else { of_scheduler });
        }
        Symptom::PrepareFailed(message) if message.contains(gate) => causes.push(Diagnosis::KubeletGateOff { gate }),
        Symptom::PrepareFailed(message) => causes.extend(missing_driver(message)),
        _ => {}
    }
    for result in of_claim(evidence.claim) {
        causes.extend(of_device(result, evidence.slices, evidence.symptom));
    }
    causes
}

fn missing_driver(message: &str) -> Option<Diagnosis> {
    let (before, _) = message.split_once(" is not registered")?;
    let (_, driver) = before.rsplit_once("DRA driver ")?;
    Some(Diagnosis::DriverMissing { driver: driver.to_owned() })
}

fn of_device(result: &DeviceRequestAllocationResult, slices: &[ResourceSlice], symptom: Symptom<'_>) -> Vec<Diagnosis> {
    let device = DeviceId::new(&result.driver, &result.pool, &result.device);
    let recorded = declared(result);
    let slice = published(result, slices).map(|(slice, _)| slice);
    let published = slice
        .map_or(SkipSet::NONE, |slice| SkipDeclaration::from_kube(slice.spec.skip_node_operations.as_deref()).set());
    let name = slice.and_then(|slice| slice.metadata.name.clone());
    let mut causes = Vec::new();
    match symptom {
        Symptom::UnprepareSkipped if recorded.unprepare => {
            causes.push(Diagnosis::SkipRecorded { device: device.clone() });
        }
        Symptom::HardwareMissing if recorded.prepare => {
            let slice = name.clone().unwrap_or_default();
            causes.push(Diagnosis::SliceMisconfigured { device: device.clone(), slice });
        }
        _ => {}
    }
    match name {
        Some(slice) if recorded.is_empty() && !published.is_empty() => {
            causes.push(Diagnosis::NotCopied { device, slice });
        }
        Some(slice) if !recorded.is_empty() && published.is_empty() => {
            causes.push(Diagnosis::SliceChanged { device, slice });
        }
        _ => {}
    }
    causes
}
