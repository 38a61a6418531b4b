//! Variables, types and messages by name.

use crate::selector::types::{self, Type, TypeId, Types};

/// Name that stands for something without being declared in the expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::selector) enum Name {
    /// The variable `device`.
    Device,
    /// Type that is a value, too.
    Type(&'static str),
    /// Type that has no value when the expression is evaluated.
    TypeOnly(&'static str),
    /// `google.protobuf.NullValue.NULL_VALUE`, which is 0.
    NullValue,
}

/// Types by name, and whether they are values.
const TYPES: [(&str, Type, bool); 23] = [
    ("bool", Type::Bool, true),
    ("bytes", Type::Bytes, true),
    ("double", Type::Double, true),
    ("int", Type::Int, true),
    ("uint", Type::Uint, true),
    ("string", Type::String, true),
    ("null_type", Type::Null, true),
    ("google.protobuf.Duration", Type::Duration, true),
    ("google.protobuf.Timestamp", Type::Timestamp, true),
    (types::IP, Type::Opaque(types::IP), true),
    (types::CIDR, Type::Opaque(types::CIDR), true),
    ("duration", Type::Duration, false),
    ("timestamp", Type::Timestamp, false),
    (types::DEVICE, Type::Message(types::DEVICE), false),
    ("google.protobuf.Any", Type::Any, false),
    (VALUE, Type::Dyn, false),
    (EMPTY, Type::Message(EMPTY), false),
    ("kubernetes.DRADevice.attributes", Type::Dyn, false),
    ("kubernetes.DRADevice.attributes.@elem", Type::Dyn, false),
    ("kubernetes.DRADevice.capacity", Type::Dyn, false),
    ("kubernetes.DRADevice.capacity.@elem", Type::Dyn, false),
    (LIST_VALUE, Type::Null, false),
    (STRUCT, Type::Null, false),
];

/// Messages for one value: their names and the type of their field `value`.
const WRAPPERS: [(&str, &str); 9] = [
    ("google.protobuf.BoolValue", "bool"),
    ("google.protobuf.BytesValue", "bytes"),
    ("google.protobuf.DoubleValue", "double"),
    ("google.protobuf.FloatValue", "double"),
    ("google.protobuf.Int32Value", "int"),
    ("google.protobuf.Int64Value", "int"),
    ("google.protobuf.UInt32Value", "uint"),
    ("google.protobuf.UInt64Value", "uint"),
    ("google.protobuf.StringValue", "string"),
];

const VALUE: &str = "google.protobuf.Value";
const STRUCT: &str = "google.protobuf.Struct";
const LIST_VALUE: &str = "google.protobuf.ListValue";
const EMPTY: &str = "google.protobuf.Empty";

/// Returns what a name with or without dots stands for, and its type.
pub(in crate::selector) fn lookup(name: &str, types: &mut Types) -> Option<(Name, TypeId)> {
    let dynamic = types.id(Type::Dyn);
    let string = types.id(Type::String);
    let found = match name {
        "device" => return Some((Name::Device, types.id(Type::Message(types::DEVICE)))),
        "google.protobuf.NullValue.NULL_VALUE" => return Some((Name::NullValue, types.id(Type::Int))),
        "list" => (Name::Type("list"), types.list(dynamic)),
        "map" => (Name::Type("map"), types.map(dynamic, dynamic)),
        "type" => (Name::Type("type"), types.id(Type::TypeOf(dynamic))),
        "optional_type" => (Name::Type("optional_type"), types.optional(dynamic)),
        STRUCT => (Name::TypeOnly(STRUCT), types.map(string, dynamic)),
        LIST_VALUE => (Name::TypeOnly(LIST_VALUE), types.list(dynamic)),
        _ => plain(name, types)?,
    };
    Some((found.0, types.id(Type::TypeOf(found.1))))
}

fn plain(name: &str, types: &mut Types) -> Option<(Name, TypeId)> {
    if let Some((name, inner)) = WRAPPERS.iter().find(|(known, _)| *known == name) {
        return Some((Name::TypeOnly(name), types.id(Type::Wrapper(inner))));
    }
    let (name, shape, is_value) = TYPES.iter().find(|(known, ..)| *known == name)?;
    let kind = if *is_value { Name::Type(name) } else { Name::TypeOnly(name) };
    Some((kind, types.id(*shape)))
}

/// Returns true if a message literal can have this name.
pub(in crate::selector) fn is_message(name: &str) -> bool {
    let known = ["google.protobuf.Duration", "google.protobuf.Timestamp", "google.protobuf.Any", types::DEVICE];
    let known = known.into_iter().chain([VALUE, STRUCT, LIST_VALUE, EMPTY, "duration", "timestamp"]);
    known.chain(WRAPPERS.iter().map(|(name, _)| *name)).any(|other| other == name)
}

/// Features that change the fields of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::selector) struct DeviceFields {
    /// `allowMultipleAllocations`
    pub(in crate::selector) sharing: bool,
    /// Attributes may be lists.
    pub(in crate::selector) lists: bool,
}

/// Returns the type of a message's field; the error is true if the message has no fields at all.
pub(in crate::selector) fn field(
    message: &str,
    field: &str,
    fields: DeviceFields,
    types: &mut Types,
) -> Result<TypeId, NoField> {
    let shape = match (message, field) {
        (types::DEVICE, "driver") => Type::String,
        (types::DEVICE, "allowMultipleAllocations") if fields.sharing => Type::Bool,
        (types::DEVICE, "attributes" | "capacity") => {
            let attribute = if fields.lists { Type::Dyn } else { Type::Any };
            let value = if field == "attributes" { attribute } else { Type::Message(types::QUANTITY) };
            let (string, value) = (types.id(Type::String), types.id(value));
            let inner = types.map(string, value);
            return Ok(types.map(string, inner));
        }
        ("google.protobuf.Duration" | "google.protobuf.Timestamp" | "duration" | "timestamp", "seconds" | "nanos") => {
            Type::Int
        }
        (STRUCT, "fields") | (VALUE, "struct_value") => {
            let (string, value) = (types.id(Type::String), types.id(Type::Dyn));
            return Ok(types.map(string, value));
        }
        (LIST_VALUE, "values") | (VALUE, "list_value") => {
            let value = types.id(Type::Dyn);
            return Ok(types.list(value));
        }
        (VALUE, "number_value") => Type::Double,
        (VALUE, "string_value") | ("google.protobuf.Any", "type_url") => Type::String,
        (VALUE, "bool_value") => Type::Bool,
        (VALUE, "null_value") => Type::Int,
        ("google.protobuf.Any", "value") => Type::Bytes,
        (_, "value") => match WRAPPERS.iter().find(|(name, _)| *name == message) {
            Some((_, "bool")) => Type::Bool,
            Some((_, "bytes")) => Type::Bytes,
            Some((_, "double")) => Type::Double,
            Some((_, "int")) => Type::Int,
            Some((_, "uint")) => Type::Uint,
            Some(_) => Type::String,
            None => return Err(NoField::of(message)),
        },
        _ => return Err(NoField::of(message)),
    };
    Ok(types.id(shape))
}

/// Reason that a message has no field of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::selector) enum NoField {
    /// It has other fields, or none.
    Undefined,
    /// Its fields are not known.
    Unknown,
}

impl NoField {
    fn of(message: &str) -> Self {
        let is_hidden = message.starts_with("kubernetes.") && message != types::DEVICE;
        if is_hidden { Self::Unknown } else { Self::Undefined }
    }
}
