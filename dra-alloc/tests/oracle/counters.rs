//! Shared counters of a pool, and the compatibility groups of their consumers.

use std::collections::BTreeSet;

use dra_attrs::Quantity;
use k8s_openapi::api::resource::v1::{Counter, Device, DeviceCounterConsumption};

use super::Failure;
use super::pools::Pool;

pub fn consumptions(device: &Device) -> &[DeviceCounterConsumption] {
    device.consumes_counters.as_deref().unwrap_or_default()
}

fn nanos(counter: &Counter) -> Result<i128, Failure> {
    let quantity = Quantity::from_kube(&counter.value).map_err(|error| Failure::Fatal(error.to_string()))?;
    Ok(quantity.nanos())
}

/// Returns the consumers' total use of one counter.
fn taken(consumers: &[&Device], set: &str, counter: &str) -> Result<i128, Failure> {
    let mut sum = 0;
    for consumption in consumers.iter().flat_map(|device| consumptions(device)).filter(|c| c.counter_set == set) {
        sum += consumption.counters.get(counter).map(nanos).transpose()?.unwrap_or_default();
    }
    Ok(sum)
}

/// Returns true if no counter of the pool is overdrawn by these consumers, including the candidate.
pub fn suffice(pool: &Pool<'_>, consumers: &[&Device]) -> Result<bool, Failure> {
    for set in &pool.counter_sets {
        for (name, counter) in &set.counters {
            if taken(consumers, &set.name, name)? > nanos(counter)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Returns the groups that a device declares for a counter set.
fn groups(consumption: &DeviceCounterConsumption) -> BTreeSet<&str> {
    consumption.compatibility_groups.iter().flatten().map(String::as_str).collect()
}

/// Returns the groups of each consumer of a counter set.
fn members<'d>(consumers: &[&'d Device], set: &str) -> Vec<BTreeSet<&'d str>> {
    let all = consumers.iter().flat_map(|device| consumptions(device));
    all.filter(|consumption| consumption.counter_set == set).map(groups).collect()
}

/// Returns true if the candidate is compatible with the consumers of each counter set that it consumes.
pub fn compatible(candidate: &Device, consumers: &[&Device]) -> bool {
    consumptions(candidate).iter().all(|consumption| admits(&members(consumers, &consumption.counter_set), consumption))
}

/// Returns true if a counter set admits the candidate. The first member decides whether the set uses groups. Members of
/// the other kind, which exist only if slices changed after an allocation, are ignored.
fn admits(members: &[BTreeSet<&str>], candidate: &DeviceCounterConsumption) -> bool {
    let wanted = groups(candidate);
    let Some(first) = members.first() else { return true };
    if first.is_empty() || wanted.is_empty() {
        return first.is_empty() && wanted.is_empty();
    }
    let with_groups = members.iter().filter(|member| !member.is_empty());
    wanted.iter().any(|group| with_groups.clone().all(|member| member.contains(group)))
}

/// Returns true if groups are involved while the gate is off: those of the candidate or of an allocated consumer.
pub fn touches_groups(candidate: &Device, allocated: &[&Device]) -> bool {
    consumptions(candidate).iter().any(|consumption| {
        let mut involved = members(allocated, &consumption.counter_set);
        involved.push(groups(consumption));
        involved.iter().any(|groups| !groups.is_empty())
    })
}
