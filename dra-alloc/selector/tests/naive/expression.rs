//! Expressions as trees, and their texts.

use std::fmt;

/// Expression of the language.
#[derive(Clone, Debug)]
pub(crate) enum Expression {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
    Variable(String),
    /// `device.attributes['gpu.example']`
    Attributes,
    /// `!`, `-`
    Prefix(&'static str, Box<Self>),
    Binary(&'static str, Box<Self>, Box<Self>),
    Ternary(Box<Self>, Box<Self>, Box<Self>),
    Index(Box<Self>, Box<Self>),
    /// `[?key]`
    OptionalIndex(Box<Self>, Box<Self>),
    Select(Box<Self>, &'static str),
    /// `.?field`
    OptionalSelect(Box<Self>, &'static str),
    Has(Box<Self>, &'static str),
    Call(&'static str, Vec<Self>),
    Method(Box<Self>, &'static str, Vec<Self>),
    /// Macro of a list or map: its name, its variables and its expressions.
    Loop(Box<Self>, &'static str, Vec<String>, Vec<Self>),
    Bind(String, Box<Self>, Box<Self>),
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |all: &[Self]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Uint(number) => write!(f, "{number}u"),
            Self::Double(number) => write!(f, "{number:?}"),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::List(items) => write!(f, "[{}]", joined(items)),
            Self::Map(entries) => {
                let entries: Vec<String> = entries.iter().map(|(key, value)| format!("'{key}': {value}")).collect();
                write!(f, "{{{}}}", entries.join(", "))
            }
            Self::Variable(name) => f.write_str(name),
            Self::Attributes => f.write_str("device.attributes['gpu.example']"),
            Self::Prefix(operator, operand) => write!(f, "{operator}({operand})"),
            Self::Binary(operator, left, right) => write!(f, "({left} {operator} {right})"),
            Self::Ternary(condition, then, otherwise) => write!(f, "({condition} ? {then} : {otherwise})"),
            Self::Index(container, key) => write!(f, "{container}[{key}]"),
            Self::OptionalIndex(container, key) => write!(f, "{container}[?{key}]"),
            Self::Select(container, field) => write!(f, "{container}.{field}"),
            Self::OptionalSelect(container, field) => write!(f, "{container}.?{field}"),
            Self::Has(container, field) => write!(f, "has({container}.{field})"),
            Self::Call(function, arguments) => write!(f, "{function}({})", joined(arguments)),
            Self::Method(target, function, arguments) => write!(f, "{target}.{function}({})", joined(arguments)),
            Self::Loop(range, name, variables, bodies) => {
                write!(f, "{range}.{name}({}, {})", variables.join(", "), joined(bodies))
            }
            Self::Bind(name, value, body) => write!(f, "cel.bind({name}, {value}, {body})"),
        }
    }
}
