//! Which devices of a pool taints keep from being allocated.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::taint::untolerated;
use k8s_openapi::api::resource::v1::{Device, DeviceTaintRule};

/// The rules with an effect, by driver and pool that they are for. A rule without a selector is for nothing.
#[derive(Debug, Default)]
pub(crate) struct TaintRules<'r> {
    by_place: BTreeMap<[Option<&'r str>; 2], Tainted<'r>>,
}

/// The devices of one place that rules taint.
#[derive(Debug, Default)]
struct Tainted<'r> {
    all: bool,
    devices: BTreeSet<&'r str>,
}

impl<'r> TaintRules<'r> {
    pub(crate) fn of(rules: impl IntoIterator<Item = &'r DeviceTaintRule>) -> Self {
        let mut by_place: BTreeMap<_, Tainted<'r>> = BTreeMap::new();
        for rule in rules {
            let Some(selector) = &rule.spec.device_selector else { continue };
            if untolerated([&rule.spec.taint], &[]).is_some() {
                let place = [selector.driver.as_deref(), selector.pool.as_deref()];
                let tainted = by_place.entry(place).or_default();
                match selector.device.as_deref() {
                    Some(device) => _ = tainted.devices.insert(device),
                    None => tainted.all = true,
                }
            }
        }
        Self { by_place }
    }

    /// What the rules mean for one pool.
    pub(crate) fn for_pool<'p>(&'p self, driver: &'p str, pool: &'p str) -> PoolTaints<'p> {
        let places = [[Some(driver), Some(pool)], [Some(driver), None], [None, Some(pool)], [None, None]];
        PoolTaints { places: places.map(|place| self.by_place.get(&place)) }
    }
}

/// The devices of one pool that rules taint.
#[derive(Debug, Default)]
pub(crate) struct PoolTaints<'r> {
    places: [Option<&'r Tainted<'r>>; 4],
}

impl PoolTaints<'_> {
    /// Whether a device is tainted, by its slice or by a rule. Tolerations play no part.
    pub(crate) fn keep(&self, device: &Device) -> bool {
        let name = device.name.as_str();
        self.places.iter().flatten().any(|tainted| tainted.all || tainted.devices.contains(name))
            || untolerated(device.taints.iter().flatten(), &[]).is_some()
    }
}
