//! Status of allocated devices in a claim: merging what a driver reports into `status.devices` (KEP-4817).

use std::collections::{BTreeMap, BTreeSet};

use dra_device::allocated_devices;
use k8s_openapi::api::resource::v1::{AllocatedDeviceStatus, NetworkDeviceData, ResourceClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::jiff::Timestamp;

/// Largest number of conditions of a device.
const MAX_DEVICE_CONDITIONS: usize = 8;

/// Status that a driver reports of one of its allocated devices.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "made by the caller; the fields of AllocatedDeviceStatus without times")]
pub struct DeviceReport {
    /// Name of the pool.
    pub pool: String,
    /// Name of the device.
    pub device: String,
    /// Share ID of the device result, if it has one.
    pub share_id: Option<String>,
    /// Conditions, each type once. `Ready` is true if the device is configured as its configurations ask.
    pub conditions: Vec<ConditionReport>,
    /// Data of the driver's own, a JSON object of at most 10 KiB.
    pub data: Option<RawExtension>,
    /// Network interface of the device.
    pub network_data: Option<NetworkDeviceData>,
}

/// Condition of a device without times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by the caller; the fields of Condition without times")]
pub struct ConditionReport {
    /// Type of the condition.
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason as one word.
    pub reason: String,
    /// Text for people; may be empty.
    pub message: String,
}

/// Reason why a report can't be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceStatusError {
    /// The device, with its share ID, is not allocated to the claim by this driver: the claim was deallocated or
    /// allocated anew since it was prepared.
    #[error("device {pool}/{device} is not allocated to the claim")]
    NotAllocated {
        /// Name of the pool.
        pool: String,
        /// Name of the device.
        device: String,
    },
    /// The device would have more than eight conditions.
    #[error("device {pool}/{device} has more than {MAX_DEVICE_CONDITIONS} conditions")]
    TooManyConditions {
        /// Name of the pool.
        pool: String,
        /// Name of the device.
        device: String,
    },
    /// The device is reported twice, or a condition of it is.
    #[error("device {pool}/{device} or a condition of it is reported twice")]
    Duplicate {
        /// Name of the pool.
        pool: String,
        /// Name of the device.
        device: String,
    },
}

/// Key of a status entry of one driver: pool, device and share ID.
type Key<'a> = (&'a str, &'a str, Option<&'a str>);

fn check(reports: &[DeviceReport], allocated: &BTreeSet<Key<'_>>) -> Result<(), DeviceStatusError> {
    let mut seen = BTreeSet::new();
    for report in reports {
        if !allocated.contains(&report.key()) {
            return Err(DeviceStatusError::NotAllocated { pool: report.pool.clone(), device: report.device.clone() });
        }
        if report.conditions.len() > MAX_DEVICE_CONDITIONS {
            return Err(report.too_many_conditions());
        }
        let types: BTreeSet<&str> = report.conditions.iter().map(|condition| condition.type_.as_str()).collect();
        if types.len() < report.conditions.len() || !seen.insert(report.key()) {
            return Err(DeviceStatusError::Duplicate { pool: report.pool.clone(), device: report.device.clone() });
        }
    }
    Ok(())
}

impl DeviceReport {
    fn key(&self) -> Key<'_> {
        (&self.pool, &self.device, self.share_id.as_deref())
    }

    fn too_many_conditions(&self) -> DeviceStatusError {
        DeviceStatusError::TooManyConditions { pool: self.pool.clone(), device: self.device.clone() }
    }

    /// Returns the new `status.devices` of a claim, or `None` if nothing differs and nothing is to be written.
    ///
    /// Entries of other drivers stay as they are, in their places. Entries of `driver` are replaced by its reports; those of
    /// devices that are not allocated any more go, and those that `reports` leaves out stay. New entries are appended in the
    /// order of the allocation. Conditions are merged by type: those that a report leaves out stay,
    /// `lastTransitionTime` is kept while the status is the same, and `observedGeneration` is the claim's.
    ///
    /// After a conflict the caller reads the claim again and merges again; writing the old list would undo the changes of
    /// others. `validate_claim_status` of the crate `dra-validate` finds what else the API server would refuse.
    ///
    /// ```
    /// use dra_node::driver::{ConditionReport, DeviceReport};
    /// use k8s_openapi::jiff::Timestamp;
    /// use serde_json::{from_value, json};
    /// let claim = from_value(json!({"status": {"allocation": {"devices": {"results": [
    ///     {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"},
    /// ]}}}}))?;
    /// let ready = ConditionReport { type_: "Ready".into(), status: "True".into(), reason: "Set".into(), message: "".into() };
    /// let report = DeviceReport {
    ///     pool: "node-1".into(), device: "gpu-0".into(), conditions: vec![ready], ..DeviceReport::default()
    /// };
    /// let devices = DeviceReport::merge(&claim, "gpu.example.com", &[report], Timestamp::UNIX_EPOCH)?;
    /// assert_eq!(devices.unwrap()[0].device, "gpu-0");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The first report of a device that is not allocated, is there twice, or gets too many conditions. Nothing is merged.
    ///
    /// Complexity: n log n in devices and reports.
    pub fn merge(
        claim: &ResourceClaim,
        driver: &str,
        reports: &[Self],
        now: Timestamp,
    ) -> Result<Option<Vec<AllocatedDeviceStatus>>, DeviceStatusError> {
        let allocated: Vec<Key<'_>> = allocated_devices(claim)
            .iter()
            .filter(|result| result.driver == driver)
            .map(|result| (result.pool.as_str(), result.device.as_str(), result.share_id.as_deref()))
            .collect();
        let is_allocated: BTreeSet<Key<'_>> = allocated.iter().copied().collect();
        check(reports, &is_allocated)?;

        let status = claim.status.as_ref();
        let stored = status.and_then(|status| status.devices.as_deref()).unwrap_or_default();
        let context = Merge { driver, generation: claim.metadata.generation, now };
        let mut reports: BTreeMap<Key<'_>, &Self> = reports.iter().map(|report| (report.key(), report)).collect();
        let mut merged = Vec::with_capacity(stored.len());
        for entry in stored {
            let key = (entry.pool.as_str(), entry.device.as_str(), entry.share_id.as_deref());
            if entry.driver != driver {
                merged.push(entry.clone());
            } else if is_allocated.contains(&key) {
                merged.push(match reports.remove(&key) {
                    Some(report) => context.entry(report, entry.conditions.as_ref())?,
                    None => entry.clone(),
                });
            }
        }
        for key in allocated {
            if let Some(report) = reports.remove(&key) {
                merged.push(context.entry(report, None)?);
            }
        }
        Ok((merged != stored).then_some(merged))
    }
}

/// Claim and time of a merge.
struct Merge<'a> {
    driver: &'a str,
    generation: Option<i64>,
    now: Timestamp,
}

impl Merge<'_> {
    fn entry(
        &self,
        report: &DeviceReport,
        stored: Option<&Vec<Condition>>,
    ) -> Result<AllocatedDeviceStatus, DeviceStatusError> {
        let conditions = self.conditions(&report.conditions, stored.map(Vec::as_slice).unwrap_or_default());
        if conditions.len() > MAX_DEVICE_CONDITIONS {
            return Err(report.too_many_conditions());
        }
        Ok(AllocatedDeviceStatus {
            // A list that is stored empty is not a difference.
            conditions: Some(conditions).filter(|conditions| stored.is_some() || !conditions.is_empty()),
            data: report.data.clone(),
            device: report.device.clone(),
            driver: self.driver.to_owned(),
            network_data: report.network_data.clone(),
            pool: report.pool.clone(),
            share_id: report.share_id.clone(),
        })
    }

    fn conditions(&self, reports: &[ConditionReport], stored: &[Condition]) -> Vec<Condition> {
        let mut merged = stored.to_vec();
        for report in reports {
            match merged.iter_mut().find(|condition| condition.type_ == report.type_) {
                Some(condition) => *condition = self.condition(report, Some(condition)),
                None => merged.push(self.condition(report, None)),
            }
        }
        merged
    }

    fn condition(&self, report: &ConditionReport, stored: Option<&Condition>) -> Condition {
        let kept = stored.filter(|stored| stored.status == report.status);
        Condition {
            last_transition_time: kept.map_or(Time(self.now), |stored| stored.last_transition_time.clone()),
            message: report.message.clone(),
            observed_generation: self.generation,
            reason: report.reason.clone(),
            status: report.status.clone(),
            type_: report.type_.clone(),
        }
    }
}
