//! Functions and operators of the language, by name.

pub(super) mod amount;
mod arithmetic;
mod cidr;
pub(super) mod conversions;
mod decimal;
pub(super) mod format;
pub(super) mod formats;
mod ip;
mod lists;
pub(super) mod maps;
mod optional;
mod pattern;
mod quantity;
pub(super) mod regex;
mod relations;
mod semver;
mod sets;
mod sorting;
pub(super) mod strings;
pub(super) mod time;
pub(super) mod url;
mod zone;

use super::fault::Fault;
use super::meter::Meter;
use super::value::{Answer, List, Text, Value};

/// Body of a function.
pub(super) type Run = for<'v> fn(&mut Meter<'_>, &[Value<'v>]) -> Answer<'v>;

/// Wording of a call with arguments of wrong types.
#[derive(Clone, Copy, Debug)]
pub(super) enum Misuse {
    /// `no such overload`
    Plain,
    /// `no such overload: function`, unless the first argument has a type that the function takes, or is a string or a
    /// time.
    Operator(fn(&Value<'_>) -> bool),
    /// `no such overload: function(type, type)`
    Signature,
    /// `no such overload: type.function(type)`
    Method,
}

/// Function as it is evaluated.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) run: Run,
    pub(super) misuse: Misuse,
}

/// Tables of all functions.
const TABLES: [&[Function]; 16] = [
    arithmetic::FUNCTIONS,
    relations::FUNCTIONS,
    conversions::FUNCTIONS,
    strings::FUNCTIONS,
    regex::FUNCTIONS,
    format::FUNCTIONS,
    lists::FUNCTIONS,
    sorting::FUNCTIONS,
    sets::FUNCTIONS,
    maps::FUNCTIONS,
    optional::FUNCTIONS,
    quantity::FUNCTIONS,
    semver::FUNCTIONS,
    ip::FUNCTIONS,
    cidr::FUNCTIONS,
    time::FUNCTIONS,
];
const MORE_TABLES: [&[Function]; 2] = [url::FUNCTIONS, formats::FUNCTIONS];

/// Functions of the authorizer, which nothing can be called on.
const AUTHORIZER: [&str; 14] = [
    "path",
    "group",
    "serviceAccount",
    "resource",
    "subresource",
    "namespace",
    "name",
    "fieldSelector",
    "labelSelector",
    "check",
    "allowed",
    "reason",
    "errored",
    "error",
];
static UNCALLABLE: Function = function("", |_, _| Err(Fault::no_overload()));

const fn function(name: &'static str, run: Run) -> Function {
    Function { name, run, misuse: Misuse::Signature }
}

/// Returns the function of a name.
pub(super) fn lookup(name: &str) -> Option<&'static Function> {
    let found = TABLES.into_iter().chain(MORE_TABLES).flatten().find(|function| function.name == name);
    found.or_else(|| AUTHORIZER.contains(&name).then_some(&UNCALLABLE))
}

impl Function {
    /// Finds the words for an error of a call.
    pub(super) fn worded(&self, fault: Box<Fault>, name: &str, arguments: &[Value<'_>]) -> Box<Fault> {
        match *fault {
            Fault::NoOverload => self.misused(name, arguments),
            _ => fault,
        }
    }

    /// Says that arguments have wrong types, in the words for this function.
    fn misused(&self, name: &str, arguments: &[Value<'_>]) -> Box<Fault> {
        let types = |values: &[Value<'_>]| {
            let names: Vec<&str> = values.iter().map(Value::type_name).collect();
            names.join(", ")
        };
        match (self.misuse, arguments) {
            (Misuse::Plain, _) => Fault::no_overload(),
            (Misuse::Operator(_), [Value::String(_) | Value::Timestamp(_) | Value::Duration(_), ..]) => {
                Fault::no_overload()
            }
            (Misuse::Operator(takes), [first, ..]) if takes(first) => Fault::no_overload(),
            (Misuse::Operator(_), _) => Fault::text(format!("no such overload: {name}")),
            (Misuse::Method, [target, rest @ ..]) => {
                Fault::text(format!("no such overload: {}.{name}({})", target.type_name(), types(rest)))
            }
            (Misuse::Signature | Misuse::Method, _) => {
                Fault::text(format!("no such overload: {name}({})", types(arguments)))
            }
        }
    }
}

/// Makes a string after counting its bytes.
fn made<'v>(meter: &mut Meter<'_>, text: String) -> Answer<'v> {
    meter.make(text.len())?;
    Ok(Value::owned(text))
}

/// Makes a list after counting its elements.
fn list<'v>(meter: &mut Meter<'_>, items: Vec<Value<'v>>) -> Answer<'v> {
    count(meter, items.len())?;
    List::new(items).map(Value::List)
}

/// Counts the memory of a list before it is made.
fn count(meter: &mut Meter<'_>, elements: usize) -> Result<(), Box<Fault>> {
    meter.make(elements.saturating_mul(size_of::<Value<'_>>()))
}

/// Returns a length as an int.
fn int(length: usize) -> Value<'static> {
    Value::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

/// Returns a part of a text: borrowed if the text is.
fn part<'v>(meter: &mut Meter<'_>, text: &Text<'v>, start: usize, end: usize) -> Answer<'v> {
    match text {
        Text::Borrowed(text) => Ok(Value::borrowed(text.get(start..end).unwrap_or_default())),
        Text::Owned(text) => made(meter, text.get(start..end).unwrap_or_default().to_owned()),
    }
}
