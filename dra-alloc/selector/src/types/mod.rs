//! Types of expressions.
//!
//! Tests: `tests/it/language.rs`.

mod agreement;

use std::collections::BTreeMap;

/// Largest nesting and largest number of parts of a type. Types of expressions that people write have below ten.
const MOST_PARTS: u32 = 2_000;
const MOST_NESTED: u32 = 250;

/// Number of a type in [`Types`]: equal types have equal numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TypeId(u32);

/// Type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::enum_variant_names, reason = "the type of a type")]
pub(super) enum Type {
    Dyn,
    /// Value of an attribute where lists are not allowed.
    Any,
    /// Type of what is wrong; agrees with everything.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(TypeId),
    Map(TypeId, TypeId),
    TypeOf(TypeId),
    Optional(TypeId),
    /// Type without parts that is equal to nothing but itself: an address.
    Opaque(&'static str),
    Message(&'static str),
    /// Value of a message's field that may be null.
    Wrapper(&'static str),
    Variable(u32),
}

pub(super) const DEVICE: &str = "kubernetes.DRADevice";
pub(super) const EMPTY: &str = "google.protobuf.Empty";
pub(super) const QUANTITY: &str = "kubernetes.Quantity";
pub(super) const SEMVER: &str = "kubernetes.Semver";
pub(super) const URL: &str = "kubernetes.URL";
pub(super) const FORMAT: &str = "kubernetes.NamedFormat";
pub(super) const IP: &str = "net.IP";
pub(super) const CIDR: &str = "net.CIDR";

/// Types of one expression, and what is known about their variables.
#[derive(Debug, Default)]
pub(super) struct Types {
    all: Vec<Stored>,
    numbers: BTreeMap<Type, TypeId>,
    /// Type that stands for each variable.
    substitutes: Vec<Option<TypeId>>,
    /// Former substitutes, to undo what a failed attempt did.
    trail: Vec<(u32, Option<TypeId>)>,
    /// A type was left out because it is too large.
    pub(super) is_too_large: bool,
}

#[derive(Clone, Copy, Debug)]
struct Stored {
    shape: Type,
    parts: u32,
    nesting: u32,
    has_variables: bool,
}

const UNKNOWN: Stored = Stored { shape: Type::Dyn, parts: 1, nesting: 1, has_variables: false };

impl Types {
    /// Returns the number of a type.
    pub(super) fn id(&mut self, shape: Type) -> TypeId {
        if let Some(id) = self.numbers.get(&shape) {
            return *id;
        }
        let stored = self.measured(shape);
        if stored.parts > MOST_PARTS || stored.nesting > MOST_NESTED {
            self.is_too_large = true;
            return self.id(Type::Dyn);
        }
        let id = TypeId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        self.all.push(stored);
        self.numbers.insert(shape, id);
        id
    }

    fn measured(&self, shape: Type) -> Stored {
        let parts = shape.parameters().into_iter().flatten().map(|id| self.stored(id));
        let alone = Stored { shape, has_variables: matches!(shape, Type::Variable(_)), ..UNKNOWN };
        parts.fold(alone, |whole, part| Stored {
            shape,
            parts: whole.parts.saturating_add(part.parts),
            nesting: whole.nesting.max(part.nesting + 1),
            has_variables: whole.has_variables || part.has_variables,
        })
    }

    fn stored(&self, id: TypeId) -> Stored {
        self.all.get(id.0 as usize).copied().unwrap_or(UNKNOWN)
    }

    pub(super) fn get(&self, id: TypeId) -> Type {
        self.stored(id).shape
    }

    /// Returns the optional of a type; an optional stays what it is.
    pub(super) fn optional(&mut self, inner: TypeId) -> TypeId {
        match self.get(inner) {
            Type::Optional(_) => inner,
            _ => self.id(Type::Optional(inner)),
        }
    }

    /// Makes a new variable.
    pub(super) fn fresh(&mut self) -> TypeId {
        let number = u32::try_from(self.substitutes.len()).unwrap_or(u32::MAX);
        self.substitutes.push(None);
        self.id(Type::Variable(number))
    }

    /// Replaces the variables of a type by what is known about them; free ones become dyn if `free` says so.
    pub(super) fn substituted(&mut self, id: TypeId, free: Free) -> TypeId {
        if !self.stored(id).has_variables {
            return id;
        }
        if let Type::Variable(number) = self.get(id) {
            return match (self.substitute(number), free) {
                (Some(known), _) => self.substituted(known, free),
                (None, Free::Dyn) => self.id(Type::Dyn),
                (None, Free::Stays) => id,
            };
        }
        let shape = self.get(id).with_parameters(|part| self.substituted(part, free));
        self.id(shape)
    }

    /// Makes the type of a declaration an expression's own: its variables become those of a list.
    pub(super) fn instance(&mut self, id: TypeId, declared: &Self, variables: &mut Vec<Option<TypeId>>) -> TypeId {
        if let Type::Variable(number) = declared.get(id) {
            let index = number as usize;
            variables.resize(variables.len().max(index + 1), None);
            let known = variables.get(index).copied().flatten();
            let variable = known.unwrap_or_else(|| self.fresh());
            if let Some(slot) = variables.get_mut(index) {
                *slot = Some(variable);
            }
            return variable;
        }
        let shape = declared.get(id).with_parameters(|part| self.instance(part, declared, variables));
        self.id(shape)
    }

    fn substitute(&self, variable: u32) -> Option<TypeId> {
        self.substitutes.get(variable as usize).copied().flatten()
    }

    /// Returns a type as messages show it.
    pub(super) fn shown(&self, id: TypeId) -> String {
        self.named(id, Type::name)
    }

    /// Returns a type as it is shown as the type of a result.
    pub(super) fn full_name(&self, id: TypeId) -> String {
        self.named(id, Type::full_name)
    }

    fn named(&self, id: TypeId, name: fn(Type) -> &'static str) -> String {
        let shape = self.get(id);
        match (shape, shape.parameters()) {
            (Type::Wrapper(inner), _) => format!("wrapper({inner})"),
            (Type::Variable(number), _) => format!("_var{number}"),
            (Type::TypeOf(inner), _) if matches!(self.get(inner), Type::TypeOf(_)) => "type(type)".to_owned(),
            (_, [Some(first), None]) => format!("{}({})", name(shape), self.named(first, name)),
            (_, [Some(first), Some(second)]) => {
                format!("{}({}, {})", name(shape), self.named(first, name), self.named(second, name))
            }
            _ => name(shape).to_owned(),
        }
    }
}

/// Replacement of a variable without a substitute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Free {
    Stays,
    Dyn,
}

impl Type {
    const fn parameters(self) -> [Option<TypeId>; 2] {
        match self {
            Self::List(one) | Self::TypeOf(one) | Self::Optional(one) => [Some(one), None],
            Self::Map(key, value) => [Some(key), Some(value)],
            _ => [None, None],
        }
    }

    /// Returns the type with other parameters.
    fn with_parameters(self, mut other: impl FnMut(TypeId) -> TypeId) -> Self {
        match self {
            Self::List(element) => Self::List(other(element)),
            Self::Map(key, value) => Self::Map(other(key), other(value)),
            Self::TypeOf(inner) => Self::TypeOf(other(inner)),
            Self::Optional(inner) => Self::Optional(other(inner)),
            plain => plain,
        }
    }

    /// Returns true for types that are only known when an expression is evaluated.
    pub(super) const fn is_open(self) -> bool {
        matches!(self, Self::Dyn | Self::Any | Self::Error)
    }

    /// Returns the name of a type without parameters, in messages about results.
    pub(super) const fn full_name(self) -> &'static str {
        match self {
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Any => "google.protobuf.Any",
            Self::Null => "null_type",
            other => other.name(),
        }
    }

    /// Returns the name of a type without parameters, in messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Dyn => "dyn",
            Self::Any => "any",
            Self::Error => "!error!",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "duration",
            Self::Timestamp => "timestamp",
            Self::Opaque(name) | Self::Message(name) | Self::Wrapper(name) => name,
            Self::List(_) => "list",
            Self::Map(..) => "map",
            Self::TypeOf(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Variable(_) => "",
        }
    }
}
