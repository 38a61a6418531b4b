//! From the text of an expression to its tree: tokens, grammar, macros.
//!
//! Tests: `tests/it/language.rs`.

pub(super) mod grammar;
pub(super) mod lexer;
pub(super) mod literal;
mod macros;
mod parser;
mod recovery;
pub(super) mod terms;
pub(super) mod token;
pub(super) mod tree;
