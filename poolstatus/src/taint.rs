//! Which devices of a pool taints keep from being allocated.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::taint::untolerated;
use k8s_openapi::api::resource::v1::{Device, DeviceTaintRule, DeviceTaintSelector};

/// The rules with an effect, by driver and pool that they are for. A rule without a selector is for nothing.
#[derive(Debug, Default)]
pub(crate) struct TaintRules<'r> {
    by_place: BTreeMap<[Option<&'r str>; 2], Vec<&'r DeviceTaintSelector>>,
}

impl<'r> TaintRules<'r> {
    pub(crate) fn of(rules: impl IntoIterator<Item = &'r DeviceTaintRule>) -> Self {
        let mut by_place: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for rule in rules {
            let Some(selector) = &rule.spec.device_selector else { continue };
            if untolerated([&rule.spec.taint], &[]).is_some() {
                let place = [selector.driver.as_deref(), selector.pool.as_deref()];
                by_place.entry(place).or_default().push(selector);
            }
        }
        Self { by_place }
    }

    /// What the rules mean for one pool.
    pub(crate) fn for_pool(&self, driver: &str, pool: &str) -> PoolTaints<'r> {
        let places = [[Some(driver), Some(pool)], [Some(driver), None], [None, Some(pool)], [None, None]];
        let mut taints = PoolTaints::default();
        for selector in places.iter().filter_map(|place| self.by_place.get(place)).flatten() {
            match selector.device.as_deref() {
                Some(device) => _ = taints.devices.insert(device),
                None => taints.all = true,
            }
        }
        taints
    }
}

/// The devices of one pool that rules taint.
#[derive(Debug, Default)]
pub(crate) struct PoolTaints<'r> {
    all: bool,
    devices: BTreeSet<&'r str>,
}

impl PoolTaints<'_> {
    /// Whether a device is tainted, by its slice or by a rule. Tolerations play no part.
    pub(crate) fn keep(&self, device: &Device) -> bool {
        self.all
            || self.devices.contains(device.name.as_str())
            || untolerated(device.taints.iter().flatten(), &[]).is_some()
    }
}
