//! After a pod has ended: `UnprepareResources`, also for pods that are no longer known.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;

use super::claim_info::{ClaimCache, ClaimInfo, ClaimKey};
use super::error::UnprepareError;
use super::gate::Settings;
use super::plan::{Answers, ClaimRef, Plan, Unprepare};
use super::pod_claims::{of_pod, uid};

/// A pod that holds claims and is no longer there.
#[derive(Debug)]
#[non_exhaustive]
pub struct Orphan {
    /// UID of the pod.
    pub pod_uid: String,
    /// What to do for it, or why it has to wait.
    pub plan: Result<Plan<Unprepare>, UnprepareError>,
}

impl ClaimCache {
    /// Plans the end of a pod's use of its claims, from the cache alone: neither the claims of the API server nor the gate
    /// for skipping play a part.
    ///
    /// A claim that another pod uses only loses this pod. For the others, the drivers are called whose unprepare is not
    /// skipped, and no other pod takes such a claim up until the operation has ended well. Claims that the pod was never
    /// entered with are left alone; if there are no others, their names in its spec must be known all the same.
    ///
    /// # Errors
    /// Why the pod has to stay for now. Claims that no other pod uses keep it.
    pub fn plan_unprepare(
        &mut self,
        pod: &Pod,
        registered: impl Fn(&str) -> bool,
        settings: Settings,
    ) -> Result<Plan<Unprepare>, UnprepareError> {
        let mut keys = self.keys_of(uid(pod));
        if keys.is_empty() {
            keys = of_pod(pod, settings).map(|claim| claim.map(|claim| claim.claim)).collect::<Result<_, _>>()?;
        }
        self.plan_release(uid(pod), keys, registered, settings)
    }

    /// Plans the same for every pod in the cache that is not among the active ones: pods that went while the kubelet was
    /// down, or were deleted by force. In the order of UIDs; a pod whose plan fails does not hold up others.
    pub fn plan_orphans(
        &mut self,
        active: &BTreeSet<String>,
        registered: impl Fn(&str) -> bool,
        settings: Settings,
    ) -> Vec<Orphan> {
        let pods: BTreeSet<String> = self.claims.values().flat_map(|info| &info.pods).cloned().collect();
        let orphans = pods.difference(active);
        let plan = |pod_uid: &String| {
            let keys = self.keys_of(pod_uid);
            Orphan { pod_uid: pod_uid.clone(), plan: self.plan_release(pod_uid, keys, &registered, settings) }
        };
        orphans.map(plan).collect()
    }

    /// Applies what came of the call to one driver of the plan.
    ///
    /// # Errors
    /// What is wrong with the response. The claims stay; the operation is to be repeated.
    pub fn apply_unprepare(
        &mut self,
        plan: &mut Plan<Unprepare>,
        driver: &str,
        outcome: Result<Answers<()>, String>,
    ) -> Result<(), UnprepareError> {
        Ok(plan.answer(driver, outcome, |_, ()| Ok(()))?)
    }

    /// Ends the operation: the claims go, and the checkpoint is due.
    ///
    /// # Errors
    /// A driver has not answered: nothing goes.
    pub fn finish_unprepare(&mut self, plan: Plan<Unprepare>) -> Result<(), UnprepareError> {
        plan.check_answered()?;
        let is_over = |claim: &ClaimRef, info: &ClaimInfo| info.unpreparing && info.uid == claim.uid;
        for claim in plan.claims {
            // It may have come back since another plan of the same pod has ended.
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
        settings: Settings,
    ) -> Result<Plan<Unprepare>, UnprepareError> {
        let mut plan = Plan::new(pod_uid);
        for key in keys {
            // An entry of a file that no pod holds would stay for ever.
            let is_held = |info: &&mut ClaimInfo| info.pods.is_empty() || info.pods.contains(pod_uid);
            let Some(info) = self.claims.get_mut(&key).filter(is_held) else { continue };
            if info.pods.len() > 1 {
                info.pods.remove(pod_uid);
            } else {
                release(&mut plan, key, info, settings);
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

/// Enters the drivers of a claim that no other pod uses.
fn release(plan: &mut Plan<Unprepare>, key: ClaimKey, info: &ClaimInfo, settings: Settings) {
    let claim = ClaimRef { uid: info.uid.clone(), key };
    for (driver, state) in &info.drivers {
        if settings.honoured(state.skips).unprepare {
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
