//! Device taints, tolerations of requests, and taints by `DeviceTaintRule` (KEP-5055).
//!
//! A device with a taint of effect `NoSchedule` or `NoExecute` is allocated only to a request that tolerates the taint.
//! Other effects never prevent allocation. `adminAccess` makes no difference, and `tolerationSeconds` matters only for
//! eviction.
//!
//! Source of the rules: `DeviceTaint`, `DeviceToleration` and `DeviceTaintRule` of `resource.k8s.io/v1`, the allocator
//! and taint tracker of kube-scheduler 1.37.

use dra_attrs::internal::release::OtherEffects;
use k8s_openapi::api::resource::v1::{DeviceTaint, DeviceTaintRule, DeviceToleration};

/// Taint effects that prevent the allocation of a device.
const BLOCKING_EFFECTS: [&str; 2] = ["NoSchedule", "NoExecute"];

/// Returns true if a toleration tolerates a taint.
///
/// An empty effect or key of the toleration matches every effect or key. With the operator `Equal`, which is the
/// default, the values must be equal. `Exists` matches every value. An unknown operator matches nothing.
///
/// ```
/// use dra_device::taint::tolerates;
/// use k8s_openapi::api::resource::v1::{DeviceTaint, DeviceToleration};
///
/// let taint = DeviceTaint { key: "health".into(), effect: "NoSchedule".into(), ..Default::default() };
/// let everything = DeviceToleration { operator: Some("Exists".into()), ..Default::default() };
/// assert!(tolerates(&everything, &taint));
/// assert!(!tolerates(&DeviceToleration { key: Some("power".into()), ..everything }, &taint));
/// ```
#[must_use]
pub fn tolerates(toleration: &DeviceToleration, taint: &DeviceTaint) -> bool {
    let covers =
        |wanted: &Option<String>, actual: &str| wanted.as_deref().is_none_or(|text| text.is_empty() || text == actual);
    covers(&toleration.effect, &taint.effect)
        && covers(&toleration.key, &taint.key)
        && value_tolerated(toleration, taint)
}

fn value_tolerated(toleration: &DeviceToleration, taint: &DeviceTaint) -> bool {
    match toleration.operator.as_deref().unwrap_or_default() {
        "Exists" => true,
        "" | "Equal" => toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default(),
        _ => false,
    }
}

/// Returns the first taint that prevents allocation and that none of the tolerations tolerates. `effects` says if a taint
/// with another effect than `NoSchedule` and `NoExecute` does.
///
/// # Complexity
/// The product of the numbers of taints and tolerations, each at most 16 in valid objects.
///
/// ```
/// use dra_attrs::internal::release::OtherEffects;
/// use dra_device::internal::untolerated;
/// use k8s_openapi::api::resource::v1::DeviceTaint;
///
/// let taint = |effect: &str| DeviceTaint { key: "health".into(), effect: effect.into(), ..Default::default() };
/// assert_eq!(untolerated([&taint("None")], &[], OtherEffects::Ignored), None);
/// assert_eq!(untolerated([&taint("None")], &[], OtherEffects::Prevent), Some(&taint("None")));
/// ```
#[doc(hidden)]
#[must_use]
pub fn untolerated<'t>(
    taints: impl IntoIterator<Item = &'t DeviceTaint>,
    tolerations: &[DeviceToleration],
    effects: OtherEffects,
) -> Option<&'t DeviceTaint> {
    let is_tolerated = |taint: &DeviceTaint| tolerations.iter().any(|toleration| tolerates(toleration, taint));
    let blocks = |taint: &DeviceTaint| match effects {
        OtherEffects::Prevent => true,
        OtherEffects::Ignored => BLOCKING_EFFECTS.contains(&taint.effect.as_str()),
    };
    taints.into_iter().find(|taint| blocks(taint) && !is_tolerated(taint))
}

/// Returns the taint that a rule adds to a device, if the rule selects the device.
///
/// Every field that the rule's selector sets must equal the name of the driver, pool or device. A rule without a
/// selector taints every device. Taints of rules follow the device's own taints.
///
/// ```
/// use dra_device::taint::taint_by_rule;
/// use k8s_openapi::api::resource::v1::{DeviceTaintRule, DeviceTaintSelector};
///
/// let mut rule = DeviceTaintRule::default();
/// assert!(taint_by_rule(&rule, "gpu.example", "node-1", "gpu-0").is_some());
/// rule.spec.device_selector = Some(DeviceTaintSelector { pool: Some("node-2".into()), ..Default::default() });
/// assert!(taint_by_rule(&rule, "gpu.example", "node-1", "gpu-0").is_none());
/// ```
#[must_use]
pub fn taint_by_rule<'r>(rule: &'r DeviceTaintRule, driver: &str, pool: &str, device: &str) -> Option<&'r DeviceTaint> {
    let selector = rule.spec.device_selector.as_ref();
    let selects_device = selector.is_none_or(|selector| is_or_absent(selector.device.as_deref(), device));
    (selects_device && may_select(rule, driver, pool)).then_some(&rule.spec.taint)
}

/// Returns true if a rule selects devices of a pool: all of them, or the one that it names.
#[doc(hidden)]
#[must_use]
pub fn may_select(rule: &DeviceTaintRule, driver: &str, pool: &str) -> bool {
    rule.spec.device_selector.as_ref().is_none_or(|selector| {
        is_or_absent(selector.driver.as_deref(), driver) && is_or_absent(selector.pool.as_deref(), pool)
    })
}

fn is_or_absent(wanted: Option<&str>, actual: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == actual)
}
