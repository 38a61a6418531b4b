//! Names of attributes and capacities: each has a domain and an id.

use std::collections::BTreeMap;

use crate::input::SelectorInput;

/// Attributes or capacities of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Attributes,
    Capacity,
}

/// Returns domain and id of all attributes or capacities; a name without a domain has the driver's.
pub(crate) fn all<'v>(input: &'v SelectorInput<'v>, part: Part) -> impl Iterator<Item = (&'v str, &'v str)> {
    let (attributes, capacity) = match part {
        Part::Attributes => (input.device.attributes.as_ref(), None),
        Part::Capacity => (None, input.device.capacity.as_ref()),
    };
    let names = attributes.into_iter().flat_map(BTreeMap::keys).chain(capacity.into_iter().flat_map(BTreeMap::keys));
    names.map(|name| name.split_once('/').unwrap_or((input.driver, name)))
}

/// Returns the domains of attributes or capacities, in order.
pub(crate) fn domains<'v>(input: &'v SelectorInput<'v>, part: Part) -> Vec<&'v str> {
    sorted(all(input, part).map(|(domain, _)| domain).collect())
}

/// Returns the ids of attributes or capacities of a domain, in order.
pub(crate) fn ids<'v>(input: &'v SelectorInput<'v>, part: Part, domain: &str) -> Vec<&'v str> {
    sorted(all(input, part).filter(|(other, _)| *other == domain).map(|(_, id)| id).collect())
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns a domain as the device has it.
pub(crate) fn domain<'v>(input: &'v SelectorInput<'v>, part: Part, domain: &str) -> Option<&'v str> {
    all(input, part).map(|(known, _)| known).find(|known| *known == domain)
}

/// Returns an attribute or capacity of the map by domain and id. Of a name with the driver as its domain and the same
/// name without a domain the first counts.
pub(crate) fn find<'m, T>(map: Option<&'m BTreeMap<String, T>>, driver: &str, domain: &str, id: &str) -> Option<&'m T> {
    let map = map?;
    let own = if domain == driver && !id.contains('/') { map.get(id) } else { None };
    own.or_else(|| map.iter().find(|(name, _)| name.split_once('/') == Some((domain, id))).map(|(_, value)| value))
}
