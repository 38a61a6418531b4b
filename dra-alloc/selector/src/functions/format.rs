//! Formatted texts: `'%d devices'.format([3])`.

use dra_attrs::Quoted;

use super::function::functions;
use crate::fault::Fault;
use crate::meter::Meter;
use crate::scalar::digits::hexadecimal;
use crate::value::shown::{plain, quoted_bytes};
use crate::value::{Answer, List, Value};

functions! { meter;
    "format" {
        "string.(list(dyn)) -> string" Format:
            [Value::String(format), Value::List(list)] => formatted(meter, format, list);
    }
}

/// Largest number of digits after the point that a clause can ask for.
const MOST_DIGITS: usize = 1_000;

/// Work of each of these digits: they are computed with numbers of a thousand bits.
const DIGITS: usize = 12;

/// Work of reading a byte of a format, and of putting a part in its place.
const BYTE: usize = 2;
const PART: usize = 40;

/// Work of showing a float or a time, and what has parts; of an exponent, and of another value.
const SHOWN: usize = 60;
const EXPONENT: usize = 160;
const PLAIN: usize = 24;

/// Part of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'f> {
    Text(&'f str),
    /// `%.2f`: the letter and the digits after the point.
    Clause(char, Option<usize>),
}

/// Splits a format into its parts; the error says what is wrong with a clause.
pub(crate) fn pieces(format: &str) -> Result<Vec<Piece<'_>>, String> {
    let (mut rest, mut pieces) = (format, Vec::new());
    while let Some((text, after)) = rest.split_once('%') {
        pieces.push(Piece::Text(text));
        if let Some(after) = after.strip_prefix('%') {
            pieces.push(Piece::Text("%"));
            rest = after;
            continue;
        }
        let (clause, after) = clause(after)?;
        pieces.push(clause);
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

fn clause(text: &str) -> Result<(Piece<'_>, &str), String> {
    if text.is_empty() {
        return Err("unexpected end of string".to_owned());
    }
    let failed = |reason: &str| format!("could not parse formatting clause: {reason}");
    let (digits, rest) = match text.strip_prefix('.') {
        None => (None, text),
        Some(precision) => {
            let end = precision.find(|c: char| !c.is_ascii_digit());
            let end =
                end.ok_or_else(|| failed("error while parsing precision: could not find end of precision specifier"))?;
            let (digits, rest) = precision.split_at_checked(end).unwrap_or((precision, ""));
            let number = digits.parse().map_err(|_| {
                let reason = format!("strconv.Atoi: parsing {}: invalid syntax", Quoted(digits));
                failed(&format!("error while parsing precision: error while converting precision to integer: {reason}"))
            })?;
            (Some(number), rest)
        }
    };
    let letter = rest.chars().next().unwrap_or_default();
    if !"sdfebxXo".contains(letter) {
        return Err(failed(&format!("unrecognized formatting clause {}", Quoted(&letter.to_string()))));
    }
    Ok((Piece::Clause(letter, digits), rest.get(letter.len_utf8()..).unwrap_or_default()))
}

fn formatted<'v>(meter: &mut Meter<'_>, format: &str, list: &List<'v>) -> Answer<'v> {
    let mut text = String::new();
    let mut used = 0;
    meter.work(BYTE * format.len())?;
    for piece in pieces(format).map_err(Fault::text)? {
        let shown = match piece {
            Piece::Text(text) => text.to_owned(),
            Piece::Clause(letter, digits) => {
                let index = used;
                used += 1;
                let value = list.items().get(index);
                let value = value.ok_or_else(|| Fault::text(format!("index {index} out of range")))?;
                let exponent = if letter == 'e' { EXPONENT } else { 0 };
                // A text that is put in as it stands costs its bytes alone, which are counted when it is made.
                let of_value = if letter == 'x' || letter == 'X' || value.weight() == 1 { work(value) } else { 0 };
                meter.work(PART + of_value + exponent + DIGITS * digits.unwrap_or_default().min(MOST_DIGITS))?;
                shown(letter, digits, value, meter).map_err(|fault| match *fault {
                    Fault::Text(reason) => Fault::text(format!("error during formatting: {reason}")),
                    other => Box::new(other),
                })?
            }
        };
        meter.make(shown.len())?;
        text.push_str(&shown);
    }
    Ok(Value::owned(text))
}

/// Returns the words for a value that a clause can't show, without the name of its type.
pub(crate) const fn refusal(letter: char) -> &'static str {
    match letter {
        's' => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        }
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'o' => "octal clause can only be used on integers",
        _ => "only integers, byte buffers, and strings can be formatted as hex",
    }
}

fn shown(letter: char, digits: Option<usize>, value: &Value<'_>, meter: &mut Meter<'_>) -> Result<String, Box<Fault>> {
    let shown = match letter {
        's' => {
            return match value {
                Value::List(_) | Value::Map(_) => element(value, meter),
                _ => scalar(value, &format!("{}, was given", refusal(letter))),
            };
        }
        'd' => radix(value, |number| number.to_string()),
        'b' => match value {
            Value::Bool(value) => Some(u8::from(*value).to_string()),
            _ => radix(value, |number| format!("{number:b}")),
        },
        'o' => radix(value, |number| format!("{number:o}")),
        'x' | 'X' => {
            let lower = match value {
                Value::String(text) => Some(all_hexadecimal(text.as_bytes())),
                Value::Bytes(bytes) => Some(all_hexadecimal(bytes)),
                _ => radix(value, |number| format!("{number:x}")),
            };
            lower.map(|lower| if letter == 'X' { lower.to_ascii_uppercase() } else { lower })
        }
        _ => double(value).map(|number| match letter {
            'f' => fixed(number, digits.unwrap_or(6)),
            _ => scientific(number, digits.unwrap_or(6)),
        }),
    };
    shown.ok_or_else(|| Fault::text(format!("{}, was given {}", refusal(letter), value.type_name())))
}

fn radix(value: &Value<'_>, show: fn(u64) -> String) -> Option<String> {
    match value {
        Value::Int(number) if *number < 0 => Some(format!("-{}", show(number.unsigned_abs()))),
        Value::Int(number) => Some(show(number.unsigned_abs())),
        Value::Uint(number) => Some(show(*number)),
        _ => None,
    }
}

fn all_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| hexadecimal(*byte, b"0123456789abcdef")).collect()
}

fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Shows what is no finite number.
fn infinite(number: f64) -> Option<&'static str> {
    if number.is_nan() {
        Some("NaN")
    } else if number.is_infinite() {
        Some(if number > 0.0 { "∞" } else { "-∞" })
    } else {
        None
    }
}

/// Shows a double with a number of digits after the point, and a comma before each three others.
fn fixed(number: f64, digits: usize) -> String {
    if let Some(text) = infinite(number) {
        return text.to_owned();
    }
    let plain = format!("{:.*}", digits.min(MOST_DIGITS), number.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut grouped = String::with_capacity(plain.len() * 4 / 3);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if number < 0.0 { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

/// Shows a double with an exponent, filled with blanks to a width.
fn scientific(number: f64, width: usize) -> String {
    let width = width.min(MOST_DIGITS);
    if let Some(text) = infinite(number) {
        return format!("{text:>width$}");
    }
    let plain = format!("{number:.6e}");
    let (mantissa, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |digits| ("⁻", digits));
    let digits = format!("{digits:0>2}");
    let raised = digits.chars().filter_map(|digit| SUPERSCRIPTS.get(usize::try_from(digit.to_digit(10)?).ok()?));
    let raised: String = raised.collect();
    let text = format!("{mantissa}×10{sign}{raised}");
    format!("{text:>width$}")
}

const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// Shows a scalar that has a form in a text; an address has none.
fn scalar(value: &Value<'_>, problem: &str) -> Result<String, Box<Fault>> {
    let shown = if matches!(value, Value::Ip(_)) { None } else { plain(value) };
    shown.ok_or_else(|| Fault::text(format!("{problem} {}", value.type_name())))
}

/// Returns the work of showing a value, without that of its parts.
fn work(value: &Value<'_>) -> usize {
    match value {
        Value::String(text) => PLAIN + text.len(),
        Value::Bytes(bytes) => PLAIN + 2 * bytes.len(),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Type(_) => PLAIN,
        _ => SHOWN,
    }
}

/// Shows a value within a list or map: texts in quotes.
fn element(value: &Value<'_>, meter: &mut Meter<'_>) -> Result<String, Box<Fault>> {
    meter.work(work(value))?;
    let text = match value {
        Value::String(text) => Quoted(text).to_string(),
        Value::Bytes(bytes) => quoted_bytes(bytes),
        Value::Double(number) if number.is_finite() => format!("{number:.6}"),
        Value::Double(_) => Quoted(&plain(value).unwrap_or_default()).to_string(),
        Value::Timestamp(_) => format!("timestamp({})", Quoted(&plain(value).unwrap_or_default())),
        Value::Duration(_) => format!("duration({})", Quoted(&plain(value).unwrap_or_default())),
        Value::List(list) => {
            let parts: Result<Vec<String>, Box<Fault>> = list.items().iter().map(|item| element(item, meter)).collect();
            format!("[{}]", parts?.join(", "))
        }
        Value::Map(map) => {
            let mut parts = Vec::with_capacity(map.len());
            for key in map.keys() {
                meter.work(SHOWN + map.work_of(&key))?;
                if !matches!(key, Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_)) {
                    return Err(Fault::text(format!("no formatting function for map key of type {}", key.type_name())));
                }
                parts.push(format!("{}:{}", element(&key, meter)?, element(&map.value(&key)?, meter)?));
            }
            parts.sort();
            format!("{{{}}}", parts.join(", "))
        }
        _ => scalar(value, "no formatting function for")?,
    };
    meter.make(text.len())?;
    Ok(text)
}
