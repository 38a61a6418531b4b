//! Prepare: the calls of drivers before a pod starts (`PrepareResources`).

use std::collections::BTreeMap;

use dra_attrs::Gate;
use dra_attrs::internal::release::{LostOperations, PreparedClaim};
use dra_device::claims::{ClaimKey, ClaimOrigin, PodClaim};
use dra_device::internal::{MAX_REQUESTS_PER_CLAIM, PodFields, declaring, is_for_pod, is_reserved_for, missing_owners};
use dra_device::skip::{SkipSet, WireForm};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::claim_info::{ClaimCache, ClaimInfo, PreparedDevice};
use super::error::{CallError, PrepareError};
use super::honored::honored;
use super::operation::Operation;
use super::plan::{ClaimRef, Plan, Prepare, Responses};
use dra_attrs::Component;

/// A claim that may be prepared, with the operations that each of its drivers skips.
struct Checked {
    claim: ClaimRef,
    drivers: BTreeMap<String, SkipSet>,
    /// Number of allocated devices, by driver.
    devices: BTreeMap<String, usize>,
}

/// Largest number of devices that a driver may return for a claim, given the number of its allocated devices: an entry for
/// each allocated device and each request that a claim can have, and as many again for helpers of no single device.
///
/// No text of Kubernetes has a limit, and kubelet stores any number. Drivers return an entry for each allocated device,
/// some of them one for each request that the device serves, or further CDI devices in entries of their own.
const fn most_devices(allocated: usize) -> usize {
    allocated.saturating_add(1).saturating_mul(MAX_REQUESTS_PER_CLAIM)
}

impl ClaimCache {
    /// Plans the preparation of a pod's claims.
    ///
    /// All checks run before the cache is changed, so that a pod that fails a check needs no call of a driver when it
    /// ends. Then the pod is added to each claim in the cache; the checkpoint must be written before drivers are
    /// called. A prepared claim needs no call, but its drivers must be registered; Kubernetes 1.34 prepares nothing for a
    /// pod with one. A claim that two entries of the pod
    /// name must pass the checks of both, and is prepared once.
    ///
    /// The operations that drivers skip are read from the allocation. In the profile `Kep`, those in the cache are used
    /// instead for a claim that is in the cache.
    ///
    /// `claims` are the pod's claims as stored by the API server; further claims are ignored. `registered` returns true
    /// for a driver whose plugin is registered on the node. It is not called for a driver whose call is skipped.
    ///
    /// Linear in the number of the pod's claims times the length of `claims`, plus the number of allocated devices.
    ///
    /// # Errors
    /// Returns the reason why the pod can't start now. After [`PrepareError::OldClaim`] and
    /// [`PrepareError::Unpreparing`], the pod may have been added to some claims.
    pub fn plan_prepare(
        &mut self,
        pod: &Pod,
        claims: &[ResourceClaim],
        registered: impl Fn(&str) -> bool,
        kubelet: Component,
    ) -> Result<Plan<Prepare>, PrepareError> {
        let mut checked: Vec<Checked> = Vec::new();
        for pod_claim in Self::claims_of_pod(pod, kubelet) {
            let claim = self.check(pod, pod_claim?, claims, &registered, kubelet)?;
            if checked.iter().all(|known| known.claim.key != claim.claim.key) {
                checked.push(claim);
            }
        }
        let mut plan = Plan::new(pod.uid());
        for Checked { claim, drivers, devices } in checked {
            let info = self.enter(&claim, &drivers, pod.uid())?;
            if info.prepared {
                match kubelet.profile().rules().kubelet.prepared_claim {
                    PreparedClaim::PassedOver => continue,
                    PreparedClaim::EndsPreparation => return Ok(Plan::new(pod.uid())),
                }
            }
            for (driver, skips) in &drivers {
                if skips.prepare {
                    plan.skip(driver, &claim);
                } else {
                    plan.call(driver, &claim);
                    plan.note_allocated(driver, &claim, devices.get(driver).copied().unwrap_or_default());
                }
            }
            plan.claims.push(claim);
        }
        Ok(plan)
    }

    /// Records the driver's response to its `NodePrepareResources` call. `outcome` is the response, or the error
    /// message of a failed call. The devices in the response replace those of an earlier response.
    ///
    /// A driver may return more devices for a claim than are allocated to it, up to 32 for each of them and 32 more.
    ///
    /// # Errors
    /// Returns the problem of the response. Results for claims before the failed one, in the order of UIDs, have been
    /// recorded. The pod can't start; no other driver needs to be called.
    pub fn apply_prepare(
        &mut self,
        plan: &mut Plan<Prepare>,
        driver: &str,
        outcome: Result<Responses<Vec<PreparedDevice>>, String>,
    ) -> Result<(), PrepareError> {
        let allocated = plan.allocated(driver);
        let applied = plan.answer(driver, outcome, |claim, devices| {
            check_number(driver, claim, devices.len(), allocated.get(&claim.uid).copied().unwrap_or_default())?;
            let state = self.info_mut(claim)?.drivers.entry(driver.to_owned()).or_default();
            state.devices = devices;
            Ok(())
        });
        Ok(applied?)
    }

    /// Forgets the devices that a driver has returned for the claims of a plan, so that the driver counts as not called.
    /// For a caller that can't store them: the claims remain in the cache, and unprepare calls the driver.
    ///
    /// ```
    /// use dra_node::kubelet::{Responses, ClaimCache, PreparedDevice};
    /// use dra_device::claims::ClaimKey;
    /// use dra_attrs::{Component, Profile};
    /// use serde_json::{from_value, json};
    /// let pod = from_value(json!({"metadata": {"namespace": "ns", "name": "p", "uid": "p-1"},
    ///     "spec": {"resourceClaims": [{"name": "r", "resourceClaimName": "c"}]}}))?;
    /// let claim = from_value(json!({"metadata": {"namespace": "ns", "name": "c", "uid": "c-1"}, "status": {
    ///     "reservedFor": [{"resource": "pods", "name": "p", "uid": "p-1"}],
    ///     "allocation": {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "d0"}]}}}}))?;
    /// let mut cache = ClaimCache::default();
    /// let mut plan = cache.plan_prepare(&pod, &[claim], |_| true, Component::of(Profile::V1_37))?;
    /// let devices = vec![PreparedDevice::default()];
    /// cache.apply_prepare(&mut plan, "d", Ok(Responses::from([("c-1".to_owned(), Ok(devices))])))?;
    /// cache.forget_devices(&mut plan, "d");
    /// assert!(cache.claims()[&ClaimKey::new("ns", "c")].drivers["d"].devices.is_empty());
    /// assert!(cache.finish_prepare(plan).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn forget_devices(&mut self, plan: &mut Plan<Prepare>, driver: &str) {
        for claim in plan.forget_answer(driver) {
            let state = self.info_mut(claim).ok().and_then(|info| info.drivers.get_mut(driver));
            if let Some(state) = state {
                state.devices.clear();
            }
        }
    }

    /// Marks the claims of a plan as prepared, after all its drivers have responded. The checkpoint must be written.
    ///
    /// # Errors
    /// A driver has not responded successfully, or a claim is no longer in the cache. No claim is marked as prepared
    /// then.
    pub fn finish_prepare(&mut self, plan: Plan<Prepare>) -> Result<(), PrepareError> {
        plan.check_answered()?;
        let claims = plan.claims;
        for claim in &claims {
            self.info_mut(claim)?;
        }
        for claim in &claims {
            self.info_mut(claim)?.prepared = true;
        }
        self.write_due = true;
        Ok(())
    }

    /// Checks that a claim may be prepared for the pod, with the checks in kubelet's order.
    fn check(
        &self,
        pod: &Pod,
        PodClaim { claim: key, origin }: PodClaim,
        claims: &[ResourceClaim],
        registered: impl Fn(&str) -> bool,
        kubelet: Component,
    ) -> Result<Checked, PrepareError> {
        let is_it = |claim: &&ResourceClaim| {
            let metadata = &claim.metadata;
            metadata.name.as_ref() == Some(&key.name)
                && metadata.namespace.as_deref().unwrap_or_default() == key.namespace
        };
        let Some(claim) = claims.iter().find(is_it) else {
            return Err(PrepareError::NotFound { claim: key.name });
        };
        let claim_uid = claim.metadata.uid.clone().unwrap_or_default();
        let group = pod.group_name().filter(|_| kubelet.has(Gate::WorkloadResourceClaims));
        if origin == ClaimOrigin::Template && !is_for_pod(pod, claim, group) {
            let owners = missing_owners(group);
            return Err(PrepareError::NotOwner { claim: key.to_string(), pod: pod.full_name(), owners });
        }
        if !is_reserved_for(pod.uid(), claim, group) {
            let (pod, pod_uid) = (pod.metadata.name.clone().unwrap_or_default(), pod.uid().to_owned());
            return Err(PrepareError::NotReserved { pod, pod_uid, claim: key.name, claim_uid });
        }
        let Some(allocation) = claim.status.as_ref().and_then(|status| status.allocation.as_ref()) else {
            return Err(PrepareError::NotAllocated { claim: key.name });
        };
        check_gate(pod, &key, allocation, kubelet)?;
        let claim = ClaimRef { uid: claim_uid, key };
        let drivers = self.skips(&claim, allocation, kubelet);
        for (driver, _) in drivers.iter().filter(|(_, skips)| !skips.prepare) {
            if driver.is_empty() {
                return Err(PrepareError::NoDriverName);
            }
            if !registered(driver) {
                return Err(PrepareError::NotRegistered { driver: driver.clone() });
            }
        }
        Ok(Checked { claim, drivers, devices: devices_by_driver(allocation) })
    }

    /// Returns the operations that each driver of a claim skips. If an older kubelet has removed the operations from
    /// the checkpoint, the KEP calls the driver, and releases read them from the (immutable) allocation again.
    fn skips(&self, claim: &ClaimRef, allocation: &AllocationResult, kubelet: Component) -> BTreeMap<String, SkipSet> {
        let known = self.claims.get(&claim.key).filter(|info| info.uid == claim.uid);
        let remembered = match kubelet.profile().rules().skip.lost_operations {
            LostOperations::Called => known,
            LostOperations::ReadAgain => None,
        };
        let of_driver = |(driver, fresh): (&str, SkipSet)| {
            let skips =
                remembered.map_or(fresh, |info| info.drivers.get(driver).map(|state| state.skips).unwrap_or_default());
            (driver.to_owned(), honored(kubelet, skips))
        };
        SkipSet::by_driver(allocation).into_iter().map(of_driver).collect()
    }

    /// Adds a claim to the cache if it is missing, and the pod to the claim.
    fn enter(
        &mut self,
        claim: &ClaimRef,
        drivers: &BTreeMap<String, SkipSet>,
        pod_uid: &str,
    ) -> Result<&ClaimInfo, PrepareError> {
        let fresh = || ClaimInfo { uid: claim.uid.clone(), ..ClaimInfo::default() };
        let info = self.claims.entry(claim.key.clone()).or_insert_with(fresh);
        if info.uid != claim.uid {
            return Err(PrepareError::OldClaim { claim: claim.key.name.clone(), old_uid: info.uid.clone() });
        }
        if info.unpreparing {
            return Err(PrepareError::Unpreparing { claim: claim.key.name.clone() });
        }
        info.pods.insert(pod_uid.to_owned());
        if !info.prepared {
            for (driver, skips) in drivers {
                info.drivers.entry(driver.clone()).or_default().skips = *skips;
            }
        }
        self.write_due = true;
        Ok(info)
    }

    fn info_mut(&mut self, claim: &ClaimRef) -> Result<&mut ClaimInfo, CallError> {
        let ClaimKey { namespace, name } = &claim.key;
        let gone = || CallError::NoClaimInfo { name: name.clone(), namespace: namespace.clone() };
        self.claims.get_mut(&claim.key).filter(|info| info.uid == claim.uid).ok_or_else(gone)
    }
}

/// Returns the number of allocated devices of each driver.
fn devices_by_driver(allocation: &AllocationResult) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for result in allocation.devices.iter().flat_map(|devices| devices.results.iter().flatten()) {
        let count: &mut usize = counts.entry(result.driver.clone()).or_default();
        *count = count.saturating_add(1);
    }
    counts
}

/// Rejects a response with more devices than a claim can have.
fn check_number(driver: &str, claim: &ClaimRef, devices: usize, allocated: usize) -> Result<(), CallError> {
    let most = most_devices(allocated);
    if devices <= most {
        return Ok(());
    }
    let (driver, claim) = (driver.to_owned(), claim.key.name.clone());
    Err(CallError::TooManyDevices { operation: Operation::Prepare, driver, claim, devices, allocated, most })
}

/// Rejects a claim with a device that skips any node operation while the gate `Gate::OptionalNodeOperations` is
/// off, even if other devices of the same driver do not skip it.
fn check_gate(
    pod: &Pod,
    key: &ClaimKey,
    allocation: &AllocationResult,
    kubelet: Component,
) -> Result<(), PrepareError> {
    if kubelet.has(Gate::OptionalNodeOperations) {
        return Ok(());
    }
    let Some(device) = declaring(allocation).min_by_key(|device| device.driver.as_str()) else { return Ok(()) };
    let gate = Gate::OptionalNodeOperations.name(kubelet.profile());
    let claim = key.name.clone();
    Err(match WireForm::from_profile(kubelet.profile()) {
        WireForm::List => PrepareError::GateDisabled { claim, gate },
        WireForm::Bool => {
            PrepareError::PreparationDisabled { claim, gate, driver: device.driver.clone(), pod: pod.full_name() }
        }
    })
}
