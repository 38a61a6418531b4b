//! Values that functions make, after counting their work and memory.

use crate::fault::Fault;
use crate::meter::Meter;
use crate::value::{Answer, List, Text, Value};

/// Work of making a string, besides that for its bytes.
const MADE: usize = 14;

/// Makes a string after counting its bytes.
pub(super) fn made<'v>(meter: &mut Meter<'_>, text: String) -> Answer<'v> {
    meter.work(MADE)?;
    meter.make(text.len())?;
    Ok(Value::owned(text))
}

/// Makes a list after counting its elements.
pub(super) fn list<'v>(meter: &mut Meter<'_>, items: Vec<Value<'v>>) -> Answer<'v> {
    count(meter, items.len())?;
    List::new(items).map(Value::List)
}

/// Counts the memory of a list before it is made.
pub(super) fn count(meter: &mut Meter<'_>, elements: usize) -> Result<(), Box<Fault>> {
    meter.make(elements.saturating_mul(size_of::<Value<'_>>()))
}

/// Returns a length as an int.
pub(super) fn int(length: usize) -> Value<'static> {
    Value::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

/// Returns a part of a text: borrowed if the text is.
pub(super) fn part<'v>(meter: &mut Meter<'_>, text: &Text<'v>, start: usize, end: usize) -> Answer<'v> {
    match text {
        Text::Borrowed(text) => Ok(Value::borrowed(text.get(start..end).unwrap_or_default())),
        Text::Owned(text) => made(meter, text.get(start..end).unwrap_or_default().to_owned()),
    }
}
