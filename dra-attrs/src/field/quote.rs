//! Quoted texts in the form of Go's `%q`.

use std::fmt::{self, Write};

/// Text in double quotes with Go's escapes (`%q`), as in the API server's messages.
///
/// Characters that Go does not print are escaped: control characters, blanks other than the plain space, invisible
/// format characters, private use, and code points that Unicode has not assigned.
///
/// ```
/// use dra_attrs::Quoted;
/// assert_eq!(Quoted("tab\there \u{7f} \u{200b} é").to_string(), r#""tab\there \x7f \u200b é""#);
/// ```
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper for Display")]
pub struct Quoted<'a>(
    /// Text to quote.
    pub &'a str,
);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        self.0.chars().try_for_each(|c| write_escaped(f, c))?;
        f.write_str("\"")
    }
}

fn write_escaped(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        '"' => f.write_str("\\\""),
        '\\' => f.write_str("\\\\"),
        '\x07' => f.write_str("\\a"),
        '\x08' => f.write_str("\\b"),
        '\x0c' => f.write_str("\\f"),
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        '\x0b' => f.write_str("\\v"),
        c if c.is_ascii_control() => write!(f, "\\x{:02x}", u32::from(c)),
        c if c.is_ascii() || is_printable(c) => f.write_char(c),
        c if u32::from(c) < 0x1_0000 => write!(f, "\\u{:04x}", u32::from(c)),
        c => write!(f, "\\U{:08x}", u32::from(c)),
    }
}

/// Returns true if Go prints the character unescaped. The standard library's debug format escapes the same characters,
/// except that it also escapes combining characters at the start of a text; hence the letter before.
fn is_printable(c: char) -> bool {
    if c.escape_debug().count() == 1 {
        return true;
    }
    let after_a_letter: String = ['a', c].into_iter().collect();
    after_a_letter.escape_debug().count() == 2
}
