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
    for unit in Units(&content) {
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
    for unit in Units(&content) {
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

/// Parses a uint without its suffix.
pub(super) fn uint(digits: &str) -> Option<u64> {
    match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
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

/// Part of a literal.
enum Unit {
    Char(char),
    /// `\x41` or `\101`: a byte, or a code point in a string.
    Byte(u32),
    /// `\u0041` or `\U00000041`.
    Code(u32),
}

struct Units<'c>(&'c str);

impl Units<'_> {
    fn digits(&mut self, count: usize, radix: u32) -> u32 {
        let (digits, rest) = self.0.split_at_checked(count).unwrap_or((self.0, ""));
        self.0 = rest;
        u32::from_str_radix(digits, radix).unwrap_or(u32::MAX)
    }
}

impl Iterator for Units<'_> {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        let mut characters = self.0.chars();
        let first = characters.next()?;
        if first != '\\' {
            self.0 = characters.as_str();
            return Some(Unit::Char(first));
        }
        let letter = characters.next()?;
        if letter.is_ascii_digit() {
            self.0 = self.0.get(1..).unwrap_or_default();
            return Some(Unit::Byte(self.digits(3, 8)));
        }
        self.0 = characters.as_str();
        Some(match letter {
            'x' | 'X' => Unit::Byte(self.digits(2, 16)),
            'u' => Unit::Code(self.digits(4, 16)),
            'U' => Unit::Code(self.digits(8, 16)),
            'a' => Unit::Char('\x07'),
            'b' => Unit::Char('\x08'),
            'f' => Unit::Char('\x0c'),
            'n' => Unit::Char('\n'),
            'r' => Unit::Char('\r'),
            't' => Unit::Char('\t'),
            'v' => Unit::Char('\x0b'),
            other => Unit::Char(other),
        })
    }
}
