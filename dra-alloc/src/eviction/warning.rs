//! Taint rules that probably select more than was meant.

use std::fmt;

use k8s_openapi::api::resource::v1::{DeviceTaintRule, DeviceTaintSelector};

use super::time::NO_EXECUTE;

/// Reason to look at a taint rule again before it is written. The API server accepts such rules.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleWarning {
    /// The selector is empty and selects every device of every driver.
    SelectsAll,
    /// The selector has a device and nothing else. Names of devices are unique only in their pools.
    SelectsByDeviceAlone {
        /// Name of the device.
        device: String,
    },
}

impl fmt::Display for RuleWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SelectsAll => f.write_str(
                "the empty deviceSelector selects every device of the cluster: all pods with devices are evicted",
            ),
            Self::SelectsByDeviceAlone { device } => write!(
                f,
                "the deviceSelector has only a device: it selects the devices named {device:?} of every driver and pool"
            ),
        }
    }
}

impl RuleWarning {
    /// Returns the reason to look at a rule again: with `NoExecute` an empty selector, with any effect a selector that names
    /// a device and neither driver nor pool.
    ///
    /// ```
    /// use dra_alloc::eviction::RuleWarning;
    /// use k8s_openapi::api::resource::v1::{DeviceTaintRule, DeviceTaintSelector};
    /// let mut rule = DeviceTaintRule::default();
    /// rule.spec.taint.effect = "NoExecute".into();
    /// assert_eq!(RuleWarning::of_rule(&rule), None, "without a selector it selects nothing");
    /// rule.spec.device_selector = Some(DeviceTaintSelector::default());
    /// assert_eq!(RuleWarning::of_rule(&rule), Some(RuleWarning::SelectsAll));
    /// ```
    #[must_use]
    pub fn of_rule(rule: &DeviceTaintRule) -> Option<Self> {
        let DeviceTaintSelector { driver, pool, device } = rule.spec.device_selector.as_ref()?;
        match (driver, pool, device) {
            (None, None, None) => (rule.spec.taint.effect == NO_EXECUTE).then_some(Self::SelectsAll),
            (None, None, Some(device)) => Some(Self::SelectsByDeviceAlone { device: device.clone() }),
            _ => None,
        }
    }
}
