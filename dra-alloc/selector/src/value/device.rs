//! Values of a device: converted where they are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_attrs::{Version, VersionError};
use k8s_openapi::api::resource::v1::DeviceAttribute;

use super::{Answer, List, Map, Origin, Value};
use crate::SelectorInput;
use crate::fault::Fault;
use crate::functions::amount::Amount;

/// Fields of the variable `device`, in order.
pub(super) const FIELDS: [&str; 4] = ["allowMultipleAllocations", "attributes", "capacity", "driver"];

/// Attributes or capacities of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Attributes,
    Capacity,
}

pub(super) fn field<'v>(input: &'v SelectorInput<'v>, name: &str) -> Option<Value<'v>> {
    Some(match name {
        "driver" => Value::borrowed(input.driver),
        "allowMultipleAllocations" => Value::Bool(input.device.allow_multiple_allocations.unwrap_or_default()),
        "attributes" => Value::Map(Map::Domains(input, Part::Attributes)),
        "capacity" => Value::Map(Map::Domains(input, Part::Capacity)),
        _ => return None,
    })
}

/// Returns domain and id of all attributes or capacities; a name without a domain has the driver's.
pub(crate) fn names<'v>(input: &'v SelectorInput<'v>, part: Part) -> impl Iterator<Item = (&'v str, &'v str)> {
    let (attributes, capacity) = match part {
        Part::Attributes => (input.device.attributes.as_ref(), None),
        Part::Capacity => (None, input.device.capacity.as_ref()),
    };
    let names = attributes.into_iter().flat_map(BTreeMap::keys).chain(capacity.into_iter().flat_map(BTreeMap::keys));
    names.map(|name| name.split_once('/').unwrap_or((input.driver, name)))
}

/// Returns the domains of attributes or capacities, in order.
pub(super) fn domains<'v>(input: &'v SelectorInput<'v>, part: Part) -> Vec<&'v str> {
    sorted(names(input, part).map(|(domain, _)| domain).collect())
}

/// Returns the ids of attributes or capacities of a domain, in order.
pub(super) fn ids<'v>(input: &'v SelectorInput<'v>, part: Part, domain: &str) -> Vec<&'v str> {
    sorted(names(input, part).filter(|(other, _)| *other == domain).map(|(_, id)| id).collect())
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns a domain as the device has it.
pub(super) fn domain<'v>(input: &'v SelectorInput<'v>, part: Part, domain: &str) -> Option<&'v str> {
    names(input, part).map(|(known, _)| known).find(|known| *known == domain)
}

/// Returns an attribute or capacity of the map by domain and id. Of a name with the driver as its domain and the same
/// name without a domain the first counts.
pub(crate) fn find<'m, T>(map: Option<&'m BTreeMap<String, T>>, driver: &str, domain: &str, id: &str) -> Option<&'m T> {
    let map = map?;
    let own = if domain == driver && !id.contains('/') { map.get(id) } else { None };
    own.or_else(|| map.iter().find(|(name, _)| name.split_once('/') == Some((domain, id))).map(|(_, value)| value))
}

/// Returns the value of an attribute or capacity; `None` if the device does not have it.
pub(super) fn value<'v>(
    input: &'v SelectorInput<'v>,
    part: Part,
    domain: &str,
    id: &str,
) -> Result<Option<Value<'v>>, Box<Fault>> {
    match part {
        Part::Attributes => find(input.device.attributes.as_ref(), input.driver, domain, id).map(attribute).transpose(),
        Part::Capacity => {
            let capacity = find(input.device.capacity.as_ref(), input.driver, domain, id);
            let amount = capacity.map(|capacity| Amount::from_kube(&capacity.value)).transpose();
            let amount = amount.map_err(|error| Fault::text(error.to_string()))?;
            Ok(amount.map(|amount| Value::Quantity(Arc::new(amount), Origin::Read)))
        }
    }
}

/// Value of an attribute. If several of its fields are set, the first in the order of these variants counts, as in
/// Kubernetes.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    Ints(&'a [i64]),
    Bools(&'a [bool]),
    Strings(&'a [String]),
    Versions(&'a [String]),
    Int(i64),
    Bool(bool),
    String(&'a str),
    Version(&'a str),
}

impl<'a> Content<'a> {
    pub(crate) fn of(attribute: &'a DeviceAttribute) -> Option<Self> {
        let ints = attribute.ints.as_deref().map(Self::Ints);
        let list = ints.or_else(|| attribute.bools.as_deref().map(Self::Bools));
        let list = list.or_else(|| attribute.strings.as_deref().map(Self::Strings));
        let list = list.or_else(|| attribute.versions.as_deref().map(Self::Versions));
        let scalar = list.or_else(|| attribute.int.map(Self::Int)).or_else(|| attribute.bool.map(Self::Bool));
        let scalar = scalar.or_else(|| attribute.string.as_deref().map(Self::String));
        scalar.or_else(|| attribute.version.as_deref().map(Self::Version))
    }
}

fn attribute(attribute: &DeviceAttribute) -> Answer<'_> {
    let content = Content::of(attribute).ok_or_else(|| Fault::text("unsupported attribute value"))?;
    let list = match content {
        Content::Int(value) => return Ok(Value::Int(value)),
        Content::Bool(value) => return Ok(Value::Bool(value)),
        Content::String(value) => return Ok(Value::borrowed(value)),
        Content::Version(text) => return version(text),
        Content::Ints(values) => values.iter().map(|value| Value::Int(*value)).collect(),
        Content::Bools(values) => values.iter().map(|value| Value::Bool(*value)).collect(),
        Content::Strings(values) => values.iter().map(|value| Value::borrowed(value)).collect(),
        Content::Versions(values) => values.iter().map(|text| version(text)).collect::<Result<_, _>>()?,
    };
    List::new(list).map(Value::List)
}

fn version(text: &str) -> Answer<'static> {
    let version: Version = text.parse().map_err(|error: VersionError| Fault::text(describe(&error)))?;
    Ok(Value::Version(Arc::new(version)))
}

/// Says why a version of an attribute is invalid.
pub(crate) fn describe(error: &VersionError) -> String {
    format!("parse semantic version: {}", error.reason)
}
