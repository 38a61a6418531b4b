//! Conversion functions that read or write texts differently in Go and in the `cel` crate, and texts of IP addresses.

use cel::common::types::{CelDouble, CelString, DYN_TYPE};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env, ExecutionError};

use super::cidr::CidrValue;
use super::ip::IpValue;
use super::{failed, truth};
use crate::selector::environment::environment;

/// Names of the conversion functions that are replaced, each with the name of its replacement.
pub(in crate::selector) const REPLACED: [(&str, &str); 4] =
    [("bool", "@bool"), ("string", "@string"), ("double", "@double"), ("uint", "@uint")];

pub(in crate::selector) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("@bool", "@bool", vec![DYN_TYPE], |args| match text(&args) {
        Some("T") => Ok(truth(true)),
        Some("F") => Ok(truth(false)),
        _ => standard("bool", args),
    })?;
    env.add_overload("@string", "@string", vec![DYN_TYPE], |args| match args.first().and_then(own_text) {
        Some(text) => Ok(CowVal::owned(CelString::from(text))),
        None => standard("string", args),
    })?;
    env.add_overload("@double", "@double", vec![DYN_TYPE], |args| match text(&args) {
        Some(text) => double(text).map(|number| CowVal::owned(CelDouble::from(number))),
        None => standard("double", args),
    })?;
    env.add_overload("@uint", "@uint", vec![DYN_TYPE], |args| match text(&args) {
        Some(text) if text.starts_with('+') => Err(unreadable("uint")),
        _ => standard("uint", args),
    })
}

/// Returns the text of a value that the `cel` crate does not know or prints differently.
fn own_text(value: &CowVal<'_, '_>) -> Option<String> {
    let number = value.downcast_ref::<CelDouble>().map(|number| text_of(*number.inner()));
    let address = || value.downcast_ref::<IpValue>().map(|address| address.0.to_string());
    let network = || value.downcast_ref::<CidrValue>().map(ToString::to_string);
    number.or_else(address).or_else(network)
}

fn text<'a>(args: &'a [CowVal<'_, '_>]) -> Option<&'a str> {
    args.first()?.downcast_ref::<CelString<'_>>().map(CelString::inner)
}

/// Calls the conversion function of the `cel` crate that is named `function`.
fn standard<'b, 'v>(function: &str, args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    if let Some(operation) = environment().env.find_overload(function, &args) {
        return operation(args);
    }
    let types: Vec<_> = args.iter().map(|value| value.get_type().name()).collect();
    Err(failed(format!("no such overload: {function}({})", types.join(", "))))
}

fn unreadable(wanted: &str) -> ExecutionError {
    failed(format!("type conversion error from 'string' to '{wanted}'"))
}

/// Parses a number as Go does: `NaN` has no sign, and too large numbers are errors.
fn double(text: &str) -> Result<f64, ExecutionError> {
    let number: f64 = text.parse().map_err(|_| unreadable("double"))?;
    let unsigned = text.trim_start_matches(['+', '-']);
    let refused = match unsigned.chars().next() {
        Some('n' | 'N') => unsigned.len() < text.len(),
        Some('i' | 'I') => false,
        _ => number.is_infinite(),
    };
    if refused { Err(unreadable("double")) } else { Ok(number) }
}

/// Formats a number like Go's `%g`: the fewest digits that read back exactly, with an exponent below -4 and from 6 on.
fn text_of(number: f64) -> String {
    if number.is_infinite() {
        return if number.is_sign_positive() { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let parts = scientific.split_once('e').and_then(|(digits, power)| Some((digits, power.parse::<i32>().ok()?)));
    match parts {
        Some((digits, power)) if !(-4..6).contains(&power) => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", power.unsigned_abs())
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{double, text_of};

    #[test]
    fn doubles_are_printed_as_go_prints_them() {
        let rows = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (85_899_345_920.0, "8.589934592e+10"),
            (1e21, "1e+21"),
            (1e100, "1e+100"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ];
        for (number, text) in rows {
            assert_eq!(text_of(number), text);
        }
    }

    #[test]
    fn doubles_are_read_as_go_reads_them() {
        for text in ["", " 1", "1e400", "-1e400", "+NaN", "-nan", "x", "1_0", "--1", "+-inf"] {
            assert!(double(text).is_err(), "{text}");
        }
        for (text, number) in [("1.5", "1.5"), ("5.", "5"), ("+.5", "0.5"), ("-Inf", "-Inf"), ("infinity", "+Inf")] {
            assert_eq!(double(text).map(text_of).as_deref(), Ok(number));
        }
        assert!(double("nan").is_ok_and(f64::is_nan));
    }
}
