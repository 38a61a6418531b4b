//! Published devices and taint rules of a cluster.

use std::collections::BTreeMap;

use dra_attrs::Index;
use dra_device::internal::name_of as slice_name;
use dra_device::pool::{LatestGeneration, group_by_pool, slice_devices};
use k8s_openapi::api::resource::v1::{Device, DeviceTaint, DeviceTaintRule, ResourceSlice};

use super::reason::EvictionReason;
use super::rules::{DeviceNames, RulesBySelector, name_of, uid_of};
use super::time::NO_EXECUTE;

/// Taints of a cluster: the devices of the newest generation of each pool, complete or not, and the taint rules.
#[derive(Clone, Debug, Default)]
pub struct TaintIndex<'a> {
    devices: BTreeMap<DeviceNames<'a>, Published<'a>>,
    rules: RulesBySelector<'a>,
}

/// A published device.
#[derive(Clone, Copy, Debug)]
struct Published<'a> {
    device: &'a Device,
    /// Number of devices of this name, more than one only by mistake. The first counts, in the order of the slices' names.
    copies: usize,
}

impl<'a> TaintIndex<'a> {
    /// Builds the index from the slices of a cluster, without taint rules.
    ///
    /// # Complexity
    /// n log n in slices and devices.
    pub fn new(slices: impl IntoIterator<Item = &'a ResourceSlice>) -> Self {
        let mut slices: Vec<&ResourceSlice> = slices.into_iter().collect();
        slices.sort_by_key(|slice| slice_name(slice));
        let mut index = Self::default();
        for pool in group_by_pool(&mut slices) {
            index.insert_pool(pool);
        }
        index
    }

    fn insert_pool(&mut self, slices: &[&'a ResourceSlice]) {
        for slice in LatestGeneration::from_slices(slices).into_iter().flat_map(LatestGeneration::slices) {
            for device in slice_devices(slice) {
                let names = [slice.spec.driver.as_str(), &slice.spec.pool.name, &device.name];
                self.devices.entry(names).or_insert(Published { device, copies: 0 }).copies += 1;
            }
        }
    }

    /// Adds taint rules. A rule of a name that is there already replaces it. While `DRADeviceTaintRules` is off, rules do
    /// nothing: leave them out.
    #[must_use]
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = &'a DeviceTaintRule>) -> Self {
        let rules: BTreeMap<&str, &DeviceTaintRule> = rules.into_iter().map(|rule| (name_of(rule), rule)).collect();
        self.rules.retain(|name| !rules.contains_key(name));
        for rule in rules.into_values() {
            self.rules.insert(rule);
        }
        self
    }

    /// Returns the taints of a device that evict, with their reasons.
    pub(super) fn evicting(
        &self,
        [driver, pool, device]: DeviceNames<'a>,
    ) -> impl Iterator<Item = (EvictionReason<'a>, &'a DeviceTaint)> {
        let published = self.devices.get(&[driver, pool, device]);
        let own = published.into_iter().flat_map(|published| published.device.taints.iter().flatten().enumerate());
        let own = own.map(move |(index, taint)| {
            (EvictionReason::Slice { driver, pool, device, taint: Index::from(index) }, taint)
        });
        let by_rule = self.rules.of_device([driver, pool, device]);
        let by_rule =
            by_rule.map(|rule| (EvictionReason::Rule { name: name_of(rule), uid: uid_of(rule) }, &rule.spec.taint));
        own.chain(by_rule).filter(|(_, taint)| taint.effect == NO_EXECUTE)
    }

    /// Returns the number of published devices with names that are accepted.
    pub(super) fn count(&self, accepts: impl Fn(DeviceNames<'_>) -> bool) -> usize {
        self.devices.iter().filter(|(names, _)| accepts(**names)).map(|(_, published)| published.copies).sum()
    }
}
