//! Function of the language, and the form in which tables of functions are written.

use super::cost::Cost;
use crate::fault::Fault;
use crate::meter::Meter;
use crate::value::{Answer, Value};

/// Body of a function.
type Run = for<'v> fn(&mut Meter<'_>, &[Value<'v>]) -> Answer<'v>;

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
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// Signatures with their prices, in the order in which they are tried; `; ` separates those of one price.
    pub(crate) overloads: &'static [(&'static str, Cost)],
    run: Run,
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
        pub(super) const FUNCTIONS: &[$crate::functions::function::Function] = &[$(
            $crate::functions::function::Function::new(
                $name,
                &[$(($signatures, $crate::functions::cost::Cost::$cost)),+],
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
pub(super) use functions;

impl Function {
    pub(super) const fn new(name: &'static str, overloads: &'static [(&'static str, Cost)], run: Run) -> Self {
        Self { name, overloads, run, misuse: Misuse::Signature }
    }

    pub(super) const fn misused(self, misuse: Misuse) -> Self {
        Self { misuse, ..self }
    }

    /// Calls the function; an error of its arguments' types has the words for it.
    pub(crate) fn call<'v>(&self, meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
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
