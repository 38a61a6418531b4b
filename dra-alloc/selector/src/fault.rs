//! Errors within an evaluation. Most are absorbed by `||`, `&&` and loops.

use std::borrow::Cow;

use dra_attrs::Quoted;

/// Number of characters of a device's or expression's text that a message keeps.
pub(super) const LONGEST_TEXT: usize = 512;

/// Error of a pattern that Go accepts, and of selectors whose patterns take too much memory together.
pub(super) const TOO_LARGE: &str = "error parsing regexp: expression too large";

/// Reason that a part of an expression has no value.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// Arguments of wrong types; whoever calls finds the words.
    NoOverload,
    NoSuchKey(String),
    Text(Cow<'static, str>),
    /// Ends the evaluation, whatever is around it.
    Fatal(Fatal),
}

#[derive(Clone, Debug)]
pub(super) enum Fatal {
    /// The limit of costs, or the bound on work and memory.
    Cost,
    Interrupted,
    Text(String),
}

impl Fault {
    pub(super) fn text(message: impl Into<Cow<'static, str>>) -> Box<Self> {
        Box::new(Self::Text(message.into()))
    }

    pub(super) fn no_overload() -> Box<Self> {
        Box::new(Self::NoOverload)
    }

    pub(super) fn no_such_key(key: impl Into<String>) -> Box<Self> {
        Box::new(Self::NoSuchKey(key.into()))
    }

    /// Returns the error of an evaluation that does or holds too much.
    pub(super) fn too_much() -> Box<Self> {
        Box::new(Self::Fatal(Fatal::Cost))
    }

    /// Returns the error of an evaluation that the caller has stopped.
    pub(super) fn interrupted() -> Box<Self> {
        Box::new(Self::Fatal(Fatal::Interrupted))
    }

    pub(super) fn internal(message: &str) -> Box<Self> {
        Box::new(Self::Fatal(Fatal::Text(format!("internal error: {message}"))))
    }

    /// Returns the error for a value that can't be a key, by the name of its type in upstream's source.
    pub(super) fn unhashable(inner_type_name: &str) -> Box<Self> {
        Self::internal(&format!("runtime error: hash of unhashable type {inner_type_name}"))
    }

    pub(super) const fn is_fatal(&self) -> bool {
        matches!(self, Self::Fatal(_))
    }
}

/// Quotes a text for an error, as far as one is shown.
pub(super) fn quoted(text: &str) -> Quoted<'_> {
    let end = text.char_indices().nth(LONGEST_TEXT).map_or(text.len(), |(end, _)| end);
    Quoted(text.get(..end).unwrap_or(text))
}

impl From<&'static str> for Box<Fault> {
    fn from(message: &'static str) -> Self {
        Fault::text(message)
    }
}

impl From<String> for Box<Fault> {
    fn from(message: String) -> Self {
        Fault::text(message)
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoOverload => f.write_str("no such overload"),
            Self::NoSuchKey(key) => write!(f, "no such key: {key}"),
            Self::Text(message) => f.write_str(message),
            Self::Fatal(Fatal::Cost) => f.write_str("operation cancelled: actual cost limit exceeded"),
            Self::Fatal(Fatal::Interrupted) => f.write_str("operation interrupted"),
            Self::Fatal(Fatal::Text(message)) => f.write_str(message),
        }
    }
}
