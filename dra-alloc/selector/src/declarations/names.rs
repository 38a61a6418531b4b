//! Variables, types and messages by name.

use dra_attrs::internal::release::ListFunctions;

use crate::types;

/// Name that stands for something without being declared in the expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// The variable `device`.
    Device,
    /// Type that is a value, too.
    Type(&'static str),
    /// Type that has no value when the expression is evaluated.
    TypeOnly(&'static str),
    /// `google.protobuf.NullValue.NULL_VALUE`, which is 0.
    NullValue,
}

/// Kind of a type's name: [`Name::Type`] or [`Name::TypeOnly`].
type Kind = fn(&'static str) -> Name;

/// Names of types, the types, and whether they are values.
pub(super) const TYPES: [(&str, &str, Kind); 36] = [
    ("bool", "bool", Name::Type),
    ("bytes", "bytes", Name::Type),
    ("double", "double", Name::Type),
    ("int", "int", Name::Type),
    ("uint", "uint", Name::Type),
    ("string", "string", Name::Type),
    ("null_type", "null", Name::Type),
    ("list", "list(dyn)", Name::Type),
    ("map", "map(dyn, dyn)", Name::Type),
    ("type", "type(dyn)", Name::Type),
    ("optional_type", "optional(dyn)", Name::Type),
    ("google.protobuf.Duration", "duration", Name::Type),
    ("google.protobuf.Timestamp", "timestamp", Name::Type),
    (types::IP, "IP", Name::Type),
    (types::CIDR, "CIDR", Name::Type),
    ("duration", "duration", Name::TypeOnly),
    ("timestamp", "timestamp", Name::TypeOnly),
    (types::DEVICE, "Device", Name::TypeOnly),
    ("kubernetes.DRADevice.attributes", "dyn", Name::TypeOnly),
    ("kubernetes.DRADevice.attributes.@elem", "dyn", Name::TypeOnly),
    ("kubernetes.DRADevice.capacity", "dyn", Name::TypeOnly),
    ("kubernetes.DRADevice.capacity.@elem", "dyn", Name::TypeOnly),
    ("google.protobuf.Any", "any", Name::TypeOnly),
    ("google.protobuf.Value", "dyn", Name::TypeOnly),
    ("google.protobuf.Struct", "map(string, dyn)", Name::TypeOnly),
    ("google.protobuf.ListValue", "list(dyn)", Name::TypeOnly),
    (types::EMPTY, "Empty", Name::TypeOnly),
    ("google.protobuf.BoolValue", "wrapper(bool)", Name::TypeOnly),
    ("google.protobuf.BytesValue", "wrapper(bytes)", Name::TypeOnly),
    ("google.protobuf.DoubleValue", "wrapper(double)", Name::TypeOnly),
    ("google.protobuf.FloatValue", "wrapper(double)", Name::TypeOnly),
    ("google.protobuf.Int32Value", "wrapper(int)", Name::TypeOnly),
    ("google.protobuf.Int64Value", "wrapper(int)", Name::TypeOnly),
    ("google.protobuf.UInt32Value", "wrapper(uint)", Name::TypeOnly),
    ("google.protobuf.UInt64Value", "wrapper(uint)", Name::TypeOnly),
    ("google.protobuf.StringValue", "wrapper(string)", Name::TypeOnly),
];

/// Field that is only there with a feature.
pub(super) const SHARING: &str = "allowMultipleAllocations";

/// Messages, fields and their types; `A` is the type of an attribute.
pub(super) const FIELDS: [(&str, &str, &str); 20] = [
    (types::DEVICE, "driver", "string"),
    (types::DEVICE, SHARING, "bool"),
    (types::DEVICE, "attributes", "map(string, map(string, A))"),
    (types::DEVICE, "capacity", "map(string, map(string, Quantity))"),
    ("duration timestamp google.protobuf.Duration google.protobuf.Timestamp", "seconds nanos", "int"),
    ("google.protobuf.Any", "type_url", "string"),
    ("google.protobuf.Any google.protobuf.BytesValue", "value", "bytes"),
    ("google.protobuf.Struct", "fields", "map(string, dyn)"),
    ("google.protobuf.ListValue", "values", "list(dyn)"),
    ("google.protobuf.Value", "struct_value", "map(string, dyn)"),
    ("google.protobuf.Value", "list_value", "list(dyn)"),
    ("google.protobuf.Value", "number_value", "double"),
    ("google.protobuf.Value", "string_value", "string"),
    ("google.protobuf.Value", "bool_value", "bool"),
    ("google.protobuf.Value", "null_value", "int"),
    ("google.protobuf.BoolValue", "value", "bool"),
    ("google.protobuf.DoubleValue google.protobuf.FloatValue", "value", "double"),
    ("google.protobuf.Int32Value google.protobuf.Int64Value", "value", "int"),
    ("google.protobuf.UInt32Value google.protobuf.UInt64Value", "value", "uint"),
    ("google.protobuf.StringValue", "value", "string"),
];

/// Features that change the fields of a device, and the functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceFields {
    /// `allowMultipleAllocations`
    pub(crate) sharing: bool,
    /// Attributes may be lists.
    pub(crate) lists: bool,
    /// Functions of lists.
    pub(crate) functions: ListFunctions,
}
