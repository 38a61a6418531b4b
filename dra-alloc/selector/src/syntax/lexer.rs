//! Splits the text of an expression into tokens.

use super::literal::escape;
use super::token::{KINDS, Token, TokenKind};
use crate::error::Issue;
use crate::position::Position;

const WORDS: [(&str, TokenKind); 4] =
    [("in", TokenKind::In), ("true", TokenKind::True), ("false", TokenKind::False), ("null", TokenKind::Null)];

/// Result of reading one token: its kind and length, or the length of the text that begins no token.
type Read = Result<(TokenKind, usize), usize>;

/// Splits a text into tokens; the last is [`TokenKind::End`]. What is no token is told and left out.
pub(super) fn tokens<'s>(text: &'s str, issues: &mut Vec<Issue>) -> Vec<Token<'s>> {
    let mut tokens = Vec::with_capacity(text.len() / 3 + 1);
    let mut cursor = Cursor { text, start: 0, at: Position { line: 1, column: 0 } };
    loop {
        cursor.skip_blanks();
        let (start, at) = (cursor.start, cursor.at);
        if cursor.rest().is_empty() {
            // The end of an empty text is told to be before its first column.
            let at = if text.is_empty() { Position { line: 1, column: -1 } } else { at };
            tokens.push(Token { kind: TokenKind::End, text: "", start, at });
            return tokens;
        }
        match read(cursor.rest()) {
            Ok((kind, length)) => tokens.push(Token { kind, text: cursor.take(length), start, at }),
            Err(length) => {
                let bad = cursor.take(length);
                issues.push(Issue::new(at, format!("Syntax error: token recognition error at: '{bad}'")));
            }
        }
    }
}

struct Cursor<'s> {
    text: &'s str,
    start: usize,
    at: Position,
}

impl<'s> Cursor<'s> {
    fn rest(&self) -> &'s str {
        self.text.get(self.start..).unwrap_or_default()
    }

    /// Takes the next `length` bytes.
    fn take(&mut self, length: usize) -> &'s str {
        let taken = self.rest().get(..length).unwrap_or_else(|| self.rest());
        self.start += taken.len();
        for character in taken.chars() {
            if character == '\n' {
                self.at = Position { line: self.at.line + 1, column: 0 };
            } else {
                self.at.column += 1;
            }
        }
        taken
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blanks = rest.bytes().take_while(|byte| matches!(byte, b'\t' | b' ' | b'\r' | b'\n' | 0x0c)).count();
            let comment = if rest.starts_with("//") { rest.find('\n').unwrap_or(rest.len()) } else { 0 };
            if blanks + comment == 0 {
                return;
            }
            self.take(blanks + comment);
        }
    }
}

/// Reads the first token of a text that is not empty.
fn read(text: &str) -> Read {
    let first = text.as_bytes().first().copied().unwrap_or_default();
    match first {
        b'"' | b'\'' => quoted(text, 0, Escapes::Read, TokenKind::Text),
        b'`' => quoted_ident(text),
        b'0'..=b'9' => Ok(number(text)),
        b'.' if text.as_bytes().get(1).is_some_and(u8::is_ascii_digit) => Ok(number(text)),
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => Ok(prefixed(text).unwrap_or_else(|| word(text))),
        _ => operator(text),
    }
}

fn operator(text: &str) -> Read {
    // The names of operators are the operators in quotes.
    let alike = KINDS.iter().filter(|(_, name)| name.as_bytes().get(1) == text.as_bytes().first());
    let symbols = alike.filter_map(|(kind, name)| Some((*kind, name.strip_prefix('\'')?.strip_suffix('\'')?)));
    let longest = symbols.filter(|(_, symbol)| text.starts_with(symbol)).max_by_key(|(_, symbol)| symbol.len());
    if let Some((kind, symbol)) = longest {
        return Ok((kind, symbol.len()));
    }
    // The first half of `==`, `&&` or `||`, with the character that does not go on.
    let half = usize::from(text.starts_with(['=', '&', '|']));
    let bad = text.chars().nth(half).map_or(0, char::len_utf8);
    Err(half + bad)
}

fn word(text: &str) -> (TokenKind, usize) {
    let length = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    let word = text.get(..length).unwrap_or_default();
    let kind = WORDS.iter().find(|(name, _)| *name == word).map_or(TokenKind::Ident, |(_, kind)| *kind);
    (kind, length)
}

/// Treatment of backslashes in a literal.
#[derive(Clone, Copy, PartialEq)]
enum Escapes {
    Read,
    Raw,
}

/// Reads a string or bytes with a prefix: `r"…"`, `b'…'`, `br"…"`.
fn prefixed(text: &str) -> Option<(TokenKind, usize)> {
    let lower = |index: usize| text.as_bytes().get(index).map(u8::to_ascii_lowercase);
    let is_quote = |index: usize| matches!(lower(index), Some(b'"' | b'\''));
    let (start, escapes, kind) = match (lower(0), lower(1)) {
        (Some(b'r'), _) if is_quote(1) => (1, Escapes::Raw, TokenKind::Text),
        (Some(b'b'), _) if is_quote(1) => (1, Escapes::Read, TokenKind::Bytes),
        (Some(b'b'), Some(b'r')) if is_quote(2) => (2, Escapes::Raw, TokenKind::Bytes),
        _ => return None,
    };
    quoted(text, start, escapes, kind).ok()
}

/// Reads a literal whose quote is at byte `start`.
fn quoted(text: &str, start: usize, escapes: Escapes, kind: TokenKind) -> Read {
    let body = text.get(start..).unwrap_or_default();
    let quote = body.get(..1).unwrap_or_default();
    let triple = quote.repeat(3);
    if body.starts_with(&triple) {
        let long = closing(body, &triple, escapes);
        // Without an end it is an empty literal and something else.
        return Ok((kind, start + long.unwrap_or(2)));
    }
    match closing(body, quote, escapes) {
        Ok(length) => Ok((kind, start + length)),
        Err(length) => Err(start + length),
    }
}

/// Returns the length of a literal with its quotes, or that of the text that can't be one.
fn closing(body: &str, quotes: &str, escapes: Escapes) -> Result<usize, usize> {
    let mut at = quotes.len();
    loop {
        let rest = body.get(at..).unwrap_or_default();
        if rest.starts_with(quotes) {
            return Ok(at + quotes.len());
        }
        let Some(first) = rest.chars().next() else { return Err(body.len()) };
        at += match first {
            '\n' | '\r' if quotes.len() == 1 => return Err(at + 1),
            '\\' if escapes == Escapes::Read => escape(rest).map_err(|length| at + length)?.1,
            _ => first.len_utf8(),
        };
    }
}

fn quoted_ident(text: &str) -> Read {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "_.-/ ".contains(character);
    let length = 1 + text.chars().skip(1).take_while(|character| is_part(*character)).count();
    match text.get(length..).and_then(|rest| rest.chars().next()) {
        Some('`') if length > 1 => Ok((TokenKind::QuotedIdent, length + 1)),
        Some(bad) => Err(length + bad.len_utf8()),
        None => Err(text.len()),
    }
}

fn number(text: &str) -> (TokenKind, usize) {
    let bytes = text.as_bytes();
    let digits = |from: usize, is_digit: fn(&u8) -> bool| {
        bytes.get(from..).unwrap_or_default().iter().take_while(|byte| is_digit(byte)).count()
    };
    let suffixed = |end: usize| match bytes.get(end) {
        Some(b'u' | b'U') => (TokenKind::Uint, end + 1),
        _ => (TokenKind::Int, end),
    };
    let hexadecimal = if text.starts_with("0x") { digits(2, u8::is_ascii_hexdigit) } else { 0 };
    if hexadecimal > 0 {
        return suffixed(2 + hexadecimal);
    }
    let whole = digits(0, u8::is_ascii_digit);
    let fraction = if bytes.get(whole) == Some(&b'.') { digits(whole + 1, u8::is_ascii_digit) } else { 0 };
    let mantissa = if fraction > 0 { whole + 1 + fraction } else { whole };
    let exponent = exponent(bytes.get(mantissa..).unwrap_or_default());
    if fraction + exponent > 0 { (TokenKind::Float, mantissa + exponent) } else { suffixed(whole) }
}

/// Returns the length of an exponent such as `e-7`, 0 if there is none.
fn exponent(bytes: &[u8]) -> usize {
    let Some(b'e' | b'E') = bytes.first() else { return 0 };
    let sign = usize::from(matches!(bytes.get(1), Some(b'+' | b'-')));
    let digits = bytes.get(1 + sign..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 0 { 1 + sign + digits } else { 0 }
}
