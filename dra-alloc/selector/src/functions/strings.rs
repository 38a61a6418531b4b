//! Strings.

use super::counted::{count, int, made, part};
use super::function::{Misuse, functions};
use crate::fault::Fault;
use crate::meter::Meter;
use crate::syntax::literal::CONTROLS;
use crate::value::equality::is_equal;
use crate::value::shown::plain;
use crate::value::{Answer, List, Text, Value};

functions! { meter;
    "contains"(Misuse::Plain) {
        "string.(string) -> bool" Contains: [Value::String(text), Value::String(other)] =>
            test(meter, text, other, |text, other| text.contains(other));
    }
    "startsWith"(Misuse::Plain) {
        "string.(string) -> bool" Affix: [Value::String(text), Value::String(other)] =>
            test(meter, text, other, |text, other| text.starts_with(other));
    }
    "endsWith"(Misuse::Plain) {
        "string.(string) -> bool" Affix: [Value::String(text), Value::String(other)] =>
            test(meter, text, other, |text, other| text.ends_with(other));
    }
    "charAt" {
        "string.(int) -> string" One: [Value::String(text), Value::Int(index)] => char_at(meter, text, *index);
    }
    "indexOf" {
        "list(A).(A) -> int" IndexOf: [Value::List(list), item] => position(meter, item, list.items().iter().enumerate());
        "string.(string) -> int" IndexOf:
            [Value::String(text), Value::String(other)] => index_of(meter, text, other, 0);
        "string.(string, int) -> int" IndexOf:
            [Value::String(text), Value::String(other), Value::Int(from)] => index_of(meter, text, other, *from);
    }
    "lastIndexOf" {
        "list(A).(A) -> int" IndexOf: [Value::List(list), item] => position(meter, item, list.items().iter().enumerate().rev());
        "string.(string) -> int" IndexOf:
            [Value::String(text), Value::String(other)] => last_index_of(meter, text, other, None);
        "string.(string, int) -> int" IndexOf: [Value::String(text), Value::String(other), Value::Int(from)] =>
            last_index_of(meter, text, other, Some(*from));
    }
    "lowerAscii" { "string.() -> string" Copy: [Value::String(text)] => made(meter, text.to_ascii_lowercase()); }
    "upperAscii" { "string.() -> string" Copy: [Value::String(text)] => made(meter, text.to_ascii_uppercase()); }
    "trim" { "string.() -> string" Copy: [Value::String(text)] => trim(meter, text); }
    "replace" {
        "string.(string, string) -> string" Replace:
            [Value::String(text), Value::String(old), Value::String(new)] => replace(meter, text, old, new, -1);
        "string.(string, string, int) -> string" Replace:
            [Value::String(text), Value::String(old), Value::String(new), Value::Int(most)] =>
            replace(meter, text, old, new, *most);
    }
    "split" {
        "string.(string) -> list(string)" Split:
            [Value::String(text), Value::String(separator)] => split(meter, text, separator, -1);
        "string.(string, int) -> list(string)" Split:
            [Value::String(text), Value::String(separator), Value::Int(most)] => split(meter, text, separator, *most);
    }
    "substring" {
        "string.(int) -> string" Copy: [Value::String(text), Value::Int(start)] => substring(meter, text, *start, None);
        "string.(int, int) -> string" Copy: [Value::String(text), Value::Int(start), Value::Int(end)] =>
            substring(meter, text, *start, Some(*end));
    }
    "join" {
        "list(string).() -> string" Join: [Value::List(list)] => join(meter, list, "");
        "list(string).(string) -> string" Join:
            [Value::List(list), Value::String(separator)] => join(meter, list, separator);
    }
    "strings.quote" { "(string) -> string" Quote: [Value::String(text)] => quote(meter, text); }
}

fn test<'v>(meter: &mut Meter<'_>, text: &str, other: &str, holds: fn(&str, &str) -> bool) -> Answer<'v> {
    meter.work(text.len() / 8 + other.len() / 8)?;
    Ok(Value::Bool(holds(text, other)))
}

/// Returns the byte at which a character begins; the number of characters is the end of the text.
fn offset(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.nth(index)
}

fn characters(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

fn out_of_range(index: i64) -> Box<Fault> {
    Fault::text(format!("index out of range: {index}"))
}

fn char_at<'v>(meter: &mut Meter<'_>, text: &Text<'v>, index: i64) -> Answer<'v> {
    meter.work(text.len() / 8)?;
    let start = offset(text, index).ok_or_else(|| out_of_range(index))?;
    let length = text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    part(meter, text, start, start + length)
}

fn index_of<'v>(meter: &mut Meter<'_>, text: &str, other: &str, from: i64) -> Answer<'v> {
    meter.work(text.len() / 4 + other.len() / 4)?;
    if other.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    let Some(start) = offset(text, from) else { return Ok(Value::Int(-1)) };
    let found = text.get(start..).and_then(|rest| rest.find(other));
    Ok(Value::Int(found.map_or(-1, |at| characters(text.get(..start + at).unwrap_or_default()))))
}

fn last_index_of<'v>(meter: &mut Meter<'_>, text: &str, other: &str, from: Option<i64>) -> Answer<'v> {
    meter.work(text.len() / 4 + other.len() / 4)?;
    let length = characters(text);
    if other.is_empty() {
        return Ok(Value::Int(from.unwrap_or(length)));
    }
    match from {
        Some(from) if from < 0 => return Err(out_of_range(from)),
        Some(from) if from >= length => return Ok(Value::Int(-1)),
        _ => {}
    }
    // A match may begin at the given character, and end after it.
    let end = from.and_then(|from| offset(text, from)).map_or(text.len(), |start| start + other.len());
    let end = (0..=end.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    let found = text.get(..end).and_then(|head| head.rfind(other));
    Ok(Value::Int(found.map_or(-1, |at| characters(text.get(..at).unwrap_or_default()))))
}

/// Returns the index of the first element that is equal to an item.
fn position<'e, 'v: 'e>(
    meter: &mut Meter<'_>,
    item: &Value<'v>,
    elements: impl Iterator<Item = (usize, &'e Value<'v>)>,
) -> Answer<'v> {
    for (index, element) in elements {
        if is_equal(item, element, meter)? {
            return Ok(int(index));
        }
    }
    Ok(Value::Int(-1))
}

fn trim<'v>(meter: &mut Meter<'_>, text: &Text<'v>) -> Answer<'v> {
    let start = text.len() - text.trim_start().len();
    let end = text.trim_end().len();
    part(meter, text, start, end.max(start))
}

fn replace<'v>(meter: &mut Meter<'_>, text: &str, old: &str, new: &str, most: i64) -> Answer<'v> {
    meter.work(text.len() / 8)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let count = text.matches(old).take(most).count();
    meter.work(4 * count)?;
    meter.make(text.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(Value::owned(text.replacen(old, new, most)))
}

fn split<'v>(meter: &mut Meter<'_>, text: &Text<'v>, separator: &str, most: i64) -> Answer<'v> {
    meter.work(text.len() / 8)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if most == 0 || (separator.is_empty() && text.is_empty()) {
        return List::new(Vec::new()).map(Value::List);
    }
    let total = borders(text, separator).take(most - 1).count() + 1;
    count(meter, 2 * total)?;
    let mut pieces = Vec::with_capacity(total);
    let mut start = 0;
    for (end, next) in borders(text, separator).take(most - 1) {
        pieces.push(part(meter, text, start, end)?);
        start = next;
    }
    pieces.push(part(meter, text, start, text.len())?);
    List::new(pieces).map(Value::List)
}

/// Returns the ends of a text's pieces, each with the beginning of the next one; without separator pieces are characters.
fn borders(text: &str, separator: &str) -> impl Iterator<Item = (usize, usize)> {
    let characters = text.char_indices().skip(1).map(|(at, _)| (at, at)).take_while(|_| separator.is_empty());
    let separators = text.match_indices(separator).map(|(at, found)| (at, at + found.len()));
    characters.chain(separators.take_while(|_| !separator.is_empty()))
}

fn substring<'v>(meter: &mut Meter<'_>, text: &Text<'v>, start: i64, end: Option<i64>) -> Answer<'v> {
    meter.work(text.len() / 4)?;
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(Fault::text(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let first = offset(text, start).ok_or_else(|| out_of_range(start))?;
    let last = end.map_or(Ok(text.len()), |end| offset(text, end).ok_or_else(|| out_of_range(end)))?;
    part(meter, text, first, last)
}

fn join<'v>(meter: &mut Meter<'_>, list: &List<'v>, separator: &str) -> Answer<'v> {
    if !matches!(list.items().first(), None | Some(Value::String(_))) {
        return Err(Fault::no_overload());
    }
    let mut texts: Vec<&str> = Vec::with_capacity(list.len());
    for item in list.items() {
        match item {
            Value::String(text) => texts.push(text),
            other => {
                let shown = plain(other).unwrap_or_default();
                return Err(Fault::text(format!("join: invalid input: {shown}")));
            }
        }
    }
    let length = texts.iter().map(|text| text.len() + separator.len()).sum();
    meter.make(length)?;
    Ok(Value::owned(texts.join(separator)))
}

fn quote<'v>(meter: &mut Meter<'_>, text: &str) -> Answer<'v> {
    meter.make(text.len() * 2 + 2)?;
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        let control = CONTROLS.iter().find(|(_, control)| *control == character).map(|(letter, _)| *letter);
        match control.or_else(|| matches!(character, '\\' | '"').then_some(character)) {
            Some(letter) => quoted.extend(['\\', letter]),
            None => quoted.push(character),
        }
    }
    quoted.push('"');
    Ok(Value::owned(quoted))
}
