//! Taint rules, found by what they select.

use std::collections::BTreeMap;

use k8s_openapi::api::resource::v1::DeviceTaintRule;

/// Names of a driver, a pool and a device.
pub(super) type DeviceNames<'a> = [&'a str; 3];

/// Taint rules by the values of their selectors. A rule selects a device if each of driver, pool and device is equal or
/// not set, so that at most eight selectors select one device. A rule without a selector selects nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct RulesBySelector<'a> {
    rules: BTreeMap<[Option<&'a str>; 3], Vec<&'a DeviceTaintRule>>,
}

impl<'a> RulesBySelector<'a> {
    pub(super) fn insert(&mut self, rule: &'a DeviceTaintRule) {
        let Some(selector) = &rule.spec.device_selector else { return };
        let key = [&selector.driver, &selector.pool, &selector.device].map(Option::as_deref);
        self.rules.entry(key).or_default().push(rule);
    }

    /// Keeps the rules with names that are accepted.
    pub(super) fn retain(&mut self, accepts: impl Fn(&str) -> bool) {
        self.rules.values_mut().for_each(|rules| rules.retain(|rule| accepts(name_of(rule))));
    }

    /// Returns the rules that select a device.
    pub(super) fn of_device(&self, names: DeviceNames<'a>) -> impl Iterator<Item = &'a DeviceTaintRule> {
        let selectors = (0_u8..8).map(move |set| {
            let mut bit = 1;
            names.map(|name| {
                let is_set = set & bit != 0;
                bit <<= 1;
                is_set.then_some(name)
            })
        });
        selectors.filter_map(|selector| self.rules.get(&selector)).flatten().copied()
    }
}

pub(super) fn name_of(rule: &DeviceTaintRule) -> &str {
    rule.metadata.name.as_deref().unwrap_or_default()
}

pub(super) fn uid_of(rule: &DeviceTaintRule) -> &str {
    rule.metadata.uid.as_deref().unwrap_or_default()
}
