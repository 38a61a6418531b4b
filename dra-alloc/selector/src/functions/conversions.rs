//! Conversions between types.
#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is in range")]
#![expect(clippy::cast_precision_loss, reason = "the conversion rounds")]

use super::arithmetic::{OVERFLOW, UNSIGNED_OVERFLOW};
use super::counted::made;
use super::function::functions;
use crate::fault::Fault;
use crate::scalar::{double, time};
use crate::value::{Answer, Value};

/// Names of the functions that convert, which a constant needs only once.
pub(crate) const NAMES: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

functions! { meter;
    "bool" {
        "(bool) -> bool" One: [value @ Value::Bool(_)] => Ok(value.clone());
        "(string) -> bool" One: [Value::String(text)] => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
            _ => unreadable("string", "bool"),
        };
    }
    "bytes" {
        "(bytes) -> bytes" One: [value @ Value::Bytes(_)] => Ok(value.clone());
        "(string) -> bytes" BytesOfString: [Value::String(text)] => {
            meter.make(text.len())?;
            Ok(Value::Bytes(text.as_bytes().into()))
        };
    }
    "double" {
        "(double) -> double" One: [value @ Value::Double(_)] => Ok(value.clone());
        "(int) -> double" One: [Value::Int(number)] => Ok(Value::Double(*number as f64));
        "(string) -> double" One: [Value::String(text)] => read(double::read(text), Value::Double, "double");
        "(uint) -> double" One: [Value::Uint(number)] => Ok(Value::Double(*number as f64));
    }
    "duration" {
        "(duration) -> duration" One: [value @ Value::Duration(_)] => Ok(value.clone());
        "(int) -> duration" One: [Value::Int(_)] => unreadable("int", "google.protobuf.Duration");
        "(string) -> duration" One:
            [Value::String(text)] => read(time::parse_duration(text), Value::Duration, "google.protobuf.Duration");
    }
    "dyn" { "(A) -> dyn" One: [value, ..] => Ok(value.clone()); }
    "int" {
        "(int) -> int" One: [value @ Value::Int(_)] => Ok(value.clone());
        "(double) -> int" One: [Value::Double(number)] => {
            let fits = *number > -9_223_372_036_854_775_808.0 && *number < 9_223_372_036_854_775_808.0;
            if fits { Ok(Value::Int(*number as i64)) } else { Err(OVERFLOW.into()) }
        };
        "(duration) -> int" One: [Value::Duration(nanos)] => Ok(Value::Int(*nanos));
        "(string) -> int" One: [Value::String(text)] => read(text.parse().ok(), Value::Int, "int");
        "(timestamp) -> int" One: [Value::Timestamp(time)] => Ok(Value::Int(time.seconds));
        "(uint) -> int" One: [Value::Uint(number)] => Ok(Value::Int(i64::try_from(*number).map_err(|_| OVERFLOW)?));
    }
    "string" {
        "(string) -> string" One: [value @ Value::String(_)] => Ok(value.clone());
        "(bool) -> string" One: [Value::Bool(value)] => made(meter, value.to_string());
        "(bytes) -> string" StringOfBytes: [Value::Bytes(bytes)] => {
            let text = std::str::from_utf8(bytes);
            made(meter, text.map_err(|_| "invalid UTF-8 in bytes, cannot convert to string")?.to_owned())
        };
        "(double) -> string" One: [Value::Double(number)] => made(meter, double::shown(*number));
        "(duration) -> string" One: [Value::Duration(nanos)] => made(meter, time::shown_duration(*nanos));
        "(int) -> string" One: [Value::Int(number)] => made(meter, number.to_string());
        "(timestamp) -> string" One: [Value::Timestamp(time)] => made(meter, time::shown_timestamp(*time));
        "(uint) -> string" One: [Value::Uint(number)] => made(meter, number.to_string());
        "(IP) -> string" One: [Value::Ip(address)] => made(meter, address.to_string());
        "(CIDR) -> string" One: [Value::Cidr(network)] => made(meter, network.to_string());
    }
    "timestamp" {
        "(timestamp) -> timestamp" One: [value @ Value::Timestamp(_)] => Ok(value.clone());
        "(int) -> timestamp" One: [Value::Int(seconds)] => time::at(*seconds).map(Value::Timestamp);
        "(string) -> timestamp" One: [Value::String(text)] => match time::parse_timestamp(text) {
            Some(time) => time::bounded(time).map(Value::Timestamp),
            None => unreadable("string", "google.protobuf.Timestamp"),
        };
    }
    "type" { "(A) -> type(A)" One: [value, ..] => Ok(Value::Type(value.type_name())); }
    "uint" {
        "(uint) -> uint" One: [value @ Value::Uint(_)] => Ok(value.clone());
        "(double) -> uint" One: [Value::Double(number)] => {
            let fits = *number >= 0.0 && *number < 18_446_744_073_709_551_616.0;
            if fits { Ok(Value::Uint(*number as u64)) } else { Err(UNSIGNED_OVERFLOW.into()) }
        };
        "(int) -> uint" One:
            [Value::Int(number)] => Ok(Value::Uint(u64::try_from(*number).map_err(|_| UNSIGNED_OVERFLOW)?));
        "(string) -> uint" One:
            [Value::String(text)] => read(text.parse().ok().filter(|_| !text.starts_with('+')), Value::Uint, "uint");
    }
}

fn unreadable<'v>(from: &str, to: &str) -> Answer<'v> {
    Err(Fault::text(format!("type conversion error from '{from}' to '{to}'")))
}

/// Returns what a text was read as.
fn read<'v, T>(found: Option<T>, value: fn(T) -> Value<'v>, to: &str) -> Answer<'v> {
    found.map_or_else(|| unreadable("string", to), |found| Ok(value(found)))
}
