//! Names that an expression can use, with their types.
//!
//! Tests: `tests/it/language.rs`, `tests/it/releases.rs`.

pub(super) mod names;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use dra_attrs::internal::release::ListFunctions;
use names::{DeviceFields, FIELDS, Name, SHARING, TYPES};

use crate::functions;
use crate::functions::cost::Cost;
use crate::functions::function::Function;
use crate::types::{self, Type, TypeId, Types};

/// One way to call a function.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overload {
    /// Called as `target.function(argument)`: the target is the first parameter.
    pub(super) has_target: bool,
    pub(super) parameters: Vec<TypeId>,
    pub(super) result: TypeId,
    pub(super) cost: Cost,
}

impl Overload {
    /// Returns true if the last parameter is a list of texts or bytes.
    pub(super) fn takes_texts(&self) -> bool {
        let types = &declarations().types;
        let last = self.parameters.last().map(|of| types.get(*of));
        matches!(last, Some(Type::List(element)) if matches!(types.get(element), Type::String | Type::Bytes))
    }
}

/// Functions, names of types and fields of messages.
#[derive(Debug, Default)]
pub(super) struct Declarations {
    /// Types of the overloads. Variables stand for any type.
    pub(super) types: Types,
    functions: BTreeMap<&'static str, Declared>,
    names: BTreeMap<&'static str, (Name, TypeId)>,
    /// Types of fields, by message and field.
    fields: BTreeMap<(&'static str, &'static str), TypeId>,
}

/// Function with its overloads, in the order in which they are tried.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) function: &'static Function,
    pub(super) overloads: Vec<Overload>,
}

/// Function that is only there with attributes that are lists.
const FOR_LISTS: &str = "includes";

/// Functions that are only there with all functions of lists. `sortBy` is a macro.
const LATER: [&str; 7] = ["lists.range", "slice", "flatten", "sort", "@sortByAssociatedKeys", "distinct", "reverse"];

/// Types for which `T` stands in a signature: those that have an order.
const ORDERED: [&str; 8] = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"];

/// Returns the declarations.
pub(super) fn declarations() -> &'static Declarations {
    static DECLARATIONS: OnceLock<Declarations> = OnceLock::new();
    DECLARATIONS.get_or_init(Declarations::new)
}

impl Declarations {
    fn new() -> Self {
        let mut all = Self::default();
        all.add_names();
        for function in functions::all() {
            let overloads = function.overloads.iter().flat_map(|(signatures, cost)| {
                let signatures = signatures.split("; ").filter(|signature| !signature.is_empty());
                signatures.flat_map(instances).map(|signature| (signature, *cost)).collect::<Vec<_>>()
            });
            let overloads = overloads.map(|(signature, cost)| all.overload(&signature, cost)).collect();
            all.functions.insert(function.name, Declared { function, overloads });
        }
        all
    }

    /// Declares the names and fields.
    fn add_names(&mut self) {
        let device = self.parse("Device");
        self.names.insert("device", (Name::Device, device));
        let int = self.parse("int");
        self.names.insert("google.protobuf.NullValue.NULL_VALUE", (Name::NullValue, int));
        for (name, of, kind) in TYPES {
            let inner = self.parse(of);
            self.names.insert(name, (kind(name), self.types.id(Type::TypeOf(inner))));
        }
        for (messages, fields, of) in FIELDS {
            let of = self.parse(of);
            let pairs = messages.split(' ').flat_map(|message| fields.split(' ').map(move |field| (message, field)));
            self.fields.extend(pairs.map(|pair| (pair, of)));
        }
    }

    fn overload(&mut self, signature: &str, cost: Cost) -> Overload {
        let (call, result) = signature.split_once(" -> ").unwrap_or((signature, "dyn"));
        let (target, arguments) = match call.rsplit_once(".(") {
            Some((target, arguments)) => (Some(target), arguments),
            None => (None, call.strip_prefix('(').unwrap_or(call)),
        };
        let arguments = arguments.strip_suffix(')').unwrap_or(arguments);
        let parameters = target.into_iter().chain(split(arguments)).map(|text| self.parse(text)).collect();
        let result = self.parse(result);
        Overload { has_target: target.is_some(), parameters, result, cost }
    }

    fn parse(&mut self, text: &str) -> TypeId {
        let shape = match text.split_once('(') {
            Some((kind, inner)) => {
                let inner: Vec<TypeId> =
                    split(inner.strip_suffix(')').unwrap_or(inner)).map(|text| self.parse(text)).collect();
                match (kind, inner.as_slice()) {
                    ("list", [element]) => Type::List(*element),
                    ("map", [key, value]) => Type::Map(*key, *value),
                    ("type", [inner]) => Type::TypeOf(*inner),
                    ("optional", [inner]) => Type::Optional(*inner),
                    ("wrapper", [inner]) => Type::Wrapper(self.types.get(*inner).name()),
                    _ => Type::Error,
                }
            }
            None => PLAIN.iter().find(|(name, _)| *name == text).map_or(Type::Error, |(_, of)| *of),
        };
        self.types.id(shape)
    }

    /// Returns a function with its overloads; `None` if there is no such function.
    pub(super) fn declared(&self, name: &str, fields: DeviceFields) -> Option<&Declared> {
        let is_there = match fields.functions {
            ListFunctions::All => true,
            ListFunctions::Basic => !LATER.contains(&name),
        };
        self.functions.get(name).filter(|_| is_there && (fields.lists || name != FOR_LISTS))
    }

    /// Returns a function by its name.
    pub(super) fn function(&self, name: &str) -> Option<&'static Function> {
        Some(self.functions.get(name)?.function)
    }

    /// Returns what a name with or without dots stands for, and its type.
    pub(super) fn lookup(&self, name: &str, types: &mut Types) -> Option<(Name, TypeId)> {
        let (name, of) = *self.names.get(name)?;
        Some((name, types.instance(of, &self.types, &mut Vec::new())))
    }

    /// Returns true if a message literal can have this name.
    pub(super) fn is_message(&self, name: &str) -> bool {
        name == types::EMPTY || self.fields.keys().any(|(message, _)| *message == name)
    }

    /// Returns the type of a message's field, if the message has it.
    pub(super) fn field(&self, message: &str, field: &str, fields: DeviceFields, types: &mut Types) -> Option<TypeId> {
        let of = *self.fields.get(&(message, field)).filter(|_| fields.sharing || field != SHARING)?;
        let attribute = types.id(if fields.lists { Type::Dyn } else { Type::Any });
        Some(types.instance(of, &self.types, &mut vec![Some(attribute)]))
    }
}

/// Returns the signatures that one with `T` stands for.
fn instances(signature: &str) -> Vec<String> {
    if !signature.contains('T') {
        return vec![signature.to_owned()];
    }
    ORDERED.iter().map(|of| signature.replace('T', of)).collect()
}

/// Splits a list of types at the commas that are not within parentheses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let parts = text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

/// Types without parameters, by their names in the tables.
const PLAIN: [(&str, Type); 26] = [
    ("A", Type::Variable(0)),
    ("B", Type::Variable(1)),
    ("dyn", Type::Dyn),
    ("any", Type::Any),
    ("null", Type::Null),
    ("bool", Type::Bool),
    ("int", Type::Int),
    ("uint", Type::Uint),
    ("double", Type::Double),
    ("string", Type::String),
    ("bytes", Type::Bytes),
    ("duration", Type::Duration),
    ("timestamp", Type::Timestamp),
    ("IP", Type::Opaque(types::IP)),
    ("CIDR", Type::Opaque(types::CIDR)),
    ("Device", Type::Message(types::DEVICE)),
    ("Empty", Type::Message(types::EMPTY)),
    ("Quantity", Type::Message(types::QUANTITY)),
    ("Semver", Type::Message(types::SEMVER)),
    ("URL", Type::Message(types::URL)),
    ("Format", Type::Message(types::FORMAT)),
    ("Authorizer", Type::Message("kubernetes.authorization.Authorizer")),
    ("PathCheck", Type::Message("kubernetes.authorization.PathCheck")),
    ("GroupCheck", Type::Message("kubernetes.authorization.GroupCheck")),
    ("ResourceCheck", Type::Message("kubernetes.authorization.ResourceCheck")),
    ("Decision", Type::Message("kubernetes.authorization.Decision")),
];
