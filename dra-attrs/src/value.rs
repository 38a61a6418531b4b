//! Attribute values: a typed view of `DeviceAttribute`, and the limits of a device.
//!
//! A `DeviceAttribute` is a strict union: exactly one of eight fields is set. Rules of KEP-5491 and of the API server's
//! validation of `ResourceSlice` objects in 1.37.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::index::Index;
use crate::k8s::DeviceAttribute;
use crate::name::{NameError, QualifiedName};
use crate::semver;

/// Single value of an attribute, ordered by type and then by value.
///
/// Values of different types are never equal: the string `1.0.0` is not the version `1.0.0`. Versions are compared as
/// text, so build metadata counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the API has exactly these four types; callers match on all of them")]
pub enum Scalar<'a> {
    /// Value of `bool`, or an element of `bools`.
    Bool(bool),
    /// Value of `int`, or an element of `ints`.
    Int(i64),
    /// Value of `string`, or an element of `strings`.
    String(&'a str),
    /// Value of `version`, or an element of `versions`.
    Version(&'a str),
}

impl Scalar<'_> {
    /// Returns an attribute with this single value.
    #[must_use]
    pub fn to_attribute(self) -> DeviceAttribute {
        let mut attribute = DeviceAttribute::default();
        match self {
            Self::Bool(value) => attribute.bool = Some(value),
            Self::Int(value) => attribute.int = Some(value),
            Self::String(value) => attribute.string = Some(value.to_owned()),
            Self::Version(value) => attribute.version = Some(value.to_owned()),
        }
        attribute
    }
}

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::String(value) => write!(f, "{value:?}"),
            Self::Version(value) => f.write_str(value),
        }
    }
}

/// Valid attribute value, borrowed from the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "mirrors the strict union of the API; callers match on all of it")]
pub enum AttributeValue<'a> {
    /// Value of the field `bool`.
    Bool(bool),
    /// Value of the field `int`.
    Int(i64),
    /// Value of the field `string`.
    String(&'a str),
    /// Value of the field `version`.
    Version(&'a str),
    /// Value of the field `bools`.
    Bools(&'a [bool]),
    /// Value of the field `ints`.
    Ints(&'a [i64]),
    /// Value of the field `strings`.
    Strings(&'a [String]),
    /// Value of the field `versions`.
    Versions(&'a [String]),
}

/// Reason that a `DeviceAttribute` has no valid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// No field of the `DeviceAttribute` is set.
    #[error("exactly one value must be specified, none is")]
    NoValue,
    /// Several fields of the `DeviceAttribute` are set.
    #[error("exactly one value must be specified, found {}", fields.join(", "))]
    SeveralValues {
        /// Names of the fields, in the order of the API documentation.
        fields: Vec<&'static str>,
    },
    /// A list has no elements.
    #[error("{field}: must not be empty if specified")]
    EmptyList {
        /// Field of the `DeviceAttribute`, such as `ints`.
        field: &'static str,
    },
    /// A string or version has more than [`AttributeValue::MAX_TEXT_LEN`] bytes.
    #[error("{field}[{index}]: {len} bytes, more than {}", AttributeValue::MAX_TEXT_LEN)]
    TooLong {
        /// Field of the `DeviceAttribute`, such as `ints`.
        field: &'static str,
        /// Position of the text in a list; 0 for a scalar.
        index: Index<Scalar<'static>>,
        /// Length of the text, in bytes.
        len: usize,
    },
    /// A version is not a semantic version.
    #[error("{field}[{index}]: {text:?} is not a semantic version: {reason}")]
    InvalidVersion {
        /// Field of the `DeviceAttribute`, such as `ints`.
        field: &'static str,
        /// Position of the text in a list; 0 for a scalar.
        index: Index<Scalar<'static>>,
        /// The text that is not a semantic version.
        text: String,
        /// Description of the error.
        reason: String,
    },
}

impl<'a> AttributeValue<'a> {
    /// Largest length of a string or version, alone or as an element of a list, in bytes.
    pub const MAX_TEXT_LEN: usize = 64;

    /// Largest number of values that the attributes of one device may have together; a scalar is one value.
    pub const MAX_PER_DEVICE: usize = 48;

    /// Largest number of attributes and capacities that one device may have together.
    pub const MAX_ENTRIES_PER_DEVICE: usize = 32;

    /// Parses and validates a `DeviceAttribute`.
    ///
    /// # Errors
    /// The first of: not exactly one field is set, a list is empty, a text is too long, a version is invalid.
    ///
    /// # Complexity
    /// Linear in the length of the list.
    ///
    /// ```
    /// use dra_attrs::ValueError;
    /// use dra_attrs::internal::AttributeValue;
    /// use k8s_openapi::api::resource::v1::DeviceAttribute;
    ///
    /// let list = DeviceAttribute { ints: Some(vec![6, 4, 5, 7]), ..Default::default() };
    /// assert_eq!(AttributeValue::parse(&list)?, AttributeValue::Ints(&[6, 4, 5, 7]));
    ///
    /// let both = DeviceAttribute { int: Some(6), ..list };
    /// assert_eq!(AttributeValue::parse(&both), Err(ValueError::SeveralValues { fields: vec!["int", "ints"] }));
    /// # Ok::<(), ValueError>(())
    /// ```
    pub fn parse(attribute: &'a DeviceAttribute) -> Result<Self, ValueError> {
        let mut values = Self::fields_set(attribute);
        let value = match values.len() {
            0 => return Err(ValueError::NoValue),
            1 => values.swap_remove(0),
            _ => return Err(ValueError::SeveralValues { fields: values.iter().map(Self::field).collect() }),
        };
        if value.is_empty() {
            return Err(ValueError::EmptyList { field: value.field() });
        }
        value
            .elements()
            .enumerate()
            .try_for_each(|(index, scalar)| check_scalar(value.field(), Index::from(index), scalar))?;
        Ok(value)
    }

    /// Returns every field that is set, scalars before lists of the same type.
    fn fields_set(attribute: &'a DeviceAttribute) -> Vec<Self> {
        let DeviceAttribute { bool, bools, int, ints, string, strings, version, versions } = attribute;
        [
            bool.map(Self::Bool),
            bools.as_deref().map(Self::Bools),
            int.map(Self::Int),
            ints.as_deref().map(Self::Ints),
            string.as_deref().map(Self::String),
            strings.as_deref().map(Self::Strings),
            version.as_deref().map(Self::Version),
            versions.as_deref().map(Self::Versions),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Returns the name of the field that holds the value.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::String(_) => "string",
            Self::Version(_) => "version",
            Self::Bools(_) => "bools",
            Self::Ints(_) => "ints",
            Self::Strings(_) => "strings",
            Self::Versions(_) => "versions",
        }
    }

    /// Returns the number of values; 1 for a scalar.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Bool(_) | Self::Int(_) | Self::String(_) | Self::Version(_) => 1,
            Self::Bools(list) => list.len(),
            Self::Ints(list) => list.len(),
            Self::Strings(list) | Self::Versions(list) => list.len(),
        }
    }

    /// Returns true if there is no value. A value returned by [`AttributeValue::parse`] has at least one.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the value is of a list type, which needs the feature gate `DRAListTypeAttributes`.
    #[must_use]
    pub const fn is_list(&self) -> bool {
        matches!(self, Self::Bools(_) | Self::Ints(_) | Self::Strings(_) | Self::Versions(_))
    }

    /// Returns the single values, in the order of the list.
    pub fn elements(self) -> impl Iterator<Item = Scalar<'a>> {
        let scalar = match self {
            Self::Bool(value) => Some(Scalar::Bool(value)),
            Self::Int(value) => Some(Scalar::Int(value)),
            Self::String(value) => Some(Scalar::String(value)),
            Self::Version(value) => Some(Scalar::Version(value)),
            _ => None,
        };
        let bools = if let Self::Bools(list) = self { list } else { &[] };
        let ints = if let Self::Ints(list) = self { list } else { &[] };
        let strings = if let Self::Strings(list) = self { list } else { &[] };
        let versions = if let Self::Versions(list) = self { list } else { &[] };
        scalar
            .into_iter()
            .chain(bools.iter().map(|value| Scalar::Bool(*value)))
            .chain(ints.iter().map(|value| Scalar::Int(*value)))
            .chain(strings.iter().map(|value| Scalar::String(value)))
            .chain(versions.iter().map(|value| Scalar::Version(value)))
    }
}

fn check_scalar(field: &'static str, index: Index<Scalar<'static>>, scalar: Scalar<'_>) -> Result<(), ValueError> {
    let (Scalar::String(text) | Scalar::Version(text)) = scalar else { return Ok(()) };
    if text.len() > AttributeValue::MAX_TEXT_LEN {
        return Err(ValueError::TooLong { field, index, len: text.len() });
    }
    if let (Scalar::Version(_), Err(error)) = (scalar, semver::check_form(text)) {
        return Err(ValueError::InvalidVersion { field, index, text: error.text, reason: error.reason });
    }
    Ok(())
}

/// Reason that the attributes of a device are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceAttributesError {
    /// The key of an attribute is not a qualified name.
    #[error("attributes: {0}")]
    Name(#[from] NameError),
    /// The value of an attribute is not valid.
    #[error("attributes[{name}]: {source}")]
    Value {
        /// Key of the attribute with the invalid value.
        name: String,
        /// Reason that the value is invalid.
        source: ValueError,
    },
    /// The attributes have more than [`AttributeValue::MAX_PER_DEVICE`] values together.
    #[error("attributes: {count} values, more than {}", AttributeValue::MAX_PER_DEVICE)]
    TooManyValues {
        /// Number of values of all attributes.
        count: usize,
    },
    /// The device has more than [`AttributeValue::MAX_ENTRIES_PER_DEVICE`] attributes and capacities.
    #[error("attributes and capacities: {count} entries, more than {}", AttributeValue::MAX_ENTRIES_PER_DEVICE)]
    TooManyEntries {
        /// Number of attributes and capacities together.
        count: usize,
    },
}

/// Checks the attributes of one device: names, values and the limits of a device. `capacities` is the number of the
/// device's capacities. All errors are reported, in the order of the keys, limits last.
///
/// # Errors
/// A non-empty list of errors.
///
/// ```
/// use std::collections::BTreeMap;
/// use dra_attrs::{check_device_attributes, DeviceAttributesError};
/// use k8s_openapi::api::resource::v1::DeviceAttribute;
///
/// let long = DeviceAttribute { ints: Some((0..49).collect()), ..Default::default() };
/// let attributes = BTreeMap::from([("dra.example/list".to_owned(), long)]);
/// let errors = check_device_attributes(&attributes, 0).unwrap_err();
/// assert_eq!(errors, [DeviceAttributesError::TooManyValues { count: 49 }]);
/// ```
pub fn check_device_attributes(
    attributes: &BTreeMap<String, DeviceAttribute>,
    capacities: usize,
) -> Result<(), Vec<DeviceAttributesError>> {
    let mut errors = Vec::new();
    let mut values = 0;
    for (name, attribute) in attributes {
        errors.extend(QualifiedName::parse(name).err().map(DeviceAttributesError::Name));
        match AttributeValue::parse(attribute) {
            Ok(value) => values += value.len(),
            Err(error) => {
                values += AttributeValue::fields_set(attribute).iter().map(AttributeValue::len).sum::<usize>().max(1);
                errors.push(DeviceAttributesError::Value { name: name.clone(), source: error });
            }
        }
    }
    if values > AttributeValue::MAX_PER_DEVICE {
        errors.push(DeviceAttributesError::TooManyValues { count: values });
    }
    let entries = attributes.len().saturating_add(capacities);
    if entries > AttributeValue::MAX_ENTRIES_PER_DEVICE {
        errors.push(DeviceAttributesError::TooManyEntries { count: entries });
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
