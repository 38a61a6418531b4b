//! Sizes of patterns, estimated before they are compiled.
//!
//! A size is an upper bound of the memory that the `regex` crate limits, in bytes, and of the time that it takes to
//! compile: some 5 ns a byte, at most 10. Parsing counts as the bytes that take as long. Each part of a pattern has at
//! least the size that it has in the larger one of the two automata, which read forwards and backwards.

use super::classes::Class;

/// Size of every pattern.
const PATTERN: usize = 4_096;
/// Size of a choice among a few texts: an alternative, a class, half of a letter without case. The texts that follow
/// from them are searched for faster, which takes time to prepare.
const CHOICE: usize = 1_024;
/// Largest number of choices that count.
const MOST_CHOICES: usize = 64;
/// State of an automaton.
const STATE: usize = 32;
/// Operator of a repetition, and each repetition besides what it repeats.
const REPETITION: usize = 4 * STATE;
/// Byte of a text that is an alternative, besides its state.
const ALTERNATIVE: usize = 48;
/// Alternative, group or assertion.
const BRANCH: usize = 3 * STATE;
/// Any character, and what a negation adds to a class.
const ANY: usize = 1_184;
/// Class of characters besides its parts.
const CLASS: usize = 5 * STATE;
/// Range of ASCII characters in a class.
const ASCII_RANGE: usize = STATE / 2;
/// Other range in a class, of at most 64 characters.
const NARROW_RANGE: usize = 640;
/// Other range in a class.
const WIDE_RANGE: usize = 1_088;
/// Other spellings of ASCII letters: `k` and `s` have some beyond ASCII.
const ASCII_SPELLINGS: usize = 256;
/// Other spellings of a character beyond ASCII.
const SPELLINGS: usize = 384;
/// Other spellings of all characters.
const MOST_SPELLINGS: usize = 16_384;
/// Parsing of one part of a pattern.
const PARSED: usize = 32;
/// Largest nesting of parts that the `regex` crate compiles.
const DEEPEST: usize = 250;
/// Nesting within a class: brackets, their list, and brackets with their list.
const CLASS_DEPTH: usize = 4;

/// Part of a pattern.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Product of the nested repetition counts: 6 for `(a{2}){3}`.
    repeated: u32,
    bytes: usize,
    /// Nesting of groups, repetitions, lists of parts and classes.
    depth: usize,
}

/// Group that is open, or the pattern.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    repeated: u32,
    bytes: usize,
    depth: usize,
    parts: usize,
    branches: usize,
    /// Length of its texts, if no alternatives within count them.
    texts: usize,
}

impl Group {
    fn close(self) -> Part {
        let Self { repeated, bytes, depth, parts, branches, texts } = self;
        let lists = usize::from(parts > 1) + usize::from(branches > 0);
        let texts = if branches > 0 { texts * ALTERNATIVE } else { 0 };
        Part { repeated: repeated.max(1), bytes: bytes.saturating_add(BRANCH + texts), depth: depth + lists + 1 }
    }
}

/// Sizes of the parts of a pattern that is being translated.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    pattern: Group,
    open: Vec<Group>,
    /// Part that was read last.
    last: Option<Part>,
    /// Size that repetitions do not repeat: parsing.
    parsed: usize,
    /// Size of the class that is open.
    class: usize,
    choices: usize,
    without_case: bool,
}

impl Sizes {
    /// Returns the number of open groups.
    pub(super) const fn depth(&self) -> usize {
        self.open.len()
    }

    /// Returns the size of the pattern in bytes; `None` if it nests deeper than the `regex` crate compiles.
    pub(super) fn total(&self) -> Option<usize> {
        let Part { bytes, depth, .. } = self.pattern.close();
        let choices = CHOICE * self.choices.min(MOST_CHOICES);
        let size = bytes.saturating_add(self.parsed).saturating_add(PATTERN + choices);
        // The pattern itself is no group.
        (depth <= DEEPEST + 1).then_some(size)
    }

    pub(super) fn open(&mut self) {
        self.parsed += PARSED;
        self.open.push(Group::default());
    }

    pub(super) fn close(&mut self) {
        if let Some(group) = self.open.pop() {
            self.group().texts += if group.branches > 0 { 0 } else { group.texts };
            self.part(group.close());
        }
    }

    pub(super) fn branch(&mut self) {
        let group = self.group();
        group.branches += 1;
        group.bytes = group.bytes.saturating_add(BRANCH);
        self.parsed += PARSED;
        self.choices += 1;
    }

    /// Takes note that from here on letters stand for both cases. They count so to the end of the pattern.
    pub(super) const fn ignore_case(&mut self) {
        self.without_case = true;
    }

    pub(super) const fn is_without_case(&self) -> bool {
        self.without_case
    }

    pub(super) fn literal(&mut self, character: char) {
        let spellings = match (self.without_case, character.is_ascii()) {
            (true, true) if matches!(character, 'k' | 'K' | 's' | 'S') => ASCII_SPELLINGS,
            (true, true) => 2 * STATE,
            (true, false) => SPELLINGS,
            (false, _) => 0,
        };
        self.choices += if self.without_case { 2 } else { 0 };
        self.group().texts += character.len_utf8();
        self.plain(character.len_utf8() * STATE + spellings);
    }

    pub(super) fn any(&mut self) {
        self.plain(ANY);
    }

    pub(super) fn assertion(&mut self) {
        self.plain(BRANCH);
    }

    /// Begins a class of characters.
    pub(super) const fn open_class(&mut self, is_negated: bool) {
        self.class = CLASS + if is_negated { ANY } else { 0 };
    }

    pub(super) fn close_class(&mut self) {
        self.choices += 1;
        self.part(Part { repeated: 1, bytes: self.class, depth: CLASS_DEPTH });
    }

    /// Adds a class of a few ASCII ranges to the open class.
    pub(super) fn add_ascii(&mut self, is_negated: bool) {
        let spellings = if self.without_case { ASCII_SPELLINGS } else { 0 };
        self.add(4 * ASCII_RANGE + spellings + if is_negated { ANY } else { 0 }, 0);
    }

    /// Adds a class with a name to the open class.
    pub(super) fn add_named(&mut self, class: Class) {
        self.add(class.size, if self.without_case { class.lookups } else { class.size / 64 });
    }

    pub(super) fn add_range(&mut self, low: char, high: char) {
        let span = usize::try_from(u32::from(high).saturating_sub(u32::from(low))).unwrap_or(usize::MAX);
        let range = match span {
            _ if high.is_ascii() => ASCII_RANGE,
            0..64 => NARROW_RANGE,
            _ => WIDE_RANGE,
        };
        if !self.without_case {
            return self.add(range, 0);
        }
        let beyond = if high.is_ascii() { 0 } else { SPELLINGS.saturating_mul(span + 1).min(MOST_SPELLINGS) };
        let ascii = if low.is_ascii() { ASCII_SPELLINGS } else { 0 };
        // Each character of the range is looked up.
        self.add(range + beyond + ascii, span);
    }

    fn add(&mut self, bytes: usize, parsed: usize) {
        // What is in the class already is merged with it.
        self.parsed = self.parsed.saturating_add(parsed + PARSED + self.class / 32);
        self.class = self.class.saturating_add(bytes);
    }

    fn plain(&mut self, bytes: usize) {
        self.part(Part { repeated: 1, bytes, depth: 1 });
    }

    fn part(&mut self, part: Part) {
        self.parsed += PARSED;
        self.last = Some(part);
        let group = self.group();
        group.parts += 1;
        group.bytes = group.bytes.saturating_add(part.bytes);
        group.repeated = group.repeated.max(part.repeated);
        group.depth = group.depth.max(part.depth);
    }

    /// Repeats the last part, up to `count` times; returns the product of the repetition counts within it.
    pub(super) fn repeat(&mut self, count: u32) -> u32 {
        let Some(part) = self.last else { return count };
        self.choices += 1;
        let copies = usize::try_from(count).unwrap_or(usize::MAX).max(1);
        let bytes = part.bytes.saturating_add(REPETITION / 2).saturating_mul(copies).saturating_add(REPETITION);
        let repeated = part.repeated.saturating_mul(count);
        self.last = Some(Part { repeated, bytes, depth: part.depth + 1 });
        let group = self.group();
        group.bytes = group.bytes.saturating_add(bytes - part.bytes);
        group.repeated = group.repeated.max(repeated);
        group.depth = group.depth.max(part.depth + 1);
        repeated
    }

    fn group(&mut self) -> &mut Group {
        self.open.last_mut().unwrap_or(&mut self.pattern)
    }
}
