//! Results of evaluations: the value as a caller sees it, a selector's bool, a derived attribute.

use std::fmt;

use dra_attrs::Quoted;
use k8s_openapi::api::resource::v1::DeviceAttribute;

use super::error::EvaluationError;
use super::fault::Fault;
use super::meter::Meter;
use super::scalar::double;
use super::value;
use super::value::shown::{plain, quoted_bytes};

/// Answer of an evaluation with its cost.
///
/// ```
/// use dra_selector::{Options, Selector, SelectorInput, Value};
/// use k8s_openapi::api::resource::v1::Device;
///
/// let selector = Selector::compile("device.driver == 'gpu.example'", &Options::stored())?;
/// let evaluation = selector.evaluate(SelectorInput::new("gpu.example", &Device::default()));
/// assert_eq!(evaluation.result, Ok(Value::Bool(true)));
/// assert_eq!(evaluation.cost, 4);
/// # Ok::<(), dra_selector::CompileError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Evaluation {
    /// Value, or the reason that there is none.
    pub result: Result<Value, EvaluationError>,
    /// Cost in Kubernetes' units, also of an evaluation that failed.
    pub cost: u64,
}

/// Value of an expression. [`fmt::Display`] shows it with its type: `int 3`, `list ["a", "b"]`.
///
/// ```
/// use dra_selector::Value;
/// let value = Value::List(vec![Value::Int(1), Value::String("a".to_owned())]);
/// assert_eq!(value.to_string(), r#"list [1, "a"]"#);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `null`
    Null,
    /// Bool.
    Bool(bool),
    /// Signed integer.
    Int(i64),
    /// Unsigned integer.
    Uint(u64),
    /// Floating-point number.
    Double(f64),
    /// String.
    String(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// List.
    List(Vec<Self>),
    /// Map, in the order of its keys.
    Map(Vec<(Self, Self)>),
    /// Optional, with or without value.
    Optional(Option<Box<Self>>),
    /// Value of any other type: a quantity, a version, a time, an address, a type.
    Other {
        /// Name of the type.
        of: &'static str,
        /// Canonical text of the value.
        text: String,
    },
}

impl Value {
    /// Returns the name of the value's type.
    const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Other { of, .. } => of,
        }
    }

    /// Returns the value of an evaluation, which counts as memory: parts that are shared are copied. Values nest to a
    /// limited depth.
    pub(super) fn of(value: &value::Value<'_>, meter: &mut Meter<'_>) -> Result<Self, Box<Fault>> {
        meter.make(size_of::<Self>() + value.weight())?;
        Ok(match value {
            value::Value::Null => Self::Null,
            value::Value::Bool(value) => Self::Bool(*value),
            value::Value::Int(number) => Self::Int(*number),
            value::Value::Uint(number) => Self::Uint(*number),
            value::Value::Double(number) => Self::Double(*number),
            value::Value::String(text) => Self::String(text.to_string()),
            value::Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            value::Value::List(list) => {
                // No closure: its frames would take the stack of deep values.
                let mut items = Vec::with_capacity(list.len());
                for item in list.items() {
                    items.push(Self::of(item, meter)?);
                }
                Self::List(items)
            }
            value::Value::Map(map) => {
                let mut entries = Vec::with_capacity(map.len());
                for key in map.keys() {
                    let value = map.value(&key).as_ref().map_or(Ok(Self::Null), |value| Self::of(value, meter))?;
                    entries.push((Self::of(&key, meter)?, value));
                }
                Self::Map(entries)
            }
            value::Value::Optional(None) => Self::Optional(None),
            value::Value::Optional(Some(held)) => Self::Optional(Some(Box::new(Self::of(&held.value, meter)?))),
            other => Self::Other { of: other.type_name(), text: text(other) },
        })
    }

    fn shown(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Int(number) => number.to_string(),
            Self::Uint(number) => number.to_string(),
            Self::Double(number) => double::shown(*number),
            Self::String(text) => Quoted(text).to_string(),
            Self::Bytes(bytes) => quoted_bytes(bytes),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::shown).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(entries) => {
                let entries: Vec<String> =
                    entries.iter().map(|(key, value)| format!("{}: {}", key.shown(), value.shown())).collect();
                format!("{{{}}}", entries.join(", "))
            }
            Self::Optional(None) => "none".to_owned(),
            Self::Optional(Some(value)) => format!("some({})", value.shown()),
            Self::Other { text, .. } => text.clone(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.type_name(), self.shown())
    }
}

/// Returns the text of a value that is no plain scalar.
fn text(value: &value::Value<'_>) -> String {
    match value {
        value::Value::Quantity(amount, _) => amount.to_string(),
        value::Value::Version(version) => version.to_string(),
        value::Value::Cidr(network) => network.to_string(),
        value::Value::Url(url) => url.to_string(),
        value::Value::Format(format) => format.name.to_owned(),
        other => plain(other).unwrap_or_default(),
    }
}

/// Converts the result of a selector. An optional that holds a bool is one.
pub(super) fn truth(result: &value::Value<'_>, _: &mut Meter<'_>) -> Result<bool, EvaluationError> {
    let mut value = result;
    while let value::Value::Optional(Some(held)) = value {
        value = &held.value;
    }
    match value {
        value::Value::Bool(value) => Ok(*value),
        other => Err(EvaluationError::NotBool { actual: result.type_name().to_owned(), reason: inconvertible(other) }),
    }
}

/// Says why a value can't be converted to a bool.
fn inconvertible(value: &value::Value<'_>) -> String {
    let inner = value.inner_type_name().rsplit('.').next().unwrap_or_default();
    let name = match value {
        value::Value::Int(_) | value::Value::Uint(_) => {
            return format!("unsupported type conversion from '{}' to bool", value.type_name());
        }
        value::Value::String(_) => return "unsupported native conversion from string to 'bool'".to_owned(),
        value::Value::Type(_) => return "type conversion not supported for 'type'".to_owned(),
        value::Value::Optional(_) => return "optional.none() dereference".to_owned(),
        value::Value::Double(_) | value::Value::Bytes(_) => inner.to_owned(),
        value::Value::Bool(_) | value::Value::List(_) | value::Value::Map(_) => value.type_name().to_owned(),
        value::Value::Null => "'null_type'".to_owned(),
        _ => format!("'{inner}'"),
    };
    format!("type conversion error from {name} to 'bool'")
}

/// Largest weight of an attribute's value, which a search keeps for each device: that of 16 KiB of text. The API allows 3
/// KiB for all attributes of a device.
const HEAVIEST_ATTRIBUTE: usize = 4 << 10;

/// Converts the result of an expression to an attribute. A list has the type of its first element; an empty one is a
/// list of strings.
pub(super) fn attribute(value: &value::Value<'_>, _: &mut Meter<'_>) -> Result<DeviceAttribute, EvaluationError> {
    let weight = if let value::Value::List(list) = value { list.weight() } else { value.weight() };
    if weight > HEAVIEST_ATTRIBUTE {
        return Err(EvaluationError::CostExceeded);
    }
    let refused = |actual| EvaluationError::NotAttribute { actual };
    let value::Value::List(list) = value else {
        return scalar(value).ok_or_else(|| refused(value.type_name().to_owned()));
    };
    let Some(first) = list.items().first() else {
        return Ok(DeviceAttribute { strings: Some(Vec::new()), ..DeviceAttribute::default() });
    };
    if scalar(first).is_none() {
        return Err(refused(format!("list({})", first.type_name())));
    }
    let items: Vec<DeviceAttribute> = list.items().iter().map(|item| scalar(item).unwrap_or_default()).collect();
    let attribute = DeviceAttribute {
        bools: items.iter().map(|item| item.bool).collect(),
        ints: items.iter().map(|item| item.int).collect(),
        strings: items.iter().map(|item| item.string.clone()).collect(),
        versions: items.iter().map(|item| item.version.clone()).collect(),
        ..DeviceAttribute::default()
    };
    let has_one_type = attribute != DeviceAttribute::default();
    if has_one_type { Ok(attribute) } else { Err(refused("a list of values of different types".to_owned())) }
}

/// Returns a value that an attribute can have by itself.
fn scalar(value: &value::Value<'_>) -> Option<DeviceAttribute> {
    let mut attribute = DeviceAttribute::default();
    match value {
        value::Value::Int(number) => attribute.int = Some(*number),
        value::Value::Bool(value) => attribute.bool = Some(*value),
        value::Value::String(text) => attribute.string = Some(text.to_string()),
        value::Value::Version(version) => attribute.version = Some(version.to_string()),
        _ => return None,
    }
    Some(attribute)
}
