//! Consumable capacity: the amounts that a request takes from a device, and the check that the device has them.

use std::collections::BTreeMap;

use dra_attrs::Quantity;
use k8s_openapi::api::resource::v1::{CapacityRequestPolicy, CapacityRequestPolicyRange, Device, DeviceCapacity};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

const UNIT: i128 = 1_000_000_000;
const MILLI: i128 = 1_000_000;

/// Gate for policies with fractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fractions {
    Allowed,
    RoundedUp,
}

/// Amounts by the name of the capacity.
pub type Amounts = BTreeMap<String, Quantity>;

/// Returns the amounts that a request takes of every capacity of the device; `None` if the device lacks a requested
/// capacity.
pub fn resolve(
    device: &Device,
    requested: Option<&BTreeMap<String, KubeQuantity>>,
    fractions: Fractions,
) -> Result<Option<Amounts>, String> {
    let capacities = device.capacity.as_ref();
    let has = |name: &String| capacities.is_some_and(|capacities| capacities.contains_key(name));
    if requested.is_some_and(|requested| !requested.keys().all(has)) {
        return Ok(None);
    }
    let mut amounts = Amounts::new();
    for (name, capacity) in capacities.into_iter().flatten() {
        let wanted = requested.and_then(|requested| requested.get(name)).map(parse).transpose()?;
        let amount = consumed(capacity, wanted, fractions).map_err(|reason| format!("capacity {name:?}: {reason}"))?;
        if amount.nanos() < 0 {
            return Err(format!("capacity {name:?}: capacity value is negative"));
        }
        amounts.insert(name.clone(), amount);
    }
    Ok(Some(amounts))
}

/// Returns true if the device has these amounts beside those in use, and its policies permit them.
pub fn fits(device: &Device, amounts: &Amounts, in_use: &[&Amounts], fractions: Fractions) -> Result<bool, String> {
    for (name, capacity) in device.capacity.iter().flatten() {
        let amount = amounts[name];
        let used: i128 = in_use.iter().filter_map(|amounts| amounts.get(name)).map(|used| used.nanos()).sum();
        let policy = capacity.request_policy.as_ref();
        if violates(amount, policy, fractions)? || used + amount.nanos() > parse(&capacity.value)?.nanos() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn parse(quantity: &KubeQuantity) -> Result<Quantity, String> {
    Quantity::from_kube(quantity).map_err(|error| error.to_string())
}

/// Returns the amount that a request takes of one capacity.
pub fn consumed(
    capacity: &DeviceCapacity,
    requested: Option<Quantity>,
    fractions: Fractions,
) -> Result<Quantity, String> {
    let policy = capacity.request_policy.as_ref();
    let Some(requested) = requested else {
        return parse(policy.and_then(|policy| policy.default.as_ref()).unwrap_or(&capacity.value));
    };
    let Some(policy) = policy else { return Ok(requested) };
    if let Some(range) = range_of(policy) {
        return round_in_range(requested, range, fractions);
    }
    let mut enough = Vec::new();
    for value in policy.valid_values.iter().flatten() {
        enough.extend(Some(parse(value)?).filter(|value| *value >= requested));
    }
    Ok(enough.into_iter().min().unwrap_or(requested))
}

/// Returns the range of a policy; `None` if it has no minimum.
fn range_of(policy: &CapacityRequestPolicy) -> Option<&CapacityRequestPolicyRange> {
    policy.valid_range.as_ref().filter(|range| !range.min.0.is_empty())
}

/// Returns the first value of min, min + step, min + 2 step … that is not less than the request.
fn round_in_range(
    requested: Quantity,
    range: &CapacityRequestPolicyRange,
    fractions: Fractions,
) -> Result<Quantity, String> {
    let min = parse(&range.min)?;
    if requested < min {
        return Ok(min);
    }
    let Some(step) = range.step.as_ref() else { return Ok(requested) };
    let step = parse(step)?;
    let grain = grain(range, fractions)?;
    let units = |quantity: Quantity| in_grains(quantity, grain);
    let (first, width, wanted) = (units(min)?, units(step)?, units(requested)?);
    if width < 1 {
        return Err("the step is not positive".to_owned());
    }
    let steps = div_ceil(wanted - first, width);
    let rounded = first + steps * width;
    let rounded = i64::try_from(rounded).map(i128::from).map_err(|_| unrepresentable())?;
    Ok(Quantity::from_nanos(rounded * grain, step.format()))
}

/// Returns the unit of the arithmetic: milli if the gate is on and the whole range can be expressed in it.
fn grain(range: &CapacityRequestPolicyRange, fractions: Fractions) -> Result<i128, String> {
    let mut exact = fractions == Fractions::Allowed;
    for quantity in [Some(&range.min), range.max.as_ref(), range.step.as_ref()].into_iter().flatten() {
        let nanos = parse(quantity)?.nanos();
        exact &= nanos % MILLI == 0 && i64::try_from(nanos / MILLI).is_ok();
    }
    let step = range.step.as_ref().map(parse).transpose()?;
    exact &= step.is_some_and(|step| step.nanos() >= MILLI);
    Ok(if exact { MILLI } else { UNIT })
}

/// Returns the number of grains: whole units are rounded up, milli-units must be exact.
fn in_grains(quantity: Quantity, grain: i128) -> Result<i128, String> {
    if grain == MILLI && quantity.nanos() % MILLI != 0 {
        return Err(unrepresentable());
    }
    let grains = div_ceil(quantity.nanos(), grain);
    i64::try_from(grains).map(i128::from).map_err(|_| unrepresentable())
}

fn div_ceil(dividend: i128, divisor: i128) -> i128 {
    dividend.div_euclid(divisor) + i128::from(dividend.rem_euclid(divisor) != 0)
}

fn unrepresentable() -> String {
    "capacity request cannot be represented".to_owned()
}

/// Returns true if a policy forbids an amount. The default is always permitted.
pub fn violates(
    amount: Quantity,
    policy: Option<&CapacityRequestPolicy>,
    fractions: Fractions,
) -> Result<bool, String> {
    let Some(policy) = policy else { return Ok(false) };
    if policy.default.as_ref().map(parse).transpose()? == Some(amount) {
        return Ok(false);
    }
    if let Some(range) = range_of(policy) {
        if let Some(max) = &range.max
            && amount > parse(max)?
        {
            return Ok(true);
        }
        let Some(step) = &range.step else { return Ok(false) };
        let grain = grain(range, fractions)?;
        // An amount between the grains is not on a step.
        let Ok(amount) = in_grains(amount, grain) else { return Ok(true) };
        let beyond_min = amount - in_grains(parse(&range.min)?, grain)?;
        let remainder = beyond_min.checked_rem(in_grains(parse(step)?, grain)?);
        return remainder.map(|remainder| remainder != 0).ok_or_else(|| "the step is zero".to_owned());
    }
    let Some(values) = policy.valid_values.as_ref().filter(|values| !values.is_empty()) else { return Ok(false) };
    for value in values {
        if parse(value)? == amount {
            return Ok(false);
        }
    }
    Ok(true)
}
