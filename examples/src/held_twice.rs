//! Devices that several claims hold, although one of them holds the whole device: two schedulers gave out the same devices, or
//! a backup was restored. The counts of a pool have such a device once.

use std::collections::BTreeSet;
use std::fmt;

use dra_alloc::{AllocatedState, ClaimId, Component, DeviceId, DeviceUsage, Profile, allocated_devices};
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequestAllocationResult, ResourceClaim};

/// Number of claims that a line names.
const MOST_CLAIMS: usize = 8;

/// Number of devices that are named, a line each.
const MOST_DEVICES: usize = 20;

/// A device with the claims that hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldTwice {
    /// The device.
    pub device: DeviceId,
    /// The claims, sorted.
    pub claims: Vec<ClaimId>,
}

impl fmt::Display for HeldTwice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceId { driver, pool, device } = &self.device;
        let named: Vec<String> = self.claims.iter().take(MOST_CLAIMS).map(ToString::to_string).collect();
        let count = self.claims.len();
        write!(f, "{driver}: pool {pool}: device {device} is held by {count} claims: {}", named.join(", "))?;
        match count.saturating_sub(MOST_CLAIMS) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Finds the devices that several claims hold, sorted.
pub fn held_twice<'c>(claims: impl IntoIterator<Item = &'c ResourceClaim>) -> Vec<HeldTwice> {
    let claims: Vec<&ResourceClaim> = claims.into_iter().collect();
    let repeated = repeated(&claims);
    let mut state = AllocatedState::new(Component::of(Profile::V1_37));
    for claim in claims.into_iter().filter(|claim| results(claim).any(|result| repeated.contains(&names(result)))) {
        let Some(allocation) = claim.status.as_ref().and_then(|status| status.allocation.as_ref()) else { continue };
        if state.assume(claim, allocation).is_err() {
            // Amounts that can't be read make no difference to who holds what.
            let _ = state.assume(claim, &without_amounts(allocation));
        }
    }
    let named = |usage: &DeviceUsage| usage.claims().into_iter().cloned().collect();
    state.held_twice().map(|(device, usage)| HeldTwice { device, claims: named(usage) }).collect()
}

/// Returns a line for each device; a long list is cut.
#[must_use]
pub fn lines(held: &[HeldTwice]) -> Vec<String> {
    let mut lines: Vec<String> = held.iter().take(MOST_DEVICES).map(ToString::to_string).collect();
    match held.len().saturating_sub(MOST_DEVICES) {
        0 => {}
        1 => lines.push("and 1 more device that several claims hold".to_owned()),
        more => lines.push(format!("and {more} more devices that several claims hold")),
    }
    lines
}

/// Returns the devices that several results of claims name. Few devices are shared, so that most claims need no second look.
fn repeated<'c>(claims: &[&'c ResourceClaim]) -> BTreeSet<[&'c str; 3]> {
    let mut all: Vec<[&str; 3]> = claims.iter().flat_map(|claim| results(claim)).map(names).collect();
    all.sort_unstable();
    all.chunk_by(|one, other| one == other).filter(|same| same.len() > 1).filter_map(<[_]>::first).copied().collect()
}

fn results(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    allocated_devices(claim).iter()
}

fn names(result: &DeviceRequestAllocationResult) -> [&str; 3] {
    [&result.driver, &result.pool, &result.device]
}

fn without_amounts(allocation: &AllocationResult) -> AllocationResult {
    let mut allocation = allocation.clone();
    let results = allocation.devices.iter_mut().flat_map(|devices| devices.results.iter_mut().flatten());
    results.for_each(|result| result.consumed_capacity = None);
    allocation
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(device: usize, claims: usize) -> HeldTwice {
        let claim = |name: usize| ClaimId { name: format!("c{name}"), namespace: "ns".to_owned(), uid: String::new() };
        let device = DeviceId::new("d.example.com", "p", &format!("dev-{device}"));
        HeldTwice { device, claims: (0..claims).map(claim).collect() }
    }

    #[test]
    fn long_lists_are_cut() {
        let line = |claims| held(0, claims).to_string();
        assert_eq!(line(2), "d.example.com: pool p: device dev-0 is held by 2 claims: ns/c0, ns/c1");
        assert!(line(8).ends_with("ns/c6, ns/c7") && line(11).ends_with("ns/c6, ns/c7 and 3 more"));
        for (devices, last) in [
            (20, held(19, 2).to_string()),
            (21, "and 1 more device that several claims hold".to_owned()),
            (30, "and 10 more devices that several claims hold".to_owned()),
        ] {
            let held: Vec<HeldTwice> = (0..devices).map(|device| held(device, 2)).collect();
            assert_eq!(lines(&held).last(), Some(&last));
        }
        assert!(lines(&[]).is_empty());
    }
}
