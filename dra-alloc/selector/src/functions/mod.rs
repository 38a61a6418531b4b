//! Functions and operators of the language, by name.

pub(super) mod amount;
mod arithmetic;
mod authorizer;
pub(super) mod cidr;
pub(super) mod conversions;
mod decimal;
pub(super) mod format;
pub(super) mod formats;
mod ip;
mod lists;
mod logic;
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

use super::declarations::Cost;
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

/// Function of the language: how it is called, what that costs and what it does.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    /// Signatures with their prices, in the order in which they are tried; `; ` separates those of one price.
    pub(super) overloads: &'static [(&'static str, Cost)],
    pub(super) run: Run,
    misuse: Misuse,
}

/// Writes a table of functions: for each its overloads, with signature, price, arguments and what is done with them.
///
/// A row without arguments is done by another one, or can't be called. One without a signature is called only with
/// arguments whose types are not known before an evaluation.
macro_rules! functions {
    ($meter:ident; $($name:literal $(($misuse:expr))? {
        $($signatures:tt $cost:ident $(: [$($argument:pat),*] $(if $condition:expr)? => $answer:expr)?;)+
    })*) => {
        pub(super) const FUNCTIONS: &[$crate::functions::Function] = &[$(
            $crate::functions::Function::new(
                $name,
                &[$(($signatures, $crate::declarations::Cost::$cost)),+],
                |$meter, arguments| {
                    let _ = &$meter;
                    match arguments {
                        $($([$($argument),*] $(if $condition)? => $answer,)?)+
                        _ => Err($crate::fault::Fault::no_overload()),
                    }
                },
            )$(.misused($misuse))?
        ),*];
    };
}
use functions;

/// Tables of all functions.
const TABLES: [&[Function]; 20] = [
    arithmetic::FUNCTIONS,
    relations::FUNCTIONS,
    logic::FUNCTIONS,
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
    url::FUNCTIONS,
    formats::FUNCTIONS,
    authorizer::FUNCTIONS,
];

/// Returns all functions.
pub(super) fn all() -> impl Iterator<Item = &'static Function> {
    TABLES.into_iter().flatten()
}

impl Function {
    const fn new(name: &'static str, overloads: &'static [(&'static str, Cost)], run: Run) -> Self {
        Self { name, overloads, run, misuse: Misuse::Signature }
    }

    const fn misused(self, misuse: Misuse) -> Self {
        Self { misuse, ..self }
    }

    /// Calls the function; an error of its arguments' types has the words for it.
    pub(super) fn call<'v>(&self, meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
        (self.run)(meter, arguments).map_err(|fault| match *fault {
            Fault::NoOverload => self.no_overload(arguments),
            _ => fault,
        })
    }

    /// Says that arguments have wrong types, in the words for this function.
    fn no_overload(&self, arguments: &[Value<'_>]) -> Box<Fault> {
        let name = self.name;
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

/// Work of making a string, besides that for its bytes.
const MADE: usize = 14;

/// Makes a string after counting its bytes.
fn made<'v>(meter: &mut Meter<'_>, text: String) -> Answer<'v> {
    meter.work(MADE)?;
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

/// Returns the two digits of a byte.
fn hexadecimal(byte: u8, digits: &[u8; 16]) -> [char; 2] {
    [byte >> 4, byte & 15].map(|digit| digits.get(usize::from(digit)).copied().map_or('0', char::from))
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

/// Splits off the leading digits of a text.
fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(end).unwrap_or((text, ""))
}
