//! Timestamps and durations, as Go reads and shows them.

use std::str::FromStr;

use jiff::SignedDuration;
use jiff::civil::{DateTime, datetime};

use super::digits::digits;
use crate::fault::Fault;

/// Nanoseconds of a second.
pub(crate) const NANOS: i64 = 1_000_000_000;
const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);
/// Seconds of the first instant of the year 1, and of the last of 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Units of durations, in nanoseconds. Longer names come first.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Instant with the offset of the zone in which it was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamp {
    /// Seconds since 1970.
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
    /// Seconds east of UTC.
    pub(crate) offset: i32,
}

/// Returns date and time of an instant.
pub(crate) fn civil(seconds: i64, nanos: u32) -> Option<DateTime> {
    let since = SignedDuration::new(seconds, i32::try_from(nanos).ok()?);
    EPOCH.checked_add(since).ok()
}

/// Returns the instant some seconds after 1970.
pub(crate) fn at(seconds: i64) -> Result<Timestamp, Box<Fault>> {
    bounded(Timestamp { seconds, nanos: 0, offset: 0 })
}

/// Checks that an instant is within the years 1 to 9999.
pub(crate) fn bounded(time: Timestamp) -> Result<Timestamp, Box<Fault>> {
    if SECONDS.contains(&time.seconds) { Ok(time) } else { Err("timestamp overflow".into()) }
}

/// Returns the instant some nanoseconds later.
pub(crate) fn later(time: Timestamp, nanos: i128) -> Result<Timestamp, Box<Fault>> {
    let total = i128::from(time.seconds) * i128::from(NANOS) + i128::from(time.nanos) + nanos;
    let seconds = i64::try_from(total.div_euclid(i128::from(NANOS))).map_err(|_| "timestamp overflow")?;
    let nanos = u32::try_from(total.rem_euclid(i128::from(NANOS))).unwrap_or_default();
    bounded(Timestamp { seconds, nanos, ..time })
}

/// Returns the nanoseconds from one instant to another.
pub(crate) fn span(from: Timestamp, to: Timestamp) -> Option<i64> {
    let nanos = |time: Timestamp| i128::from(time.seconds) * i128::from(NANOS) + i128::from(time.nanos);
    i64::try_from(nanos(to) - nanos(from)).ok()
}

/// Parses a duration such as `1h30m` or `-1.5s`.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    let mut total: u64 = 0;
    loop {
        let (nanos, after) = parse_span(rest)?;
        total = total.checked_add(nanos).filter(|total| *total <= 1 << 63)?;
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    let total = i128::from(total);
    i64::try_from(if negative { -total } else { total }).ok()
}

/// Parses a number with its unit at the start of a text; returns its nanoseconds and the rest.
fn parse_span(text: &str) -> Option<(u64, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // The unit is what comes before the next number.
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at_checked(end)?;
    let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanos = whole.checked_mul(*size).filter(|nanos| *nanos <= 1 << 63)?;
    Some((nanos.checked_add(fraction_of(fraction, *size))?, rest))
}

/// Returns a decimal fraction of a unit, with the floating-point arithmetic of upstream.
#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "upstream computes with doubles")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a fraction of a unit fits")]
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let (mut number, mut scale) = (0_u64, 1.0_f64);
    for digit in digits.bytes() {
        let Some(next) = number.checked_mul(10).and_then(|number| number.checked_add(u64::from(digit - b'0'))) else {
            break;
        };
        if next > 1 << 63 {
            break;
        }
        (number, scale) = (next, scale * 10.0);
    }
    (number as f64 * (unit as f64 / scale)) as u64
}

/// Parses a timestamp in the form of RFC 3339, as leniently as Go.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let mut rest = text;
    let year = number(&mut rest, "", 4, 4)?;
    let month = number(&mut rest, "-", 2, 2)?;
    let day = number(&mut rest, "-", 2, 2)?;
    let hour = number(&mut rest, "T", 1, 2)?;
    let minute = number(&mut rest, ":", 2, 2)?;
    let second = number(&mut rest, ":", 2, 2).filter(|second| *second < 60)?;
    let nanos = nanos(&mut rest);
    let offset = offset(rest)?;
    let local = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    let seconds = local.duration_since(EPOCH).as_secs();
    Some(Timestamp { seconds: seconds - i64::from(offset), nanos, offset })
}

/// Reads a number with its number of digits after a character.
fn number<N: FromStr>(rest: &mut &str, before: &str, least: usize, most: usize) -> Option<N> {
    let text = rest.strip_prefix(before)?;
    let length = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (digits, after) = text.split_at_checked(length).filter(|_| length >= least)?;
    *rest = after;
    digits.parse().ok()
}

/// Reads a fraction of a second; digits after the ninth are left out.
fn nanos(rest: &mut &str) -> u32 {
    let Some((fraction, after)) = rest.strip_prefix(['.', ',']).map(digits).filter(|(digits, _)| !digits.is_empty())
    else {
        return 0;
    };
    *rest = after;
    let padded = format!("{fraction:0<9}");
    padded.get(..9).and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

/// Reads `Z` or an offset such as `-07:30`, in seconds.
fn offset(text: &str) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let sign = match text.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let mut rest = text.get(1..)?;
    let hours: i32 = number(&mut rest, "", 2, 2)?;
    let minutes: i32 = number(&mut rest, ":", 2, 2)?;
    let in_range = rest.is_empty() && hours <= 24 && minutes <= 60;
    in_range.then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Shows a duration in seconds.
#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "upstream shows a double")]
pub(crate) fn shown_duration(nanos: i64) -> String {
    let seconds = (nanos / NANOS) as f64 + (nanos % NANOS) as f64 / 1e9;
    format!("{seconds}s")
}

/// Shows a timestamp in the zone in which it was written.
pub(crate) fn shown_timestamp(time: Timestamp) -> String {
    let Some(at) = civil(time.seconds + i64::from(time.offset), 0) else { return String::new() };
    let mut text = at.to_string();
    if time.nanos > 0 {
        text.push_str(format!(".{:09}", time.nanos).trim_end_matches('0'));
    }
    if time.offset == 0 {
        text.push('Z');
    } else {
        let minutes = time.offset.abs() / 60;
        let sign = if time.offset < 0 { '-' } else { '+' };
        text.extend([format!("{sign}{:02}", minutes / 60), format!(":{:02}", minutes % 60)]);
    }
    text
}
