//! Values of literals.

use std::borrow::Cow;

/// Returns the value of a string literal with its quotes and prefix; the error is a message.
pub(super) fn string(literal: &str) -> Result<Cow<'_, str>, &'static str> {
    let (content, raw) = content(literal);
    if !content.contains(['\\', '\r']) || (raw && !content.contains('\r')) {
        return Ok(Cow::Borrowed(content));
    }
    let content = content.replace("\r\n", "\n").replace('\r', "\n");
    if raw {
        return Ok(Cow::Owned(content));
    }
    let mut value = String::with_capacity(content.len());
    for unit in units(&content) {
        match unit {
            Unit::Char(character) => value.push(character),
            Unit::Code(code) | Unit::Byte(code) => {
                value.push(char::from_u32(code).ok_or("invalid unicode code point")?);
            }
        }
    }
    Ok(Cow::Owned(value))
}

/// Returns the value of a bytes literal with its quotes and prefix; the error is a message.
pub(super) fn bytes(literal: &str) -> Result<Vec<u8>, &'static str> {
    let (content, raw) = content(literal);
    let content = content.replace("\r\n", "\n").replace('\r', "\n");
    if raw {
        return Ok(content.into_bytes());
    }
    let mut value = Vec::with_capacity(content.len());
    for unit in units(&content) {
        match unit {
            Unit::Char(character) => value.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Byte(byte) => value.push(u8::try_from(byte).map_err(|_| "unable to unescape string")?),
            Unit::Code(_) => return Err("unable to unescape string"),
        }
    }
    Ok(value)
}

/// Parses an int with an optional sign, decimal or hexadecimal.
pub(super) fn int(negative: bool, digits: &str) -> Option<i64> {
    let magnitude = i128::from(uint(digits)?);
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// Parses a uint, decimal or hexadecimal, with or without its suffix.
pub(super) fn uint(number: &str) -> Option<u64> {
    let number = number.trim_end_matches(['u', 'U']);
    match number.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => number.parse().ok(),
    }
}

/// Splits off prefix and quotes; true if the literal is raw.
fn content(literal: &str) -> (&str, bool) {
    let start = literal.find(['"', '\'']).unwrap_or_default();
    let (prefix, body) = literal.split_at_checked(start).unwrap_or(("", literal));
    let quote = body.get(..1).unwrap_or_default();
    let is_triple = body.len() >= 6 && body.starts_with(&quote.repeat(3));
    let width = if is_triple { 3 } else { 1 };
    let content = body.get(width..body.len().saturating_sub(width)).unwrap_or_default();
    (content, prefix.contains(['r', 'R']))
}

/// Letters that stand for control characters after a backslash.
pub(crate) const CONTROLS: [(char, char); 7] =
    [('a', '\x07'), ('b', '\x08'), ('f', '\x0c'), ('n', '\n'), ('r', '\r'), ('t', '\t'), ('v', '\x0b')];

/// Part of a literal.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Char(char),
    /// `\x41` or `\101`: a byte, or a code point in a string.
    Byte(u32),
    /// `\u0041` or `\U00000041`.
    Code(u32),
}

fn units(content: &str) -> impl Iterator<Item = Unit> {
    let mut rest = content;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let (unit, length) = if first == '\\' { escape(rest).ok()? } else { (Unit::Char(first), first.len_utf8()) };
        rest = rest.get(length..)?;
        Some(unit)
    })
}

/// Reads an escape at the beginning of a text: what it stands for, and its length. The error is the length of the text
/// through the first character that does not fit.
pub(super) fn escape(text: &str) -> Result<(Unit, usize), usize> {
    let Some(letter) = text.chars().nth(1) else { return Err(text.len()) };
    let (start, end, radix) = match letter {
        'x' | 'X' => (2, 4, 16),
        'u' => (2, 6, 16),
        'U' => (2, 10, 16),
        '0'..='3' => (1, 4, 8),
        '\\' | '\'' | '"' | '`' | '?' => return Ok((Unit::Char(letter), 2)),
        _ => {
            let control = CONTROLS.iter().find(|(known, _)| *known == letter).ok_or_else(|| 1 + letter.len_utf8())?;
            return Ok((Unit::Char(control.1), 2));
        }
    };
    let mut digits = text.char_indices().skip(start).take(end - start);
    if let Some((at, bad)) = digits.find(|(_, digit)| !digit.is_digit(radix)) {
        return Err(at + bad.len_utf8());
    }
    let code = text.get(start..end).and_then(|digits| u32::from_str_radix(digits, radix).ok()).ok_or(text.len())?;
    Ok((if matches!(letter, 'u' | 'U') { Unit::Code(code) } else { Unit::Byte(code) }, end))
}
