//! Message literals: most stand for plain values.

use std::collections::BTreeMap;

use super::Message;
use crate::fault::Fault;
use crate::scalar::time::Timestamp;
use crate::value::{Answer, List, Map, Table, Value};

const PREFIX: &str = "google.protobuf.";

/// Returns the value of a message literal.
pub(super) fn build<'v>(message: &Message, values: Vec<Value<'v>>) -> Answer<'v> {
    let Some(name) = message.name.strip_prefix(PREFIX) else {
        return Err(Fault::text(format!("unknown type '{}'", message.name)));
    };
    let fields: BTreeMap<&str, Value<'v>> = message.fields.iter().map(String::as_str).zip(values).collect();
    let field = |name: &str| fields.get(name).cloned();
    let number = |name: &str| match fields.get(name) {
        Some(Value::Int(number)) => *number,
        _ => 0,
    };
    Ok(match name {
        "BoolValue" => field("value").unwrap_or(Value::Bool(false)),
        "BytesValue" => field("value").unwrap_or_else(|| Value::Bytes([].into())),
        "DoubleValue" | "FloatValue" => single(field("value").unwrap_or(Value::Double(0.0)), name),
        "Int32Value" | "Int64Value" => field("value").unwrap_or(Value::Int(0)),
        "UInt32Value" | "UInt64Value" => field("value").unwrap_or(Value::Uint(0)),
        "StringValue" => field("value").unwrap_or(Value::borrowed("")),
        "Duration" => Value::Duration(number("seconds").saturating_mul(1_000_000_000).saturating_add(number("nanos"))),
        "Timestamp" => {
            let nanos = u32::try_from(number("nanos")).unwrap_or_default();
            Value::Timestamp(Timestamp { seconds: number("seconds"), nanos, offset: 0 })
        }
        "Struct" => field("fields").map_or_else(|| Ok(Value::Map(Map::Table(Table::default()))), doubles)?,
        "ListValue" => field("values").map_or_else(|| List::new(Vec::new()).map(Value::List), doubles)?,
        "Value" => fields.into_iter().next_back().map_or(Ok(Value::Null), |(name, value)| match name {
            "null_value" => Ok(Value::Null),
            _ => doubles(value),
        })?,
        "Empty" => Value::Type("google.protobuf.Empty"),
        _ => return Err("unsupported conversion to ref.Val: (*dynamicpb.Message)".into()),
    })
}

/// Rounds the value of a message with single precision.
#[expect(clippy::cast_possible_truncation, reason = "the message holds a number of single precision")]
fn single<'v>(value: Value<'v>, name: &str) -> Value<'v> {
    match value {
        Value::Double(number) if name == "FloatValue" => Value::Double(f64::from(number as f32)),
        other => other,
    }
}

/// Makes doubles of numbers: these messages have no others.
#[expect(clippy::cast_precision_loss, reason = "the messages hold doubles")]
fn doubles(value: Value<'_>) -> Answer<'_> {
    Ok(match value {
        Value::Int(number) => Value::Double(number as f64),
        Value::Uint(number) => Value::Double(number as f64),
        Value::List(list) => {
            let items: Result<Vec<_>, _> = list.items().iter().cloned().map(doubles).collect();
            Value::List(List::new(items?)?)
        }
        other => other,
    })
}
