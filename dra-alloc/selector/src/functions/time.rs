//! Parts of timestamps and durations.

use jiff::civil::DateTime;

use super::function::functions;
use super::zone;
use crate::scalar::time::{NANOS, Timestamp, civil};
use crate::value::{Answer, Value};

/// Writes the functions that read a part of a timestamp, in UTC or in a zone, or the whole of a duration in a unit.
macro_rules! parts {
    ($($name:literal: |$at:ident| $part:expr $(, $unit:expr)?;)*) => {
        functions! { meter; $($name {
            "timestamp.() -> int" One: [Value::Timestamp(time)] => part(*time, "", |$at| $part);
            "timestamp.(string) -> int" One:
                [Value::Timestamp(time), Value::String(zone)] => part(*time, zone, |$at| $part);
            $("duration.() -> int" One: [Value::Duration(nanos)] => Ok(Value::Int(nanos / $unit));)?
        })* }
    };
}

parts! {
    "getFullYear": |at| at.year().into();
    "getMonth": |at| i64::from(at.month()) - 1;
    "getDayOfYear": |at| i64::from(at.date().day_of_year()) - 1;
    "getDayOfMonth": |at| i64::from(at.day()) - 1;
    "getDate": |at| at.day().into();
    "getDayOfWeek": |at| at.weekday().to_sunday_zero_offset().into();
    "getHours": |at| at.hour().into(), 3_600 * NANOS;
    "getMinutes": |at| at.minute().into(), 60 * NANOS;
    "getSeconds": |at| at.second().into(), NANOS;
    "getMilliseconds": |at| at.millisecond().into(), NANOS / 1_000;
}

/// Reads a part of a timestamp in a zone.
fn part<'v>(time: Timestamp, zone: &str, part: fn(DateTime) -> i64) -> Answer<'v> {
    let at = civil(time.seconds.saturating_add(zone::offset(zone, time.seconds)?), time.nanos);
    at.map(|at| Value::Int(part(at))).ok_or_else(|| "timestamp overflow".into())
}
