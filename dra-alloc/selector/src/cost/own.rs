//! Estimated price of a call, without that of its arguments.

use super::range::{PAIR, PATTERN, Range, TEXT_PAIR, TWO_WALKS, WALK};
use crate::functions::cost::Cost;
use crate::types::Type;

/// Argument of a call; the target is the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    pub(super) size: Range,
    pub(super) of: Type,
    /// Type of a list's elements, or of what an optional holds.
    pub(super) element: Option<Type>,
    /// Size of a list's elements, if it is known from the place in the device.
    pub(super) elements: Range,
    /// Number that is written there.
    pub(super) number: Option<i64>,
}

/// Price and size of a result.
pub(super) type Estimate = (Range, Option<Range>);

const ONE: Range = Range::exactly(1);
/// Price of a list.
pub(crate) const LIST: u64 = 10;
/// Price of a list that a function makes, with that of the call.
const MADE: Range = Range::exactly(LIST + 1);

const NOTHING: Argument =
    Argument { size: Range::UNKNOWN, of: Type::Dyn, element: None, elements: Range::UNKNOWN, number: None };

/// Returns the price of a call, and the size of its result if the call determines it. An overload may be one for lists
/// of texts, which are more expensive to sort.
pub(super) fn own(cost: Cost, arguments: &[Argument], sorts_texts: bool) -> Estimate {
    let argument = |index: usize| arguments.get(index).copied().unwrap_or(NOTHING);
    let size = |index: usize| argument(index).size;
    let first = size(0);
    let walk = first.priced(WALK);
    let plain = |range: Range| (range, None);
    match cost {
        Cost::One | Cost::Fallback | Cost::Control | Cost::Index => plain(ONE),
        Cost::AddText => (first.plus(size(1)).priced(WALK), Some(first.plus(size(1)))),
        Cost::AddList => (ONE, Some(first.plus(size(1)))),
        Cost::Compare | Cost::NotEqual => plain(compared(first, size(1))),
        Cost::Equal => plain(equal(argument(0), argument(1))),
        Cost::InList => plain(size(1)),
        Cost::BytesOfString => (walk, Some(Range::new(first.min, first.max.saturating_mul(4)))),
        Cost::StringOfBytes => (walk, Some(Range::new(first.min / 4, first.max))),
        Cost::Contains => plain(walk.times(size(1).priced(WALK))),
        Cost::Affix => plain(size(1).priced(WALK)),
        Cost::Matches => plain(search(first, size(1))),
        Cost::Find => (search(first, size(1)), Some(Range::new(0, first.max))),
        Cost::IndexOf | Cost::Aggregate => plain(traversal(argument(0))),
        Cost::Copy => (walk, Some(first)),
        Cost::Parse => plain(walk),
        Cost::Replace => (first.priced(TWO_WALKS), Some(replaced(first, size(1), size(2)))),
        Cost::Split => (first.priced(TWO_WALKS), Some(pieces(first, argument(2)))),
        Cost::Join => joined(argument(0), arguments.get(1).map_or(Range::ZERO, |separator| separator.size)),
        // The largest size is not limited: twice the unknown and two more is nothing.
        Cost::Quote => (walk, Some(Range::new(first.min.saturating_add(2), first.max.wrapping_mul(2).wrapping_add(2)))),
        Cost::Format => plain(walk),
        Cost::Sort | Cost::SortBy => {
            let factor = if sorts_texts { TEXT_PAIR } else { PAIR };
            (first.times(first).priced(factor).plus(MADE), Some(first.times(first)))
        }
        Cost::Distinct => (first.times(first).priced(2.0).plus(MADE), Some(first.times(first))),
        Cost::Reverse => (made(first), Some(first)),
        Cost::Slice => {
            let (start, end) = (argument(1).number, argument(2).number);
            let end = end.map_or(first.max, natural);
            let size = Range::exactly(end.wrapping_sub(start.map_or(0, natural)));
            (made(size), Some(size))
        }
        Cost::Flatten => {
            let depth = arguments.get(1).map_or(Some(1), |depth| depth.number);
            (made(first.times(Range::exactly(depth.map_or(u64::MAX, natural)))), Some(first))
        }
        Cost::Range => {
            let size = Range::exactly(argument(0).number.map_or(u64::MAX, natural));
            (made(size), Some(size))
        }
        Cost::SetPair => plain(first.times(size(1)).plus(ONE)),
        Cost::SetEquivalent => plain(first.times(size(1)).priced(2.0).plus(ONE)),
        Cost::Includes => plain(Range::new(0, 48)),
        Cost::Canonical => plain(first.priced(TWO_WALKS)),
        Cost::ContainsIp | Cost::ContainsIpText => plain(Range::new(1, 4).plus(text(argument(1)))),
        Cost::ContainsCidr | Cost::ContainsCidrText => {
            plain(Range::new(1, 4).plus(Range::new(1, 2)).plus(ONE).plus(text(argument(1))))
        }
        Cost::Validate => plain(size(1).priced(WALK).times(Range::exactly(32))),
        Cost::Check => plain(Range::exactly(350_000)),
        Cost::Selector => {
            let half = size(1).priced(0.5);
            plain(size(1).priced(WALK).plus(half.times(Range::exactly(50))).plus(Range::exactly(10)))
        }
    }
}

/// Price of a list of a size that a function makes.
fn made(size: Range) -> Range {
    size.priced(1.0).plus(MADE)
}

/// Returns a number that is written in a text, 0 for one below.
fn natural(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Price of reading an argument that may be a text.
fn text(argument: Argument) -> Range {
    if argument.of == Type::String { argument.size.priced(WALK) } else { Range::ZERO }
}

fn compared(one: Range, other: Range) -> Range {
    let most = one.max.min(other.max);
    Range::new(u64::from(most > 0), most).priced(WALK)
}

fn equal(one: Argument, other: Argument) -> Range {
    use crate::types::{CIDR, FORMAT, IP, QUANTITY, SEMVER, URL};
    match one.of {
        Type::Message(QUANTITY | SEMVER) | Type::Opaque(IP | CIDR) if one.of == other.of => ONE,
        Type::Message(FORMAT) if one.of == other.of => Range::new(1, 7),
        Type::Message(URL) if one.of == other.of => Range::new(1, other.size.max).priced(WALK),
        _ => compared(one.size, other.size),
    }
}

/// Price of a search for a pattern. An empty text counts, too.
fn search(text: Range, pattern: Range) -> Range {
    text.plus(ONE).priced(WALK).times(pattern.priced(PATTERN))
}

/// Price of looking at each element of a list, or at each character.
fn traversal(list: Argument) -> Range {
    if !matches!(list.of, Type::List(_)) {
        return list.size.priced(WALK);
    }
    let is_text = matches!(list.element, Some(Type::String | Type::Bytes));
    let element = if is_text { ONE.plus(list.elements.priced(WALK)) } else { ONE };
    list.size.times(element)
}

/// Number of pieces that a text can be divided into, at most a number that may be given.
fn pieces(text: Range, limit: Argument) -> Range {
    let most = limit.number.and_then(|number| u64::try_from(number).ok());
    Range::new(0, most.unwrap_or(text.max))
}

/// Size of a text in which `old` is replaced by `new`.
fn replaced(text: Range, old: Range, new: Range) -> Range {
    let divided = |size: u64, by: u64| size.div_ceil(by.max(1));
    let (most, kept) = match old.min {
        0 => (text.max.saturating_add(1), text.max),
        _ if new.max <= old.min => (0, text.max),
        shortest => (divided(text.max, shortest), 0),
    };
    let (least, left) = match old.max {
        0 => (text.min.saturating_add(1), text.min),
        longest if longest <= new.min => (0, text.min),
        longest => (divided(text.min, longest), 0),
    };
    Range::new(least, most).times(new).plus(Range::new(left, kept))
}

fn joined(list: Argument, separator: Range) -> Estimate {
    if !matches!(list.of, Type::List(_)) {
        return (Range::ZERO, Some(Range::ZERO));
    }
    let gaps = Range::new(list.size.min.saturating_sub(1), list.size.max.saturating_sub(1));
    let size = list.size.times(list.elements).plus(separator.times(gaps));
    (size.priced(WALK), Some(size))
}
