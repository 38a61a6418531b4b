//! Conversion of attribute values: of a device to CEL values, and of an expression's result to an attribute.

use cel::ExecutionError;
use cel::common::types::{CelBool, CelInt, CelList, CelString};
use cel::common::value::Val;
use dra_attrs::{Version, VersionError};
use k8s_openapi::api::resource::v1::DeviceAttribute;

use super::EvaluationError;
use super::direct::plain;
use super::functions::semver::VersionValue;

/// Value of an attribute. If several of its fields are set, the first in the order of these variants counts, as in
/// Kubernetes.
pub(super) enum Content<'a> {
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
    pub(super) fn of(attribute: &'a DeviceAttribute) -> Option<Self> {
        let ints = attribute.ints.as_deref().map(Self::Ints);
        let list = ints.or_else(|| attribute.bools.as_deref().map(Self::Bools));
        let list = list.or_else(|| attribute.strings.as_deref().map(Self::Strings));
        let list = list.or_else(|| attribute.versions.as_deref().map(Self::Versions));
        let scalar = list.or_else(|| attribute.int.map(Self::Int)).or_else(|| attribute.bool.map(Self::Bool));
        let scalar = scalar.or_else(|| attribute.string.as_deref().map(Self::String));
        scalar.or_else(|| attribute.version.as_deref().map(Self::Version))
    }
}

/// Checks that an attribute has a valid value; the error text says what is wrong.
pub(super) fn check(attribute: &DeviceAttribute) -> Result<(), String> {
    let valid = |text: &str| match plain::version(text) {
        Some(_) => Ok(()),
        None => text.parse::<Version>().map(|_| ()).map_err(|error| describe(&error)),
    };
    match Content::of(attribute).ok_or("unsupported attribute value")? {
        Content::Version(version) => valid(version),
        Content::Versions(versions) => versions.iter().try_for_each(|version| valid(version)),
        _ => Ok(()),
    }
}

/// Returns the attribute's value as a CEL value.
pub(super) fn to_value(attribute: &DeviceAttribute) -> Result<Box<dyn Val + '_>, ExecutionError> {
    let invalid = |reason: &str| ExecutionError::function_error("attribute", reason);
    let version = |text: &str| {
        let version: Version = text.parse().map_err(|error| invalid(&describe(&error)))?;
        Ok::<_, ExecutionError>(VersionValue::boxed(version))
    };
    Ok(match Content::of(attribute).ok_or_else(|| invalid("unsupported attribute value"))? {
        Content::Int(value) => Box::new(CelInt::from(value)),
        Content::Bool(value) => Box::new(CelBool::from(value)),
        Content::String(value) => Box::new(CelString::from(value)),
        Content::Version(text) => version(text)?,
        Content::Ints(values) => list(values.iter().map(|value| boxed(CelInt::from(*value)))),
        Content::Bools(values) => list(values.iter().map(|value| boxed(CelBool::from(*value)))),
        Content::Strings(values) => list(values.iter().map(|value| boxed(CelString::from(value.as_str())))),
        Content::Versions(values) => {
            let values: Result<Vec<_>, _> = values.iter().map(|text| version(text)).collect();
            list(values?.into_iter().map(|value| value as Box<dyn Val + '_>))
        }
    })
}

fn boxed<'v>(value: impl Val + 'v) -> Box<dyn Val + 'v> {
    Box::new(value)
}

fn list<'v>(values: impl Iterator<Item = Box<dyn Val + 'v>>) -> Box<dyn Val + 'v> {
    Box::new(CelList::from(values.collect::<Vec<_>>()))
}

fn describe(error: &VersionError) -> String {
    format!("parse semantic version: {}", error.reason)
}

/// Converts the result of an expression to an attribute. A list has the type of its first element; an empty one is a
/// list of strings.
pub(super) fn from_value(value: &dyn Val) -> Result<DeviceAttribute, EvaluationError> {
    let refused = |actual: String| EvaluationError::NotAttribute { actual };
    let mut attribute = DeviceAttribute::default();
    if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        let elements = list.inner();
        let first = elements.first().map(AsRef::as_ref);
        let mixed = || refused("a list of values of different types".to_owned());
        match first {
            None => attribute.strings = Some(Vec::new()),
            Some(first) if int(first).is_some() => {
                attribute.ints = Some(all(elements, int).ok_or_else(mixed)?);
            }
            Some(first) if bool(first).is_some() => {
                attribute.bools = Some(all(elements, bool).ok_or_else(mixed)?);
            }
            Some(first) if string(first).is_some() => {
                attribute.strings = Some(all(elements, string).ok_or_else(mixed)?);
            }
            Some(first) if version(first).is_some() => {
                attribute.versions = Some(all(elements, version).ok_or_else(mixed)?);
            }
            Some(first) => return Err(refused(format!("list({})", first.get_type().name()))),
        }
        return Ok(attribute);
    }
    attribute.int = int(value);
    attribute.bool = bool(value);
    attribute.string = string(value);
    attribute.version = version(value);
    if attribute == DeviceAttribute::default() {
        return Err(refused(value.get_type().name().to_owned()));
    }
    Ok(attribute)
}

fn all<T>(elements: &[Box<dyn Val + '_>], convert: impl Fn(&dyn Val) -> Option<T>) -> Option<Vec<T>> {
    elements.iter().map(|element| convert(element.as_ref())).collect()
}

fn int(value: &dyn Val) -> Option<i64> {
    value.downcast_ref::<CelInt>().map(|value| *value.inner())
}

pub(super) fn bool(value: &dyn Val) -> Option<bool> {
    value.downcast_ref::<CelBool>().map(|value| *value.inner())
}

fn string(value: &dyn Val) -> Option<String> {
    value.downcast_ref::<CelString<'_>>().map(|value| value.inner().to_owned())
}

fn version(value: &dyn Val) -> Option<String> {
    value.downcast_ref::<VersionValue>().map(|value| value.version().to_string())
}
