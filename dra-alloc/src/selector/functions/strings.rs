//! CEL's string library. Positions count characters.

use cel::ExecutionError;
use cel::common::types::{CelInt, CelList, CelString};
use cel::common::value::{CowVal, Val};

use super::Parameter::{Int, List, String as Text};
use super::{Function, count, elements, failed, fuel, global, int, member, mismatch, text, units};
use crate::selector::fuel::Fuel;
use crate::selector::types::{Plain, Ty};

/// Escape sequences of a string literal: character, letter after the backslash.
const ESCAPES: [(char, char); 9] = [
    ('\x07', 'a'),
    ('\x08', 'b'),
    ('\x0c', 'f'),
    ('\n', 'n'),
    ('\r', 'r'),
    ('\t', 't'),
    ('\x0b', 'v'),
    ('\\', '\\'),
    ('"', '"'),
];

const TEXTS: Ty = Ty::ListOf(Plain::String);

pub(super) const FUNCTIONS: &[Function] = &[
    member("lowerAscii", &[Text], Ty::STRING, |args| changed(&args, str::to_ascii_lowercase).map(CowVal::owned)),
    member("upperAscii", &[Text], Ty::STRING, |args| changed(&args, str::to_ascii_uppercase).map(CowVal::owned)),
    member("trim", &[Text], Ty::STRING, |args| changed(&args, |text| text.trim().to_owned()).map(CowVal::owned)),
    global("strings.quote", &[Text], Ty::STRING, |args| changed(&args, quoted).map(CowVal::owned)),
    member("charAt", &[Text, Int], Ty::STRING, |args| char_at(&args).map(CowVal::owned)),
    member("indexOf", &[Text, Text], Ty::INT, |args| index_of(&args).map(CowVal::owned)),
    member("indexOf", &[Text, Text, Int], Ty::INT, |args| index_of(&args).map(CowVal::owned)),
    member("lastIndexOf", &[Text, Text], Ty::INT, |args| last_index_of(&args).map(CowVal::owned)),
    member("lastIndexOf", &[Text, Text, Int], Ty::INT, |args| last_index_of(&args).map(CowVal::owned)),
    member("substring", &[Text, Int], Ty::STRING, |args| substring(&args).map(CowVal::owned)),
    member("substring", &[Text, Int, Int], Ty::STRING, |args| substring(&args).map(CowVal::owned)),
    member("replace", &[Text, Text, Text], Ty::STRING, |args| replace(&args).map(CowVal::owned)),
    member("replace", &[Text, Text, Text, Int], Ty::STRING, |args| replace(&args).map(CowVal::owned)),
    member("split", &[Text, Text], TEXTS, |args| split(&args).map(CowVal::owned)),
    member("split", &[Text, Text, Int], TEXTS, |args| split(&args).map(CowVal::owned)),
    member("join", &[List], Ty::STRING, |args| join(&args).map(CowVal::owned)),
    member("join", &[List, Text], Ty::STRING, |args| join(&args).map(CowVal::owned)),
];

/// Splits the arguments of a function into the text on which it was called, the others, and the cost budget, which is
/// charged for reading the text.
fn parts<'a, 'b, 'v>(args: &'a [CowVal<'b, 'v>]) -> Result<(&'a str, &'a [CowVal<'b, 'v>], &'a Fuel), ExecutionError> {
    let [target, arguments @ .., budget] = args else { return Err(mismatch()) };
    let (target, budget) = (text(target)?, fuel(budget)?);
    budget.spend_bytes(target.len())?;
    Ok((target, arguments, budget))
}

/// Returns the text as a literal with escaped special characters.
fn quoted(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for character in text.chars() {
        match ESCAPES.iter().find(|(special, _)| *special == character) {
            Some((_, escape)) => literal.extend(['\\', *escape]),
            None => literal.push(character),
        }
    }
    literal.push('"');
    literal
}

fn out_of_range(index: i64) -> ExecutionError {
    failed(format!("index out of range: {index}"))
}

/// Returns the position in bytes of the character at `index`; the number of characters stands for the end of the text.
fn byte_of(text: &str, index: i64) -> Result<usize, ExecutionError> {
    let bytes = || text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
    usize::try_from(index).ok().and_then(|index| bytes().nth(index)).ok_or_else(|| out_of_range(index))
}

/// Returns the index of the character that begins at a byte.
fn index_at(text: &str, byte: usize) -> CelInt {
    CelInt::from(count(text.get(..byte).unwrap_or(text).chars().count()))
}

fn changed(args: &[CowVal<'_, '_>], change: impl FnOnce(&str) -> String) -> Result<CelString<'static>, ExecutionError> {
    let (target, _, _) = parts(args)?;
    Ok(CelString::from(change(target)))
}

fn char_at(args: &[CowVal<'_, '_>]) -> Result<CelString<'static>, ExecutionError> {
    let (target, [index], _) = parts(args)? else { return Err(mismatch()) };
    let rest = target.get(byte_of(target, int(index)?)?..).unwrap_or_default();
    Ok(CelString::from(rest.chars().next().map(String::from).unwrap_or_default()))
}

/// Position in a text at which a search starts. A search at or past the end finds nothing except the empty text.
enum Start {
    At(usize),
    PastEnd,
}

impl Start {
    /// Converts an offset in characters to the start of a search in `text`.
    fn of(text: &str, offset: &CowVal<'_, '_>) -> Result<Self, ExecutionError> {
        let offset = int(offset)?;
        let characters = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
        Ok(text.char_indices().nth(characters).map_or(Self::PastEnd, |(byte, _)| Self::At(byte)))
    }
}

fn index_of(args: &[CowVal<'_, '_>]) -> Result<CelInt, ExecutionError> {
    let (target, [wanted, from @ ..], budget) = parts(args)? else { return Err(mismatch()) };
    let wanted = text(wanted)?;
    budget.spend_bytes(wanted.len())?;
    let start = from.first().map_or(Ok(Start::At(0)), |from| Start::of(target, from))?;
    let found = match start {
        Start::At(byte) => target.get(byte..).and_then(|rest| rest.find(wanted)).map(|found| byte + found),
        Start::PastEnd => wanted.is_empty().then_some(target.len()),
    };
    Ok(found.map_or_else(|| CelInt::from(-1), |byte| index_at(target, byte)))
}

fn last_index_of(args: &[CowVal<'_, '_>]) -> Result<CelInt, ExecutionError> {
    let (target, [wanted, from @ ..], budget) = parts(args)? else { return Err(mismatch()) };
    let wanted = text(wanted)?;
    budget.spend_bytes(wanted.len())?;
    // The last place where a match may begin.
    let start = from.first().map_or(Ok(Start::At(target.len())), |from| Start::of(target, from))?;
    let found = match start {
        Start::At(last) => {
            let end = last.saturating_add(wanted.len()).min(target.len());
            // A match ends between two characters.
            let end = (0..=end).rev().find(|end| target.is_char_boundary(*end)).unwrap_or_default();
            target.get(..end).and_then(|start| start.rfind(wanted))
        }
        Start::PastEnd => wanted.is_empty().then_some(target.len()),
    };
    Ok(found.map_or_else(|| CelInt::from(-1), |byte| index_at(target, byte)))
}

fn substring(args: &[CowVal<'_, '_>]) -> Result<CelString<'static>, ExecutionError> {
    let (target, [start, end @ ..], _) = parts(args)? else { return Err(mismatch()) };
    let start = byte_of(target, int(start)?)?;
    let end = end.first().map_or(Ok(target.len()), |end| byte_of(target, int(end)?))?;
    let part = target.get(start..end).ok_or_else(|| failed("invalid substring range: the end is before the start"))?;
    Ok(CelString::from(part.to_owned()))
}

fn replace(args: &[CowVal<'_, '_>]) -> Result<CelString<'static>, ExecutionError> {
    let (target, [old, new, limit @ ..], budget) = parts(args)? else { return Err(mismatch()) };
    let (old, new) = (text(old)?, text(new)?);
    budget.spend_bytes(old.len())?;
    let limit = limit.first().map_or(Ok(-1), int)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let replaced = target.matches(old).take(limit).count();
    budget.spend_bytes(replaced.saturating_mul(new.len()).saturating_add(target.len()))?;
    Ok(CelString::from(target.replacen(old, new, limit)))
}

fn split<'v>(args: &[CowVal<'_, '_>]) -> Result<CelList<'v>, ExecutionError> {
    let (target, [separator, limit @ ..], budget) = parts(args)? else { return Err(mismatch()) };
    let separator = text(separator)?;
    budget.spend_bytes(separator.len())?;
    let limit = limit.first().map_or(Ok(-1), int)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut pieces: Vec<Box<dyn Val + 'v>> = Vec::new();
    let mut rest = Some(target);
    while let Some(remaining) = rest {
        if pieces.len() >= limit || (separator.is_empty() && remaining.is_empty()) {
            break;
        }
        // An empty separator splits after each character.
        let cut = if pieces.len() + 1 == limit {
            None
        } else if separator.is_empty() {
            let first = remaining.chars().next().map_or(0, char::len_utf8);
            remaining.split_at_checked(first).filter(|(_, rest)| !rest.is_empty())
        } else {
            remaining.split_once(separator)
        };
        let (piece, next) = cut.map_or((remaining, None), |(piece, next)| (piece, Some(next)));
        budget.spend_bytes(piece.len())?;
        pieces.push(Box::new(CelString::from(piece.to_owned())));
        rest = next;
    }
    Ok(CelList::from(pieces))
}

fn join(args: &[CowVal<'_, '_>]) -> Result<CelString<'static>, ExecutionError> {
    let [list, separator @ .., budget] = args else { return Err(mismatch()) };
    let separator = separator.first().map_or(Ok(""), text)?;
    let budget = fuel(budget)?;
    let pieces = elements(list)?;
    budget.spend(units(pieces.len()))?;
    let mut bytes = separator.len().saturating_mul(pieces.len());
    let mut texts = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let piece = piece.downcast_ref::<CelString<'_>>().ok_or_else(mismatch)?.inner();
        bytes = bytes.saturating_add(piece.len());
        texts.push(piece);
    }
    budget.spend_bytes(bytes)?;
    Ok(CelString::from(texts.join(separator)))
}
