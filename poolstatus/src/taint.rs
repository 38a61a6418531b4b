//! Devices of a pool that taints keep from being allocated.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::internal::release::OtherEffects;
use dra_device::internal::untolerated;
use k8s_openapi::api::resource::v1::{Device, DeviceTaintRule};

/// Taint rules with an effect on allocation, by the driver and pool of their selector. A rule without a selector selects
/// nothing.
#[derive(Debug, Default)]
pub(crate) struct TaintRules<'r> {
    by_driver_and_pool: BTreeMap<[Option<&'r str>; 2], SelectedDevices<'r>>,
}

/// Devices that the taint rules for one driver and pool select.
#[derive(Debug, Default)]
struct SelectedDevices<'r> {
    all: bool,
    names: BTreeSet<&'r str>,
}

impl<'r> TaintRules<'r> {
    pub(crate) fn new(rules: impl IntoIterator<Item = &'r DeviceTaintRule>) -> Self {
        let mut by_driver_and_pool: BTreeMap<_, SelectedDevices<'r>> = BTreeMap::new();
        for rule in rules {
            let Some(selector) = &rule.spec.device_selector else { continue };
            if untolerated([&rule.spec.taint], &[], OtherEffects::Ignored).is_some() {
                let key = [selector.driver.as_deref(), selector.pool.as_deref()];
                let selected = by_driver_and_pool.entry(key).or_default();
                match selector.device.as_deref() {
                    Some(device) => _ = selected.names.insert(device),
                    None => selected.all = true,
                }
            }
        }
        Self { by_driver_and_pool }
    }

    /// Returns the taint rules that select devices of one pool.
    pub(crate) fn for_pool<'p>(&'p self, driver: &'p str, pool: &'p str) -> PoolTaints<'p> {
        let keys = [[Some(driver), Some(pool)], [Some(driver), None], [None, Some(pool)], [None, None]];
        PoolTaints { selected: keys.map(|key| self.by_driver_and_pool.get(&key)) }
    }
}

/// Devices of one pool that `DeviceTaintRule`s taint.
#[derive(Debug, Default)]
pub(crate) struct PoolTaints<'r> {
    selected: [Option<&'r SelectedDevices<'r>>; 4],
}

impl PoolTaints<'_> {
    /// Returns true if a taint in the device's slice, or of a `DeviceTaintRule`, keeps the device from being allocated.
    /// Tolerations are ignored.
    pub(crate) fn is_tainted(&self, device: &Device) -> bool {
        let name = device.name.as_str();
        self.selected.iter().flatten().any(|selected| selected.all || selected.names.contains(name))
            || untolerated(device.taints.iter().flatten(), &[], OtherEffects::Ignored).is_some()
    }
}
