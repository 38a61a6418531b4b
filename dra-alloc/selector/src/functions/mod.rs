//! Functions and operators of the language, by name.
//!
//! Tests: `tests/it/values.rs`, `tests/it/net.rs`.

mod arithmetic;
mod authorizer;
mod cidr;
pub(super) mod conversions;
pub(super) mod cost;
mod counted;
pub(super) mod format;
mod formats;
pub(super) mod function;
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
mod strings;
mod time;
mod url;
mod zone;

use function::Function;

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
