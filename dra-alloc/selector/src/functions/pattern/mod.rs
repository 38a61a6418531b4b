//! Translation of Go's regular expressions (RE2) to the syntax of the `regex` crate.
//!
//! The syntaxes differ: in Go `\<` is a character, braces that are no repetition are characters, `\Q...\E` quotes,
//! repetitions do not follow each other, classes are ASCII and do not nest, and there are no escapes `\u` and no flag
//! `x`.
//!
//! Tests: `src/functions/pattern/tests.rs`.

mod classes;
mod size;

use ::regex::escape;
use classes::Class;
use size::Sizes;

/// Largest number of repetitions that Go allows.
const MOST_REPETITIONS: u32 = 1000;

/// Largest number of groups within each other that Go allows.
const MOST_NESTED: usize = 1000;

/// Largest number of bytes searched for a closing character: names of groups and classes, and digits.
const LONGEST_NAME: usize = 100;

/// Contents of Perl classes, within brackets.
const PERL_CLASSES: [(char, &str); 3] = [('d', "0-9"), ('s', "\\t\\n\\f\\r "), ('w', "0-9A-Za-z_")];

/// Names of classes: `[:alpha:]`, or negated `[:^alpha:]`.
const NAMED_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// Letters that stand for control characters after a backslash.
const CONTROLS: [(char, char); 6] =
    [('a', '\x07'), ('f', '\x0c'), ('n', '\n'), ('r', '\r'), ('t', '\t'), ('v', '\x0b')];

/// Pattern in the syntax of the `regex` crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) pattern: String,
    /// Size that the compiled pattern has at most, and that bounds the time to compile it, in bytes.
    pub(super) size: usize,
}

/// Translates a pattern for the `regex` crate; the error says why Go rejects it, or that it nests too deeply for the
/// crate.
pub(super) fn translate(pattern: &str) -> Result<Translated, String> {
    let out = String::with_capacity(pattern.len());
    let mut translation = Translation { rest: pattern, out, sizes: Sizes::default() };
    // The text from the last repetition on, if nothing stands between; and whether there is something to repeat.
    let (mut repeated, mut is_repeatable) = (None, false);
    while let Some(first) = translation.rest.chars().next() {
        let before = translation.rest;
        if translation.repetition()? {
            let text = |from: &str| from.get(..from.len() - translation.rest.len()).unwrap_or_default().to_owned();
            if let Some(last) = repeated {
                return Err(format!("invalid nested repetition operator: `{}`", text(last)));
            }
            if !is_repeatable {
                return Err(format!("missing argument to repetition operator: `{}`", text(before)));
            }
            repeated = Some(before);
            continue;
        }
        repeated = None;
        is_repeatable = !matches!(first, '(' | '|');
        if first == ')' && translation.sizes.depth() == 0 {
            return Err(format!("unexpected ): `{pattern}`"));
        }
        translation.part(first)?;
    }
    match translation.sizes.depth() {
        0 => {
            let size = translation.sizes.total().ok_or("expression too large")?;
            Ok(Translated { pattern: translation.out, size })
        }
        depth if depth > MOST_NESTED => Err("expression nests too deeply".to_owned()),
        _ => Err(format!("missing closing ): `{pattern}`")),
    }
}

struct Translation<'p> {
    rest: &'p str,
    out: String,
    sizes: Sizes,
}

impl<'p> Translation<'p> {
    fn next(&mut self) -> Option<char> {
        let first = self.rest.chars().next()?;
        self.take(first.len_utf8());
        Some(first)
    }

    /// Takes the next `bytes` bytes of the pattern, or the rest if there are fewer.
    fn take(&mut self, bytes: usize) -> &'p str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Returns the position of the next `closing`, if it is among the next [`LONGEST_NAME`] characters.
    fn position(&self, closing: char) -> Option<usize> {
        self.rest.char_indices().take(LONGEST_NAME).find(|(_, character)| *character == closing).map(|(at, _)| at)
    }

    /// Parses what begins with `first` and is no repetition.
    fn part(&mut self, first: char) -> Result<(), String> {
        match first {
            '\\' => return self.escape(),
            '[' => return self.class(),
            '(' => return self.group(),
            _ => self.next(),
        };
        match first {
            '.' => self.sizes.any(),
            '^' | '$' => self.sizes.assertion(),
            '|' => self.sizes.branch(),
            ')' => self.sizes.close(),
            _ => {
                self.literal(first);
                return Ok(());
            }
        }
        self.out.push(first);
        Ok(())
    }

    /// Adds a character outside of a class.
    fn literal(&mut self, character: char) {
        self.sizes.literal(character);
        self.push(character);
    }

    fn push(&mut self, character: char) {
        self.out.push_str(&escape(character.encode_utf8(&mut [0; 4])));
    }

    /// Parses a repetition: `*`, `+?`, `{1,2}`. Braces of another form are characters.
    fn repetition(&mut self) -> Result<bool, String> {
        let length = match self.rest.chars().next() {
            Some('*' | '+' | '?') => {
                self.sizes.repeat(1);
                1
            }
            Some('{') => match counted(self.rest)? {
                Some((length, count)) => {
                    if self.sizes.repeat(count) > MOST_REPETITIONS {
                        return Err(invalid_count(self.take(length)));
                    }
                    length
                }
                None => return Ok(false),
            },
            _ => return Ok(false),
        };
        let operator = self.take(length);
        self.out.push_str(operator);
        if self.skip("?") {
            self.out.push('?');
        }
        Ok(true)
    }

    /// Parses the beginning of a group, with a name or flags. Nobody asks for the text of a group: none is kept, which
    /// would take memory for each group at each state.
    fn group(&mut self) -> Result<(), String> {
        self.sizes.open();
        if self.rest.starts_with("(?P<") || self.rest.starts_with("(?<") {
            return self.name();
        }
        if self.rest.starts_with("(?") {
            return self.flags();
        }
        self.take(1);
        self.out.push_str("(?:");
        Ok(())
    }

    /// Parses the name of a group. None has one in the translation, so that names may be what they may in Go.
    fn name(&mut self) -> Result<(), String> {
        let invalid = |text: &str| format!("invalid named capture: `{text}`");
        let end = self.position('>').ok_or_else(|| invalid(self.rest))?;
        let beginning = self.take(end + 1);
        let name = beginning.trim_start_matches("(?P<").trim_start_matches("(?<").trim_end_matches('>');
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        self.out.push_str("(?:");
        if is_name { Ok(()) } else { Err(invalid(beginning)) }
    }

    /// Parses flags: `(?is-U:`, or `(?i)`, which opens no group. The last of repeated flags counts.
    fn flags(&mut self) -> Result<(), String> {
        let group = self.rest;
        let refused = |rest: &str| {
            let text = group.get(..group.len() - rest.len()).unwrap_or(group);
            format!("invalid or unsupported Perl syntax: `{text}`")
        };
        self.take("(?".len());
        let end = self.rest.bytes().take(LONGEST_NAME).position(|c| !b"imsU-".contains(&c));
        let flags = self.take(end.unwrap_or(self.rest.len()));
        let closing = self.next().filter(|closing| [':', ')'].contains(closing)).ok_or_else(|| refused(self.rest))?;
        let (on, off) = flags.split_once('-').map_or((flags, None), |(on, off)| (on, Some(off)));
        if off.is_some_and(|off| off.is_empty() || off.contains('-')) {
            return Err(refused(self.rest));
        }
        let off = off.unwrap_or_default();
        let on: String = "imsU".chars().filter(|flag| on.contains(*flag) && !off.contains(*flag)).collect();
        let off: String = "imsU".chars().filter(|flag| off.contains(*flag)).collect();
        if on.contains('i') {
            self.sizes.ignore_case();
        }
        if closing == ')' {
            self.sizes.close();
        }
        if on.is_empty() && off.is_empty() {
            self.out.push_str(if closing == ':' { "(?:" } else { "" });
            return Ok(());
        }
        let sign = if off.is_empty() { "" } else { "-" };
        self.out.extend(["(?", &on, sign, &off]);
        self.out.push(closing);
        Ok(())
    }

    /// Parses an escape outside of a class.
    fn escape(&mut self) -> Result<(), String> {
        if self.skip("\\Q") {
            let (quoted, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
            quoted.chars().for_each(|character| self.literal(character));
            self.rest = rest;
        } else if self.skip("\\b") {
            self.sizes.assertion();
            self.out.push_str("(?-u:\\b)");
        } else if self.rest.starts_with("\\A") || self.rest.starts_with("\\B") || self.rest.starts_with("\\z") {
            let assertion = self.take(2);
            self.sizes.assertion();
            self.out.push_str(assertion);
        } else if let Some((class, negated)) = self.perl_class() {
            self.sizes.open_class(negated);
            self.sizes.add_ascii(false);
            self.sizes.close_class();
            self.out.extend([if negated { "[^" } else { "[" }, class, "]"]);
        } else if let Some(named) = self.unicode_class()? {
            self.sizes.open_class(false);
            self.sizes.add_named(named);
            self.sizes.close_class();
        } else {
            let character = self.character()?;
            self.literal(character);
        }
        Ok(())
    }

    /// Parses a Perl class: `\d` or, negated, `\D`.
    fn perl_class(&mut self) -> Option<(&'static str, bool)> {
        let name = self.rest.strip_prefix('\\')?.chars().next()?;
        let (_, class) = PERL_CLASSES.iter().find(|(known, _)| *known == name.to_ascii_lowercase())?;
        self.take(2);
        Some((class, name.is_ascii_uppercase()))
    }

    /// Parses a Unicode category or script: `\pL`, `\P{Greek}` or `\p{^Greek}`. Returns its sizes.
    fn unicode_class(&mut self) -> Result<Option<Class>, String> {
        if !self.rest.starts_with("\\p") && !self.rest.starts_with("\\P") {
            return Ok(None);
        }
        let braced = self.rest.get(2..).is_some_and(|name| name.starts_with('{'));
        let end = if braced {
            self.position('}').map(|end| end + 1)
        } else {
            self.rest.char_indices().nth(3).map(|(end, _)| end)
        };
        let class = self.take(end.unwrap_or(self.rest.len()));
        let (beginning, name) = class.split_at_checked(2).unwrap_or((class, ""));
        let inner = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
        let plain = inner.strip_prefix('^').filter(|_| braced);
        let named = classes::named(plain.unwrap_or(inner));
        let named = named.ok_or_else(|| format!("invalid character class range: `{class}`"))?;
        let is_negated = (beginning == "\\P") != plain.is_some();
        self.out.extend([if is_negated { "\\P{" } else { "\\p{" }, plain.unwrap_or(inner), "}"]);
        Ok(Some(named))
    }

    /// Parses one character, escaped or not.
    fn character(&mut self) -> Result<char, String> {
        let first = self.next().ok_or("unexpected end")?;
        if first != '\\' {
            return Ok(first);
        }
        let escaped = self.next().ok_or("trailing backslash at end of expression: ``")?;
        let control = CONTROLS.iter().find(|(name, _)| *name == escaped).map(|(_, control)| *control);
        let octal = |rest: &str| rest.starts_with(|c| ('0'..='7').contains(&c));
        let character = match escaped {
            '0'..='7' if escaped == '0' || octal(self.rest) => {
                let mut code = u32::from(escaped) - u32::from('0');
                for _ in 0..2 {
                    let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(8)) else { break };
                    self.next();
                    code = code * 8 + digit;
                }
                char::from_u32(code)
            }
            'x' => self.hexadecimal(),
            _ if escaped.is_ascii_punctuation() || escaped.is_ascii_control() || escaped == ' ' => Some(escaped),
            _ => control,
        };
        character.ok_or_else(|| format!("invalid escape sequence: `\\{escaped}`"))
    }

    /// Parses the digits after `\x`: two digits, or any number of them in braces.
    fn hexadecimal(&mut self) -> Option<char> {
        let digits = if self.skip("{") {
            let end = self.position('}')?;
            let digits = self.take(end);
            self.take(1);
            digits
        } else {
            Some(self.take(2)).filter(|digits| digits.len() == 2)?
        };
        let are_digits = digits.bytes().all(|c| c.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| are_digits).and_then(char::from_u32)
    }

    /// Parses a class: `[...]` with characters, ranges and named classes.
    fn class(&mut self) -> Result<(), String> {
        let class = self.rest;
        self.take(1);
        self.out.push('[');
        let is_negated = self.skip("^");
        self.out.push_str(if is_negated { "^" } else { "" });
        self.sizes.open_class(is_negated);
        let mut first = true;
        while first || !self.rest.starts_with(']') {
            if self.rest.is_empty() {
                return Err(format!("missing closing ]: `{class}`"));
            }
            first = false;
            self.class_item()?;
        }
        self.take(1);
        self.out.push(']');
        self.sizes.close_class();
        Ok(())
    }

    /// Returns the name in `[:name:]`; `None` if `:]` is not within the next [`LONGEST_NAME`] bytes.
    fn class_name(&self) -> Option<&'p str> {
        let inner = self.rest.strip_prefix("[:")?;
        let end = inner.as_bytes().windows(2).take(LONGEST_NAME).position(|pair| pair == b":]")?;
        inner.get(..end)
    }

    fn class_item(&mut self) -> Result<(), String> {
        if let Some(name) = self.class_name() {
            let named = self.take(name.len() + "[::]".len());
            if !NAMED_CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
                return Err(format!("invalid character class range: `{named}`"));
            }
            self.sizes.add_ascii(name.starts_with('^'));
            self.out.push_str(named);
            return Ok(());
        }
        if let Some((class, negated)) = self.perl_class() {
            self.sizes.add_ascii(negated);
            let (open, close) = match (negated, self.sizes.is_without_case()) {
                (true, _) => ("[^", "]"),
                (false, true) => ("[", "]"),
                (false, false) => ("", ""),
            };
            self.out.extend([open, class, close]);
            return Ok(());
        }
        if let Some(named) = self.unicode_class()? {
            self.sizes.add_named(named);
            return Ok(());
        }
        let item = self.rest;
        let low = self.character()?;
        let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]") && self.rest.len() > 1;
        let high = if is_range {
            self.take(1);
            self.character()?
        } else {
            low
        };
        if high < low {
            let range = item.get(..item.len() - self.rest.len()).unwrap_or_default();
            return Err(format!("invalid character class range: `{range}`"));
        }
        self.range(low, high);
        Ok(())
    }

    /// Adds a range to a class. Without case ranges are in brackets of their own: other spellings are then looked up for
    /// their characters, not for all of the class.
    fn range(&mut self, low: char, high: char) {
        self.sizes.add_range(low, high);
        let is_alone = self.sizes.is_without_case();
        self.out.push_str(if is_alone { "[" } else { "" });
        self.push(low);
        if low < high {
            self.out.push('-');
            self.push(high);
        }
        self.out.push_str(if is_alone { "]" } else { "" });
    }
}

fn invalid_count(repetition: &str) -> String {
    format!("invalid repeat count: `{repetition}`")
}

/// Parses `{2}`, `{2,}` or `{2,5}`; `None` for other braces. Returns the length of the text in bytes, and the largest number
/// of repetitions, or the smallest if there is no upper bound.
fn counted(text: &str) -> Result<Option<(usize, u32)>, String> {
    let Some(inner) = text.strip_prefix('{') else { return Ok(None) };
    let length = inner.bytes().take_while(|c| c.is_ascii_digit() || *c == b',').count();
    let Some((inner, _)) = inner.split_at_checked(length).filter(|(_, rest)| rest.starts_with('}')) else {
        return Ok(None);
    };
    let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
    let is_number = |digits: &str| {
        let plain = digits == "0" || !digits.starts_with('0');
        plain && !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit())
    };
    if !is_number(least) || !(most.is_empty() || is_number(most)) {
        return Ok(None);
    }
    let count = |digits: &str| digits.parse::<u32>().ok().filter(|count| *count <= MOST_REPETITIONS);
    let largest = if most.is_empty() { least } else { most };
    match (count(least), count(largest)) {
        (Some(least), Some(largest)) if least <= largest => Ok(Some((inner.len() + 2, largest))),
        _ => Err(invalid_count(&format!("{{{inner}}}"))),
    }
}

#[cfg(test)]
mod tests;
