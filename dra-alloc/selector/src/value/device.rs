//! Values of a device: converted where they are read.

use std::sync::Arc;

use dra_attrs::{Version, VersionError};
use k8s_openapi::api::resource::v1::DeviceAttribute;

use super::{Answer, List, Map, Origin, Value};
use crate::device::content::{Content, describe};
use crate::device::names::{Part, find};
use crate::fault::Fault;
use crate::input::SelectorInput;
use crate::scalar::amount::Amount;

/// Fields of the variable `device`, in order.
pub(super) const FIELDS: [&str; 4] = ["allowMultipleAllocations", "attributes", "capacity", "driver"];

pub(super) fn field<'v>(input: &'v SelectorInput<'v>, name: &str) -> Option<Value<'v>> {
    Some(match name {
        "driver" => Value::borrowed(input.driver),
        "allowMultipleAllocations" => Value::Bool(input.device.allow_multiple_allocations.unwrap_or_default()),
        "attributes" => Value::Map(Map::Domains(input, Part::Attributes)),
        "capacity" => Value::Map(Map::Domains(input, Part::Capacity)),
        _ => return None,
    })
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
