//! Unprepare: the calls of drivers after a pod has ended (`UnprepareResources`), also for pods that no longer exist.

use std::collections::{BTreeMap, BTreeSet};

use dra_device::claims::ClaimKey;
use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::Pod;

use super::claim_info::{ClaimCache, ClaimInfo};
use super::error::UnprepareError;
use super::honored::honored;
use super::plan::{ClaimRef, Plan, Responses, Unprepare};
use dra_attrs::Component;

impl ClaimCache {
    /// Plans to unprepare a pod's claims, from the cache alone: independent of the API server's claims and of the gate
    /// [`dra_attrs::Gate::OptionalNodeOperations`].
    ///
    /// If another pod uses a claim, only this pod is removed from it. For the other claims, the plan calls the drivers
    /// that do not skip unprepare, and no pod can use such a claim until the operation is finished. Claims that the
    /// cache does not have for the pod are ignored; if it has none for the pod, the names of the pod's claims must
    /// still be known.
    ///
    /// `registered` returns true for a driver whose plugin is registered on the node.
    ///
    /// # Errors
    /// Returns the reason why the pod has to stay for now. It is not removed from claims that no other pod uses.
    pub fn plan_unprepare(
        &mut self,
        pod: &Pod,
        registered: impl Fn(&str) -> bool,
        kubelet: Component,
    ) -> Result<Plan<Unprepare>, UnprepareError> {
        let mut keys = self.keys_of(pod.uid());
        if keys.is_empty() {
            keys = Self::claims_of_pod(pod, kubelet)
                .map(|claim| claim.map(|claim| claim.claim))
                .collect::<Result<_, _>>()?;
        }
        self.plan_release(pod.uid(), keys, registered, kubelet)
    }

    /// Plans to unprepare the claims of every pod in the cache whose UID is not in `active`. Such pods ended while the
    /// kubelet was down, or were force-deleted. The result has the UID of each pod with the driver calls for it, or
    /// the reason why its claims can't be unprepared yet, sorted by UID; an error for one pod does not affect the others. Takes `n log n` in the number of claims and their pods.
    pub fn plan_orphans(
        &mut self,
        active: &BTreeSet<String>,
        registered: impl Fn(&str) -> bool,
        kubelet: Component,
    ) -> Vec<(String, Result<Plan<Unprepare>, UnprepareError>)> {
        let mut claims_of_orphans: BTreeMap<String, Vec<ClaimKey>> = BTreeMap::new();
        for (key, info) in &self.claims {
            for pod in info.pods.difference(active) {
                claims_of_orphans.entry(pod.clone()).or_default().push(key.clone());
            }
        }
        let plan = |(pod_uid, keys): (String, Vec<ClaimKey>)| {
            let plan = self.plan_release(&pod_uid, keys, &registered, kubelet);
            (pod_uid, plan)
        };
        claims_of_orphans.into_iter().map(plan).collect()
    }

    /// Records the driver's response to its `NodeUnprepareResources` call. `outcome` is the response, or the error
    /// message of a failed call.
    ///
    /// # Errors
    /// Returns the problem of the response. The claims stay in the cache; the caller has to repeat the operation.
    pub fn apply_unprepare(
        &mut self,
        plan: &mut Plan<Unprepare>,
        driver: &str,
        outcome: Result<Responses<()>, String>,
    ) -> Result<(), UnprepareError> {
        Ok(plan.answer(driver, outcome, |_, ()| Ok(()))?)
    }

    /// Removes the claims of a plan from the cache, after all its drivers have responded. The checkpoint must be
    /// written.
    ///
    /// # Errors
    /// A driver has not responded successfully. No claim is removed then.
    pub fn finish_unprepare(&mut self, plan: Plan<Unprepare>) -> Result<(), UnprepareError> {
        plan.check_answered()?;
        let is_over = |claim: &ClaimRef, info: &ClaimInfo| info.unpreparing && info.uid == claim.uid;
        for claim in plan.claims {
            // The claim may have been added again, after another plan for the same pod was finished.
            if self.claims.get(&claim.key).is_some_and(|info| is_over(&claim, info)) {
                self.claims.remove(&claim.key);
            }
        }
        self.write_due = true;
        Ok(())
    }

    fn keys_of(&self, pod_uid: &str) -> Vec<ClaimKey> {
        let claims = self.claims.iter().filter(|(_, info)| info.pods.contains(pod_uid));
        claims.map(|(key, _)| key.clone()).collect()
    }

    fn plan_release(
        &mut self,
        pod_uid: &str,
        keys: Vec<ClaimKey>,
        registered: impl Fn(&str) -> bool,
        kubelet: Component,
    ) -> Result<Plan<Unprepare>, UnprepareError> {
        let mut plan = Plan::new(pod_uid);
        for key in keys {
            // A claim without pods, read from a checkpoint, would otherwise never be removed.
            let is_held = |info: &&mut ClaimInfo| info.pods.is_empty() || info.pods.contains(pod_uid);
            let Some(info) = self.claims.get_mut(&key).filter(is_held) else { continue };
            if info.pods.len() > 1 {
                info.pods.remove(pod_uid);
            } else {
                release(&mut plan, key, info, kubelet);
            }
        }
        check_registered(plan.calls(), registered)?;
        for claim in &plan.claims {
            if let Some(info) = self.claims.get_mut(&claim.key) {
                info.unpreparing = true;
            }
        }
        Ok(plan)
    }
}

/// Adds the driver calls for a claim that no other pod uses to the plan.
fn release(plan: &mut Plan<Unprepare>, key: ClaimKey, info: &ClaimInfo, kubelet: Component) {
    let claim = ClaimRef { uid: info.uid.clone(), key };
    for (driver, state) in &info.drivers {
        if honored(kubelet, state.skips).unprepare {
            plan.skip(driver, &claim);
        } else {
            plan.call(driver, &claim);
        }
    }
    plan.claims.push(claim);
}

fn check_registered(
    calls: &BTreeMap<String, Vec<ClaimRef>>,
    registered: impl Fn(&str) -> bool,
) -> Result<(), UnprepareError> {
    match calls.keys().find(|driver| driver.is_empty() || !registered(driver)) {
        None => Ok(()),
        Some(driver) if driver.is_empty() => Err(UnprepareError::NoDriverName),
        Some(driver) => Err(UnprepareError::NotRegistered { driver: driver.clone() }),
    }
}
