//! Lines for people on stderr, and texts of others made safe for a terminal.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write as _};

/// Writes a line to stderr, with control characters escaped. Ignores failures, which could not be reported anywhere else.
pub fn say(line: &impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{}", escaped(&line.to_string()));
}

/// Returns a text with control characters escaped, which a terminal would obey. Line feeds and tabs stay.
///
/// ```
/// use dra_live::say::escaped;
/// assert_eq!(escaped("a\u{1b}[31mRED\u{7}\n"), "a\\u{1b}[31mRED\\u{7}\n");
/// ```
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, |character| is_obeyed(character) && !matches!(character, '\n' | '\t'))
}

/// Returns a text of somebody else as one line, with all control characters escaped.
///
/// ```
/// assert_eq!(dra_live::say::one_line("a\nb"), "a\\nb");
/// ```
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, is_obeyed)
}

/// Returns true for control characters, and for those that change the direction of a text.
///
/// ```
/// assert!(dra_live::say::is_obeyed('\u{202e}') && !dra_live::say::is_obeyed('a'));
/// ```
#[must_use]
pub fn is_obeyed(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len());
    for character in text.chars() {
        if is_escaped(character) {
            written.extend(character.escape_default());
        } else {
            written.push(character);
        }
    }
    Cow::Owned(written)
}
