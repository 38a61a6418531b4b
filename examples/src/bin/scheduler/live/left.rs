//! Drivers and device classes that are left to other schedulers.

use std::collections::BTreeSet;

use dra_alloc::pods::{ClaimSituation, PodCycle};
use dra_alloc::queue::{Refusal, Remedy};

/// Drivers and classes of which other schedulers give the devices away.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftToOthers {
    /// Their slices are not read.
    pub(super) drivers: BTreeSet<String>,
    pub(super) classes: BTreeSet<String>,
}

impl LeftToOthers {
    pub(super) fn new(drivers: &[String], classes: &[String]) -> Self {
        Self { drivers: drivers.iter().cloned().collect(), classes: classes.iter().cloned().collect() }
    }

    /// Returns the reason that only another scheduler can allocate the claims of a pod, and the refusal. A request with
    /// alternatives is left to it if one of them is.
    pub(super) fn refusal(&self, cycle: &PodCycle) -> Option<(String, Refusal)> {
        let claims = cycle.claims().iter().filter(|claim| *claim.situation() == ClaimSituation::ToAllocate);
        let devices = claims.filter_map(|claim| claim.claim().spec.as_ref()?.devices.as_ref());
        let mut classes = devices.flat_map(|devices| devices.requests.iter().flatten()).flat_map(|request| {
            let exactly = request.exactly.iter().map(|one| one.device_class_name.as_str());
            exactly.chain(request.first_available.iter().flatten().map(|one| one.device_class_name.as_str()))
        });
        let class = classes.find(|class| self.classes.contains(*class))?;
        let reason = format!("devices of class {class} are left to another scheduler (--leave-class)");
        Some((reason, Refusal::new([Remedy::OwnClaims])))
    }

    /// Adds to the reason of a refusal that devices of some drivers do not count.
    pub(super) fn complete(&self, reason: String) -> String {
        if self.drivers.is_empty() {
            return reason;
        }
        let drivers: Vec<&str> = self.drivers.iter().map(String::as_str).collect();
        format!("{reason}; devices of {} are left to another scheduler (--leave-driver)", drivers.join(", "))
    }
}
