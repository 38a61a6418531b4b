//! Doubles as texts, as Go reads and shows them.

use std::fmt::Write;

/// Reads a double as Go does: with underscores between digits only in hexadecimal, and without overflow.
pub(crate) fn read(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    match lower.as_str() {
        "inf" | "infinity" => return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }),
        "nan" if unsigned.len() == text.len() => return Some(f64::NAN),
        _ => {}
    }
    let magnitude = if let Some(digits) = lower.strip_prefix("0x") {
        hexadecimal(digits)?
    } else {
        let is_plain = lower.bytes().all(|byte| byte.is_ascii_digit() || b".e+-".contains(&byte));
        lower.parse::<f64>().ok().filter(|_| is_plain)?
    };
    let signed = magnitude.copysign(if text.starts_with('-') { -1.0 } else { 1.0 });
    signed.is_finite().then_some(signed)
}

/// Reads `1.8p3` after `0x`. An exponent has to come.
#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "the language has doubles")]
fn hexadecimal(digits: &str) -> Option<f64> {
    let digits = digits.replace('_', "");
    let (mantissa, exponent) = digits.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let joined = [whole, fraction].concat();
    let number = u64::from_str_radix(&joined, 16).ok()?;
    let shift = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    let exponent = exponent.parse::<i32>().ok()?.checked_sub(shift)?;
    Some(number as f64 * 2.0_f64.powi(exponent))
}

/// Shows a double in as few digits as it needs, with an exponent below 0.0001 and from 1,000,000 on.
pub(crate) fn shown(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&power) {
        return number.to_string();
    }
    let mut text = mantissa.to_owned();
    let sign = if power < 0 { '-' } else { '+' };
    // Writing to a string does not fail.
    let _ = write!(text, "e{sign}{:02}", power.abs());
    text
}
