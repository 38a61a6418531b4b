//! Before a pod starts: `PrepareResources`.

use std::collections::BTreeMap;

use dra_attrs::profile::Profile;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::claim_info::{ClaimCache, ClaimInfo, ClaimKey, PreparedDevice};
use super::error::{CallError, PrepareError};
use super::gate::{Gate, Settings};
use super::plan::{Answers, ClaimRef, Plan, Prepare};
use super::pod_claims::{Origin, PodClaim, group_name, is_for_pod, is_reserved_for, of_pod, pod_name, uid};
use crate::skip::aggregate::{by_driver, declaring};
use crate::skip::{SkipSet, WireForm};

/// A claim that has passed every check, and what its drivers skip.
struct Checked {
    claim: ClaimRef,
    drivers: BTreeMap<String, SkipSet>,
}

impl ClaimCache {
    /// Plans the preparation of a pod's claims.
    ///
    /// Everything is checked before anything is changed, so that a pod that fails a check can go without any driver. Then
    /// the pod is entered with each claim, which kubelet writes down before it calls a driver. A claim that is prepared
    /// needs no call, but its drivers must be there all the same. A claim that two entries name is entered once, and must
    /// pass the check of both.
    ///
    /// What drivers skip is told by the allocation; by the KEP, what is remembered of a claim that is known already counts
    /// instead.
    ///
    /// `claims` are the pod's claims as the API server has them; others do no harm. `registered` tells whether a driver's
    /// plugin is there. It is not asked about a driver whose call is skipped.
    ///
    /// Linear in the claims and their devices, and in the length of `claims` for each claim of the pod.
    ///
    /// # Errors
    /// Why the pod can't start now. After [`PrepareError::OldClaim`] and [`PrepareError::Unpreparing`] the pod may have been
    /// entered with some claims.
    pub fn plan_prepare(
        &mut self,
        pod: &Pod,
        claims: &[ResourceClaim],
        registered: impl Fn(&str) -> bool,
        settings: Settings,
    ) -> Result<Plan<Prepare>, PrepareError> {
        let mut checked: Vec<Checked> = Vec::new();
        for pod_claim in of_pod(pod, settings) {
            let claim = self.check(pod, pod_claim?, claims, &registered, settings)?;
            if checked.iter().all(|known| known.claim.key != claim.claim.key) {
                checked.push(claim);
            }
        }
        let mut plan = Plan::new(uid(pod));
        for Checked { claim, drivers } in checked {
            let info = self.enter(&claim, &drivers, uid(pod))?;
            if info.prepared {
                continue;
            }
            for (driver, skips) in &drivers {
                if skips.prepare {
                    plan.skip(driver, &claim);
                } else {
                    plan.call(driver, &claim);
                }
            }
            plan.claims.push(claim);
        }
        Ok(plan)
    }

    /// Applies what came of the call to one driver of the plan. The response replaces what the driver has said about a
    /// claim before, so that a repeated call leaves no device twice.
    ///
    /// # Errors
    /// What is wrong with the response. Claims before the bad one (in the order of UIDs) have been applied. The pod can't
    /// start; no other driver needs to be called.
    pub fn apply_prepare(
        &mut self,
        plan: &mut Plan<Prepare>,
        driver: &str,
        outcome: Result<Answers<Vec<PreparedDevice>>, String>,
    ) -> Result<(), PrepareError> {
        let applied = plan.answer(driver, outcome, |claim, devices| {
            let state = self.info_mut(claim)?.drivers.entry(driver.to_owned()).or_default();
            state.devices = devices;
            Ok(())
        });
        Ok(applied?)
    }

    /// Ends a preparation whose calls have all been answered: its claims are prepared, and the checkpoint is due.
    ///
    /// # Errors
    /// A driver has not answered, or a claim has gone: nothing is prepared then.
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

    /// Checks one claim of a pod, in kubelet's order.
    fn check(
        &self,
        pod: &Pod,
        PodClaim { claim: key, origin }: PodClaim,
        claims: &[ResourceClaim],
        registered: impl Fn(&str) -> bool,
        settings: Settings,
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
        if origin == Origin::Template && !is_for_pod(pod, claim, settings) {
            let group = group_name(pod).filter(|_| settings.has(Gate::WorkloadResourceClaims));
            let owners = match group {
                None => "Pod is not owner".to_owned(),
                Some(group) => format!("neither Pod nor PodGroup {group} is the owner"),
            };
            return Err(PrepareError::NotOwner { claim: key.to_string(), pod: pod_name(pod), owners });
        }
        if !is_reserved_for(pod, claim, settings) {
            let (pod, pod_uid) = (pod.metadata.name.clone().unwrap_or_default(), uid(pod).to_owned());
            return Err(PrepareError::NotReserved { pod, pod_uid, claim: key.name, claim_uid });
        }
        let Some(allocation) = claim.status.as_ref().and_then(|status| status.allocation.as_ref()) else {
            return Err(PrepareError::NotAllocated { claim: key.name });
        };
        check_gate(pod, &key, allocation, settings)?;
        let claim = ClaimRef { uid: claim_uid, key };
        let drivers = self.skips(&claim, allocation, settings);
        for (driver, _) in drivers.iter().filter(|(_, skips)| !skips.prepare) {
            if driver.is_empty() {
                return Err(PrepareError::NoDriverName);
            }
            if !registered(driver) {
                return Err(PrepareError::NotRegistered { driver: driver.clone() });
            }
        }
        Ok(Checked { claim, drivers })
    }

    /// What each driver of a claim skips. A file that an older kubelet has rewritten has lost it: by the KEP the driver is
    /// called then; as shipped the allocation, which can't have changed, heals the file.
    fn skips(&self, claim: &ClaimRef, allocation: &AllocationResult, settings: Settings) -> BTreeMap<String, SkipSet> {
        let known = self.claims.get(&claim.key).filter(|info| info.uid == claim.uid);
        let remembered = known.filter(|_| settings.profile() == Profile::Kep);
        let of_driver = |(driver, fresh): (&str, SkipSet)| {
            let skips =
                remembered.map_or(fresh, |info| info.drivers.get(driver).map(|state| state.skips).unwrap_or_default());
            (driver.to_owned(), settings.honoured(skips))
        };
        by_driver(allocation).into_iter().map(of_driver).collect()
    }

    /// Enters the pod with a claim.
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

/// With the gate off, one device that declares to skip anything is refused, whatever its neighbours say.
fn check_gate(
    pod: &Pod,
    key: &ClaimKey,
    allocation: &AllocationResult,
    settings: Settings,
) -> Result<(), PrepareError> {
    if settings.has(Gate::OptionalNodeOperations) {
        return Ok(());
    }
    let Some(device) = declaring(allocation).min_by_key(|device| device.driver.as_str()) else { return Ok(()) };
    let gate = Gate::OptionalNodeOperations.name(settings.profile());
    let claim = key.name.clone();
    Err(match WireForm::of(settings.profile()) {
        WireForm::List => PrepareError::GateDisabled { claim, gate },
        WireForm::Bool => {
            PrepareError::PreparationDisabled { claim, gate, driver: device.driver.clone(), pod: pod_name(pod) }
        }
    })
}
