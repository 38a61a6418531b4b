//! Results of selectors that need the interpreter, kept for devices on which they are the same.
//!
//! A result is kept by the device where several nodes see it, and by the values that the selector reads: devices with equal
//! values share it, on whatever node they are. An expression whose attributes are known ([`Selector::attributes_read`])
//! reads nothing else of a device but its driver, its capacities, and whether it can be shared. Errors are not kept, since they
//! name the device.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use dra_selector::{Selector, SelectorInput};
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, DeviceCapacity};
use smallvec::SmallVec;

use super::ix::SelectorIx;
use crate::cluster::inventory::lens::{AttributeName, AttributeRead};

/// Largest number of different values that are kept for a selector.
const MOST_VALUES: usize = 8;
/// Number of looks in vain, less those that found a result, after which none is made any more.
const MOST_IN_VAIN: usize = 64;

/// Result of a selector, with the price of its evaluation in parts of a unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) holds: bool,
    pub(super) parts: u64,
}

/// Results of the selectors of one alternative.
#[derive(Debug, Default)]
pub(crate) struct KnownResults {
    /// By position of the selector and address of the device. Addresses are stable within one call.
    by_device: Mutex<BTreeMap<(SelectorIx, usize), Known>>,
    by_values: Mutex<BTreeMap<SelectorIx, OfSelector>>,
}

/// Results of one selector.
#[derive(Debug, Default)]
struct OfSelector {
    reads: Vec<AttributeName>,
    results: Vec<(Values, Known)>,
    in_vain: usize,
}

/// Values that a selector reads of a device.
#[derive(Debug)]
struct Values {
    driver: String,
    attributes: Vec<AttributeRead<DeviceAttribute>>,
    capacity: Option<BTreeMap<String, DeviceCapacity>>,
    is_shareable: Option<bool>,
}

impl KnownResults {
    /// Returns the result of a selector on a device that several nodes see.
    pub(super) fn of_device(&self, selector: SelectorIx, device: &Device) -> Option<Known> {
        let known = self.by_device.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(selector, std::ptr::from_ref(device).addr())).copied()
    }

    /// Keeps the result of a selector on a device that several nodes see.
    pub(super) fn keep_for_device(&self, selector: SelectorIx, device: &Device, result: Known) {
        let mut known = self.by_device.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert((selector, std::ptr::from_ref(device).addr()), result);
    }

    /// Returns the result of a selector on a device with the same values. The device has no invalid attribute.
    pub(super) fn of_values(&self, at: SelectorIx, selector: &Selector, input: SelectorInput<'_>) -> Option<Known> {
        let reads = selector.attributes_read()?;
        let mut all = self.by_values.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(at).or_insert_with(|| OfSelector::new(reads));
        if known.in_vain >= MOST_IN_VAIN {
            return None;
        }
        let attributes = known.attributes(input);
        let found = known.results.iter().find(|(values, _)| values.are_those_of(input, &attributes));
        let found = found.map(|(_, result)| *result);
        known.in_vain = if found.is_some() { known.in_vain.saturating_sub(1) } else { known.in_vain.saturating_add(1) };
        found
    }

    /// Keeps the result of a selector for devices with the same values.
    pub(super) fn keep_for_values(&self, at: SelectorIx, input: SelectorInput<'_>, result: Known) {
        let mut all = self.by_values.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = all.get_mut(&at).filter(|known| known.results.len() < MOST_VALUES) else { return };
        let values = Values::new(input, &known.attributes(input));
        known.results.push((values, result));
    }
}

impl OfSelector {
    fn new(reads: &[(String, String)]) -> Self {
        Self { reads: reads.iter().map(|(domain, id)| AttributeName::new(domain, id)).collect(), ..Self::default() }
    }

    fn attributes<'d>(&self, input: SelectorInput<'d>) -> SmallVec<[AttributeRead<&'d DeviceAttribute>; 4]> {
        self.reads.iter().map(|name| name.read(input.device.attributes.as_ref(), input.driver)).collect()
    }
}

impl Values {
    fn new(
        SelectorInput { driver, device, .. }: SelectorInput<'_>,
        attributes: &[AttributeRead<&DeviceAttribute>],
    ) -> Self {
        let owned = |read: &AttributeRead<&DeviceAttribute>| AttributeRead {
            qualified: read.qualified.cloned(),
            short: read.short.cloned(),
            has_domain: read.has_domain,
        };
        Self {
            driver: driver.to_owned(),
            attributes: attributes.iter().map(owned).collect(),
            capacity: device.capacity.clone(),
            is_shareable: device.allow_multiple_allocations,
        }
    }

    fn are_those_of(
        &self,
        SelectorInput { driver, device, .. }: SelectorInput<'_>,
        attributes: &[AttributeRead<&DeviceAttribute>],
    ) -> bool {
        let is_same = |(known, read): (&AttributeRead<DeviceAttribute>, &AttributeRead<&DeviceAttribute>)| {
            known.qualified.as_ref() == read.qualified
                && known.short.as_ref() == read.short
                && known.has_domain == read.has_domain
        };
        self.attributes.iter().zip(attributes).all(is_same)
            && self.driver == driver
            && self.is_shareable == device.allow_multiple_allocations
            && self.capacity == device.capacity
    }
}

#[cfg(test)]
mod tests;
